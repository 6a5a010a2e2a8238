"""What a model is given: numbers in the shape and of the kind that its calibrator takes arrays in."""

from __future__ import annotations

from veridical.calibrate.base import Calibrator
from veridical.errors import ExportError
from veridical.export.graph import Graph, Tensor

_NAMES = ("samples", "sources", "classes")
#: Where samples, sources and classes are among the axes of an input, by the axis of its sources.
_PLACES = {0: (1, 0, 2), 1: (0, 1, 2), 2: (0, 2, 1)}


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


def read_input(graph: Graph, name: str, axes: tuple[str, ...], dtype: str) -> Tensor:
    """The input of that name as (samples, sources, classes) in float64; without classes it is that of the second."""
    scores = Tensor(graph, name)
    order = [axes.index(axis) for axis in _NAMES if axis in axes]
    if order != sorted(order):
        scores = graph.op("Transpose", scores, perm=order)
    if "classes" not in axes:
        positive = scores.unsqueeze(2)
        # In the precision of the input, as everywhere.
        scores = graph.op("Concat", graph.constant(1.0, dtype) - positive, positive, axis=2)
    return scores.cast("float64")
