"""The consensus of sources: its time against the sums it needs, a large crowd, and what it is worth on real data.

Run ``python benchmarks/consensus.py [FOLDER]``.  Time is a ratio in the same process, best of several; the crowd runs
in a process of its own.  With a folder, ensembles in it (``NAME.npz`` with logits or probs, and labels; with dates,
weights come from earlier dates only) and votes (``votes/NAME.npz`` with item, source, label and truth) are scored.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from timing import best_ratio

import veridical as vd
from veridical.combine.across_samples.passes import weighted_means
from veridical.combine.across_samples.votes import consensus_of_votes, sort_votes
from veridical.combine.across_samples.weights import gather_sums, weigh_sources
from veridical.errors import CampsWarning
from veridical.metrics import ece

SHAPES = [(50, 5000, 1000), (100, 10000, 100), (100, 10000, 10)]
MOST_RATIO = 1.5

_CROWD = """
import re, sys, time, numpy as np
from veridical.combine.across_samples.votes import consensus_of_votes, sort_votes
rng = np.random.default_rng(0)
n_items, n_sources, n_classes, per_item = 180_000, 5000, 5, 10
truth = rng.integers(0, n_classes, n_items)
items = np.repeat(np.arange(n_items), per_item)
sources = (rng.integers(0, n_sources, n_items)[:, None] + rng.permutation(n_sources)[:per_item]).ravel() % n_sources
right = rng.random(len(items)) < rng.beta(4, 3, n_sources)[sources]
labels = np.where(right, truth[items], rng.integers(0, n_classes, len(items)))
start = time.perf_counter()
consensus = consensus_of_votes(sort_votes(items, sources, labels, (n_sources, n_items, n_classes)))
seconds = time.perf_counter() - start
majority = np.zeros((n_items, n_classes)); np.add.at(majority, (items, labels), 1.0)
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 2**20
print(seconds, peak, 100 * (majority.argmax(1) == truth).mean(), 100 * (consensus.prediction == truth).mean())
"""


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right")
    return table


def ensemble(n_sources: int, n_samples: int, n_classes: int) -> np.ndarray:
    """Sources that scatter around a common opinion, in float32."""
    rng = np.random.default_rng(0)
    opinion = 3 * rng.standard_normal((n_samples, n_classes), dtype=np.float32)
    probs = np.empty((n_sources, n_samples, n_classes), np.float32)
    for source in probs:
        scores = np.exp(opinion + rng.standard_normal((n_samples, n_classes), dtype=np.float32))
        np.divide(scores, scores.sum(axis=1, keepdims=True), out=source)
    return probs


def sums_and_means(probs: np.ndarray) -> None:
    """What a consensus cannot do without: the products of all pairs of sources, and reading the array."""
    flat = probs.reshape(len(probs), -1)
    flat @ flat.T
    for _ in range(3):
        probs.mean(axis=0)


def speed() -> Table:
    """All of vd.consensus, divided by the products of all pairs and three means."""
    table = _table("Time / (f @ f.T and three means)", "S, N, L", "ratio", "must", "ms")
    for shape in SHAPES:
        probs = ensemble(*shape)
        ratio, ours, _ = best_ratio(lambda p=probs: vd.consensus(p), lambda p=probs: sums_and_means(p), repeats=9)
        table.add_row(str(shape), f"{ratio:.2f}", f"{MOST_RATIO}", f"{ours * 1e3:.1f}")
    return table


def crowd() -> Table:
    """1.8 million votes of 5,000 sources, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", _CROWD], capture_output=True, text=True, check=True)
    seconds, peak, majority, ours = map(float, done.stdout.split())
    table = _table("1.8 million votes, 5,000 sources", "what", "figure", "must")
    table.add_row("seconds", f"{seconds:.1f}", "60")
    table.add_row("peak memory of the process, GB", f"{peak:.2f}", "2")
    table.add_row("accuracy of the majority, %", f"{majority:.2f}", "")
    table.add_row("accuracy of the consensus, %", f"{ours:.2f}", "")
    return table


def figures(probs: np.ndarray, labels: np.ndarray) -> list[str]:
    """Accuracy in %, NLL, ECE in %."""
    chosen = np.maximum(probs[np.arange(len(labels)), labels].astype(np.float64), 1e-12)
    accuracy = 100 * (probs.argmax(axis=1) == labels).mean()
    return [f"{accuracy:.2f}", f"{-np.log(chosen).mean():.4f}", f"{100 * ece(labels, probs):.2f}"]


def _probs(stored: np.lib.npyio.NpzFile) -> np.ndarray:
    if "probs" in stored:
        probs = stored["probs"].astype(np.float64)
        return probs / probs.sum(axis=-1, keepdims=True)
    scores = np.exp(stored["logits"].astype(np.float64) - stored["logits"].max(axis=-1, keepdims=True))
    return scores / scores.sum(axis=-1, keepdims=True)


def walk_forward(probs: np.ndarray, dates: np.ndarray, first: int) -> np.ndarray:
    """The consensus of each date from ``first`` on, with weights from earlier dates."""
    parts = []
    for date in np.unique(dates)[first:]:
        sums, _ = gather_sums(vd.Predictions(probs[:, dates < date]), "skip", None)
        sources = weigh_sources(sums)
        today = vd.Predictions(probs[:, dates == date])
        parts.append(weighted_means(today, sources.weights, sources.dependence, None, complete=False)[0])
    return np.concatenate(parts)


def ensembles(folder: Path) -> Table:
    """The mean, truth discovery and the consensus, without labels, also with copies of each source."""
    table = _table("Ensembles: accuracy %, NLL, ECE %", "ensemble", "combined by", "accuracy", "NLL", "ECE")
    for path in sorted(folder.glob("*.npz")):
        with np.load(path, allow_pickle=False) as stored:
            probs, labels = _probs(stored), stored["labels"].astype(np.int64)
            dates = stored.get("dates")
        if dates is not None:
            first = int(np.flatnonzero(np.diff(np.unique(dates)) > np.timedelta64(60, "D"))[0]) + 1
            late = dates >= np.unique(dates)[first]
            rows = {"consensus, walking forward": walk_forward(probs, dates, first)}
            probs, labels = probs[:, late], labels[late]
        else:
            rows = {"consensus": vd.consensus(probs).probs}
            for source in range(len(probs)) if len(probs) < 5 else [0]:
                for n_copies in (1, 3, 5, 10):
                    copies = np.repeat(probs[source : source + 1], n_copies, axis=0)
                    crowded = vd.consensus(np.concatenate([probs, copies]))
                    rows[f"consensus, source {source} and {n_copies} copies"] = crowded.probs
        truth = vd.discover(probs, accuracy_preserving=False, missing="skip").probs
        for name, combined in {"mean": np.nanmean(probs, axis=0), "TDE": truth, **rows}.items():
            table.add_row(path.stem, name, *figures(combined, labels))
    return table


def juries(folder: Path) -> Table:
    """Shares of votes and the consensus, without labels."""
    table = _table(
        "Votes: accuracy %, NLL, ECE %", "votes", "accuracy", "NLL", "ECE", "consensus: accuracy", "NLL", "ECE"
    )
    for path in sorted(folder.glob("*.npz")):
        with np.load(path, allow_pickle=False) as stored:
            items, sources, labels, truth = (
                stored[name].astype(np.int64) for name in ("item", "source", "label", "truth")
            )
            n_sources, n_classes = int(stored["n_sources"]), int(stored["n_classes"])
        answered = np.unique(items)
        items, truth = np.searchsorted(answered, items), truth[answered]
        known = truth >= 0
        shares = np.zeros((len(answered), n_classes))
        np.add.at(shares, (items, labels), 1.0)
        shares /= shares.sum(axis=1, keepdims=True)
        with warnings.catch_warnings():
            warnings.simplefilter("always", CampsWarning)
            consensus = consensus_of_votes(sort_votes(items, sources, labels, (n_sources, len(answered), n_classes)))
        table.add_row(path.stem, *figures(shares[known], truth[known]), *figures(consensus.probs[known], truth[known]))
    return table


if __name__ == "__main__":
    console = Console()
    console.print(speed())
    console.print(crowd())
    if len(sys.argv) > 1:
        console.print(ensembles(Path(sys.argv[1])))
        console.print(juries(Path(sys.argv[1]) / "votes"))
