"""Votes of juries: veridical and crowd-kit on sets with known answers, and with some of them known.

Run ``python benchmarks/jury.py FOLDER [--quick]`` with files ``NAME.npz`` that hold item, source, label, truth (-1
where unknown), n_items, n_sources and n_classes.  Peers run where crowd-kit is installed and --quick is not given.  A
crowd of 1.8 million votes is in benchmarks/consensus.py.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from veridical.combine.across_samples.votes import Votes, consensus_of_votes, sort_votes
from veridical.jury.dawid_skene import fit_dawid_skene
from veridical.jury.gold import calibrate_on_gold
from veridical.metrics import ece

N_GOLD, N_DRAWS = (10, 20, 50, 100, 200), 4
COLUMNS = ("accuracy", "NLL", "Brier", "ECE", "seconds")


def read(path: Path) -> tuple[Votes, np.ndarray, np.lib.npyio.NpzFile]:
    """Votes on the items that have some, and their known answers."""
    stored = np.load(path, allow_pickle=False)
    items, sources, labels = (stored[name].astype(np.int64) for name in ("item", "source", "label"))
    answered = np.unique(items)
    shape = (int(stored["n_sources"]), len(answered), int(stored["n_classes"]))
    return sort_votes(np.searchsorted(answered, items), sources, labels, shape), stored["truth"][answered], stored


def figures(probs: np.ndarray, truth: np.ndarray) -> list[float]:
    """Accuracy in %, NLL (probabilities of at least 1e-6), Brier score, ECE in %."""
    known = truth >= 0
    probs, answers = probs[known].astype(np.float64), truth[known]
    chosen = probs[np.arange(len(answers)), answers]
    brier = np.square(probs).sum(axis=1) - 2 * chosen + 1
    return [
        100 * (probs.argmax(axis=1) == answers).mean(),
        -np.log(np.maximum(chosen, 1e-6)).mean(),
        brier.mean(),
        100 * ece(answers, probs),
    ]


def majority(votes: Votes) -> np.ndarray:
    """Shares of the votes."""
    _, n_items, n_classes = votes.shape
    cells = votes.items[votes.entries] * n_classes + votes.labels
    counts = np.bincount(cells, weights=votes.values, minlength=n_items * n_classes).reshape(n_items, n_classes)
    return counts / counts.sum(axis=1, keepdims=True)


def peers(votes: Votes) -> dict[str, Callable[[], np.ndarray]]:
    """crowd-kit's aggregations, if it is there."""
    try:
        import pandas as pd
        from crowdkit.aggregation import GLAD, MACE, DawidSkene, MajorityVote
    except ImportError:
        return {}
    frame = pd.DataFrame(
        {"task": votes.items[votes.entries], "worker": votes.sources[votes.entries], "label": votes.labels}
    )

    def run(aggregator: object) -> np.ndarray:
        shares = aggregator.fit_predict_proba(frame)
        probs = np.zeros(votes.shape[1:])
        probs[np.ix_(shares.index.to_numpy(), shares.columns.to_numpy())] = shares.to_numpy()
        return probs / probs.sum(axis=1, keepdims=True)

    return {
        "crowd-kit MajorityVote": lambda: run(MajorityVote()),
        "crowd-kit DawidSkene": lambda: run(DawidSkene(n_iter=100)),
        "crowd-kit GLAD": lambda: run(GLAD()),
        "crowd-kit MACE": lambda: run(MACE()),
    }


def _mean_rows(table: Table, name: str, by_method: dict[str, list[list[float]]]) -> None:
    for method, rows in by_method.items():
        table.add_row(name, method, *(f"{value:.3f}" for value in np.mean(rows, axis=0)))


def compare(paths: list[Path], *, with_peers: bool) -> Table:
    """All methods without known answers."""
    table = Table("votes", "method", *COLUMNS, title="Without known answers", title_justify="left")
    means: dict[str, list[list[float]]] = {}
    for path in paths:
        votes, truth, _ = read(path)
        methods = {
            "majority": lambda v=votes: majority(v),
            "dawid-skene": lambda v=votes: fit_dawid_skene(v).probs,
            "consensus": lambda v=votes: consensus_of_votes(v).probs,
            **(peers(votes) if with_peers else {}),
        }
        for method, run in methods.items():
            start = time.perf_counter()
            try:
                probs = run()
            except Exception as error:
                table.add_row(path.stem, method, f"failed: {type(error).__name__}")
                continue
            row = [*figures(probs, truth), time.perf_counter() - start]
            means.setdefault(method, []).append(row)
            table.add_row(path.stem, method, *(f"{value:.3f}" for value in row))
    _mean_rows(table, "mean", means)
    return table


def with_gold(paths: list[Path]) -> Table:
    """NLL and accuracy on other items, with known answers drawn at random, means over several draws."""
    table = Table("votes", *(f"{n} known" for n in (0, *N_GOLD)), title="NLL / accuracy", title_justify="left")
    means = []
    for path in paths:
        votes, truth, _ = read(path)
        consensus, model = consensus_of_votes(votes), fit_dawid_skene(votes)
        known, rows = np.flatnonzero(truth >= 0), []
        for draw in range(N_DRAWS):
            order = np.random.default_rng(draw).permutation(known)
            rest = order[max(N_GOLD) :]
            distributions = [consensus.probs]
            for n_gold in N_GOLD:
                gold = order[:n_gold]
                distributions.append(
                    calibrate_on_gold(consensus.probs, lambda p=model.probs: p, gold, truth[gold], draw)[0]
                )
            rows.append([figures(probs[rest], truth[rest])[:2] for probs in distributions])
        means.append(np.mean(rows, axis=0))
        table.add_row(path.stem, *(f"{nll:.3f} / {accuracy:.1f}" for accuracy, nll in means[-1]))
    table.add_row("mean", *(f"{nll:.3f} / {accuracy:.1f}" for accuracy, nll in np.mean(means, axis=0)))
    return table


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    console = Console(width=140)
    files = sorted(Path(sys.argv[1]).glob("*.npz"))
    console.print(compare(files, with_peers="--quick" not in sys.argv))
    console.print(with_gold(files))
