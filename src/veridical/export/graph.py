"""A namespace of the array API standard whose arrays write an ONNX graph.

It has the functions that the formulas of combiners and calibrators use.  The number of samples is not known: it is None
in the shapes of arrays, and no number may depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical._lazy import require
from veridical.errors import ExportError

#: The version of ONNX's operators: the oldest that has all that is used here, for the widest choice of runtimes.
OPSET = 18
#: Files of this version of the format are read by every runtime that knows the operators.
IR_VERSION = 8

Shape = tuple[int | None, ...]
_BOOL = np.dtype("bool")


class _NoOperatorError(ExportError, AttributeError):
    """For those who only ask whether there is such a function, it is an AttributeError."""


def _operator(op: str, function: Callable[..., Any], *, reflected: bool = False) -> Any:
    """An operator of arrays, with an array or a number on its other side."""

    def operate(self: GraphArray, *others: Any) -> GraphArray:
        return self.graph.compute(op, function, *((*others, self) if reflected else (self, *others)))

    return operate


def _entrywise(op: str, function: Callable[..., Any], dtype: Any = None) -> Any:
    """A function of the namespace that works entry by entry on arrays and numbers."""

    def apply(self: Graph, *values: Any) -> GraphArray:
        return self.compute(op, function, *values, dtype=dtype)

    return apply


def _reduction(op: str, function: Callable[..., Any]) -> Any:
    """A function of the namespace that reduces an axis."""

    def apply(self: Graph, array: GraphArray, *, axis: int | None = None, keepdims: bool = False) -> GraphArray:
        if axis is None:
            return GraphArray(self, self.node(op, array, keepdims=0), (), array.dtype)
        axis %= array.ndim
        if array.value is not None:
            return self.asarray(function(array.value, axis=axis, keepdims=keepdims), dtype=array.dtype)
        shape = (*array.shape[:axis], *((1,) if keepdims else ()), *array.shape[axis + 1 :])
        name = self.node(op, array, self._constant([axis]), keepdims=int(keepdims))
        return GraphArray(self, name, shape, array.dtype)

    return apply


class GraphArray:
    """An array that a graph computes.

    Attributes
    ----------
    graph : Graph
    name : str
        Of the graph's value.
    shape : tuple
        With None for the number of samples.
    dtype : dtype
    value : array, or None
        The numbers of a constant.
    like : GraphArray, or None
        The graph's value is a single number that stands for all of an array of the shape of ``like``.
    """

    __array_ufunc__ = None  # NumPy's numbers leave operators to this class

    def __init__(
        self, graph: Graph, name: str, shape: Shape, dtype: Any, value: Any = None, like: GraphArray | None = None
    ) -> None:
        self.graph, self.name, self.shape, self.dtype = graph, name, shape, np.dtype(dtype)
        self.value, self.like = value, like

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def T(self) -> GraphArray:  # noqa: N802  the standard's name
        """The transposed matrix."""
        return self.graph.permute(self, (1, 0))

    def __getitem__(self, key: Any) -> GraphArray:
        keys = list(key) if isinstance(key, tuple) else [key]
        if Ellipsis in keys:
            place = keys.index(Ellipsis)
            n_missing = self.ndim - sum(entry is not None for entry in keys) + 1
            keys[place : place + 1] = [slice(None)] * n_missing
        if self.value is not None:
            return self.graph.asarray(self.value[tuple(keys)])
        if self.like is not None:
            like = self.like[key]
            return GraphArray(self.graph, self.name, like.shape, self.dtype, like=like)
        return self.graph.index(self, keys)

    __add__ = __radd__ = _operator("Add", np.add)
    __mul__ = __rmul__ = _operator("Mul", np.multiply)
    __sub__, __rsub__ = _operator("Sub", np.subtract), _operator("Sub", np.subtract, reflected=True)
    __truediv__, __rtruediv__ = _operator("Div", np.divide), _operator("Div", np.divide, reflected=True)
    __lt__, __le__ = _operator("Less", np.less), _operator("LessOrEqual", np.less_equal)
    __gt__, __ge__ = _operator("Greater", np.greater), _operator("GreaterOrEqual", np.greater_equal)
    __eq__ = _operator("Equal", np.equal)
    __and__, __or__ = _operator("And", np.logical_and), _operator("Or", np.logical_or)
    __invert__, __neg__ = _operator("Not", np.logical_not), _operator("Neg", np.negative)

    def __matmul__(self, other: GraphArray) -> GraphArray:
        shape = (self.shape[0], other.shape[1])
        return GraphArray(self.graph, self.graph.node("MatMul", self, other), shape, self.dtype)


class Graph:
    """The nodes and constants of a graph that is being written, and the functions that write it."""

    __name__ = "veridical.export.graph"
    float64, float32, int64, int32 = map(np.dtype, ("float64", "float32", "int64", "int32"))
    inf, newaxis = np.inf, None
    finfo = staticmethod(np.finfo)

    def __getattr__(self, name: str) -> Any:
        raise _NoOperatorError(
            f"the formula uses xp.{name}, for which ONNX models have no operator here; write it with other functions."
        )

    def __init__(self) -> None:
        self.onnx = require("onnx", "onnx")
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}
        self._known: dict[Any, str] = {}

    # Writing ------------------------------------------------------------------------------------------------------

    def kind(self, dtype: Any) -> int:
        """ONNX's number of a dtype."""
        number: int = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return number

    def node(self, op: str, *inputs: GraphArray, **attributes: Any) -> str:
        """The output of a node, which is written once for equal inputs."""
        names = [self._materialised(array) for array in inputs] if op not in _ELEMENTWISE else [a.name for a in inputs]
        key = op, *names, *sorted((name, str(value)) for name, value in attributes.items())
        if key not in self._known:
            outputs = [f"t{len(self.nodes)}"]
            if op == "TopK":
                outputs.append(f"{outputs[0]}i")
            self.nodes.append(self.onnx.helper.make_node(op, names, outputs, **attributes))
            self._known[key] = outputs[0]
        return self._known[key]

    def compute(self, op: str, function: Callable[..., Any], *values: Any, dtype: Any = None) -> GraphArray:
        """An operation entry by entry on arrays and numbers; of constants it is done at once."""
        arrays = [value for value in values if isinstance(value, GraphArray)]
        common = np.result_type(*{array.dtype for array in arrays if op != "Where" or array is not values[0]})
        inputs = []
        for place, value in enumerate(values):
            array = value if isinstance(value, GraphArray) else self.asarray(value, dtype=common)
            is_condition = op == "Where" and place == 0
            inputs.append(array if is_condition else self.astype(array, common))
        if all(array.value is not None for array in inputs):
            with np.errstate(all="ignore"):
                return self.asarray(function(*(array.value for array in inputs)), dtype=dtype)
        result = dtype or (_BOOL if op in _LOGICAL else common)
        shape = _broadcast([array.shape for array in inputs])
        if shape != _broadcast([array.shape if array.like is None else () for array in inputs]):
            like = next((array.like for array in inputs if array.like is not None and array.shape == shape), None)
            if like is not None and all(array.like is not None or array.shape == () for array in inputs):
                return GraphArray(self, self.node(op, *inputs), shape, result, like=like)
            inputs = [self._real(array) for array in inputs]
        return GraphArray(self, self.node(op, *inputs), shape, result)

    def _real(self, array: GraphArray) -> GraphArray:
        """The array with all its entries."""
        if array.like is None:
            return array
        like = self._real(array.like)
        size = GraphArray(self, self.node("Shape", like), (like.ndim,), self.int64)
        number = GraphArray(self, array.name, (), array.dtype)
        return GraphArray(self, self.node("Expand", number, size), array.shape, array.dtype)

    def _materialised(self, array: GraphArray) -> str:
        return self._real(array).name

    def _constant(self, values: Any) -> GraphArray:
        return self.asarray(np.asarray(values, np.int64))

    def model(self, inputs: Sequence[Any], outputs: dict[str, GraphArray], **options: Any) -> Any:
        """The model of what the outputs need."""
        helper = self.onnx.helper
        ends = [helper.make_node("Identity", [self._materialised(array)], [name]) for name, array in outputs.items()]
        needed, nodes = {name for node in ends for name in node.input}, []
        for node in reversed(self.nodes):
            if needed & set(node.output):
                needed |= set(node.input)
                nodes.append(node)
        constants = [tensor for name, tensor in self.constants.items() if name in needed]
        results = [
            helper.make_tensor_value_info(
                name, self.kind(array.dtype), ["samples" if n is None else n for n in array.shape]
            )
            for name, array in outputs.items()
        ]
        body = helper.make_graph([*reversed(nodes), *ends], "veridical", inputs, results, constants)
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(body, opset_imports=[opset], ir_version=IR_VERSION, **options)

    # Arrays -------------------------------------------------------------------------------------------------------

    def asarray(self, value: Any, *, dtype: Any = None, device: Any = None) -> GraphArray:
        """A constant; equal ones are stored once."""
        array: npt.NDArray[Any] = np.asarray(value, dtype=dtype)
        key = array.tobytes(), array.dtype.str, array.shape
        if key not in self._known:
            self._known[key] = f"c{len(self.constants)}"
            self.constants[self._known[key]] = self.onnx.numpy_helper.from_array(array, self._known[key])
        return GraphArray(self, self._known[key], array.shape, array.dtype, array)

    def arange(self, *bounds: int, dtype: Any = None, device: Any = None) -> GraphArray:
        return self.asarray(np.arange(*bounds, dtype=dtype))

    def full_like(self, like: GraphArray, value: Any, *, dtype: Any = None) -> GraphArray:
        number = self.asarray(value, dtype=dtype or like.dtype)
        if None not in like.shape:
            return self.asarray(np.full(like.shape, number.value))
        return GraphArray(self, number.name, like.shape, number.dtype, like=like)

    def zeros_like(self, like: GraphArray, *, dtype: Any = None) -> GraphArray:
        return self.full_like(like, 0, dtype=dtype)

    def ones_like(self, like: GraphArray, *, dtype: Any = None) -> GraphArray:
        return self.full_like(like, 1, dtype=dtype)

    def astype(self, array: GraphArray, dtype: Any, *, copy: bool = True) -> GraphArray:
        if array.dtype == dtype:
            return array
        if array.value is not None:
            return self.asarray(array.value.astype(dtype))
        number = array if array.like is None else GraphArray(self, array.name, (), array.dtype)
        name = self.node("Cast", number, to=self.kind(dtype))
        return GraphArray(self, name, array.shape, dtype, like=array.like)

    def index(self, array: GraphArray, keys: Sequence[Any]) -> GraphArray:
        """Basic indexing: slices, integers and new axes."""
        cuts, dropped, added, shape = [], [], [], list(array.shape)
        axis = place = 0
        for key in keys:
            if key is None:
                added.append(place)
                place += 1
                continue
            if isinstance(key, slice):
                place += 1
            else:
                dropped.append(axis)
                key = slice(key, key + 1)
            if key != slice(None):
                size = shape[axis]
                cuts.append((axis, key.start or 0, np.iinfo(np.int64).max if key.stop is None else key.stop))
                shape[axis] = len(range(size)[key]) if size is not None else key.stop
            axis += 1
        name = array.name
        current = array
        if cuts:
            axes, starts, stops = zip(*cuts, strict=True)
            name = self.node("Slice", array, *map(self._constant, (starts, stops, axes)))
            current = GraphArray(self, name, tuple(shape), array.dtype)
        if dropped:
            name = self.node("Squeeze", current, self._constant(dropped))
            kept = tuple(size for axis, size in enumerate(shape) if axis not in dropped)
            current = GraphArray(self, name, kept, array.dtype)
        if added:
            name = self.node("Unsqueeze", current, self._constant(added))
            sizes = list(current.shape)
            for axis in added:
                sizes.insert(axis, 1)
            current = GraphArray(self, name, tuple(sizes), array.dtype)
        return current

    def permute(self, array: GraphArray, axes: tuple[int, ...]) -> GraphArray:
        if array.value is not None:
            return self.asarray(array.value.transpose(axes))
        name = self.node("Transpose", array, perm=axes)
        return GraphArray(self, name, tuple(array.shape[axis] for axis in axes), array.dtype)

    def reshape(self, array: GraphArray, shape: Shape) -> GraphArray:
        sizes: Shape = tuple(None if size == -1 else size for size in shape)
        name = self.node("Reshape", array, self._constant([-1 if size is None else size for size in sizes]))
        return GraphArray(self, name, sizes, array.dtype)

    def concat(self, arrays: Sequence[GraphArray], *, axis: int = 0) -> GraphArray:
        sizes = [array.shape[axis] for array in arrays]
        shape = list(arrays[0].shape)
        shape[axis] = None if None in sizes else sum(size or 0 for size in sizes)
        return GraphArray(self, self.node("Concat", *arrays, axis=axis), tuple(shape), arrays[0].dtype)

    def stack(self, arrays: Sequence[GraphArray], *, axis: int = 0) -> GraphArray:
        key = (slice(None),) * (axis if axis >= 0 else arrays[0].ndim) + (None,)
        return self.concat([array[key] for array in arrays], axis=axis % (arrays[0].ndim + 1))

    def take(self, array: GraphArray, indices: GraphArray, *, axis: int = 0) -> GraphArray:
        shape = (*array.shape[:axis], *indices.shape, *array.shape[axis + 1 :])
        return GraphArray(self, self.node("Gather", array, indices, axis=axis), shape, array.dtype)

    # Functions ----------------------------------------------------------------------------------------------------

    where, exp, log = _entrywise("Where", np.where), _entrywise("Exp", np.exp), _entrywise("Log", np.log)
    abs, isnan = _entrywise("Abs", np.abs), _entrywise("IsNaN", np.isnan, _BOOL)
    maximum, minimum = _entrywise("Max", np.maximum), _entrywise("Min", np.minimum)
    sum, max, min = _reduction("ReduceSum", np.sum), _reduction("ReduceMax", np.max), _reduction("ReduceMin", np.min)

    def log1p(self, array: GraphArray) -> Any:
        """ONNX has none: ln u x / (u - 1) with u = 1 + x, in which what rounding took from u cancels."""
        above = 1.0 + array
        rounded = above - 1.0
        is_small = rounded == 0.0
        return self.where(is_small, array, self.log(above) * array / self.where(is_small, 1.0, rounded))

    def isfinite(self, array: GraphArray) -> Any:
        return self.abs(array) < np.inf

    def clip(self, array: GraphArray, lowest: Any = None, highest: Any = None) -> GraphArray:
        array = array if lowest is None else self.maximum(array, lowest)
        return array if highest is None else self.minimum(array, highest)

    def all(self, array: GraphArray, *, axis: int | None = None) -> GraphArray:
        return self.astype(self.min(self.astype(array, self.int32), axis=axis), _BOOL)

    def any(self, array: GraphArray, *, axis: int | None = None) -> GraphArray:
        return self.astype(self.max(self.astype(array, self.int32), axis=axis), _BOOL)

    def argmax(self, array: GraphArray, *, axis: int) -> GraphArray:
        name = self.node("ArgMax", array, axis=axis, keepdims=0, select_last_index=0)
        return GraphArray(self, name, (*array.shape[:axis], *array.shape[axis + 1 :]), self.int64)

    def sort(self, array: GraphArray, *, axis: int = -1) -> GraphArray:
        axis %= array.ndim
        name = self.node("TopK", array, self._constant([array.shape[axis]]), axis=axis, largest=0, sorted=1)
        return GraphArray(self, name, array.shape, array.dtype)

    def cumulative_sum(self, array: GraphArray, *, axis: int) -> GraphArray:
        return GraphArray(self, self.node("CumSum", array, self._constant(axis)), array.shape, array.dtype)

    def searchsorted(self, table: GraphArray, values: GraphArray, *, side: str = "left") -> Any:
        """ONNX has none: a binary search of a constant table, padded to a power of two."""
        assert table.value is not None
        size = 2
        while size <= len(table.value):
            size *= 2
        entries = self.asarray(np.append(table.value, np.full(size - len(table.value), np.inf)))
        position: Any = self.zeros_like(values, dtype=self.int64)
        step = size // 2
        while step:
            candidate = position + step
            entry: Any = self.take(entries, candidate - 1)
            position = self.where(entry <= values if side == "right" else entry < values, candidate, position)
            step //= 2
        return position


_LOGICAL = frozenset(("And", "Or", "Not", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal", "IsNaN"))
#: Operators that take single numbers in place of arrays.
_ELEMENTWISE = _LOGICAL | {"Add", "Sub", "Mul", "Div", "Neg", "Where", "Exp", "Log", "Abs", "Max", "Min"}


def _broadcast(shapes: Sequence[Shape]) -> Shape:
    """The shape of the result of arrays of these shapes; an unknown number is equal to any other."""
    n_axes = max(map(len, shapes))
    padded = [(1,) * (n_axes - len(shape)) + shape for shape in shapes]
    return tuple(next((size for size in sizes if size != 1), 1) for sizes in zip(*padded, strict=True))
