"""Error detection, selective prediction, and thresholds above which a stated share of the predictions is right."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import digamma
from scipy.stats import beta, binom

from veridical._json import to_plain
from veridical._tables import TableResult
from veridical.errors import ParameterError
from veridical.metrics.groups import check_independent
from veridical.metrics.sample import Floats, Sample, check_sample
from veridical.predictions.validation import as_numbers, check_real

#: A sequence begins where the test allows so many wrong predictions, if that leaves half of the samples for later
#: steps; it would often end at once if a single wrong one among the surest could end it.
_WRONG_AT_START = 3
#: A sequence begins with this share of the samples at least, so that chance among the surest few does not end it.
_SHARE_AT_START = 0.1
#: Each step adds this share of the samples: more steps give more occasions to end too early.
_STEP = 0.02


def _by_doubt(sample: Sample) -> tuple[Floats, Floats]:
    """Weights of right and of wrong predictions per group of equal doubt, from the least doubtful group on."""
    doubt = -sample.confidence if sample.doubt is None else sample.doubt
    weight = np.ones(len(sample)) if sample.weight is None else sample.weight
    order = np.argsort(doubt, kind="stable")
    weight, correct = weight[order], sample.correct[order]
    ordered = doubt[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    return np.add.reduceat(weight * correct, starts), np.add.reduceat(weight * ~correct, starts)


def error_auroc_of(sample: Sample) -> float:
    """:func:`error_auroc` of a checked sample."""
    right, wrong = _by_doubt(sample)
    n_right, n_wrong = right.sum(), wrong.sum()
    if n_right == 0 or n_wrong == 0:
        return float("nan")
    right, wrong = right / n_right, wrong / n_wrong
    right_below = np.cumsum(right) - right
    return min(float(wrong @ (right_below + right / 2)), 1.0)


def error_auroc(y_true: Any, probs: Any, *, doubt: Any = None, sample_weight: Any = None) -> float:
    """Area under the ROC curve of detecting wrong predictions by their doubt.

    The probability that a wrong prediction has a larger doubt than a right one; ties count half.

    Parameters
    ----------
    y_true, probs, sample_weight
        As in :func:`veridical.metrics.ece`.
    doubt : (N,) array, optional
        Larger where the prediction is more doubtful: HV, entropy, mutual information.  By default minus the confidence.

    Returns
    -------
    float
        From 0 to 1, where 0.5 is chance; NaN if all predictions are right or all are wrong.

    References
    ----------
    Hendrycks and Gimpel, "A baseline for detecting misclassified and out-of-distribution examples in neural
    networks", ICLR 2017.

    Examples
    --------
    >>> from veridical import metrics
    >>> metrics.error_auroc([True, True, False], [0.9, 0.8, 0.5])
    1.0
    """
    return error_auroc_of(check_sample(y_true, probs, sample_weight, doubt))


def risk_at_coverage(sample: Sample, coverage: Floats) -> Floats:
    """Error rate among the least doubtful samples, for each share ``coverage`` in (0, 1] that is kept.

    If a share ends within a group of equal doubt, the group counts in proportion, which is the mean over all orders.
    """
    right, wrong = _by_doubt(sample)
    covered, missed = np.cumsum(right + wrong), np.cumsum(wrong)
    kept = coverage * covered[-1]
    risk: Floats = np.interp(kept, np.concatenate(([0.0], covered)), np.concatenate(([0.0], missed))) / kept
    return risk


def aurc_of(sample: Sample) -> float:
    """:func:`aurc` of a checked sample."""
    right, wrong = _by_doubt(sample)
    counted = right + wrong > 0
    total, wrong = (right + wrong)[counted], wrong[counted]
    covered, missed = np.cumsum(total), np.cumsum(wrong)
    rate = wrong / total
    before, missed_before = covered - total, missed - wrong
    # Within a group of ties the k-th sample adds its group's rate, so the risk after k samples is
    # rate + (missed_before - before * rate) / k, and sums of 1/k are differences of the digamma function.
    harmonic = digamma(covered + 1) - digamma(before + 1)
    return float((rate @ total + (missed_before - before * rate) @ harmonic) / covered[-1])


def aurc(y_true: Any, probs: Any, *, doubt: Any = None, sample_weight: Any = None) -> float:
    r"""Area under the risk-coverage curve: the error rate among the k least doubtful samples, averaged over k.

    .. math:: \mathrm{AURC} = \frac1N \sum_{k=1}^N \frac1k \sum_{i \le k} [\text{sample } i \text{ is wrong}]

    over samples sorted by doubt.  Samples of equal doubt enter in all orders, averaged.

    Parameters
    ----------
    y_true, probs, sample_weight
        As in :func:`veridical.metrics.ece`.
    doubt : (N,) array, optional
        Larger where the prediction is more doubtful; by default minus the confidence.

    Returns
    -------
    float
        From 0 (all right) to 1 (all wrong).

    References
    ----------
    Geifman, Uziel and El-Yaniv, "Bias-reduced uncertainty estimation for deep neural classifiers", ICLR 2019.

    Examples
    --------
    >>> from veridical import metrics
    >>> round(metrics.aurc([True, False], [0.9, 0.5]), 12)
    0.25
    """
    return aurc_of(check_sample(y_true, probs, sample_weight, doubt))


@dataclass(frozen=True)
class AbstentionThreshold(TableResult):
    """The result of :func:`abstention_threshold`.

    Attributes
    ----------
    threshold : float or None
        Answer where the confidence is at least this (with ``doubt``: where the doubt is at most this); None if no
        threshold can be guaranteed.
    by_doubt : bool
        Whether the threshold is one of doubt.
    max_risk, confidence_level : float
        What is guaranteed: the error rate of the answers, and how surely.
    coverage : float
        Share of the samples that are answered.
    n_samples, n_answered, n_wrong : int
        Fresh samples, those that are answered, and the wrong ones among them.
    risk_bound : float
        Upper bound of the error rate of the answers, from ``n_answered`` and ``n_wrong``; at most ``max_risk``.  NaN
        without a threshold.
    reason : str
        Why there is no threshold; empty if there is one.

    Examples
    --------
    >>> from veridical import metrics
    >>> result = metrics.abstention_threshold([True] * 60, [0.9] * 60, max_risk=0.05)
    >>> result.threshold, result.coverage
    (0.9, 1.0)
    """

    threshold: float | None
    by_doubt: bool
    max_risk: float
    confidence_level: float
    coverage: float
    n_samples: int
    n_answered: int
    n_wrong: int
    risk_bound: float
    reason: str = ""

    def answers(self, values: Any) -> Any:
        """Whether each sample is answered, by its confidence (or its doubt): none without a threshold.

        Parameters
        ----------
        values : array of confidences, or of doubts if that is what the threshold was chosen by
        """
        numbers = as_numbers(values, "doubt" if self.by_doubt else "confidence")
        if self.threshold is None:
            return np.zeros(numbers.shape, dtype=bool)
        return numbers <= self.threshold if self.by_doubt else numbers >= self.threshold

    @property
    def sentence(self) -> str:
        """The result in words."""
        surely = f"with confidence {100 * self.confidence_level:g}%"
        if self.threshold is None:
            return f"No threshold guarantees a risk of {100 * self.max_risk:g}% {surely}: {self.reason}"
        rule = f"the doubt is at most {self.threshold:.6g}" if self.by_doubt else f"confidence >= {self.threshold:.6g}"
        return (
            f"Answer where {rule}: {100 * self.coverage:.1f}% of the samples are answered, and {surely} at most "
            f"{100 * self.max_risk:g}% of the answers are wrong."
        )

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Heading and rows."""
        bound = "–" if self.threshold is None else f"{100 * self.risk_bound:.2f} %"
        return ["threshold", "none" if self.threshold is None else f"{self.threshold:.6g}"], [
            ["answered", f"{self.n_answered:,} of {self.n_samples:,} ({100 * self.coverage:.1f} %)"],
            ["wrong answers", f"{self.n_wrong:,}"],
            [f"risk, at most ({100 * self.confidence_level:g} %)", bound],
            ["risk asked for", f"{100 * self.max_risk:g} %"],
        ]

    def _caption(self) -> str:
        return self.sentence

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        plain: dict[str, Any] = to_plain(asdict(self))
        return {"schema": 1, "type": "threshold", **plain, "sentence": self.sentence}


def abstention_threshold(
    y_true: Any,
    probs: Any,
    *,
    max_risk: float,
    confidence_level: float = 0.9,
    doubt: Any = None,
    groups: Any = None,
) -> AbstentionThreshold:
    r"""The lowest threshold of confidence above which at most ``max_risk`` of the predictions are wrong.

    A threshold that is read off the risk-coverage curve exceeds its risk in half of all cases.  This one exceeds it in
    at most one minus ``confidence_level`` of all draws of the samples: the answers of ever lower thresholds are tested
    one after the other, each by the exact binomial test of the hypothesis that their risk is above ``max_risk``, and
    the sequence ends before the first that cannot be rejected.

    .. math:: P(\mathrm{Bin}(n_\lambda, r) \le k_\lambda) \le \delta

    Parameters
    ----------
    y_true, probs
        As in :func:`veridical.metrics.ece`: of samples on which nothing was fitted or chosen.
    max_risk : float
        Error rate r of the answers, above 0 and below 1.
    confidence_level : float
        One minus :math:`\delta`, above 0 and below 1.
    doubt : (N,) array, optional
        Order samples by this, larger where the prediction is more doubtful; by default by confidence.
    groups : (N,) texts or integers, optional
        Samples of one group are wrong together, and the test counts independent samples: an error if a group has more
        than one.

    Returns
    -------
    AbstentionThreshold
        ``threshold`` is None, and ``reason`` says why, if no threshold can be guaranteed.

    References
    ----------
    Geifman and El-Yaniv, "Selective classification for deep neural networks", NeurIPS 2017; Angelopoulos, Bates,
    Candès, Jordan and Lei, "Learn then test: calibrating predictive algorithms to achieve risk control", 2021.

    Examples
    --------
    >>> from veridical import metrics
    >>> right = [True] * 95 + [False, True, False, False, True]
    >>> confidence = [0.99 - 0.005 * i for i in range(100)]
    >>> result = metrics.abstention_threshold(right, confidence, max_risk=0.05)
    >>> round(result.threshold, 3), result.n_answered, result.n_wrong
    (0.51, 97, 1)
    """
    max_risk, level = _inside(max_risk, "max_risk"), _inside(confidence_level, "confidence_level")
    sample = check_sample(y_true, probs, doubt=doubt)
    check_independent(groups, len(sample))
    return threshold_of(sample, max_risk, level)


def _inside(value: Any, what: str) -> float:
    number = check_real(value, what, 0.0, 1.0)
    if number in (0.0, 1.0):
        raise ParameterError(f"{what} is {number:g}; give a number above 0 and below 1.")
    return number


def threshold_of(sample: Sample, max_risk: float, confidence_level: float) -> AbstentionThreshold:
    """:func:`abstention_threshold` of a checked sample."""
    by_doubt = sample.doubt is not None
    ranking: Floats = sample.confidence if sample.doubt is None else -sample.doubt
    order = np.argsort(-ranking, kind="stable")
    ranked, wrong = ranking[order], np.cumsum(~sample.correct[order])
    n_samples, delta = len(sample), 1 - confidence_level
    start = _first_step(n_samples, max_risk, delta)
    least = fewest_samples(0, max_risk, delta)
    answered, reason = 0, f"{least:,} independent samples are needed at least, and there are {n_samples:,}."
    if start is not None:
        sizes = np.unique(
            np.append(np.arange(start, n_samples, max(_STEP * n_samples, 1.0)).astype(np.intp), n_samples)
        )
        # Samples with the same score are answered together.
        sizes = np.unique(np.searchsorted(-ranked, -ranked[sizes - 1], side="right"))
        passed = np.asarray(binom.cdf(wrong[sizes - 1], sizes, max_risk)) <= delta
        n_passed = len(sizes) if passed.all() else int(np.argmin(passed))
        answered = int(sizes[n_passed - 1]) if n_passed else 0
        first, n_wrong = int(sizes[0]), int(wrong[sizes[0] - 1])
        reason = f"of the {first:,} surest samples {n_wrong:,} are wrong; calibrate better, or allow more risk."
    n_wrong = int(wrong[answered - 1]) if answered else 0
    edge = float(ranked[answered - 1]) if answered else 0.0
    return AbstentionThreshold(
        threshold=None if not answered else (-edge if by_doubt else edge),
        by_doubt=by_doubt,
        max_risk=max_risk,
        confidence_level=confidence_level,
        coverage=answered / n_samples,
        n_samples=n_samples,
        n_answered=answered,
        n_wrong=n_wrong,
        risk_bound=float(beta.ppf(confidence_level, n_wrong + 1, answered - n_wrong)) if answered else float("nan"),
        reason="" if answered else reason,
    )


def fewest_samples(n_wrong: int, max_risk: float, delta: float) -> int:
    """The fewest samples of which ``n_wrong`` may be wrong if a risk above ``max_risk`` is to be rejected."""
    low, high = n_wrong, n_wrong + 1
    while binom.cdf(n_wrong, high, max_risk) > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if binom.cdf(n_wrong, middle, max_risk) <= delta else (middle, high)
    return high


def _first_step(n_samples: int, max_risk: float, delta: float) -> int | None:
    """How many samples the first test takes; it depends on their number alone, not on how many are wrong."""
    for n_wrong in range(_WRONG_AT_START, -1, -1):
        needed = fewest_samples(n_wrong, max_risk, delta)
        if needed <= (n_samples if n_wrong == 0 else n_samples // 2):
            return max(needed, round(_SHARE_AT_START * n_samples))
    return None
