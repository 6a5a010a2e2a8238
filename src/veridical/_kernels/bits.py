"""A float's bits as an integer, and back: one instruction, where ``view`` would compile several functions."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.extending import intrinsic

_INTEGER: dict[Any, Any] = {types.float32: types.int32, types.float64: types.int64}
_FLOAT: dict[Any, Any] = {integer: number for number, integer in _INTEGER.items()}


def _reinterpret(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))


@intrinsic
def _compiled_bits(typing_context, x):
    return _INTEGER[x](x), _reinterpret


@intrinsic
def _compiled_float(typing_context, bits):
    return _FLOAT[bits](bits), _reinterpret


def _interpreted_bits(x):
    return x.view(np.int32 if x.dtype == np.float32 else np.int64)


def _interpreted_float(bits):
    return bits.view(np.float32 if bits.dtype == np.int32 else np.float64)


#: ``bits_of(x)`` is the integer with the bits of a float32 or float64, ``float_of(bits)`` the float with those of an
#: int32 or int64.
bits_of = _interpreted_bits if numba.config.DISABLE_JIT else _compiled_bits
float_of = _interpreted_float if numba.config.DISABLE_JIT else _compiled_float
