"""The value of sources, as a result: each alone, the mean without it, its learned weight, the smallest subset."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

from veridical._json import to_plain
from veridical._tables import TableResult

#: In comparisons, a label has at least this probability: one sample with an infinite loss must not decide.
LEAST_PROBABILITY = 1e-12
#: Marks an NLL that is infinite without that, in tables and sentences.
INFINITE = "†"
#: The share of draws beyond each end of a 95% interval.
_TAIL = 0.025
#: Names that a sentence lists.
_MOST_NAMES = 5


@dataclass(frozen=True)
class Effect:
    """A paired difference with its 95% interval.

    Attributes
    ----------
    value, low, high : float

    Examples
    --------
    >>> from veridical.evaluation import Effect
    >>> Effect(0.02, -0.01, 0.05).is_clear
    False
    """

    value: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class SourceValue:
    """The value of one source.

    Attributes
    ----------
    name : str
    accuracy, nll : float
        Of the source alone, where it is present.  A label with a probability below 1e-12 counts as 1e-12 in all NLLs
        here, so that they can be compared; ``zeros`` says where the NLL is infinite in truth.
    nll_without, accuracy_without : Effect
        What the mean of the other sources gains (+) or loses (-) in NLL and accuracy: a positive ``nll_without`` means
        a larger loss, so that the source is worth keeping.
    weight : float
        Its share in a linear pool that was fitted on one half of the samples; 1/S is an equal share.
    agreement : float
        How often it names the same label as another source, on average over all samples.
    zeros : int
        Samples whose label has probability 0.

    Examples
    --------
    >>> import veridical as vd
    >>> predictions = vd.load_demo().select(sources=slice(3), samples=slice(400))
    >>> source = vd.inspect(predictions).value.sources[0]
    >>> source.name, source.zeros
    ('seed-00', 0)
    """

    name: str
    accuracy: float
    nll: float
    nll_without: Effect
    accuracy_without: Effect
    weight: float
    agreement: float
    zeros: int = 0

    @property
    def nll_text(self) -> str:
        """The NLL as tables show it, marked where it is infinite in truth."""
        return "" if math.isnan(self.nll) else f"{self.nll:.3f}{INFINITE * (self.zeros > 0)}"


@dataclass(frozen=True)
class SourceValues(TableResult):
    """The value of all sources, on the half of the samples that nothing was chosen on.

    Attributes
    ----------
    sources : tuple of SourceValue
    accuracy, nll : float
        Of the mean.
    best : int
        The source with the lowest NLL on the other half, among those that the mean is not better than, if there are
        any.
    best_accuracy, best_nll : Effect
        Difference of that source to the mean.
    subset : tuple of int
        The smallest set of sources, by removing the least useful one after another, whose mean is not worse than that
        of all, in NLL or accuracy, by more than chance.
    subset_nll, subset_accuracy : Effect
        Difference of its mean to that of all.
    n_samples : int

    Examples
    --------
    >>> import veridical as vd
    >>> predictions = vd.load_demo().select(sources=slice(3), samples=slice(400))
    >>> value = vd.inspect(predictions).value
    >>> value.n_samples, value.harmful
    (200, ())
    """

    sources: tuple[SourceValue, ...]
    accuracy: float
    nll: float
    best: int
    best_accuracy: Effect
    best_nll: Effect
    subset: tuple[int, ...]
    subset_nll: Effect
    subset_accuracy: Effect
    n_samples: int

    @property
    def mean_beats_best(self) -> bool:
        """Whether the mean is better than each single source by more than chance, in accuracy or NLL."""
        return mean_is_better(self.best_nll, self.best_accuracy)

    @property
    def subset_is_better(self) -> bool:
        """Whether the mean of the subset is better than that of all by more than chance, in accuracy or NLL."""
        return self.subset_nll.high < 0 or self.subset_accuracy.low > 0

    @property
    def harmful(self) -> tuple[int, ...]:
        """Sources without which the NLL of the mean is lower by more than chance, although every source is tried.

        Of 40 useless sources one interval would lie below zero by chance; so intervals are widened for their number.
        """
        normal = NormalDist()
        wider = normal.inv_cdf(1 - _TAIL / len(self.sources)) / normal.inv_cdf(1 - _TAIL)
        effects = [source.nll_without for source in self.sources]
        return tuple(s for s, e in enumerate(effects) if e.value + wider * (e.high - e.value) < 0)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The results in plain words."""
        harm = self.harm_sentence and f"{self.harm_sentence[:-1]} ({self._harm()})."
        return tuple(filter(None, (self.best_sentence, self._subset_sentence(), harm, self._footnote())))

    @property
    def best_sentence(self) -> str:
        """That the mean is not better than its best source; empty if it is."""
        if self.mean_beats_best:
            return ""
        best = self.sources[self.best]
        accuracy = f"{100 * best.accuracy:.1f}% against {100 * self.accuracy:.1f}%"
        nll = f"{best.nll_text} against {self.nll:.3f}"
        if self.best_nll.value > 0:
            return f"The mean cannot be told from its best source, {best.name}: accuracy {accuracy}, NLL {nll}."
        if self.best_accuracy.value < 0:
            return (
                f"In NLL the mean is not better than its best source, {best.name}: {nll}. The mean is more accurate, "
                f"but not by more than chance: accuracy {accuracy}."
            )
        return f"The mean is not better than its best source, {best.name}: accuracy {accuracy}, NLL {nll}."

    def _subset_sentence(self) -> str:
        n_kept, n_sources = len(self.subset), len(self.sources)
        if n_kept == n_sources:
            return ""
        names = _listed([self.sources[s].name for s in self.subset])
        subject = f"The mean of {n_kept} of the {n_sources} sources ({names})" if n_kept > 1 else f"{names} alone"
        whole = "that of all" if n_kept > 1 else f"the mean of all {n_sources} sources"
        nll, points = self.subset_nll, self.subset_accuracy
        return (
            f"{subject} {'is better than' if self.subset_is_better else 'cannot be told from'} {whole}: "
            f"NLL {self.nll + nll.value:.3f} against {self.nll:.3f} (difference {_range(nll, 1, 3)}), "
            f"accuracy {100 * (self.accuracy + points.value):.1f}% against {100 * self.accuracy:.1f}% "
            f"(difference {_range(points, 100, 1)} points)."
        )

    @property
    def harm_sentence(self) -> str:
        """Which sources harm the others; empty if none does."""
        if not self.harmful:
            return ""
        names = [self.sources[s].name for s in self.harmful]
        verb, it = ("harms", "it") if len(names) == 1 else ("harm", "any one of them")
        return f"{_listed(names)} {verb} the others: without {it} the NLL of the mean falls."

    def _harm(self) -> str:
        """By how much the NLL falls without each harmful source."""
        harmful = [self.sources[s] for s in self.harmful[:_MOST_NAMES]]
        ranges = [_range(source.nll_without, 1, 3) for source in harmful]
        if len(ranges) == 1:
            return ranges[0]
        return "; ".join(f"{source.name} {shown}" for source, shown in zip(harmful, ranges, strict=True))

    def _footnote(self) -> str:
        names = [source.name for source in self.sources if source.zeros]
        if not names:
            return ""
        subject = f"{_listed(names)} give{'s' * (len(names) == 1)}"
        return (
            f"{INFINITE} In truth infinite: {subject} some labels probability 0; to compare NLLs, a probability "
            f"counts as at least {LEAST_PROBABILITY:g}."
        )

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Heading and rows, one per source; sources of the smallest sufficient subset have a star."""
        heading = [
            "source",
            "accuracy alone",
            "NLL alone",
            "NLL without it (95%)",
            "accuracy without it (95%)",
            "weight",
            "agrees with others",
        ]
        rows = [
            [
                source.name + " *" * (s in self.subset),
                in_percent(source.accuracy, 2),
                source.nll_text,
                with_interval(source.nll_without, 1, 4),
                with_interval(source.accuracy_without, 100, 2),
                in_percent(source.weight, 1),
                in_percent(source.agreement, 1),
            ]
            for s, source in enumerate(self.sources)
        ]
        return heading, rows

    def _caption(self) -> str:
        return (
            f"What sources are worth, on the half of the samples ({self.n_samples:,}) that nothing was chosen on; "
            "* is in the smallest subset that is not worse than all"
        )

    def _records(self) -> list[dict[str, Any]]:
        return [
            {"source": s.name, "accuracy": s.accuracy, "nll": s.nll, "zeros": s.zeros}
            | {"weight": s.weight, "agreement": s.agreement}
            | {f"nll_without{end}": value for end, value in _columns(s.nll_without)}
            | {f"accuracy_without{end}": value for end, value in _columns(s.accuracy_without)}
            for s in self.sources
        ]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        judged = {"mean_beats_best": self.mean_beats_best, "harmful": list(self.harmful)}
        plain: dict[str, Any] = to_plain({**asdict(self), **judged, "sentences": list(self.sentences)})
        return plain


def mean_is_better(nll: Effect, accuracy: Effect) -> bool:
    """Whether the mean is better than a source by more than chance, from the differences of the source to the mean."""
    return nll.low > 0 or accuracy.high < 0


def with_interval(effect: Effect, scale: float, digits: int) -> str:
    """A difference with its interval in brackets."""
    return "{} ({} to {})".format(*_numbers(effect, scale, digits))


def _range(effect: Effect, scale: float, digits: int) -> str:
    """A difference and its interval inside a bracket."""
    return "{}, {} to {}".format(*_numbers(effect, scale, digits))


def _numbers(effect: Effect, scale: float, digits: int) -> list[str]:
    return [f"{scale * number:+.{digits}f}" for number in (effect.value, effect.low, effect.high)]


def _listed(names: Sequence[str]) -> str:
    if len(names) > _MOST_NAMES:
        names = [*names[: _MOST_NAMES - 1], f"{len(names) - _MOST_NAMES + 1} more"]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def in_percent(value: float | None, digits: int) -> str:
    """A share in percent; empty where it is not known."""
    return "" if value is None or math.isnan(value) else f"{100 * value:.{digits}f}"


def _columns(effect: Effect) -> list[tuple[str, float]]:
    return [("", effect.value), ("_low", effect.low), ("_high", effect.high)]
