"""PyTorch: an ensemble as one module, and a calibration metric for validation loops.  Needs the extra ``torch``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veridical._extras import require
from veridical._lazy import names_on_demand

if TYPE_CHECKING:
    from veridical.torch.calibrated_ensemble import CalibratedEnsemble
    from veridical.torch.calibration_error import CalibrationError

_MODULE_OF = {"CalibratedEnsemble": "calibrated_ensemble", "CalibrationError": "calibration_error"}

__all__ = ["CalibratedEnsemble", "CalibrationError"]


def _need_torch(module: str) -> None:
    """Say what to install where PyTorch is missing."""
    require("torch", "torch")


__getattr__, __dir__ = names_on_demand(__name__, _MODULE_OF, before=_need_torch)
