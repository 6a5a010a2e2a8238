"""Estimators whose annotated attributes are their parameters, each declared once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, dataclass_transform

from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError

from veridical.errors import ParameterError, UnfittedError


class UnfittedCalibratorError(UnfittedError, NotFittedError):  # type: ignore[misc]
    """An :class:`veridical.errors.UnfittedError` that scikit-learn knows as its own."""


@dataclass_transform(kw_only_default=True, eq_default=False)
class ParametersAsFields(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of classifiers whose subclasses are keyword-only dataclasses.

    scikit-learn reads parameters from the signature of ``__init__``, which a dataclass writes; comparison and
    representation stay scikit-learn's.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclass(kw_only=True, eq=False, repr=False, match_args=False)(cls)
        cls.__init__ = _explain_positional(cls.__init__)  # type: ignore[method-assign]


def _explain_positional(init: Callable[..., None]) -> Callable[..., None]:
    """The same ``__init__``, with a sentence for positional arguments; its signature stays that of ``init``."""

    @functools.wraps(init)
    def checked(self: Any, /, *misplaced: Any, **parameters: Any) -> None:
        if misplaced:
            name = type(self).__name__
            raise ParameterError(
                f"{name} got a positional argument of type {type(misplaced[0]).__name__}; parameters are given by "
                f"name, and predictions to fit: {name}().fit(predictions, labels)."
            )
        init(self, **parameters)

    return checked
