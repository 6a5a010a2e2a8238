"""How a report calls methods, sources and classes."""

from __future__ import annotations

from veridical._names import printable
from veridical.evaluation.methods import resolve_method
from veridical.metrics import METRICS


def shown_title(method: str) -> str:
    """A method's name in sentences, tables and legends."""
    return resolve_method(method).title


def shortened(name: str, length: int) -> str:
    """At most ``length`` characters, the last an ellipsis where something was cut."""
    shown = printable(name)
    return shown if len(shown) <= length else shown[: length - 1] + "…"


def metric_text(metric: str, value: float, *, unit: bool = True) -> str:
    """A metric's value as the page shows it."""
    shown = METRICS[metric].text(value)
    return shown.replace(" %", "%" if unit else "")
