"""Compute the golden figures of an ensemble with the published code of other authors.

    python make_golden.py ENSEMBLE.npz --truly-uncertain DIR --mix-n-match DIR --spline DIR --out FIGURES.json

The three directories are checkouts of the repositories that README.md names; nothing of them is part of this project.
``ENSEMBLE.npz`` holds ``logits`` (S, N, L) and ``labels`` (N,).  ``--compare FIGURES.json`` prints the largest
differences from figures computed before, to check that the same code is in use.  Needs KDEpy and torch.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax

Array = np.ndarray[Any, Any]

if not hasattr(np, "trapz"):  # their code calls the name that NumPy 2 has dropped
    np.trapz = np.trapezoid  # type: ignore[attr-defined]


def top_label(probs: Array, labels: Array) -> tuple[Array, Array]:
    """Confidence, normalised as the evaluation code does it, and correctness."""
    predicted = probs.argmax(axis=1)
    return probs.max(axis=1) / probs.sum(axis=1), (predicted == labels).astype(np.float64)


def figures(probs: Array, labels: Array) -> dict[str, float]:
    """All metrics of one set of vectors."""
    from analysis.util_evaluation import ece_eval_binary, ece_hist_binary
    from cal_metrics.ECE import _ECELoss
    from cal_metrics.KS import plot_KS_graphs

    one_hot = np.eye(probs.shape[1])[labels]
    ece_kde, nll, mse, acc = ece_eval_binary(probs, one_hot)
    confidence, correct = top_label(probs, labels)
    return {
        "ece_kde": float(ece_kde),
        "ece_mass15": float(ece_hist_binary(probs, one_hot).numpy()[0]),
        "ece_width15": float(_ECELoss(n_bins=15).eval(confidence, correct)[0]),
        "ks": float(plot_KS_graphs(confidence, correct, "natural", 6, "", "", showplots=False)),
        "nll": float(nll),
        "mse": float(mse),
        "acc": float(acc),
    }


def discover(values: Array) -> Array:
    """Six updates of one sample's truth vector, as the authors' notebook calls their functions."""
    from analysis.UN_utils import w_l

    truth = values.mean(axis=0)
    for _ in range(6):
        truth = np.dot(values.T, w_l(values, truth))
    return truth


def geometric_variance(values: Array, truth: Array) -> float:
    """HV of one sample at ``truth``: the definition of the paper, which the released code does not contain."""
    distances = ((values - truth) ** 2).sum(axis=1)
    return float((distances * np.log(distances.sum() / distances)).sum())


def truth_discovery(probs: Array, labels: Array) -> dict[str, Any]:
    """TDE and aTDE with six updates, and the truth vectors of twenty samples."""
    from analysis.UN_utils import v_project2

    n_samples, n_classes = probs.shape[1:]
    tde = np.stack([discover(probs[:, n]) for n in range(n_samples)])
    variances = [geometric_variance(probs[:, n], tde[n]) for n in range(n_samples)]
    mean_labels = probs.mean(axis=0).argmax(axis=1)
    changed = np.flatnonzero(tde.argmax(axis=1) != mean_labels)
    atde = tde.copy()
    for n in changed:
        atde[n] = v_project2(atde[n].copy(), mean_labels[n], C=n_classes)
    index = [n_samples // 20 * k for k in range(20)]
    top5 = [np.argsort(-tde[n], kind="stable")[:5] for n in index]
    return {
        "tde_6_updates": figures(tde, labels),
        "atde_6_updates_final_projection": figures(atde, labels),
        "atde_changed": len(changed),
        "samples": {
            "index": index,
            "tde_top5": [[[int(l), float(tde[n, l])] for l in top] for n, top in zip(index, top5, strict=True)],
        },
        "hv": {"mean": float(np.mean(variances)), "first20": [variances[n] for n in index]},
    }


def spline(fitted: tuple[Array, Array], confidence: Array, correct: Array) -> dict[str, Any]:
    """Confidences recalibrated by a natural spline with six knots; linear between the fitted ones, not clipped."""
    from cal_metrics.ECE import _ECELoss
    from cal_metrics.KS import compute_accuracy, plot_KS_graphs

    recalibrated, _ = compute_accuracy(*fitted, "natural", 6, "", "", showplots=False)
    result = np.interp(confidence, np.sort(fitted[0]), recalibrated)
    return {
        "first10_odd": result[:10].tolist(),
        "ks": float(plot_KS_graphs(result, correct, "natural", 6, "", "", showplots=False)),
        "ece_width15": float(_ECELoss(n_bins=15).eval(result, correct)[0]),
        "mean_confidence": float(result.mean()),
    }


def posthoc(mean: Array, labels: Array) -> dict[str, Any]:
    """Post-hoc methods fitted on even samples and evaluated on odd ones."""
    import util_calibration as theirs

    logits, one_hot = np.log(mean), np.eye(mean.shape[1])[labels]
    even, odd, even_labels, odd_labels = logits[::2], logits[1::2], one_hot[::2], labels[1::2]
    results: dict[str, Any] = {}
    for name, loss in (("ts_mse", "mse"), ("ts_ce", "ce")):
        temperature = theirs.temperature_scaling(even, even_labels, loss)
        scaled = theirs.ts_calibrate(even, even_labels, odd, loss)
        results[name] = {"temperature": float(temperature[0]), **figures(scaled, odd_labels)}
    temperature = theirs.temperature_scaling(even, even_labels, "mse")
    weights = theirs.ensemble_scaling(even, even_labels, "mse", temperature, mean.shape[1])
    mixed = theirs.ets_calibrate(even, even_labels, odd, mean.shape[1], "mse")
    results["ets_mse"] = {"weights": weights.tolist(), **figures(mixed, odd_labels)}
    results["irm"] = figures(theirs.mir_calibrate(even, even_labels, odd), odd_labels)
    irova = theirs.irova_calibrate(even, even_labels, odd)
    results["irova_normalised"] = figures(irova / irova.sum(axis=1, keepdims=True), odd_labels)
    results["spline_natural_6"] = spline(top_label(mean[::2], labels[::2]), *top_label(mean[1::2], labels[1::2]))
    return results


def golden(path: Path) -> dict[str, Any]:
    """All figures of the ensemble stored at ``path``."""
    with np.load(path, allow_pickle=False) as stored:
        probs = softmax(stored["logits"].astype(np.float64), axis=-1)
        labels = stored["labels"].astype(np.int64)
    mean = probs.mean(axis=0)
    return {
        "name": path.stem,
        "shape": list(probs.shape),
        "mean": figures(mean, labels),
        **truth_discovery(probs, labels),
        "posthoc_fit_on_even_eval_on_odd": posthoc(mean, labels),
        "mean_odd": figures(mean[1::2], labels[1::2]),
    }


def differences(ours: Any, other: Any, where: str = "") -> list[tuple[float, str]]:
    """(absolute difference, where) of all numbers that both hold."""
    if isinstance(ours, dict):
        return [d for key in ours if key in other for d in differences(ours[key], other[key], f"{where}/{key}")]
    if isinstance(ours, list):
        pairs = zip(ours, other, strict=True)
        return [d for k, (a, b) in enumerate(pairs) for d in differences(a, b, f"{where}/{k}")]
    return [] if isinstance(ours, str) else [(abs(ours - other), where)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ensemble", type=Path)
    for name in ("--truly-uncertain", "--mix-n-match", "--spline"):
        parser.add_argument(name, type=Path, required=True, metavar="DIR")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--compare", type=Path)
    options = parser.parse_args()
    sys.path[:0] = [str(options.truly_uncertain), str(options.mix_n_match), str(options.spline)]
    with contextlib.redirect_stdout(io.StringIO()):  # their functions print what they fit
        result = golden(options.ensemble)
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    if options.compare:
        compared = sorted(differences(result, json.loads(options.compare.read_text())), reverse=True)
        print(f"{len(compared)} numbers compared; the largest differences:")
        for difference, where in compared[:8]:
            print(f"  {difference:.3e}  {where}")


if __name__ == "__main__":
    main()
