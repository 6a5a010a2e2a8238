"""Fitted calibrators in the formats of other runtimes: ONNX (extra ``onnx``).  Names are imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veridical._lazy import names_on_demand

if TYPE_CHECKING:
    from veridical.export.saving import check_onnx_target, make_onnx, save_onnx

_MODULE_OF = {"check_onnx_target": "saving", "make_onnx": "saving", "save_onnx": "saving"}

__all__ = ["check_onnx_target", "make_onnx", "save_onnx"]

__getattr__, __dir__ = names_on_demand(__name__, _MODULE_OF)
