"""Estimators whose annotated attributes are their parameters, each declared once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, dataclass_transform

from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError

from veridical.errors import ParameterError, UnfittedError

#: What scikit-learn's meta-estimators call the estimators that they take.
_ESTIMATOR_NAMES = ("estimator", "estimators", "base_estimator")


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


def reject_estimators(value: Any, name: str, method: str) -> None:
    """Raise for a classifier, or a list of them, where predictions or nothing belong; say which class takes them."""
    first = value[0] if isinstance(value, (list, tuple)) and value else value
    first = first[1] if isinstance(first, tuple) and len(first) == 2 else first
    is_class = isinstance(first, type)
    if (
        not is_class
        and not isinstance(first, ParametersAsFields)
        and hasattr(first, "fit")
        and hasattr(first, "predict")
    ):
        raise ParameterError(
            f"{name} calibrates predictions and got an estimator, a {type(first).__name__}; to fit estimators and "
            f'calibrate their predictions use veridical.CalibratedEnsemble([...], method="{method}").'
        )


def _explain_positional(init: Callable[..., None]) -> Callable[..., None]:
    """The same ``__init__``, with a sentence for positional arguments; its signature stays that of ``init``."""

    @functools.wraps(init)
    def checked(self: Any, /, *misplaced: Any, **parameters: Any) -> None:
        name = type(self).__name__
        for value in (*misplaced, *(parameters[key] for key in _ESTIMATOR_NAMES if key in parameters)):
            reject_estimators(value, name, getattr(self, "name", "auto"))
        if misplaced:
            raise ParameterError(
                f"{name} got a positional argument of type {type(misplaced[0]).__name__}; parameters are given by "
                f"name, and predictions to fit: {name}().fit(predictions, labels)."
            )
        init(self, **parameters)

    return checked
