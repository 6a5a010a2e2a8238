"""What a difference is worth: three calibrators against temperature scaling, on the same resamples."""

from __future__ import annotations

from typing import Any

from example_data import demo_halves

import veridical as vd

METHODS = {"mean": vd.Identity(), "ptde-kde": vd.PTDE(random_state=0), "spline": vd.Spline(), "log-pool": vd.LogPool()}


def compute() -> dict[str, Any]:
    """Paired differences in ECE and NLL, with 95% intervals."""
    fit, test = demo_halves()
    reference = vd.Temperature().fit(fit).predict_proba(test)
    rows = []
    for name, method in METHODS.items():
        probs = method.fit(fit).predict_proba(test)
        for metric in ("ece", "nll"):
            result = vd.metrics.compare(metric, test.labels, probs, reference)
            factor, digits = (100, 2) if metric == "ece" else (1, 4)
            rows.append(
                [name, metric, *(round(factor * x, digits) for x in (result.difference, result.low, result.high))]
            )
    return {"rows": rows}


def tables(numbers: dict[str, Any]) -> dict[str, str]:
    """One line per method and metric."""
    lines = ["| method | metric | difference to TS | 95% interval | real? |", "|---|---|---:|---|---|"]
    for name, metric, difference, low, high in numbers["rows"]:
        unit, digits = (" points", 2) if metric == "ece" else ("", 4)
        real = "yes, worse" if low > 0 else "yes, better" if high < 0 else "no"
        interval = f"{low:+.{digits}f} to {high:+.{digits}f}"
        lines.append(f"| {name} | {metric.upper()} | {difference:+.{digits}f}{unit} | {interval} | {real} |")
    return {"": "\n".join(lines) + "\n"}
