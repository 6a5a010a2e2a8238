"""Timings of the metrics: ratios against peers and against plain NumPy passes, all in this process.

Run ``python benchmarks/metrics.py``; needs the ``peers`` extra for the comparison with KDEpy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from timing import best_ratio, best_seconds

from veridical import metrics


def outcomes(n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Over-confident predictions, as networks make them."""
    rng = np.random.default_rng(0)
    confidence = rng.beta(5, 1, n_samples)
    return rng.random(n_samples) < confidence**1.3, confidence


def transcribed_ece_kde(correct: np.ndarray, confidence: np.ndarray, n_points: int) -> float:
    """The definition of ECE-KDE, grid point by grid point."""
    bandwidth = confidence[correct].std() * (2 * len(confidence)) ** -0.2
    mirrored = np.concatenate((confidence, -confidence, 2 - confidence))
    right = np.concatenate((correct, correct, correct))
    total = mass = 0.0
    for x in np.linspace(0, 1, n_points):
        u = (x - mirrored) / (3 * bandwidth)
        rest = np.maximum(1 - u * u, 0.0)
        kernel = rest * rest * rest
        density = kernel.sum()
        total += abs(x * density - kernel[right].sum())
        mass += density
    return total / mass


def peer_densities(correct: np.ndarray, confidence: np.ndarray) -> Callable[[], object]:
    """The two density estimates that the released code asks KDEpy for."""
    from KDEpy import FFTKDE

    bandwidth = confidence[correct].std() * (2 * len(confidence)) ** -0.2
    grid = np.linspace(-0.6, 1.6, 2**14)

    def mirrored(values: np.ndarray) -> np.ndarray:
        images = np.concatenate((values, -values, 2 - values))
        return images[(images > grid[0]) & (images < grid[-1])]

    def evaluate() -> None:
        for values in (confidence[correct], confidence):
            FFTKDE(bw=bandwidth, kernel="triweight").fit(mirrored(values)).evaluate(grid)

    return evaluate


Row = tuple[str, tuple[float, float, float], str]


def kde_rows() -> Iterator[Row]:
    """ECE-KDE of 50,000 confidences."""
    correct, confidence = outcomes(50_000)

    def value() -> float:
        return metrics.ece_kde(correct, confidence)

    few = 64  # the loop's cost is proportional to its points: time a few, scale to 2^14
    _, ours, theirs = best_ratio(value, lambda: transcribed_ece_kde(correct, confidence, few), 3)
    loop = theirs * 2**14 / few
    yield "ece_kde, N = 50,000", (ours / loop, ours, loop), "1/100 of the loop over 2^14 points"
    try:
        yield "ece_kde, N = 50,000", best_ratio(value, peer_densities(correct, confidence), 20), "1 of two FFTKDE"
    except ImportError:
        print("KDEpy is not installed: no comparison with it")
    loss = best_ratio(lambda: metrics.gradients.kde_loss(confidence, correct), value, 40)
    yield "kde_loss with its gradient, N = 50,000", loss, "3 of ece_kde"


def large_rows() -> Iterator[Row]:
    """ECE of ten million confidences."""
    correct, confidence = outcomes(10_000_000)
    mass = best_ratio(lambda: metrics.ece(correct, confidence), lambda: np.sort(confidence), 3)
    yield "ece, equal mass, N = 10 million", mass, "1.5 of np.sort"
    width = best_ratio(lambda: metrics.ece(correct, confidence, binning="width"), lambda: np.sum(confidence), 60)
    yield "ece, equal width, N = 10 million", width, "5 of np.sum"


def state_rows() -> Iterator[Row]:
    """A mergeable state of ten million confidences, and what merging costs."""
    correct, confidence = outcomes(10_000_000)
    update = best_ratio(lambda: metrics.CalibrationState().update(correct, confidence), lambda: np.sort(confidence), 3)
    yield "CalibrationState.update, N = 10 million", update, "1.5 of np.sort"
    state = metrics.CalibrationState().update(correct, confidence)
    compute = best_ratio(state.compute, lambda: metrics.summary(correct, confidence, floors=False), 3)
    yield "CalibrationState.compute, N = 10 million", compute, "1/20 of summary"
    merge = best_ratio(lambda: state.merge(state), state.compute, 20)
    yield "CalibrationState.merge", merge, "1/5 of compute"


def resampling_rows() -> Iterator[Row]:
    """Bootstrap of 1,000 resamples of 10,000 samples."""
    correct, confidence = outcomes(10_000)
    seconds = best_seconds(lambda: metrics.summary(correct, confidence, floors=False, intervals=True), 3)
    yield "summary's confidence metrics, 1,000 resamples of N = 10,000", (seconds / 3, seconds, 3.0), "1 of 3 s"
    seconds = best_seconds(lambda: metrics.bootstrap("ece_kde", correct, confidence), 3)
    yield "bootstrap of ece_kde, 1,000 resamples of N = 10,000", (seconds / 3, seconds, 3.0), "1 of 3 s"


def main() -> None:
    """Print the table."""
    print(f"{'what':<62}{'ms':>10}{'against, ms':>14}{'ratio':>10}  at most")
    for rows in (kde_rows, large_rows, state_rows, resampling_rows):
        for what, (ratio, ours, theirs), limit in rows():
            print(f"{what:<62}{ours * 1e3:>10.2f}{theirs * 1e3:>14.2f}{ratio:>10.5f}  {limit}")


if __name__ == "__main__":
    main()
