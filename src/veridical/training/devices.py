"""Where and in which precision networks run."""

from __future__ import annotations

import torch

from veridical.errors import ParameterError
from veridical.predictions.validation import check_choice

PRECISIONS = ("auto", "float32", "bfloat16")
DEVICES = ("auto", "cpu", "cuda", "mps")


def resolve_device(device: str | torch.device | None) -> torch.device:
    """The device by name; ``auto`` (or None) takes an accelerator where there is one."""
    if isinstance(device, torch.device):
        return device
    if device in (None, "auto"):
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    kind = check_choice(str(device).partition(":")[0], DEVICES, "device")
    absent = (kind == "cuda" and not torch.cuda.is_available()) or (
        kind == "mps" and not torch.backends.mps.is_available()
    )
    if absent:
        raise ParameterError(f"device {device!r} is not there on this machine; choose cpu or auto.")
    try:
        return torch.device(str(device))
    except RuntimeError as error:
        raise ParameterError(f"device {device!r} is unknown; choose one of: {', '.join(DEVICES)}.") from error


def resolve_precision(precision: str, device: torch.device) -> str:
    """``float32`` or ``bfloat16``; ``auto`` takes bfloat16 where the processor computes in it."""
    check_choice(precision, PRECISIONS, "precision")
    if precision != "auto":
        return precision
    return "bfloat16" if _has_bfloat16(device) else "float32"


def _has_bfloat16(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type == "cpu":
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported()) and bool(torch.cpu._is_avx512_bf16_supported())
    return False


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """A context in which convolutions run in ``precision``."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bfloat16")
