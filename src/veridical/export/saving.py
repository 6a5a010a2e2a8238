"""Fitted calibrators as ONNX files, for runtimes without Python."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from veridical._atomic import as_path, write_atomically
from veridical._version import __version__
from veridical.backends.namespace import LABEL_MARGIN
from veridical.calibrate.base import Calibrator
from veridical.calibrate.registry import check_calibrator
from veridical.errors import ExportError, FileFormatError
from veridical.export.combining import CombinedSources, Sources, combine, project
from veridical.export.graph import IR_VERSION, OPSET, Graph, Tensor
from veridical.export.inputs import axes_of, read_input
from veridical.export.methods import FORMULAS
from veridical.predictions.validation import check_choice

DTYPES = ("float32", "float64")
#: The largest file that the format's encoding can hold, and some room.
_MOST_BYTES = 2**31 - 2**20


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
    _check_exportable(calibrator, chosen)
    graph = Graph(chosen.n_classes_)
    onnx = graph.onnx
    n_sources, kind_of_input, axes = chosen.n_sources_, calibrator.kind_of_arrays, axes_of(calibrator)
    scores = read_input(graph, "predictions", axes, dtype)
    sources = Sources(graph, scores, kind_of_input, n_sources, dtype, skip_missing=calibrator.missing == "skip")
    combined = combine(chosen.combiner_, sources)
    probs, confidence, label = _results(chosen, combined)
    # What the calibrator would refuse has no result.
    nothing = float("nan")
    probs, confidence = probs.where(sources.valid, nothing), confidence.where(sources.valid, nothing)
    label = label.where(sources.valid, graph.constant(-1, "int64"))
    kind = getattr(onnx.TensorProto, "FLOAT" if dtype == "float32" else "DOUBLE")
    info = onnx.helper.make_tensor_value_info
    results = {"probs": probs.cast(dtype), "confidence": confidence.squeeze(1).cast(dtype), "label": label.squeeze(1)}
    nodes = [*graph.nodes, *(onnx.helper.make_node("Identity", [t.name], [name]) for name, t in results.items())]
    outputs = [
        info("probs", kind, ["samples", chosen.n_classes_]),
        info("confidence", kind, ["samples"]),
        info("label", onnx.TensorProto.INT64, ["samples"]),
    ]
    size: dict[str, int | str] = {"samples": "samples", "sources": n_sources, "classes": chosen.n_classes_}
    inputs = [info("predictions", kind, [size[axis] for axis in axes])]
    body = onnx.helper.make_graph(nodes, "veridical", inputs, outputs, graph.constants)
    model = onnx.helper.make_model(
        body,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="veridical",
        producer_version=__version__,
        doc_string=f"{chosen.name} on {chosen.combine}: calibrated probabilities from {n_sources} sources.",
    )
    facts = {
        "method": chosen.name,
        "combine": chosen.combine,
        "kind": kind_of_input,
        "axes": ", ".join(axes),
        "missing": calibrator.missing,
    }
    if chosen.source_names_ is not None:
        facts["source_names"] = "\n".join(chosen.source_names_)
    onnx.helper.set_model_props(model, facts)
    onnx.checker.check_model(model)
    return model


def _check_exportable(calibrator: Calibrator, chosen: Calibrator) -> None:
    calibrator.check_parameters()
    if chosen.combine != chosen.combiner_.name:
        raise ExportError(
            f"combine was set to {chosen.combine!r} after a fit with {chosen.combiner_.name!r}; fit again."
        )
    if chosen.name not in FORMULAS:
        raise ExportError(f"{chosen.name} has no ONNX export; the methods that have one are: {', '.join(FORMULAS)}.")


def _results(calibrator: Calibrator, combined: CombinedSources) -> tuple[Tensor, Tensor, Tensor]:
    """Distributions (N, L), confidences (N, 1) and labels (N, 1)."""
    result = FORMULAS[calibrator.name](calibrator, combined)
    if not calibrator.whole_vectors:
        return _full_vectors(combined, result.at_most(1.0 - LABEL_MARGIN)), result, combined.label
    probs, label, winner = result.normalised(), combined.label, combined.winner
    if calibrator.keeps_labels:
        probs = project(probs, winner, LABEL_MARGIN)
    else:
        label = probs.argmax(1)
        winner = combined.sources.mask(label)
    return probs, probs.where(winner, 0.0).sum(1).at_most(1.0), label


def _full_vectors(combined: CombinedSources, confidence: Tensor) -> Tensor:
    """The label has ``confidence`` and the other classes share the rest as they did, or equally if they are all 0."""
    graph = confidence.graph
    others = graph.constant(0.0).where(combined.winner, combined.probs)
    equal = graph.constant(0.0).where(combined.winner, np.ones(graph.n_classes))
    others = others.where(others.sum(1) > 0.0, equal)
    probs = confidence.where(combined.winner, others.normalised() * (1.0 - confidence))
    return project(probs.normalised(), combined.winner, LABEL_MARGIN)
