"""What a jury says: an answer, a confidence and a distribution per item, and a table of the jurors."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical._atomic import as_path
from veridical._names import printable
from veridical._outputs import check_outputs
from veridical._tables import TableResult
from veridical._version import versions
from veridical.combine import Consensus
from veridical.combine.combined import Floats, Labels
from veridical.errors import FileFormatError, ParameterError, shown
from veridical.jury.findings import JurorFinding
from veridical.jury.gold import GoldChoice
from veridical.jury.jurors import Juror, is_counted
from veridical.jury.pairs import LEAST_VOTES, ErrorCorrelation
from veridical.jury.tables import PROBABILITY
from veridical.predictions.files.format_csv import CSV

#: What a table shows where votes are too few, and what it means.
UNKNOWN = "–"
DASH = f"{UNKNOWN}: fewer than {LEAST_VOTES} votes or shared items"
COLUMNS = "agrees: with the others' answer, in % (95% interval); right: in % of so many known answers"
#: Version of the JSON that ``to_dict`` gives.
_SCHEMA = 1


@dataclass(frozen=True, repr=False, eq=False)
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
    distinct_jurors : (N,) float64
        How many distinct jurors with a weight have voted on each item.
    n_votes : (N,) int64
    gold : (N,) int64
        Known answers, -1 elsewhere.
    jurors : tuple of Juror
    jurors_to_check : tuple of JurorFinding
        Jurors to look at: suspected copies, answers that never vary, and skill near zero.
    dependence : (S, S) float32
        What two jurors share beyond the common answer, from 0 to 1 (copies); NaN for those with fewer than 20 shared
        items, of whom too little is known.  The consensus weighs their votes with ``consensus.dependence``.
    distinct_jurors_overall : float or None
        How many distinct jurors would have voted if all had, of those with a weight and 20 votes or more: the sum of
        1 / (sum of a juror's dependence on all of them, itself included), copies counted once; None without any.
        Distinct is not independent: errors on the same items cannot be seen without known answers.
    error_correlation : ErrorCorrelation or None
        How far errors go together on known answers, and how many independent jurors that leaves; None without pairs of
        jurors that share 20 known answers.
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
    distinct_jurors: Floats
    n_votes: Labels
    gold: Labels
    jurors: tuple[Juror, ...]
    jurors_to_check: tuple[JurorFinding, ...]
    dependence: npt.NDArray[np.float32]
    distinct_jurors_overall: float | None
    error_correlation: ErrorCorrelation | None
    consensus: Consensus
    calibration: GoldChoice | None
    notes: tuple[str, ...]
    files: tuple[Path, ...] = field(default=())

    def __repr__(self) -> str:
        distinct = self.distinct_jurors[self.label >= 0]
        return (
            f"JuryResult({len(self.jurors)} jurors, {len(self.item_ids)} items, {len(self.class_names)} classes, "
            f"{distinct.mean():.3g} distinct jurors per item)"
        )

    @property
    def answered(self) -> npt.NDArray[np.bool_]:
        """(N,) whether there are votes."""
        answered: npt.NDArray[np.bool_] = self.label >= 0
        return answered

    def answer(self, item: str) -> tuple[str, float]:
        """The label and the confidence of one item, by its id; an empty label and NaN if it has no votes."""
        if not isinstance(item, str) or item not in self.item_ids:
            raise ParameterError(f"there is no item {shown(item)}; the first one is {self.item_ids[0]!r}.")
        n = self.item_ids.index(item)
        return (self.class_names[self.label[n]] if self.label[n] >= 0 else ""), float(self.confidence[n])

    def ranked_jurors(self) -> list[Juror]:
        """The jurors, the one with the largest weight first."""
        return sorted(self.jurors, key=lambda juror: (-juror.weight, juror.name))

    @property
    def n_counted_jurors(self) -> int:
        """How many jurors ``distinct_jurors_overall`` is about: those with a weight and 20 votes or more."""
        return sum(map(is_counted, self.jurors))

    def distinct_jurors_in_words(self) -> str:
        """How many distinct jurors there are overall, and how many independent ones where that is known."""
        if self.distinct_jurors_overall is None:
            return f"No juror has a weight and {LEAST_VOTES} votes; who repeats whom cannot be known."
        counted = f"{self.n_counted_jurors:,} with a weight and {LEAST_VOTES} votes or more"
        distinct = f"Distinct jurors overall: {self.distinct_jurors_overall:.1f}, of {counted}"
        errors = self.error_correlation
        if errors is None:
            return f"{distinct} (copies count once; whether errors are independent, only known answers can show)."
        return (
            f"{distinct} (copies count once).  On known answers their errors correlate at {errors.mean:.2f}: "
            f"{errors.n_jurors:,} such jurors are worth {errors.n_independent:.1f} with independent errors."
        )

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Heading and rows: the jurors by weight."""
        with_gold = any(juror.accuracy is not None for juror in self.jurors)
        heading = ["juror", "skill", "weight", "votes", "agrees", *["right"] * with_gold, "dep.", "shared", "on"]
        rows = []
        for juror in self.ranked_jurors():
            right = "" if juror.accuracy is None else f"{100 * juror.accuracy:.1f} of {juror.n_gold:,}"
            figures = [
                UNKNOWN if juror.skill is None else f"{juror.skill:.2f}",
                f"{juror.weight:.2f}",
                f"{juror.n_votes:,}",
                _agreement(juror),
                *[right] * with_gold,
                UNKNOWN if juror.dependence is None else f"{juror.dependence:.2f}",
                f"{juror.n_shared:,}" if juror.n_shared else "",
            ]
            rows.append([printable(juror.name), *figures, printable(juror.depends_on or "")])
        return heading, rows

    def _caption(self) -> str:
        return f"jurors by weight; {COLUMNS}; {DASH}"

    def _records(self) -> list[dict[str, Any]]:
        return [{**juror.__dict__} for juror in self.ranked_jurors()]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "schema": _SCHEMA,
            "type": "jury",
            "classes": list(self.class_names),
            "answers": [
                {
                    "item": self.item_ids[n],
                    "label": self.class_names[self.label[n]] if self.label[n] >= 0 else None,
                    "confidence": None if self.label[n] < 0 else float(self.confidence[n]),
                    "distinct_jurors": float(self.distinct_jurors[n]),
                    "votes": int(self.n_votes[n]),
                    "gold": self.class_names[self.gold[n]] if self.gold[n] >= 0 else None,
                    "probs": None if self.label[n] < 0 else self.probs[n].tolist(),
                }
                for n in range(len(self.item_ids))
            ],
            "jurors": self._records(),
            "distinct_jurors": self.distinct_jurors_overall,
            "error_correlation": None if self.error_correlation is None else self.error_correlation._asdict(),
            "jurors_to_check": [{**finding.__dict__} for finding in self.jurors_to_check],
            "camps": [list(camp.names) for camp in self.consensus.camps],
            "calibration": None if self.calibration is None else self.calibration.to_dict(),
            "notes": list(self.notes),
            "versions": versions(),
        }

    def save(self, path: str | Path) -> None:
        """Write the answers as a .csv: item, label, confidence, distinct_jurors, votes, gold, and p_CLASS each.

        It appears whole or not at all.  An item without votes has empty cells.
        """
        if as_path(path).suffix.lower() != ".csv":
            raise FileFormatError(f"answers cannot be written to {str(path)!r}; use the extension .csv.")
        check_outputs({"path": path}, self.files)
        with_gold = bool((self.gold >= 0).any())
        classes = [f"{PROBABILITY}{name}" for name in self.class_names]
        heading = ["item", "label", "confidence", "distinct_jurors", "votes", *["gold"] * with_gold, *classes]
        rows: list[list[str]] = []
        for n, item in enumerate(self.item_ids):
            gold = [self.class_names[self.gold[n]] if self.gold[n] >= 0 else ""] * with_gold
            if self.label[n] < 0:
                rows.append([item, "", "", "0", "0", *gold, *[""] * len(classes)])
                continue
            figures = [f"{self.confidence[n]:.6g}", f"{self.distinct_jurors[n]:.4g}", str(self.n_votes[n])]
            probs = [f"{p:.6g}" for p in self.probs[n]]
            rows.append([item, self.class_names[self.label[n]], *figures, *gold, *probs])
        columns = list(zip(*rows, strict=True))
        CSV.write_table(as_path(path), dict.fromkeys(heading, str), [columns], for_spreadsheets=True)


def _agreement(juror: Juror) -> str:
    if juror.agreement is None or juror.agreement_interval is None:
        return UNKNOWN
    low, high = (100 * bound for bound in juror.agreement_interval)
    return f"{100 * juror.agreement:.1f} ({low:.0f} to {high:.0f})"
