"""What the paper's sweep over numbers of sources costs, against each number of sources on its own.

``python benchmarks/paper.py`` prints a table: seconds (best of three, after warm-up) and ratios within one process.
"""

from __future__ import annotations

import numpy as np
from timing import best_ratio

import veridical as vd
from veridical import metrics, paper
from veridical.paper.by_sources import default_sources


def one_by_one(predictions: vd.Predictions, steps: list[int]) -> list[dict[str, float]]:
    """Each number of sources from the logits again, each metric by its public function on the whole vectors."""
    values = []
    for n in steps:
        first = predictions.select(sources=slice(n))
        truths = (
            vd.discover(first, max_iter=0),
            vd.discover(first, accuracy_preserving=False),
            vd.discover(first),
        )
        values += [
            {metric: getattr(metrics, metric)(first.labels, truth.probs) for metric in metrics.SUMMARY_METRICS}
            for truth in truths
        ]
    return values


def main() -> None:
    """Print the table."""
    rng = np.random.default_rng(0)
    print(f"{'sources, samples, classes':<28}{'sweep (s)':>12}{'one by one (s)':>16}{'ratio':>8}")
    for shape in ((20, 10_000, 10), (50, 2_000, 100)):
        logits = 3 * rng.standard_normal(shape[1:]) + rng.standard_normal(shape)
        labels = logits.mean(axis=0).argmax(axis=1)
        predictions = vd.Predictions(logits, labels, kind="logits")
        steps = default_sources(shape[0])

        def together(predictions=predictions, steps=steps) -> object:
            # A new ensemble each time, or its engine would keep what is combined.
            return paper.table1([paper.Ensemble(paper.EnsembleName("random"), predictions)], sources=steps)

        ratio, ours, theirs = best_ratio(together, lambda p=predictions, s=steps: one_by_one(p, s), 3)
        print(f"{shape!s:<28}{ours:>12.2f}{theirs:>16.2f}{ratio:>8.2f}")


if __name__ == "__main__":
    main()
