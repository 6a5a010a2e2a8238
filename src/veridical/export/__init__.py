"""Fitted calibrators in the formats of other runtimes: ONNX (extra ``onnx``).  Names are imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veridical._lazy import names_on_demand

if TYPE_CHECKING:
    from veridical.export.saving import check_onnx_target as check_onnx_target
    from veridical.export.saving import make_onnx as make_onnx
    from veridical.export.saving import save_onnx as save_onnx

#: Module -> the public names in it.
_NAMES_IN = {
    "saving": "check_onnx_target make_onnx save_onnx",
}

__getattr__, __dir__, __all__ = names_on_demand(__name__, _NAMES_IN)
