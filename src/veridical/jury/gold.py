"""Known answers to some of the items: how sure the consensus should be, and by which method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, log_softmax

from veridical.calibrate.logistic import fit_logistic, logit, smoothed_targets
from veridical.combine.across_samples.votes import Indices
from veridical.combine.combined import Floats, Labels
from veridical.metrics import NoiseFloor, ece, noise_floor
from veridical.predictions.validation import check_random_state

#: With fewer answers nothing is fitted.
LEAST_GOLD = 10
_FOLDS, _REPEATS = 10, 3
#: The loss of an answer with probability 1e-6 or less; one answer must not decide.
_LEAST_PROBABILITY = 1e-6
#: Standard deviation of the priors of the logarithms of the exponents, and what Dawid and Skene's usually is: its
#: posterior counts dependent votes as independent ones.
_SPREAD, _USUAL_EXPONENT = 0.5, 1 / 6


@dataclass(frozen=True)
class View:
    """What is known of the items without labels: logarithms (N, L) of two distributions, and features (N, F)."""

    consensus: Floats
    dawid_skene: Floats
    features: Floats

    @classmethod
    def of(cls, consensus: Floats, dawid_skene: Floats, distinct: Floats) -> View:
        """The view of a consensus with so many distinct sources, and of Dawid and Skene's posterior."""
        rows, label = np.arange(len(consensus)), consensus.argmax(axis=1)
        others = consensus.copy()
        others[rows, label] = 0.0
        features = np.column_stack(
            (
                logit(consensus[rows, label]),
                np.log(np.maximum(others.max(axis=1), _LEAST_PROBABILITY)),
                logit(dawid_skene[rows, label]),
                np.log1p(distinct),
            )
        )
        features -= features.mean(axis=0)
        features /= np.maximum(features.std(axis=0), 1e-9)
        return cls(_logs(consensus), _logs(dawid_skene), features)


def _logs(probs: Floats) -> Floats:
    logs: Floats = np.log(np.maximum(probs, 1e-12))
    return logs


Fitted = Callable[[Indices], Floats]
Fit = Callable[[View, Indices, Labels], Fitted]


def _as_it_is(view: View, items: Indices, answers: Labels) -> Fitted:
    return lambda at: np.exp(view.consensus[at])


def _powers(*names: str) -> Fit:
    """softmax(sum_k b_k ln p_k), b by maximum posterior: its logarithm is normal around what is usual."""
    usual = {"consensus": 1.0, "dawid_skene": _USUAL_EXPONENT if len(names) == 1 else 0.05}

    def fit(view: View, items: Indices, answers: Labels) -> Fitted:
        logs = [getattr(view, name) for name in names]
        start = np.log([usual[name] for name in names])

        def distribution(at: Indices, exponents: Floats) -> Floats:
            weighted = sum(b * log[at] for b, log in zip(np.exp(exponents), logs, strict=True))
            result: Floats = log_softmax(weighted, axis=1)
            return result

        def objective(exponents: Floats) -> float:
            chosen = distribution(items, exponents)[np.arange(len(items)), answers]
            return float(-chosen.sum() + 0.5 * np.square((exponents - start) / _SPREAD).sum())

        best = minimize(objective, start, method="L-BFGS-B", bounds=[(-6.0, 3.0)] * len(names)).x
        return lambda at: np.exp(distribution(at, best))

    return fit


def _truth_logit(view: View, items: Indices, answers: Labels) -> Fitted:
    """Logistic regression of correctness on the features; the other classes share the rest as they did."""
    label = view.consensus.argmax(axis=1)
    targets = smoothed_targets(label[items] == answers)
    coefficients = fit_logistic(view.features[items], targets, 1.0)

    def predict(at: Indices) -> Floats:
        confidence = expit(coefficients[0] + view.features[at] @ coefficients[1:])
        probs: Floats = np.exp(view.consensus[at])
        rows = np.arange(len(at))
        rest = 1.0 - probs[rows, label[at]]
        probs *= ((1.0 - confidence) / np.maximum(rest, 1e-12))[:, None]
        probs[rows, label[at]] = confidence
        probs /= probs.sum(axis=1, keepdims=True)
        return probs

    return predict


_USUAL_METHOD = "consensus and dawid-skene"

#: Name -> fit.
METHODS: dict[str, Fit] = {
    "consensus": _as_it_is,
    "temperature": _powers("consensus"),
    "dawid-skene": _powers("dawid_skene"),
    "consensus and dawid-skene": _powers("consensus", "dawid_skene"),
    "truth-logit": _truth_logit,
}


@dataclass(frozen=True)
class GoldChoice:
    """How the confidence was calibrated.

    Attributes
    ----------
    method : str
    n_gold : int
        Items with votes and a known answer.
    nll : dict of str to float
        Method -> mean negative log-likelihood of the known answers, each predicted by a fit that had not seen it.
    accuracy : float
        Share of them whose predicted label is right.
    answers : (n_gold,) int64
        The known answers, in the order of the items.
    left_out_probs : (n_gold, L) float64
        What was predicted of each known answer by fits of the chosen method that had not seen it, the mean over three
        repetitions.
    """

    method: str
    n_gold: int
    nll: dict[str, float]
    accuracy: float
    answers: Labels = field(repr=False, compare=False)
    left_out_probs: Floats = field(repr=False, compare=False)

    @property
    def right(self) -> npt.NDArray[np.bool_]:
        """(n_gold,) whether the most probable class of ``left_out_probs`` is the known answer."""
        right: npt.NDArray[np.bool_] = self.left_out_probs.argmax(axis=1) == self.answers
        return right

    @property
    def confidence(self) -> Floats:
        """(n_gold,) the probability of that class."""
        confidence: Floats = self.left_out_probs.max(axis=1)
        return confidence

    @cached_property
    def ece(self) -> float:
        """Expected calibration error of the left-out predictions."""
        return ece(self.right, self.confidence)

    @cached_property
    def ece_floor(self) -> NoiseFloor:
        """What that error would be, on as few answers, if the confidence were perfectly calibrated."""
        return noise_floor("ece", self.confidence)

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


def calibrate_on_gold(view: View, items: Indices, answers: Labels, random_state: int = 0) -> tuple[Floats, GoldChoice]:
    """The distributions of all items by the best method, and how it was chosen.

    Every method is fitted on nine tenths of the known answers and scored on the rest, several times over.  The usual
    method, which was the best in the mean over eight sets of votes at 20 to 200 answers, makes way for another only if
    that one is better by more than a standard error of the paired difference: few answers say little of which is best.
    """
    left_out = _out_of_fold(view, items, answers, random_state)
    losses, names = {name: part.losses for name, part in left_out.items()}, list(METHODS)
    scores = np.array([losses[name].mean() for name in names])
    best = names[int(scores.argmin())]
    apart = losses[_USUAL_METHOD] - losses[best]
    surely_better = apart.mean() > apart.std() / np.sqrt(max(len(items) - 1, 1))
    chosen = best if surely_better else _USUAL_METHOD
    probs = METHODS[chosen](view, items, answers)(np.arange(len(view.consensus)))
    nll = dict(zip(names, scores.tolist(), strict=True))
    part = left_out[chosen]
    return probs, GoldChoice(chosen, len(items), nll, float(part.right.mean()), answers.copy(), part.probs)


class _LeftOut(NamedTuple):
    """Loss, correctness and distribution of each known answer, means over the repetitions."""

    losses: Floats
    right: Floats
    probs: Floats


def _out_of_fold(view: View, items: Indices, answers: Labels, random_state: int) -> dict[str, _LeftOut]:
    """What each method predicts of known answers that it has not seen."""
    rng, n, n_classes = check_random_state(random_state), len(items), view.consensus.shape[1]
    left_out = {name: _LeftOut(np.zeros(n), np.zeros(n), np.zeros((n, n_classes))) for name in METHODS}
    n_folds = min(_FOLDS, n)
    for _ in range(_REPEATS):
        order = rng.permutation(n)
        for fold in range(n_folds):
            held_out = order[fold::n_folds]
            rest = np.setdiff1d(order, held_out)
            for name, fit in METHODS.items():
                probs = fit(view, items[rest], answers[rest])(items[held_out])
                chosen = probs[np.arange(len(held_out)), answers[held_out]]
                part = left_out[name]
                part.losses[held_out] -= np.log(np.maximum(chosen, _LEAST_PROBABILITY)) / _REPEATS
                part.right[held_out] += (probs.argmax(axis=1) == answers[held_out]) / _REPEATS
                part.probs[held_out] += probs / _REPEATS
    return left_out
