"""Our metrics beside those of other libraries, on the mean of the shipped ensemble."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from example_data import demo

from veridical import metrics


def peers(labels: np.ndarray, probs: np.ndarray) -> list[tuple[str, str, float, float]]:
    """(metric, peer, ours, theirs) for every pair that has the same definition."""
    import calibration
    import relplot
    import torch
    from calibration import utils
    from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, roc_auc_score
    from torchmetrics.functional.classification import multiclass_calibration_error

    correct, confidence = probs.argmax(axis=1) == labels, probs.max(axis=1)
    tensors = torch.tensor(probs), torch.tensor(labels)

    def torch_error(norm: str) -> float:
        return float(multiclass_calibration_error(*tensors, num_classes=probs.shape[1], n_bins=15, norm=norm))

    bins = list(metrics.bin_edges(confidence, 15)[1:])
    binned = utils.bin(list(zip(confidence, correct.astype(float), strict=True)), bins)
    wide = {"binning": "width"}
    return [
        ("ECE, equal width", "torchmetrics", metrics.ece(labels, probs, **wide), torch_error("l1")),
        ("ECE, equal width", "uncertainty-calibration", metrics.ece(labels, probs, **wide),
         calibration.get_ece(probs, labels, num_bins=15)),
        ("root mean square", "torchmetrics", metrics.ece(labels, probs, norm=2, **wide), torch_error("l2")),
        ("maximum error", "torchmetrics", metrics.ece(labels, probs, norm="max", **wide), torch_error("max")),
        ("debiased, same bins", "uncertainty-calibration", metrics.debiased_ece(correct, confidence),
         utils.unbiased_l2_ce(binned)),
        ("smooth ECE", "relplot", metrics.smooth_ece(correct, confidence),
         relplot.smECE(confidence, correct.astype(float))),
        ("NLL", "scikit-learn", metrics.nll(labels, probs), log_loss(labels, probs)),
        ("Brier", "scikit-learn", metrics.brier(labels, probs), brier_score_loss(labels, probs)),
        ("accuracy", "scikit-learn", metrics.accuracy(labels, probs), accuracy_score(labels, probs.argmax(axis=1))),
        ("error AUROC", "scikit-learn", metrics.error_auroc(correct, confidence), roc_auc_score(~correct, -confidence)),
    ]  # fmt: skip


def compute() -> dict[str, Any]:
    """All pairs, with their differences."""
    probs = demo().values.mean(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of the peers
        pairs = peers(demo().labels, probs / probs.sum(axis=1, keepdims=True))
    return {"rows": [[name, peer, round(ours, 6), round(float(theirs), 6)] for name, peer, ours, theirs in pairs]}


def tables(numbers: dict[str, Any]) -> dict[str, str]:
    """One line per pair."""
    lines = ["| metric | peer | here | there | difference |", "|---|---|---:|---:|---:|"]
    for name, peer, ours, theirs in numbers["rows"]:
        lines.append(f"| {name} | {peer} | {ours:.6f} | {theirs:.6f} | {abs(ours - theirs):.6f} |")
    return {"": "\n".join(lines) + "\n"}
