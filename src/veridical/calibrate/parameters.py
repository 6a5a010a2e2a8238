"""Estimators whose annotated attributes are their parameters, each declared once.

They follow scikit-learn's protocol for estimators without inheriting from it: a saved calibrator is loaded and applied
where importing scikit-learn would take longer than the answer.  What needs scikit-learn imports it on use.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Self, dataclass_transform

import numpy as np

from veridical.errors import LabelError, ParameterError, UnfittedError
from veridical.predictions.classes import UNKNOWN
from veridical.predictions.validation import check_weights

#: What scikit-learn's meta-estimators call the estimators that they take.
_ESTIMATOR_NAMES = ("estimator", "estimators", "base_estimator")


@functools.cache
def unfitted_error() -> type[UnfittedError]:
    """The :class:`veridical.errors.UnfittedError` that scikit-learn knows as its own NotFittedError."""
    from sklearn.exceptions import NotFittedError

    def rebuild(error: UnfittedError) -> Any:
        return _unfitted, error.args  # a pickle finds the function by its name, and not this class

    return type("UnfittedCalibratorError", (UnfittedError, NotFittedError), {"__reduce__": rebuild})


def _unfitted(*arguments: Any) -> UnfittedError:
    return unfitted_error()(*arguments)


@dataclass_transform(kw_only_default=True, eq_default=False)
class ParametersAsFields:
    """Base of classifiers whose subclasses are keyword-only dataclasses, in scikit-learn's protocol."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclass(kw_only=True, eq=False, repr=False, match_args=False)(cls)
        cls.__init__ = _explain_positional(cls.__init__)  # type: ignore[method-assign]

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(field.name for field in fields(cls))  # type: ignore[arg-type]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameter names and values; ``deep`` is there for scikit-learn, as no parameter is an estimator."""
        return {name: getattr(self, name) for name in self._get_param_names()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; they are checked when they are used."""
        names = self._get_param_names()
        for name in params:
            if name not in names:
                raise ParameterError(
                    f"Invalid parameter {name!r} for estimator {self}; the parameters are: {', '.join(names)}."
                )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:  # noqa: N803  scikit-learn's name
        """Accuracy of ``predict(X)`` over the samples whose label is known; ``y`` is as in ``fit``."""
        whole = self.new_predictions(X)  # type: ignore[attr-defined]
        predictions = (whole if y is None else whole.with_labels(y)).flat()
        if predictions.labels is None or predictions.n_samples == 0:
            raise LabelError("a score needs labels; give y, one integer per sample.")
        known = predictions.labels != UNKNOWN
        weights = np.ones(len(known)) if sample_weight is None else check_weights(sample_weight, len(known))
        weights = check_weights(weights[known], int(known.sum()))
        correct = (self.predict(predictions) == predictions.labels)[known]  # type: ignore[attr-defined]
        return float(np.average(correct, weights=weights / weights.max()))

    def __repr__(self) -> str:
        changed = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)  # type: ignore[arg-type]
            if repr(getattr(self, field.name)) != repr(field.default)
        ]
        chosen = vars(self).get("best_")  # of a calibrator that chooses among others
        choice = "" if chosen is None else f": {chosen.name} on {chosen.combine}"
        return f"{type(self).__name__}({', '.join(changed)}){choice}"

    def _repr_html_(self) -> str:
        from sklearn.utils import estimator_html_repr

        return str(estimator_html_repr(self))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
        )


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
