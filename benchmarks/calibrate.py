"""How fast the calibrators are: ratios against scikit-learn and against one evaluation of ECE-KDE.

    python benchmarks/calibrate.py [--small] [--repeat 3]

Everything is measured in one process, best of several; below 1 is faster than the peer (or under the limit).
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.isotonic import IsotonicRegression

import veridical as vd
from veridical import metrics
from veridical.combine import fit_combiner


def best_of(repeat: int, work: Callable[[], object]) -> float:
    """Seconds of the fastest of ``repeat`` runs."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def pooled_data(n_samples: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Over-confident distributions (N, L) in float64, and labels."""
    rng = np.random.default_rng(0)
    logits = 3 * rng.standard_normal((n_samples, n_classes))
    probs = np.exp(logits - logits.max(axis=1, keepdims=True))
    probs /= probs.sum(axis=1, keepdims=True)
    sharp = probs**1.5
    sharp /= sharp.sum(axis=1, keepdims=True)
    return sharp, (probs.cumsum(axis=1) < rng.random((n_samples, 1))).sum(axis=1).clip(0, n_classes - 1)


def sklearn_temperature(probs: np.ndarray, labels: np.ndarray) -> Callable[[], object] | None:
    """scikit-learn's temperature calibration on log-probabilities, where this version has it."""
    try:
        from sklearn.calibration import _TemperatureScaling
    except ImportError:
        return None
    scores = np.log(np.maximum(probs, 1e-20))
    return lambda: _TemperatureScaling().fit(scores, labels)


def line(what: str, ours: float, theirs: float, against: str, limit: float = 1.0) -> None:
    """One row: times, ratio, and what the ratio is held against."""
    times = f"{1e3 * ours:10.2f} ms  {against:34}{1e3 * theirs:10.2f} ms"
    print(f"{what:46}{times}  ratio {ours / theirs:7.3f}  (limit {limit:g})")


def fits(n_samples: int, n_classes: int, repeat: int) -> None:
    """TS, IRM, opt and pTDE on pooled vectors."""
    print(f"\nN = {n_samples:,}, L = {n_classes:,}")
    probs, labels = pooled_data(n_samples, n_classes)
    peer = sklearn_temperature(probs, labels)
    vd.Temperature().fit(probs[:50], labels[:50])
    if peer is not None:
        ours = best_of(repeat, lambda: vd.Temperature().fit(probs, labels))
        line("temperature.fit", ours, best_of(repeat, peer), "scikit-learn temperature")
    one_hot = np.zeros(probs.shape)
    one_hot[np.arange(n_samples), labels] = 1
    vd.IRM().fit(probs[:50], labels[:50])
    ours = best_of(repeat, lambda: vd.IRM().fit(probs, labels))
    theirs = best_of(1, lambda: IsotonicRegression(out_of_bounds="clip").fit(probs.ravel(), one_hot.ravel()))
    line("irm.fit", ours, theirs, "scikit-learn IsotonicRegression")
    direct(probs, labels, repeat)


def direct(probs: np.ndarray, labels: np.ndarray, repeat: int) -> None:
    """opt and pTDE without pooling and truth discovery, per KDE step, against one evaluation of ECE-KDE."""
    sources = np.stack([probs, np.roll(probs, 1, axis=0) * 0.1 + probs * 0.9])
    predictions = vd.Predictions(sources)
    combiner, combined = fit_combiner("mean", predictions, labels, vd.PTDE())
    correct = combined.correct(labels)
    assert combined.hv.size  # truth discovery is done before the clock starts
    evaluation = best_of(20 * repeat, lambda: metrics.ece_kde(correct, combined.confidence))
    for method in (vd.OptKDE, vd.PTDE):
        work = lambda method=method: method().fit_combined(combiner, combined, labels)  # noqa: E731
        work()
        line(f"{method.name}.fit per KDE step (5 steps)", best_of(10 * repeat, work) / 5, evaluation, "one ece_kde", 10)


def single_prediction() -> None:
    """predict_confidence of pTDE on one sample of twenty sources."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(1000), (20, 200))
    calibrator = vd.PTDE().fit(probs, rng.integers(0, 1000, 200))
    one = np.ascontiguousarray(probs[:, :1])
    for dtype in (np.float32, np.float64):
        calibrator.fit(probs.astype(dtype), rng.integers(0, 1000, 200))
        row = one.astype(dtype)
        calibrator.predict_confidence(row)
        seconds = best_of(2000, lambda row=row: calibrator.predict_confidence(row))
        line(f"ptde-kde.predict_confidence (20, 1, 1000) {np.dtype(dtype)}", seconds, 300e-6, "300 microseconds")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="leave out N = 25,000, L = 1,000")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    fits(5_000, 100, arguments.repeat)
    if not arguments.small:
        fits(25_000, 1_000, arguments.repeat)
    print()
    single_prediction()


if __name__ == "__main__":
    main()
