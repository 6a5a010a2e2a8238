"""A fitted classifier as a source: its scores for samples, in the columns of the ensemble's classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils import _safe_indexing, check_array

from veridical.calibrate.temperature import search_temperature
from veridical.combine.combined import Floats, Labels
from veridical.errors import ParameterError, ShapeError

#: What a source answers with, the first that it has.
Response = Literal["predict_proba", "decision_function", "predict"]
_RESPONSES: tuple[Response, ...] = ("predict_proba", "decision_function", "predict")
#: Margins are divided by their scale and a fitted temperature; a class that the source does not know is this far below.
_UNKNOWN_CLASS = -1e4


@dataclass(frozen=True)
class Source:
    """A fitted classifier, and how to read its answers.

    Attributes
    ----------
    name : str
    estimator : fitted classifier
    columns : (K,) integers
        Where its classes stand among the ensemble's.
    response : {"predict_proba", "decision_function", "predict"}
    features : array of integers, or None
        The columns of X that it was fitted on, where these are not all (bagging).
    array_dtype : dtype, str or None
        Members of forests and bagging are fitted on plain arrays, of this dtype; None: X as it comes.
    """

    name: str
    estimator: Any
    columns: npt.NDArray[np.intp]
    response: Response
    features: npt.NDArray[np.intp] | None = None
    array_dtype: Any = None

    def scores(self, X: Any, n_classes: int) -> Floats:
        """(N, L): probabilities, or margins where the source has no probabilities."""
        values = X if self.features is None else _safe_indexing(X, self.features, axis=1)
        answer = np.asarray(getattr(self.estimator, self.response)(values))
        if self.response == "predict":
            return self._votes(answer, n_classes)
        if self.response == "decision_function" and answer.ndim == 1:  # binary: for or against the second class
            answer = np.column_stack((-answer / 2, answer / 2))
        if answer.ndim != 2 or answer.shape[1] != len(self.columns):
            raise ShapeError(
                f"source {self.name}: {self.response} has shape {answer.shape} for {len(self.columns)} classes; give "
                "a classifier with one column per class."
            )
        scores = np.full((len(answer), n_classes), 0.0 if self.response == "predict_proba" else -np.inf)
        scores[:, self.columns] = answer
        return _unit_sums(scores) if self.response == "predict_proba" else scores

    def _votes(self, labels: npt.NDArray[Any], n_classes: int) -> Floats:
        """All probability on the predicted class."""
        known = np.asarray(self.estimator.classes_)
        votes = np.zeros((len(labels), n_classes))
        votes[np.arange(len(labels)), self.columns[np.searchsorted(known, labels)]] = 1.0
        return votes


def _unit_sums(probs: Floats) -> Floats:
    """Rows that sum to one within float32's rounding, exactly; others as they are, for validation to name."""
    sums = probs.sum(axis=1, keepdims=True)
    near = np.abs(sums - 1) < 1e-4
    result: Floats = np.divide(probs, sums, out=probs, where=near)
    return result


def response_of(name: str, estimator: Any) -> Response:
    """The method that a fitted classifier answers with."""
    for response in _RESPONSES:
        if hasattr(estimator, response) and (response != "decision_function" or _has_margin_per_class(estimator)):
            return response
    raise ParameterError(f"source {name}, a {type(estimator).__name__}, is not a classifier: it has no method predict.")


def _has_margin_per_class(estimator: Any) -> bool:
    """Whether margins are one per class, not one per pair of classes."""
    return getattr(estimator, "decision_function_shape", "ovr") == "ovr"


def all_scores(sources: Sequence[Source], X: Any, n_classes: int) -> Floats:
    """(S, N, L) scores of all sources."""
    prepared: dict[Any, Any] = {None: X}
    scores = []
    for source in sources:
        if source.array_dtype not in prepared:
            prepared[source.array_dtype] = check_array(
                X, accept_sparse=["csr", "csc"], dtype=source.array_dtype, ensure_all_finite=False
            )
        scores.append(source.scores(prepared[source.array_dtype], n_classes))
    return np.stack(scores)


def fit_margin_scale(margins: Floats, labels: Labels) -> float:
    """What a source's margins are divided by before their softmax: the value with the lowest log loss."""
    known = np.isfinite(margins[np.arange(len(labels)), labels])
    margins, labels = margins[known], labels[known]
    spread = float(margins[np.isfinite(margins)].std()) if len(labels) else 0.0
    if not spread > 0.0:
        return 1.0
    return spread * search_temperature(_relative(margins / spread), labels, "nll")[0]


def margins_to_probabilities(margins: Floats, scale: float) -> Floats:
    """softmax(margins / scale) over the classes that the source knows."""
    exponentials = np.exp(_relative(margins / scale))
    probs: Floats = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return probs


def _relative(margins: Floats) -> Floats:
    """Margins less the largest of their row; unknown classes far below."""
    relative: Floats = np.maximum(margins - margins.max(axis=-1, keepdims=True), _UNKNOWN_CLASS)
    return np.ascontiguousarray(relative)
