"""Applying a fitted calibrator to new predictions; nothing here needs what fitting needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from veridical._dispatch import also_out_of_memory
from veridical._outputs import check_outputs
from veridical._tables import TableResult
from veridical.calibrate import Calibrator
from veridical.calibrate.fitting_data import warn_about_shift
from veridical.calibrate.registry import check_calibrator
from veridical.calibrate.samples import order_of_fit
from veridical.evaluation.calibrated_files import check_calibrated_target, write_calibrated
from veridical.predictions import Predictions, as_predictions
from veridical.predictions.validation import Array, InputKind


@dataclass(frozen=True, eq=False)
class Calibrated(TableResult):
    """Calibrated predictions: distributions, confidences of the predicted labels, and those labels.

    For images they have the shape of the images: (N, H, W, L) and (N, H, W).

    Examples
    --------
    >>> import veridical as vd
    >>> predictions = vd.load_demo().select(sources=slice(3), samples=slice(400))
    >>> calibrated = vd.apply_calibrator(vd.Platt(kind="logits").fit(predictions), predictions)
    >>> bool((calibrated.probs.argmax(axis=1) == calibrated.prediction).all())
    True
    """

    probs: Array = field(repr=False)
    confidence: Array = field(repr=False)
    prediction: Array = field(repr=False)
    labels: Array | None = field(default=None, repr=False)
    class_names: tuple[str, ...] | None = field(default=None, repr=False)
    #: The files that the predictions were read from; :meth:`save` does not replace them.
    files: tuple[Path, ...] = field(default=(), repr=False)
    sample_ids: Array | None = field(default=None, repr=False)
    groups: Array | None = field(default=None, repr=False)

    @property
    def mean_confidence(self) -> float:
        """Mean over the samples."""
        confidence = np.asarray(self.confidence)  # results of blocks are read from their file here
        return float(confidence.mean()) if len(confidence) else float("nan")

    def save(self, path: str | Path) -> None:
        """Write a file, which is complete or absent; the suffix decides the format.

        ``.npz`` has the arrays probs, confidence and prediction, and labels, class_names, sample_ids and groups if
        known; ``.npy`` the probs alone; tables such as ``.csv`` have the columns id, label (the predicted
        one), confidence, and one per class.  :func:`veridical.load` reads them as the predictions of one source.
        """
        target = check_calibrated_target(path)
        check_outputs({"path": path}, self.files)
        write_calibrated(self, target)

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Heading and rows: number of samples and mean confidence."""
        facts = [["samples", str(self.prediction.shape[0])], ["mean confidence", f"{100 * self.mean_confidence:.2f} %"]]
        return ["calibrated", ""], facts

    def _records(self) -> list[dict[str, Any]]:
        n_classes = self.probs.shape[-1]
        names = self.class_names or tuple(f"class {label}" for label in range(n_classes))
        labels, rows = self.prediction.ravel().tolist(), self.probs.reshape(-1, n_classes).tolist()
        records = [
            {"prediction": label, "confidence": confidence} | dict(zip(names, row, strict=True))
            for label, confidence, row in zip(labels, self.confidence.ravel().tolist(), rows, strict=True)
        ]
        if self.sample_ids is None:
            return records
        return [{"id": name, **record} for name, record in zip(self.sample_ids.tolist(), records, strict=True)]


@also_out_of_memory(1)
def apply_calibrator(
    calibrator: Calibrator, predictions: Any, *, kind: InputKind | None = None, sources_axis: int | None = None
) -> Calibrated:
    """Calibrated distributions, confidences and labels of new predictions; nothing is learned from them.

    Parameters
    ----------
    calibrator : Calibrator
        Fitted.
    predictions : Predictions, or arrays in any form that :class:`veridical.Predictions` accepts
        Samples without a label are predicted like all others.
    kind, sources_axis
        By default those that the calibrator was fitted with.

    Returns
    -------
    Calibrated
        With the ids and groups of the samples, in the shape of the input and the order of its classes; those are
        matched by name where the fit and the predictions have names.

    Warns
    -----
    ShiftedDataWarning
        The predictions are far more or less confident, or disagree far more or less, than those of the fit: other
        data, or made in another way, such as averages over folds after a fit on out-of-fold predictions.

    Examples
    --------
    >>> import veridical as vd
    >>> fit, test = vd.load_demo().select(sources=slice(3), samples=slice(1000)).split(random_state=0)
    >>> calibrator = vd.Temperature(kind="logits").fit(fit)
    >>> calibrated = vd.apply_calibrator(calibrator, test)
    >>> calibrated.probs.shape, calibrated.confidence.shape
    ((500, 10), (500,))
    """
    check_calibrator(calibrator)
    if kind is None and sources_axis is None:
        sources = calibrator.new_predictions(predictions)
    else:
        sources = as_predictions(predictions, kind, sources_axis)
    probs, confidence, prediction = calibrated_arrays(calibrator, sources)
    warn_about_shift(getattr(calibrator, "fitting_data_", None), sources, calibrator.n_threads)
    labels = None if sources.labels is None else sources.in_sample_shape(sources.labels)
    ids, groups = sources.sample_ids, sources.groups
    return Calibrated(probs, confidence, prediction, labels, sources.class_names, sources.files, ids, groups)


def calibrated_arrays(calibrator: Calibrator, sources: Predictions) -> tuple[Array, Array, Array]:
    """Distributions, confidences and labels in the order of the classes of ``sources``, matched by name."""
    order = order_of_fit(calibrator, sources)
    if order is None:
        return calibrator.predict_all(sources)
    probs, confidence, prediction = calibrator.predict_all(sources.in_class_order(order))
    columns = np.array([order.index(name) for name in sources.class_names or ()])
    return probs[..., columns], confidence, np.argsort(columns)[prediction]
