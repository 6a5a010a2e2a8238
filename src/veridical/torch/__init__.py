"""PyTorch: an ensemble as one module, and a calibration metric for validation loops.  Needs the extra ``torch``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veridical._lazy import names_on_demand, require

if TYPE_CHECKING:
    from veridical.torch.calibrated_ensemble import CalibratedEnsemble as CalibratedEnsemble
    from veridical.torch.calibration_error import CalibrationError as CalibrationError

#: Module -> the public names in it.
_NAMES_IN = {
    "calibrated_ensemble": "CalibratedEnsemble",
    "calibration_error": "CalibrationError",
}


def _need_torch(module: str) -> None:
    """Say what to install where PyTorch is missing."""
    require("torch", "torch")


__getattr__, __dir__, __all__ = names_on_demand(__name__, _NAMES_IN, before=_need_torch)
