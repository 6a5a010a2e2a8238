"""What a report shows, as numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from veridical._json import to_plain
from veridical.evaluation import Evaluation, Inspection

#: Version of the JSON that ``ReportData.to_dict`` gives.
SCHEMA = 1

Tone = Literal["good", "better", "bad", "unknown"]
Numbers = tuple[float, ...]


@dataclass(frozen=True)
class ReliabilityPanel:
    """One method's reliability diagram.

    Attributes
    ----------
    method : str
    binning : {"mass", "width"}
        "mass": bins with equally many samples before calibration, kept where they are for every method, as in the
        paper's Figure 3.  "width": equally wide bins.
    edges : B + 1 numbers
    counts, confidence, accuracy, low, high : B numbers each
        Samples, mean confidence, share of right predictions, and where that share would fall by chance if the
        confidences were right; NaN in empty bins.
    """

    method: str
    binning: str
    edges: Numbers
    counts: Numbers
    confidence: Numbers
    accuracy: Numbers
    low: Numbers
    high: Numbers


@dataclass(frozen=True)
class ConfidenceHistogram:
    """How often a method says how much, in equally wide bins, apart for right and wrong predictions."""

    method: str
    edges: Numbers
    right: tuple[int, ...]
    wrong: tuple[int, ...]
    mean_confidence: float
    accuracy: float


@dataclass(frozen=True)
class SweepPoint:
    """Metrics of one way to combine the first ``n_sources`` sources, on all samples."""

    method: str
    n_sources: int
    values: dict[str, float]


@dataclass(frozen=True)
class RiskCurve:
    """Error rate among the least doubtful samples, by the share of samples that is kept.

    ``score`` says by what samples are ordered: a method's confidence, or "hv".
    """

    score: str
    title: str
    coverage: Numbers
    risk: Numbers
    aurc: float


@dataclass(frozen=True)
class Disagreement:
    """HV against the winning score of the mean, over all samples.

    Attributes
    ----------
    score_edges, hv_edges : numbers
        Of a grid; HV beyond the last edge, the 99.5% quantile, is counted in the last row.
    right, wrong : rows of counts, one row per step of HV
        Without labels all samples are in ``right``.
    median : numbers
        Median HV per column of the grid; NaN where it is empty.
    correlation : float
        Spearman's; NaN where HV or the score is the same for all samples.
    """

    score_edges: Numbers
    hv_edges: Numbers
    right: tuple[tuple[int, ...], ...]
    wrong: tuple[tuple[int, ...], ...]
    median: Numbers
    correlation: float


@dataclass(frozen=True)
class DisputedSample:
    """A sample that the sources argue about.

    Attributes
    ----------
    sample : int
        Its position in the predictions, from 0.
    hv : float
    prediction : int
        The mean's label.
    confidence : float
        The mean's winning score.
    label : int or None
    votes : tuple of (class, sources)
        Which labels the sources name, the most frequent first.
    """

    sample: int
    hv: float
    prediction: int
    confidence: float
    label: int | None
    votes: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class ReportData:
    """Everything that a report shows; drawing adds no numbers.

    Attributes
    ----------
    title : str
    verdict : str
        What was found, in plain words.
    tone : {"good", "better", "bad", "unknown"}
        Calibrated in the end; improved but not calibrated; not improved; not measurable.
    method : str or None
        The method that the verdict is about; None without labels.
    method_title : str
        How the report calls it.
    inspection : Inspection
    evaluation : Evaluation or None
        The same object that :func:`veridical.evaluate` gives; None without labels.
    reliability, histograms : tuples, one (or two) per method; empty without labels
    sweep : tuple of SweepPoint
        Metrics against the number of sources; empty without labels or with one source.
    risk : tuple of RiskCurve
        Empty without labels.
    disagreement : Disagreement
    disputed : tuple of DisputedSample
        By HV, the largest first.
    parameters : dict
        Calibrator -> the parameters it was run with.
    random_state : int
    versions : dict
    """

    title: str
    verdict: str
    tone: Tone
    method: str | None
    method_title: str
    inspection: Inspection
    evaluation: Evaluation | None
    reliability: tuple[ReliabilityPanel, ...]
    histograms: tuple[ConfidenceHistogram, ...]
    sweep: tuple[SweepPoint, ...]
    risk: tuple[RiskCurve, ...]
    disagreement: Disagreement
    disputed: tuple[DisputedSample, ...]
    parameters: dict[str, dict[str, Any]]
    random_state: int
    versions: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON, which has no NaN (None here) and no infinity (a word here, as ``--json`` prints it)."""
        found = asdict(self)
        found["inspection"] = self.inspection.to_dict()
        found["evaluation"] = None if self.evaluation is None else self.evaluation.to_dict()
        stored: dict[str, Any] = to_plain({"schema": SCHEMA, "type": "report", **found})
        return stored
