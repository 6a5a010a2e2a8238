"""Sixteen numbers as one value: a sample in each lane of a vector register, so that no loop waits to be vectorised.

Operators work on lanes as on numbers, and a number stands for sixteen equal ones.  What differs between lanes is chosen
with :func:`select`; no lane depends on another, so that a sample's result does not depend on its neighbours.
Interpreted (``NUMBA_DISABLE_JIT=1``), lanes are NumPy arrays of sixteen numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models, register_default
from numba.core.imputils import lower_builtin, lower_cast
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic

from veridical._kernels.arguments import LANES

#: Multiplications may be fused into additions; nothing is reordered.
_FLAGS = ("contract", "nsz", "arcp")
_INDEX = ir.IntType(32)
_SCALAR: dict[Any, Any] = {
    types.float32: ir.FloatType(),
    types.float64: ir.DoubleType(),
    types.int32: ir.IntType(32),
    types.int64: ir.IntType(64),
    types.boolean: ir.IntType(1),
}


class Lanes(types.Type):
    """The type of sixteen numbers of ``dtype``."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(f"Lanes({dtype})")


@register_default(Lanes)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, lanes: Any) -> None:
        super().__init__(manager, lanes, ir.VectorType(_SCALAR[lanes.dtype], LANES))


def lanes_of(kind: Any) -> Any:
    """The type that lanes of a type's numbers have; of lanes, their own."""
    return kind if isinstance(kind, Lanes) else Lanes(kind)


def _spread(builder: Any, number: Any) -> Any:
    vector = ir.VectorType(number.type, LANES)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.Constant(_INDEX, 0))
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(_INDEX, LANES), [0] * LANES))


@lower_cast(types.Float, Lanes)
@lower_cast(types.Integer, Lanes)
def _cast_number(context: Any, builder: Any, number_type: Any, lanes: Any, number: Any) -> Any:
    return _spread(builder, context.cast(builder, number, number_type, lanes.dtype))


def _declare_operator(symbol: Callable[..., Any], emit: Callable[..., Any], *, compares: bool = False) -> None:
    """Define an operator of lanes and lanes, or lanes and a number."""

    class Template(AbstractTemplate):  # type: ignore[misc]
        def generic(self, arguments: Any, keywords: Any) -> Any:
            lanes = next((argument for argument in arguments if isinstance(argument, Lanes)), None)
            return lanes and signature(Lanes(types.boolean) if compares else lanes, lanes, lanes)

    infer_global(symbol)(Template)

    @lower_builtin(symbol, Lanes, Lanes)
    def lower(context: Any, builder: Any, types_of: Any, arguments: Any) -> Any:
        return emit(builder, isinstance(types_of.args[0].dtype, types.Float), *arguments)


def _declare_arithmetic(symbol: Callable[..., Any], of_floats: str, of_integers: str) -> None:
    def emit(builder: Any, are_floats: bool, a: Any, b: Any) -> Any:
        if are_floats:
            return getattr(builder, of_floats)(a, b, flags=_FLAGS)
        return getattr(builder, of_integers)(a, b)

    _declare_operator(symbol, emit)


def _declare_comparison(symbol: Callable[..., Any], sign: str) -> None:
    def emit(builder: Any, are_floats: bool, a: Any, b: Any) -> Any:
        return (builder.fcmp_ordered if are_floats else builder.icmp_signed)(sign, a, b)

    _declare_operator(symbol, emit, compares=True)


for _symbol, _names in {
    operator.add: ("fadd", "add"),
    operator.sub: ("fsub", "sub"),
    operator.mul: ("fmul", "mul"),
    operator.truediv: ("fdiv", "sdiv"),
}.items():
    _declare_arithmetic(_symbol, *_names)
for _symbol, _sign in {
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.eq: "==",
}.items():
    _declare_comparison(_symbol, _sign)
for _symbol, _name in {
    operator.and_: "and_",
    operator.or_: "or_",
    operator.rshift: "ashr",
    operator.lshift: "shl",
}.items():
    _declare_arithmetic(_symbol, "", _name)


def _address(context: Any, builder: Any, array_type: Any, array: Any, row: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    start = builder.mul(row, ir.Constant(row.type, LANES))
    return builder.bitcast(builder.gep(data, [start]), ir.VectorType(_SCALAR[array_type.dtype], LANES).as_pointer())


@intrinsic
def _compiled_load(typing_context, array, row):
    def emit(context: Any, builder: Any, types_of: Any, arguments: Any) -> Any:
        address = _address(context, builder, types_of.args[0], *arguments)
        return builder.load(address, align=array.dtype.bitwidth // 8)

    return Lanes(array.dtype)(array, types.intp), emit


@intrinsic
def _compiled_store(typing_context, array, row, value):
    def emit(context: Any, builder: Any, types_of: Any, arguments: Any) -> Any:
        address = _address(context, builder, types_of.args[0], *arguments[:2])
        builder.store(arguments[2], address, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, Lanes(array.dtype)), emit


@intrinsic
def _compiled_gather(typing_context, flat, start, stride):
    def emit(context: Any, builder: Any, types_of: Any, arguments: Any) -> Any:
        address = builder.gep(context.make_array(flat)(context, builder, arguments[0]).data, [arguments[1]])
        lanes = ir.Constant(ir.VectorType(_SCALAR[flat.dtype], LANES), ir.Undefined)
        for lane in range(LANES):
            lanes = builder.insert_element(lanes, builder.load(address), ir.Constant(_INDEX, lane))
            address = builder.gep(address, [arguments[2]])
        return lanes

    return Lanes(flat.dtype)(flat, types.intp, types.intp), emit


@intrinsic
def _compiled_spread(typing_context, number):
    def emit(context: Any, builder: Any, types_of: Any, arguments: Any) -> Any:
        return _spread(builder, arguments[0])

    return Lanes(number)(number), emit


@intrinsic
def _compiled_select(typing_context, mask, a, b):
    def emit(context: Any, builder: Any, types_of: Any, arguments: Any) -> Any:
        return builder.select(*arguments)

    lanes = lanes_of(a if isinstance(a, Lanes) else b)
    return lanes(mask, lanes, lanes), emit


def _mask_test(sign: str, bits_of_mask: int) -> Any:
    """A comparison of a mask's bits with a number."""

    @intrinsic
    def test(typing_context, mask):
        def emit(context: Any, builder: Any, types_of: Any, arguments: Any) -> Any:
            bits = builder.bitcast(arguments[0], ir.IntType(LANES))
            return builder.icmp_unsigned(sign, bits, ir.Constant(bits.type, bits_of_mask))

        return types.boolean(mask), emit

    return test


_BITS: dict[Any, Any] = {types.float32: types.int32, types.float64: types.int64}
_FLOATS: dict[Any, Any] = {integer: number for number, integer in _BITS.items()}


def _conversion(operation: str, other: dict[Any, Any]) -> Any:
    """One instruction that makes lanes of another type."""

    @intrinsic
    def convert(typing_context, lanes):
        def emit(context: Any, builder: Any, types_of: Any, arguments: Any) -> Any:
            return getattr(builder, operation)(arguments[0], context.get_value_type(types_of.return_type))

        return Lanes(other[lanes.dtype])(lanes), emit

    return convert


def _vector_function(builder: Any, name: str, vector: Any, result: Any, parameters: Any) -> Any:
    """A function of LLVM's for vectors of floats."""
    name = f"llvm.{name}.v{LANES}f{32 if isinstance(vector.element, ir.FloatType) else 64}"
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, parameters), name)


@intrinsic
def _compiled_floor(typing_context, lanes):
    def emit(context: Any, builder: Any, types_of: Any, arguments: Any) -> Any:
        vector = arguments[0].type
        return builder.call(_vector_function(builder, "floor", vector, vector, [vector]), arguments)

    return lanes(lanes), emit


def _first_lanes(builder: Any, count: Any) -> Any:
    """The mask of the first ``count`` lanes."""
    order = ir.Constant(ir.VectorType(count.type, LANES), list(range(LANES)))
    return builder.icmp_signed("<", order, _spread(builder, count))


def _element(context: Any, builder: Any, array_type: Any, array: Any, at: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), ir.VectorType(_SCALAR[array_type.dtype], LANES).as_pointer())


@intrinsic
def _compiled_load_some(typing_context, values, at, count, filler):
    def emit(context: Any, builder: Any, types_of: Any, arguments: Any) -> Any:
        address = _element(context, builder, values, *arguments[:2])
        vector, integer = address.type.pointee, ir.IntType(32)
        mask = _first_lanes(builder, arguments[2])
        function = _vector_function(builder, "masked.load", vector, vector, [address.type, integer, mask.type, vector])
        alignment = ir.Constant(integer, values.dtype.bitwidth // 8)
        return builder.call(function, [address, alignment, mask, _spread(builder, arguments[3])])

    return Lanes(values.dtype)(values, types.intp, types.intp, values.dtype), emit


@intrinsic
def _compiled_store_some(typing_context, values, at, count, lanes):
    def emit(context: Any, builder: Any, types_of: Any, arguments: Any) -> Any:
        address = _element(context, builder, values, *arguments[:2])
        vector, integer = address.type.pointee, ir.IntType(32)
        mask = _first_lanes(builder, arguments[2])
        function = _vector_function(
            builder, "masked.store", vector, ir.VoidType(), [vector, address.type, integer, mask.type]
        )
        alignment = ir.Constant(integer, values.dtype.bitwidth // 8)
        builder.call(function, [arguments[3], address, alignment, mask])
        return context.get_dummy_value()

    return types.void(values, types.intp, types.intp, Lanes(values.dtype)), emit


def _interpreted_load(array, row):
    return array[row].copy()


def _interpreted_store(array, row, value):
    array[row] = value


def _interpreted_gather(flat, start, stride):
    return flat[start + stride * np.arange(LANES)]


def _interpreted_spread(number):
    return np.full(LANES, number)


def _interpreted_load_some(values, at, count, filler):
    lanes = np.full(LANES, filler, values.dtype)
    lanes[: min(count, LANES)] = values[at : at + LANES]
    return lanes


def _interpreted_store_some(values, at, count, lanes):
    values[at : at + min(count, LANES)] = lanes[:count]


_INTERPRETED = numba.config.DISABLE_JIT
#: ``load(array, row)`` and ``store(array, row, value)``: a row of an array (rows, LANES).
load = _interpreted_load if _INTERPRETED else _compiled_load
store = _interpreted_store if _INTERPRETED else _compiled_store
#: ``gather(flat, start, stride)``: every ``stride``-th number from ``flat[start]`` on.
gather = _interpreted_gather if _INTERPRETED else _compiled_gather
#: ``spread(number)``: the same number in all lanes.
spread = _interpreted_spread if _INTERPRETED else _compiled_spread
#: ``select(mask, a, b)``: ``a`` in lanes where the mask holds, ``b`` in the others.
select = np.where if _INTERPRETED else _compiled_select
#: ``any_lane(mask)`` and ``all_lanes(mask)``: whether the mask holds in some lane, and in all.
any_lane = np.any if _INTERPRETED else _mask_test("!=", 0)
all_lanes = np.all if _INTERPRETED else _mask_test("==", (1 << LANES) - 1)
#: ``load_some(values, at, count, filler)`` and ``store_some(values, at, count, lanes)``: the first ``count`` lanes are
#: those from ``values[at]`` on, the others the filler.
load_some = _interpreted_load_some if _INTERPRETED else _compiled_load_some
store_some = _interpreted_store_some if _INTERPRETED else _compiled_store_some
#: ``bits_in(lanes)`` are the bits of floats as integers, ``floats_in(lanes)`` those floats again.
bits_in = (lambda lanes: lanes.view(f"i{lanes.itemsize}")) if _INTERPRETED else _conversion("bitcast", _BITS)
floats_in = (lambda lanes: lanes.view(f"f{lanes.itemsize}")) if _INTERPRETED else _conversion("bitcast", _FLOATS)
#: ``as_floats(lanes)`` are integers as floats of the same size, ``as_integers(lanes)`` whole floats as integers.
as_floats = (lambda lanes: lanes.astype(f"f{lanes.itemsize}")) if _INTERPRETED else _conversion("sitofp", _FLOATS)
as_integers = (lambda lanes: lanes.astype(f"i{lanes.itemsize}")) if _INTERPRETED else _conversion("fptosi", _BITS)
floor = np.floor if _INTERPRETED else _compiled_floor
