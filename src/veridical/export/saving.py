"""Fitted calibrators as ONNX files, for runtimes without Python."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from veridical._atomic import as_path, write_atomically
from veridical._version import __version__
from veridical.calibrate.base import Calibrator
from veridical.calibrate.registry import check_calibrator
from veridical.combine.sources import check_scores
from veridical.errors import ExportError, FileFormatError
from veridical.export.graph import Graph, GraphArray
from veridical.predictions.sums import SUM_TOLERANCE, tolerance_of
from veridical.predictions.validation import check_choice

DTYPES = ("float32", "float64")
#: The largest file that the format's encoding can hold, and some room.
_MOST_BYTES = 2**31 - 2**20
_NAMES = ("samples", "sources", "classes")
#: Where samples, sources and classes are among the axes of an input, by the axis of its sources.
_PLACES = {0: (1, 0, 2), 1: (0, 1, 2), 2: (0, 2, 1)}


def check_onnx_target(path: str | os.PathLike[str]) -> Path:
    """Where an ONNX file may be written; commands ask before they start to work.

    Parameters
    ----------
    path : path
        Its name must end with ``.onnx``.

    Returns
    -------
    Path

    Examples
    --------
    >>> from veridical.export import check_onnx_target
    >>> check_onnx_target("cal.onnx").name
    'cal.onnx'
    """
    target = as_path(path)
    if target.suffix != ".onnx":
        raise FileFormatError(f"ONNX models are not saved as {str(target)!r}; use the extension .onnx.")
    return target


def save_onnx(calibrator: Calibrator, path: str | os.PathLike[str], *, dtype: str = "float32") -> None:
    """Write a fitted calibrator as an ONNX model; see :meth:`veridical.calibrate.Calibrator.to_onnx`.

    Parameters
    ----------
    calibrator : Calibrator
        Fitted.
    path : path
        Written whole or not at all.
    dtype : {"float32", "float64"}

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> from veridical.export import save_onnx
    >>> probs = np.array([[[0.9, 0.1], [0.4, 0.6], [0.7, 0.3]]])
    >>> save_onnx(vd.Platt().fit(probs, [0, 1, 1]), "cal.onnx")
    """
    target = check_onnx_target(path)
    model = make_onnx(calibrator, dtype=dtype)
    if model.ByteSize() > _MOST_BYTES:
        raise ExportError(
            f"this {calibrator.name} holds {model.ByteSize() >> 20} MB of numbers, and an ONNX file at most 2 GB; use "
            "a method with fewer parameters."
        )
    write_atomically(target, model.SerializeToString())


def make_onnx(calibrator: Calibrator, *, dtype: str = "float32") -> Any:
    """The ONNX model of a fitted calibrator, as ``onnx.ModelProto``.

    Parameters
    ----------
    calibrator : Calibrator
        Fitted.
    dtype : {"float32", "float64"}
        Of input and outputs.

    Returns
    -------
    onnx.ModelProto

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> from veridical.export import make_onnx
    >>> probs = np.array([[[0.9, 0.1], [0.4, 0.6], [0.7, 0.3]]])
    >>> model = make_onnx(vd.Platt().fit(probs, [0, 1, 1]))
    >>> [output.name for output in model.graph.output]
    ['probs', 'confidence', 'label']
    """
    check_choice(dtype, DTYPES, "dtype")
    check_calibrator(calibrator).check_fitted()
    chosen = calibrator.fitted_calibrator
    calibrator.check_parameters()
    if chosen.combine != chosen.combiner_.name:
        raise ExportError(
            f"combine was set to {chosen.combine!r} after a fit with {chosen.combiner_.name!r}; fit again."
        )
    graph, axes = Graph(), axes_of(calibrator)
    n_sources, n_classes, kind = chosen.n_sources_, chosen.n_classes_, calibrator.kind_of_arrays
    sizes = {"samples": None, "sources": n_sources, "classes": n_classes}
    scores = GraphArray(graph, "predictions", tuple(sizes[axis] for axis in axes), dtype)
    sources, valid = check_scores(
        graph,
        as_sources(scores, axes),
        "probs" if kind == "binary" else kind,
        calibrator.missing,
        _tolerance(n_classes),
        traced=True,
        bits=scores.dtype.itemsize * 8,
    )
    combined = chosen.combiner_.combine_arrays(sources)
    combined.dtype = scores.dtype  # in which labels must lead
    probs, confidence, label = chosen.predict_combined(combined)
    # What the calibrator would refuse has no result.
    outputs = {
        "probs": graph.where(valid[:, None], probs, np.nan),
        "confidence": graph.where(valid, graph.astype(confidence, scores.dtype), np.nan),
        "label": graph.where(valid, label, -1),
    }
    shape = ["samples" if size is None else size for size in scores.shape]
    model = graph.model(
        [graph.onnx.helper.make_tensor_value_info(scores.name, graph.kind(scores.dtype), shape)],
        outputs,
        producer_name="veridical",
        producer_version=__version__,
        doc_string=f"{chosen.name} on {chosen.combine}: calibrated probabilities from {n_sources} sources.",
    )
    facts = {
        "method": chosen.name,
        "combine": chosen.combine,
        "kind": kind,
        "axes": ", ".join(axes),
        "missing": calibrator.missing,
    }
    if chosen.source_names_ is not None:
        facts["source_names"] = "\n".join(chosen.source_names_)
    graph.onnx.helper.set_model_props(model, facts)
    graph.onnx.checker.check_model(model)
    return model


def axes_of(calibrator: Calibrator) -> tuple[str, ...]:
    """The names of the input's axes, in their order."""
    places = _PLACES[calibrator.sources_axis]
    if calibrator.kind_of_arrays != "binary":
        return tuple(_NAMES[place] for place in places)
    if calibrator.sources_axis == 2:
        raise ExportError(
            "binary scores have two axes, (sources, samples), and this calibrator has sources_axis=2; use "
            "set_params(sources_axis=0)."
        )
    return tuple(_NAMES[place] for place in places[:2])


def as_sources(scores: GraphArray, axes: tuple[str, ...]) -> GraphArray:
    """The input as (sources, samples, classes) in float64; without classes it is that of the second."""
    graph, order = scores.graph, tuple(axes.index(axis) for axis in ("sources", "samples", "classes") if axis in axes)
    scores = scores if order == tuple(sorted(order)) else graph.permute(scores, order)
    if "classes" not in axes:
        scores = graph.stack([1.0 - scores, scores], axis=2)  # in the precision of the input, as everywhere
    return graph.astype(scores, graph.float64)


def _tolerance(n_classes: int) -> float:
    """How far from one a sum may be: that of the coarsest precision, as numbers may have been stored in any."""
    return max(tolerance_of(np.dtype(np.float64), n_classes, name) for name in SUM_TOLERANCE)
