"""Timings of the metrics: ratios against peers and against plain NumPy passes, all in this process.

Run ``python benchmarks/metrics.py``; needs the ``peers`` extra for the comparison with KDEpy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from veridical import metrics


def best_of(function: Callable[[], object], repeats: int = 7) -> float:
    """Seconds of the fastest of several runs, after one to compile and to warm up."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


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


def kde_rows() -> Iterator[tuple[str, float, str, float]]:
    """ECE-KDE of 50,000 confidences."""
    correct, confidence = outcomes(50_000)
    value = best_of(lambda: metrics.ece_kde(correct, confidence), 15)
    few = 64  # the loop's cost is proportional to its points: time a few, scale to 2^14
    start = time.perf_counter()
    transcribed_ece_kde(correct, confidence, few)
    loop = (time.perf_counter() - start) * 2**14 / few
    yield "ece_kde, N = 50,000: at most 1/100 of the loop over 2^14 points", value, "loop (scaled)", loop
    try:
        yield "ece_kde, N = 50,000: at most 1", value, "two FFTKDE", best_of(peer_densities(correct, confidence))
    except ImportError:
        print("KDEpy is not installed: no comparison with it")
    both = best_of(lambda: metrics.gradients.kde_loss(confidence, correct), 15)
    yield "kde_loss with gradient: at most 3", both, "ece_kde", value


def large_rows() -> Iterator[tuple[str, float, str, float]]:
    """ECE of ten million confidences."""
    correct, confidence = outcomes(10_000_000)
    mass = best_of(lambda: metrics.ece(correct, confidence), 3)
    yield "ece equal mass, N = 10 million: at most 1.5", mass, "np.sort", best_of(lambda: np.sort(confidence), 3)
    width = best_of(lambda: metrics.ece(correct, confidence, binning="width"), 40)
    yield "ece equal width, N = 10 million: at most 5", width, "np.sum", best_of(lambda: np.sum(confidence), 40)


def resampling_rows() -> Iterator[tuple[str, float, str, float]]:
    """Bootstrap of 1,000 resamples of 10,000 samples."""
    correct, confidence = outcomes(10_000)
    run = best_of(lambda: metrics.summary(correct, confidence, floors=False, intervals=True), 3)
    yield "summary's confidence metrics, 1,000 resamples of N = 10,000: at most 1", run, "3 s", 3.0
    one = best_of(lambda: metrics.bootstrap("ece_kde", correct, confidence), 3)
    yield "bootstrap of ece_kde alone, 1,000 resamples of N = 10,000", one, "3 s", 3.0


def main() -> None:
    """Print the table."""
    print(f"{'what: target ratio':<76}{'ms':>10}  {'against':<14}{'ms':>10}{'ratio':>10}")
    for rows in (kde_rows, large_rows, resampling_rows):
        for what, ours, against, theirs in rows():
            print(f"{what:<76}{ours * 1e3:>10.2f}  {against:<14}{theirs * 1e3:>10.2f}{ours / theirs:>10.5f}")


if __name__ == "__main__":
    main()
