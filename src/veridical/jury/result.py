"""What a jury says: an answer, a confidence and a distribution per item, and a table of the jurors."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical._atomic import atomic_file
from veridical._names import printable
from veridical._outputs import check_outputs
from veridical._tables import TableResult
from veridical._version import versions
from veridical.combine import Consensus
from veridical.combine.combined import Floats, Labels
from veridical.errors import FileFormatError, ParameterError
from veridical.jury.gold import GoldChoice
from veridical.jury.tables import PROBABILITY

#: Version of the JSON that ``to_dict`` gives.
_SCHEMA = 1


@dataclass(frozen=True)
class Juror:
    """One source of votes.

    Attributes
    ----------
    name : str
    skill : float
        Correlation with what all jurors see, from 0 to 0.98.
    weight : float
        What a vote counts, apart from its dependence on others; the mean over all votes is one.
    dependence : float
        The largest dependence on another juror, from 0 to 1.
    depends_on : str or None
        Whose votes that is about; None where it is 0.
    n_votes : int
    agreement : float
        Share of its votes that are the jury's answer.
    accuracy : float or None
        Share of its votes that are right, where answers are known.
    n_gold : int
        Votes on items whose answer is known.

    Examples
    --------
    >>> import veridical as vd
    >>> juror = vd.judge(vd.load_demo_jury().select(samples=slice(300))).ranked_jurors()[0]
    >>> bool(0 < juror.skill < 1), juror.n_votes <= 300
    (True, True)
    """

    name: str
    skill: float
    weight: float
    dependence: float
    depends_on: str | None
    n_votes: int
    agreement: float
    accuracy: float | None
    n_gold: int


@dataclass(frozen=True, repr=False)
class JuryResult(TableResult):
    """The result of :func:`veridical.judge`.

    Attributes
    ----------
    item_ids, class_names : tuple of str
    probs : (N, L) float64
        Distribution over the classes of each item; NaN without votes.
    label : (N,) int64
        The most probable class; -1 without votes.
    confidence : (N,) float64
        Its probability.
    effective_jurors : (N,) float64
        How many independent jurors with weight have voted.
    n_votes : (N,) int64
    gold : (N,) int64
        Known answers, -1 elsewhere.
    jurors : tuple of Juror
    consensus : Consensus
        Of the answered items, before any calibration.
    calibration : GoldChoice or None
        How the confidence was calibrated on known answers; None where it was not.
    notes : tuple of str
        What was noticed, a sentence each; how far the confidence can be trusted is the last.

    Examples
    --------
    >>> import veridical as vd
    >>> result = vd.judge(vd.load_demo_jury().select(samples=slice(300)))
    >>> result.probs.shape, len(result.jurors)
    ((300, 10), 29)
    """

    item_ids: tuple[str, ...]
    class_names: tuple[str, ...]
    probs: Floats
    label: Labels
    confidence: Floats
    effective_jurors: Floats
    n_votes: Labels
    gold: Labels
    jurors: tuple[Juror, ...]
    consensus: Consensus
    calibration: GoldChoice | None
    notes: tuple[str, ...]
    files: tuple[Path, ...] = field(default=())

    def __repr__(self) -> str:
        effective = self.effective_jurors[self.label >= 0]
        return (
            f"JuryResult({len(self.jurors)} jurors, {len(self.item_ids)} items, {len(self.class_names)} classes, "
            f"{effective.mean():.3g} independent jurors per item)"
        )

    @property
    def answered(self) -> npt.NDArray[np.bool_]:
        """(N,) whether there are votes."""
        answered: npt.NDArray[np.bool_] = self.label >= 0
        return answered

    def answer(self, item: str) -> tuple[str, float]:
        """The label and the confidence of one item, by its id."""
        if item not in self.item_ids:
            raise ParameterError(f"there is no item {item!r}; the first one is {self.item_ids[0]!r}.")
        n = self.item_ids.index(item)
        return (self.class_names[self.label[n]] if self.label[n] >= 0 else ""), float(self.confidence[n])

    def ranked_jurors(self) -> list[Juror]:
        """The jurors, the one with the largest weight first."""
        return sorted(self.jurors, key=lambda juror: (-juror.weight, juror.name))

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Heading and rows: the jurors by weight."""
        with_gold = any(juror.accuracy is not None for juror in self.jurors)
        heading = ["juror", "skill", "weight", "votes", "agrees", *["right"] * with_gold, "dep.", "on"]
        rows = []
        for juror in self.ranked_jurors():
            right = "" if juror.accuracy is None else f"{100 * juror.accuracy:.1f}"
            figures = [
                f"{juror.skill:.2f}",
                f"{juror.weight:.2f}",
                f"{juror.n_votes:,}",
                f"{100 * juror.agreement:.1f}",
            ]
            on = printable(juror.depends_on or "")
            rows.append([printable(juror.name), *figures, *[right] * with_gold, f"{juror.dependence:.2f}", on])
        return heading, rows

    def _caption(self) -> str:
        return "jurors by weight; agreement with the answers and accuracy in %"

    def _records(self) -> list[dict[str, Any]]:
        return [{**juror.__dict__} for juror in self.ranked_jurors()]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        shown = range(len(self.item_ids))
        return {
            "schema": _SCHEMA,
            "type": "jury",
            "classes": list(self.class_names),
            "answers": [
                {
                    "item": self.item_ids[n],
                    "label": self.class_names[self.label[n]] if self.label[n] >= 0 else None,
                    "confidence": None if self.label[n] < 0 else float(self.confidence[n]),
                    "effective_jurors": float(self.effective_jurors[n]),
                    "votes": int(self.n_votes[n]),
                    "gold": self.class_names[self.gold[n]] if self.gold[n] >= 0 else None,
                    "probs": None if self.label[n] < 0 else self.probs[n].tolist(),
                }
                for n in shown
            ],
            "jurors": self._records(),
            "camps": [list(camp.names) for camp in self.consensus.camps],
            "calibration": None if self.calibration is None else self.calibration.to_dict(),
            "notes": list(self.notes),
            "versions": versions(),
        }

    def save(self, path: str | Path) -> None:
        """Write the answers as a .csv: item, label, confidence, effective_jurors, votes, gold, and p_CLASS each.

        It appears whole or not at all.  An item without votes has empty cells.
        """
        if Path(path).suffix.lower() != ".csv":
            raise FileFormatError(f"answers cannot be written to {str(path)!r}; use the extension .csv.")
        check_outputs({"path": path}, self.files)
        with_gold = bool((self.gold >= 0).any())
        classes = [f"{PROBABILITY}{name}" for name in self.class_names]
        heading = ["item", "label", "confidence", "effective_jurors", "votes", *["gold"] * with_gold, *classes]
        with atomic_file(path) as file:
            text = io.TextIOWrapper(file, encoding="utf-8", newline="")
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(heading)
            for n, item in enumerate(self.item_ids):
                gold = self.class_names[self.gold[n]] if self.gold[n] >= 0 else ""
                if self.label[n] < 0:
                    writer.writerow([item, "", "", 0, 0, *[gold] * with_gold, *[""] * len(classes)])
                    continue
                figures = [f"{self.confidence[n]:.6g}", f"{self.effective_jurors[n]:.4g}", int(self.n_votes[n])]
                probs = [f"{p:.6g}" for p in self.probs[n]]
                writer.writerow([item, self.class_names[self.label[n]], *figures, *[gold] * with_gold, *probs])
            text.flush()
            text.detach()
