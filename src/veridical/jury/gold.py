"""Known answers to some of the items: how sure the jury should be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from veridical.combine.across_samples.votes import Indices
from veridical.combine.combined import Floats, Labels
from veridical.metrics import NoiseFloor, ece, noise_floor
from veridical.metrics.sample import Sample
from veridical.predictions import Predictions
from veridical.predictions.classes import ClassIndices

#: With fewer answers nothing is fitted.
LEAST_GOLD = 10
#: With fewer wrong ones, only what has a prior is tried: right answers alone would make other methods entirely sure.
_ENOUGH_WRONG = 5
#: The usual power of Dawid and Skene's posterior, which counts dependent votes as independent ones.
_USUAL_POWER, _LEAST_POSTERIOR = 1 / 6, 1e-12
#: What is left to a class that a distribution rules out.
_LEAST_PROBABILITY = 1e-9


@dataclass(frozen=True)
class GoldChoice:
    """How the confidence was calibrated.

    Attributes
    ----------
    method : str
        Of two sources, the consensus and Dawid and Skene's posterior, or of the first alone.
    n_gold : int
        Items with votes and a known answer.
    nll : dict of str to float
        Method -> mean negative log-likelihood of the known answers, each predicted by a fit that had not seen it;
        "consensus" is that of the consensus as it is.
    held_out : Sample
        The confidence of the chosen method for each known answer, by a fit that had not seen it, and whether the label
        was right.
    """

    method: str
    n_gold: int
    nll: dict[str, float]
    held_out: Sample = field(repr=False, compare=False)

    @property
    def accuracy(self) -> float:
        """Share of the known answers whose label was right."""
        return float(self.held_out.correct.mean())

    @cached_property
    def ece(self) -> float:
        """Expected calibration error of the held-out predictions."""
        return ece(self.held_out.correct, self.held_out.confidence)

    @cached_property
    def ece_floor(self) -> NoiseFloor:
        """What that error would be, on as few answers, if the confidence were perfectly calibrated."""
        return noise_floor("ece", self.held_out.confidence)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "method": self.method,
            "n_gold": self.n_gold,
            "nll": self.nll,
            "accuracy": self.accuracy,
            "ece": self.ece,
            "ece_floor": {"mean": self.ece_floor.mean, "q95": self.ece_floor.quantiles[0.95]},
        }


def calibrate_on_gold(
    consensus: Floats,
    dawid_skene: Callable[[], Floats],
    items: Indices,
    answers: Labels,
    random_state: int = 0,
) -> tuple[Floats, GoldChoice]:
    """The distributions of all items by the method that the known ``answers`` to ``items`` choose.

    The consensus and what ``dawid_skene`` returns, the posterior of that model, are two sources (N, L), combined as the
    members of a :class:`veridical.CalibratedEnsemble` are.  Where the consensus has few answers wrong, it is the only
    one: those cannot show that the posterior is worse, which may be wrong altogether.
    """
    from veridical.evaluation.choice import fit_log_pool_or_better

    few = int((consensus[items].argmax(axis=1) != answers).sum()) < _ENOUGH_WRONG
    sources = consensus[None].copy()
    if not few:
        sources = np.stack([consensus, np.maximum(dawid_skene(), _LEAST_POSTERIOR) ** _USUAL_POWER])
    np.maximum(sources / sources.sum(axis=2, keepdims=True), _LEAST_PROBABILITY, out=sources)
    sources /= sources.sum(axis=2, keepdims=True)
    chosen = fit_log_pool_or_better(Predictions(sources[:, items], ClassIndices(answers)), random_state, few=few)
    calibrator = chosen.calibrator
    nll = {_name(row["combine"], row["method"]): row["score"] for row in chosen.table}
    losses = -np.log(np.maximum(consensus[items, answers], _LEAST_PROBABILITY))
    nll["consensus"] = float(losses.mean())
    probs = np.asarray(calibrator.predict_proba(Predictions(sources)), np.float64)
    return probs, GoldChoice(_name(calibrator.combine, calibrator.name), len(items), nll, chosen.held_out)


def _name(combine: str, method: str) -> str:
    return method if combine == method else f"{combine}+{method}"
