"""ONNX graphs written as formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from veridical._lazy import require

Array = npt.NDArray[Any]

#: The version of ONNX's operators: the oldest that has all that is used here, for the widest choice of runtimes.
OPSET = 18
#: Files of this version of the format are read by every runtime that knows the operators.
IR_VERSION = 8


class Graph:
    """The nodes and constants of a graph over ``n_classes`` that is being written; numbers are float64 throughout."""

    def __init__(self, n_classes: int) -> None:
        self.onnx = require("onnx", "onnx")
        self.n_classes = n_classes
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._names: dict[tuple[bytes, str, tuple[int, ...]], str] = {}

    def constant(self, value: Any, dtype: str = "float64") -> Tensor:
        """A tensor of fixed numbers; equal ones are stored once."""
        array = np.asarray(value, dtype=dtype)
        key = array.tobytes(), dtype, array.shape
        if key not in self._names:
            self._names[key] = f"c{len(self.constants)}"
            self.constants.append(self.onnx.numpy_helper.from_array(array, self._names[key]))
        return Tensor(self, self._names[key])

    def node(self, operator: str, *inputs: Tensor | None, n_outputs: int = 1, **attributes: Any) -> list[Tensor]:
        """Add a node, and return its outputs; an input that is None is left out."""
        names = [f"t{len(self.nodes)}_{i}" for i in range(n_outputs)]
        sources = ["" if tensor is None else tensor.name for tensor in inputs]
        self.nodes.append(self.onnx.helper.make_node(operator, sources, names, **attributes))
        return [Tensor(self, name) for name in names]

    def op(self, operator: str, *inputs: Any, **attributes: Any) -> Tensor:
        """The output of a node with one output; numbers among the inputs become constants."""
        return self.node(operator, *(self.tensor(value) for value in inputs), **attributes)[0]

    def tensor(self, value: Any) -> Tensor:
        """``value`` if it is a tensor, otherwise a constant."""
        return value if isinstance(value, Tensor) else self.constant(value)


class Tensor:
    """A tensor of a graph, with the operators of Python and what formulas need besides.

    Axes are counted from the first: for a tensor without samples, onnxruntime takes a negative axis to be none.
    """

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def __add__(self, other: Any) -> Tensor:
        return self.graph.op("Add", self, other)

    def __sub__(self, other: Any) -> Tensor:
        return self.graph.op("Sub", self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return self.graph.op("Sub", other, self)

    def __mul__(self, other: Any) -> Tensor:
        return self.graph.op("Mul", self, other)

    def __truediv__(self, other: Any) -> Tensor:
        return self.graph.op("Div", self, other)

    def __lt__(self, other: Any) -> Tensor:
        return self.graph.op("Less", self, other)

    def __gt__(self, other: Any) -> Tensor:
        return self.graph.op("Greater", self, other)

    def __le__(self, other: Any) -> Tensor:
        return self.graph.op("LessOrEqual", self, other)

    def __ge__(self, other: Any) -> Tensor:
        return self.graph.op("GreaterOrEqual", self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return self.graph.op("Div", other, self)

    __radd__, __rmul__ = __add__, __mul__

    def log(self) -> Tensor:
        """Natural logarithm."""
        return self.graph.op("Log", self)

    def exp(self) -> Tensor:
        """Exponential."""
        return self.graph.op("Exp", self)

    def abs(self) -> Tensor:
        """Without its sign."""
        return self.graph.op("Abs", self)

    def is_nan(self) -> Tensor:
        """Where it is NaN."""
        return self.graph.op("IsNaN", self)

    def sigmoid(self) -> Tensor:
        """1 / (1 + exp(-x))."""
        return self.graph.op("Sigmoid", self)

    def at_least(self, bound: Any) -> Tensor:
        """The larger of the two."""
        return self.graph.op("Max", self, bound)

    def at_most(self, bound: Any) -> Tensor:
        """The smaller of the two."""
        return self.graph.op("Min", self, bound)

    def sum(self, axis: int, *, keepdims: bool = True) -> Tensor:
        """Sum over an axis."""
        return self.graph.op("ReduceSum", self, self.graph.constant([axis], "int64"), keepdims=int(keepdims))

    def max(self, axis: int, *, keepdims: bool = True) -> Tensor:
        """Largest along an axis."""
        return self.graph.op("ReduceMax", self, self.graph.constant([axis], "int64"), keepdims=int(keepdims))

    def min(self, axis: int) -> Tensor:
        """Smallest along an axis, which stays."""
        return self.graph.op("ReduceMin", self, self.graph.constant([axis], "int64"), keepdims=1)

    def argmax(self, axis: int) -> Tensor:
        """(N, 1) integers: the first of the largest."""
        return self.graph.op("ArgMax", self, axis=axis, keepdims=1, select_last_index=0)

    def where(self, condition: Tensor, otherwise: Any) -> Tensor:
        """This where the condition holds, the other elsewhere."""
        return self.graph.op("Where", condition, self, otherwise)

    def gather(self, indices: Tensor) -> Tensor:
        """Entries of a one-dimensional tensor."""
        return self.graph.op("Gather", self, indices, axis=0)

    def cast(self, dtype: str) -> Tensor:
        """The same in another type."""
        kinds = {"float64": "DOUBLE", "float32": "FLOAT", "int64": "INT64"}
        return self.graph.op("Cast", self, to=getattr(self.graph.onnx.TensorProto, kinds[dtype]))

    def unsqueeze(self, axis: int) -> Tensor:
        """With one more axis."""
        return self.graph.op("Unsqueeze", self, self.graph.constant([axis], "int64"))

    def squeeze(self, axis: int) -> Tensor:
        """Without an axis of length one."""
        return self.graph.op("Squeeze", self, self.graph.constant([axis], "int64"))

    def normalised(self, axis: int = 1) -> Tensor:
        """Divided by the sum over an axis."""
        return self / self.sum(axis)

    def softmax(self, axis: int = 1) -> Tensor:
        """Exponentials, shifted by the largest, that sum to one."""
        return (self - self.max(axis)).exp().normalised(axis)


def search(graph: Graph, table: Array, scores: Tensor, *, right: bool, first: Tensor | None = None) -> Tensor:
    """How many entries of a rising table are below the scores; with ``right`` those that are equal count, too.

    ``table`` is (K,), or (T, K) for several tables, one after the other in ``first``: then results are indices into
    the flattened table, padded to a power of two.  ONNX has no such operator: this is a binary search.
    """
    compare = "LessOrEqual" if right else "Less"
    entries = graph.constant(table.ravel())
    # The scores' own shape, so that the search runs for all of them at once.
    position = (scores * 0.0).cast("int64") if first is None else (scores * 0.0).cast("int64") + first
    step = table.shape[-1] // 2
    while step:
        candidate = position + graph.constant(step, "int64")
        passed = graph.op(compare, entries.gather(candidate - graph.constant(1, "int64")), scores)
        position = graph.op("Where", passed, candidate, position)
        step //= 2
    return position


def padded(tables: list[Array], fill: float) -> Array:
    """(T, 2^m) tables of different lengths, each with at least one ``fill`` at its end."""
    size = 2
    while size <= max(map(len, tables)):
        size *= 2
    result = np.full((len(tables), size), fill)
    for row, table in zip(result, tables, strict=True):
        row[: len(table)] = table
    return result


def interpolate(graph: Graph, scores: Tensor, thresholds: list[Array], values: list[Array]) -> Tensor:
    """What ``np.interp`` returns for ``scores`` (N,) and one table, or (N, L) and a table for each class."""
    tables = padded(thresholds, np.inf)
    with np.errstate(over="ignore"):  # thresholds 1e-310 apart; an infinite slope times zero would be NaN
        slopes = [np.append(np.diff(v) / np.diff(t), 0.0) for t, v in zip(thresholds, values, strict=True)]
    slopes = [np.minimum(slope, np.finfo(np.float64).max) for slope in slopes]
    lowest = np.array([t[0] for t in thresholds])
    inside = scores.at_least(lowest if len(tables) > 1 else lowest[0])
    first = None
    if len(tables) > 1:
        first = graph.constant(np.arange(len(tables)) * tables.shape[1], "int64")
    count = search(graph, tables if len(tables) > 1 else tables[0], inside, right=True, first=first)
    entry = count - graph.constant(1, "int64")
    start, value, slope = (
        graph.constant(padded(columns, 0.0).ravel()).gather(entry) for columns in (thresholds, values, slopes)
    )
    return value + slope * (inside - start)
