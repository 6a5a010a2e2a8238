"""How many labels does calibration need?  NLL and Brier score by number of labels, for single methods and for auto.

Run ``python benchmarks/learning_curve.py FOLDER [--sizes 0,20,50,...] [--draws N] [--figure FILE.svg]``.  FOLDER has
ensembles ``NAME.npz`` with logits or probs, and labels; with dates, the last season is the test set.  Labels are drawn
at random from one half, and everything is scored on the other; the predictions of all other samples are there without
labels, for what needs none.  The last lines say how far auto is behind the best
single choice, and whether it is ever behind the uncalibrated mean.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import veridical as vd

SIZES = (0, 20, 50, 100, 200, 500, 1000, 5000)
SINGLE = {
    "mean": ("identity", "mean"),
    "consensus": ("consensus", "consensus"),
    "mean+temperature": ("temperature", "mean"),
    "consensus+temperature": ("temperature", "consensus"),
    "consensus+vector": ("vector", "consensus"),
    "linear-pool": ("linear-pool", "linear-pool"),
    "linear-pool+temperature": ("temperature", "linear-pool"),
    "log-pool": ("log-pool", "log-pool"),
}
LABEL_FREE = ("mean", "consensus")


def read(path: Path) -> tuple[vd.Predictions, np.ndarray, np.ndarray, np.ndarray]:
    """Predictions, with dates as groups; labels; and the samples to draw labels from and to score on."""
    with np.load(path, allow_pickle=False) as stored:
        labels = stored["labels"].astype(np.int64)
        if "probs" in stored:
            probs = stored["probs"].astype(np.float64)
        else:
            logits = stored["logits"].astype(np.float64)
            probs = np.exp(logits - logits.max(axis=-1, keepdims=True))
        dates = stored.get("dates")
    probs /= probs.sum(axis=-1, keepdims=True)
    if dates is None:
        order = np.random.default_rng(0).permutation(len(labels))
        return vd.Predictions(probs), labels, order[: len(order) // 2], np.sort(order[len(order) // 2 :])
    days = np.unique(dates)
    first = days[int(np.flatnonzero(np.diff(days) > np.timedelta64(60, "D"))[0]) + 1]
    groups = np.unique(dates, return_inverse=True)[1]  # forecasts of one date share their errors
    return vd.Predictions(probs, groups=groups), labels, np.flatnonzero(dates < first), np.flatnonzero(dates >= first)


def scores(probs: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """NLL and Brier score."""
    chosen = probs[np.arange(len(labels)), labels].astype(np.float64)
    brier = np.square(probs.astype(np.float64)).sum(axis=1) - 2 * chosen + 1
    return float(-np.log(np.maximum(chosen, 1e-12)).mean()), float(brier.mean())


def fitted(name: str, predictions: vd.Predictions) -> vd.calibrate.Calibrator:
    """A single method, or auto, on samples of which some have labels."""
    if name == "auto":
        auto = vd.Auto(objective="distribution", keep_labels=False, random_state=0, missing="skip")
        return auto.fit(predictions)
    method, combine = SINGLE[name]
    return vd.calibrators()[method](combine=combine, missing="skip").fit(predictions)


def curve(path: Path, sizes: list[int], n_draws: int) -> dict[int, dict[str, tuple[float, float]]]:
    """Size -> method -> mean NLL and Brier score over the draws."""
    unlabelled, labels, pool, test = read(path)
    scored = unlabelled.select(samples=test)
    result = {}
    for size in sizes:
        if size > len(pool):
            continue
        draws: dict[str, list[tuple[float, float]]] = {}
        for draw in range(n_draws if size < 1000 else 1):
            some = np.random.default_rng(draw).permutation(pool)[: max(size, 1)]  # label-free methods do not look
            known = np.full(len(labels), -1)
            known[some] = labels[some]
            predictions = unlabelled.with_labels(known)
            names = [*LABEL_FREE] if size == 0 else [*SINGLE, "auto"]
            for name in names:
                calibrator = fitted(name, predictions)
                draws.setdefault(name, []).append(scores(calibrator.predict_proba(scored), labels[test]))
            if size == 0:
                draws["auto"] = draws["consensus"]  # what is recommended without labels
                break
        result[size] = {name: tuple(np.mean(rows, axis=0)) for name, rows in draws.items()}
    return result


def tables(name: str, result: dict[int, dict[str, tuple[float, float]]]) -> Table:
    """NLL / Brier score by method and number of labels."""
    table = Table(name, *map(str, result), title="NLL / Brier score by number of labels", title_justify="left")
    for method in (*SINGLE, "auto"):
        cells = [("{:.3f}/{:.3f}".format(*row[method]) if method in row else "") for row in result.values()]
        table.add_row(method, *cells)
    return table


def draw_figure(curves: dict[str, dict[int, dict[str, tuple[float, float]]]], path: Path) -> None:
    """One panel per ensemble: NLL against the number of labels."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = ("mean", "mean+temperature", "consensus", "consensus+temperature", "log-pool", "auto")
    figure, axes = plt.subplots(1, len(curves), figsize=(4 * len(curves), 3.2), layout="constrained", squeeze=False)
    for ax, (name, result) in zip(axes[0], curves.items(), strict=True):
        for method in shown:
            points = [(max(size, 10), row[method][0]) for size, row in result.items() if method in row]
            ax.plot(
                *zip(*points, strict=True), marker="o", markersize=3, label=method, lw=2.5 if method == "auto" else 1
            )
        ax.set(xscale="log", title=name, xlabel="labels (10: none)", ylabel="NLL")
        limit = result[0]["mean"][0]
        ax.set_ylim(top=limit * 1.15)
    axes[0][-1].legend(fontsize=7)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Print the curves and how far auto is behind."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--only")
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    console, curves = Console(width=160), {}
    for path in sorted(options.folder.glob("*.npz")):
        if options.only and options.only not in path.stem:
            continue
        curves[path.stem] = curve(path, [int(size) for size in options.sizes.split(",")], options.draws)
        console.print(tables(path.stem, curves[path.stem]))
        for size, row in curves[path.stem].items():
            best = min(SINGLE, key=lambda name: row[name][0] if name in row else np.inf)
            behind, mean = row["auto"][0] - row[best][0], row["auto"][0] - row["mean"][0]
            console.print(f"{size:5d} labels: auto {behind:+.4f} against {best}, {mean:+.4f} against the mean")
    if options.figure:
        draw_figure(curves, options.figure)


if __name__ == "__main__":
    main()
