"""What the paper's sweep over numbers of sources costs, against doing each number on its own.

``python benchmarks/paper.py`` prints a table: seconds (best of three, after warm-up) and ratios within one process,
and how long ``veridical reproduce all`` takes on the shipped ensemble.
"""

from __future__ import annotations

import tempfile
import time

import numpy as np
from timing import best_ratio

import veridical as vd
from veridical import metrics, paper
from veridical.paper.scores import COLUMNS
from veridical.paper.sweep import default_sources, rules, sweep, sweep_rows


def one_by_one(predictions: vd.Predictions, steps: list[int]) -> list[dict[str, float]]:
    """Each number of sources from the logits again, each metric by its public function on the whole vectors."""
    found = []
    for n in steps:
        first = predictions.select(sources=slice(n))
        truths = (
            vd.discover(first, max_iter=0),
            vd.discover(first, accuracy_preserving=False),
            vd.discover(first),
        )
        found += [{m: getattr(metrics, m)(first.labels, truth.probs) for m in COLUMNS} for truth in truths]
    return found


def main() -> None:
    rng = np.random.default_rng(0)
    print(f"{'sources, samples, classes':<28}{'sweep (s)':>12}{'one by one (s)':>16}{'ratio':>8}")
    for shape in ((20, 10_000, 10), (50, 2_000, 100)):
        logits = 3 * rng.standard_normal(shape[1:]) + rng.standard_normal(shape)
        labels = logits.mean(axis=0).argmax(axis=1)
        predictions = vd.Predictions(logits, labels, kind="logits")
        ensemble = paper.Ensemble(paper.EnsembleName("random"), predictions)
        steps = default_sources(shape[0])

        def together(predictions=predictions, ensemble=ensemble, steps=steps) -> object:
            return sweep_rows(ensemble, sweep(predictions, steps, rules()))

        ratio, ours, theirs = best_ratio(together, lambda p=predictions, s=steps: one_by_one(p, s), 3)
        print(f"{shape!s:<28}{ours:>12.2f}{theirs:>16.2f}{ratio:>8.2f}")
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        paper.reproduce_all(out=folder)
        print(f"everything on the shipped ensemble: {time.perf_counter() - start:.1f} s (kernels compiled)")


if __name__ == "__main__":
    main()
