"""The device and the precision that networks run in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from veridical.errors import ParameterError
from veridical.predictions.validation import check_choice

PRECISIONS = ("auto", "float32", "bfloat16")
DEVICES = ("auto", "cpu", "cuda", "mps")


def resolve_device(device: str | torch.device | None) -> torch.device:
    """The device of a name; ``auto`` (or None) is an accelerator where there is one, else the CPU."""
    if isinstance(device, torch.device):
        return device
    if device is None or (isinstance(device, str) and device == "auto"):
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    kind = check_choice(device.partition(":")[0] if isinstance(device, str) else device, DEVICES, "device")
    is_missing = (kind == "cuda" and not torch.cuda.is_available()) or (
        kind == "mps" and not torch.backends.mps.is_available()
    )
    if is_missing:
        raise ParameterError(f"device {device!r} is not available on this machine; choose cpu or auto.")
    try:
        return torch.device(str(device))
    except RuntimeError as error:
        raise ParameterError(f"device {device!r} is unknown; choose one of: {', '.join(DEVICES)}.") from error


def resolve_precision(precision: str, device: torch.device) -> str:
    """``float32`` or ``bfloat16``; ``auto`` is bfloat16 where the processor computes in it."""
    check_choice(precision, PRECISIONS, "precision")
    if precision != "auto":
        return precision
    return "bfloat16" if _has_bfloat16(device) else "float32"


def _has_bfloat16(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type == "cpu":
        # PyTorch can emulate it, which is slower than float32; only some versions tell whether it does.
        is_native = getattr(torch.cpu, "_is_avx512_bf16_supported", bool)
        return bool(is_native())
    return False


@contextmanager
def preserve_random_state(device: torch.device, seed: int | None = None) -> Iterator[None]:
    """Restore PyTorch's global generators at the end; with ``seed``, seed them at the start."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        if seed is not None:
            torch.manual_seed(seed)
        yield


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """A context in which convolutions run in ``precision``."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bfloat16")
