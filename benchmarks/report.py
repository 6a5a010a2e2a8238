"""How long a report on the shipped ensemble takes, how large it is, and what of it is what.

Run with ``python benchmarks/report.py``.
"""

from __future__ import annotations

import time

import veridical as vd
from veridical.report.html_page import render_html
from veridical.report.prepare import prepare_report


def main() -> None:
    """Print a table: seconds after warm-up, best of three, against the limits."""
    demo = vd.load_demo()
    warm = prepare_report(demo, intervals=False)
    steps = {
        "numbers, without intervals": lambda: prepare_report(demo, intervals=False),
        "numbers, with intervals": lambda: prepare_report(demo),
        "page": lambda: render_html(warm),
    }
    print(f"{'step':<30}{'seconds':>10}")
    best = {}
    for name, run in steps.items():
        seconds = []
        for _ in range(3):
            start = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - start)
        best[name] = min(seconds)
        print(f"{name:<30}{best[name]:>10.2f}")
    total = best["numbers, with intervals"] + best["page"]
    size = len(vd.build_report(demo).html.encode())
    print(f"{'report (limit 15)':<30}{total:>10.2f}")
    print(f"{'size in MB (limit 1.5)':<30}{size / 1e6:>10.2f}")


if __name__ == "__main__":
    main()
