"""How good the calibrators are: the paper's Table 2 protocol on any ensemble, with noise floors.

    python benchmarks/quality.py [FILE.npz ...] [--splits 20] [--no-peers]

Without files the shipped ensemble is used.  A file holds ``logits`` or ``probs`` (S, N, L) and ``labels`` (N,).
Every random half is calibrated on and the other half scored; differences are paired over splits, with their
standard errors.  Where probmetrics is installed, its calibrators run beside ours on the ensemble's mean.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import veridical as vd
from veridical import metrics

BASELINES = ("DE", "TS", "TS (nll)", "ETS", "IRM", "Spline")
METRICS = ("ece_kde", "ece", "ks", "top_brier", "nll", "mse", "acc")
PEERS = ("ts-mix", "svs", "sms")


def methods() -> dict[str, vd.calibrate.Calibrator]:
    """What is compared: row name -> unfitted calibrator."""
    ours: dict[str, vd.calibrate.Calibrator] = {
        "DE": vd.Identity(),
        "TS": vd.Temperature(loss="mse"),
        "TS (nll)": vd.Temperature(),
        "ETS": vd.EnsembleTemperature(),
        "IRM": vd.IRM(),
        "Spline": vd.Spline(),
    }
    named = {name: method() for name, method in vd.calibrators().items() if name != "auto"}
    for name in ("identity", "temperature", "ets", "irm", "spline"):
        del named[name]
    ours |= named
    for name in ("temperature", "vector", "matrix", "truth-logit"):
        ours[f"log-pool + {name}"] = vd.calibrators()[name](combine="log-pool")
    ours["linear-pool + vector"] = vd.VectorScaling(combine="linear-pool")
    return ours


def load(path: Path) -> vd.Predictions:
    """An ensemble from an npz file."""
    with np.load(path, allow_pickle=False) as stored:
        kind = "logits" if "logits" in stored else "probs"
        values = stored[kind].astype(np.float64)
        labels = stored["labels"].astype(np.int64)
    if kind == "logits":
        values -= values.max(axis=-1, keepdims=True)
        np.exp(values, out=values)
    values /= values.sum(axis=-1, keepdims=True)
    return vd.Predictions(values, labels)


def scores(labels: np.ndarray, probs: np.ndarray, confidence: np.ndarray, predicted: np.ndarray) -> list[float]:
    """One number per name in METRICS."""
    correct = predicted == labels
    return [
        metrics.ece_kde(correct, confidence),
        metrics.ece(correct, confidence),
        metrics.ks_error(correct, confidence),
        float(np.square(confidence - correct).mean()),
        metrics.nll(labels, probs),
        metrics.brier(labels, probs),
        float(correct.mean()),
    ]


def peers() -> dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]]:
    """probmetrics' calibrators, as functions (calibration mean, labels, evaluation mean) -> distributions."""
    try:
        from probmetrics.calibrators import get_calibrator
    except ImportError:
        print("probmetrics is not installed: its rows are left out")
        return {}

    def runner(name: str) -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
        def run(mean: np.ndarray, labels: np.ndarray, new: np.ndarray) -> np.ndarray:
            calibrator = get_calibrator(name, calibrate_with_mixture=name == "ts-mix")
            calibrator.fit(mean, labels)
            return np.asarray(calibrator.predict_proba(new), dtype=np.float64)

        return run

    return {f"probmetrics {name}": runner(name) for name in PEERS}


def measure(ensemble: vd.Predictions, n_splits: int, with_peers: bool) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Scores (splits, METRICS) by row, and noise floors (splits, 2) of ECE-KDE and ECE for DE + Spline."""
    rows: dict[str, list[list[float]]] = {}
    floors = []
    outside = peers() if with_peers else {}
    for split in range(n_splits):
        calibration, evaluation = ensemble.split(random_state=split)
        for name, method in methods().items():
            fitted = method.fit(calibration)
            confidence = fitted.predict_confidence(evaluation)
            rows.setdefault(name, []).append(
                scores(evaluation.labels, fitted.predict_proba(evaluation), confidence, fitted.predict(evaluation))
            )
            if name == "Spline":
                floors.append(
                    [
                        metrics.noise_floor(m, confidence, n_draws=50, random_state=split).mean
                        for m in ("ece_kde", "ece")
                    ]
                )
        if outside:
            pooled = [vd.discover(part, max_iter=0).probs for part in (calibration, evaluation)]
            for name, run in outside.items():
                probs = run(pooled[0], calibration.labels, pooled[1])
                probs /= probs.sum(axis=1, keepdims=True)
                confidence = np.minimum(probs.max(axis=1), 1.0)
                rows.setdefault(name, []).append(scores(evaluation.labels, probs, confidence, probs.argmax(axis=1)))
    return {name: np.array(values) for name, values in rows.items()}, np.array(floors)


def paired(a: np.ndarray, b: np.ndarray) -> str:
    """Mean difference with its standard error over splits."""
    difference = a - b
    return f"{difference.mean():+7.3f} ± {difference.std(ddof=1) / np.sqrt(len(difference)):.3f}"


def report(name: str, rows: dict[str, np.ndarray], floors: np.ndarray) -> None:
    """The table of one ensemble; everything but NLL and MSE in percent."""
    best = {m: min(BASELINES, key=lambda row: rows[row][:, METRICS.index(m)].mean()) for m in ("ece_kde", "ece")}
    floor = 100 * floors.mean(axis=0)
    print(f"\n{name}: best baseline in ECE-KDE {best['ece_kde']}, in ECE {best['ece']}")
    print(f"noise floor: ECE-KDE {floor[0]:.3f}, ECE {floor[1]:.3f}")
    titles = (
        ("ECE-KDE", 8),
        ("to best", 16),
        ("ECE", 7),
        ("to best", 16),
        ("KS", 6),
        ("Brier", 7),
        ("NLL", 8),
        ("MSE", 8),
    )
    print(" " * 24 + " ".join(f"{title:>{width}}" for title, width in (*titles, ("ACC", 6))))
    for row, values in rows.items():
        kde, ece, ks, top, nll, mse, acc = values.mean(axis=0)
        to_kde = paired(100 * values[:, 0], 100 * rows[best["ece_kde"]][:, 0])
        to_ece = paired(100 * values[:, 1], 100 * rows[best["ece"]][:, 1])
        print(
            f"{row:24}{100 * kde:8.3f} {to_kde:>16} {100 * ece:7.3f} {to_ece:>16} {100 * ks:6.3f} "
            f"{100 * top:7.3f} {nll:8.4f} {mse:8.4f} {100 * acc:6.2f}"
        )


def main() -> None:
    """Print a table per ensemble."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--no-peers", action="store_true")
    arguments = parser.parse_args()
    ensembles = {path.stem: load(path) for path in arguments.files} or {"shipped": vd.load_demo()}
    warnings.simplefilter("ignore")
    for name, ensemble in ensembles.items():
        start = time.perf_counter()
        report(name, *measure(ensemble, arguments.splits, not arguments.no_peers))
        print(f"({time.perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
