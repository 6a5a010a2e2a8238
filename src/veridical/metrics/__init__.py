"""Metrics of calibrated predictions; names are imported when they are first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from veridical.metrics import gradients
    from veridical.metrics.binned import bin_edges, classwise_ece, debiased_ece, ece
    from veridical.metrics.kde import ece_kde
    from veridical.metrics.ks import ks_error
    from veridical.metrics.proper import accuracy, brier, nll

_HOME = {
    "accuracy": "proper",
    "bin_edges": "binned",
    "brier": "proper",
    "classwise_ece": "binned",
    "debiased_ece": "binned",
    "ece": "binned",
    "ece_kde": "kde",
    "ks_error": "ks",
    "nll": "proper",
}

__all__ = [
    "accuracy",
    "bin_edges",
    "brier",
    "classwise_ece",
    "debiased_ece",
    "ece",
    "ece_kde",
    "gradients",
    "ks_error",
    "nll",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"veridical.metrics.{_HOME[name]}"), name)
    elif name in __all__:
        value = importlib.import_module(f"veridical.metrics.{name}")
    else:
        raise AttributeError(f"module 'veridical.metrics' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
