"""The numbers that a report shows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from veridical._json import to_plain
from veridical.evaluation import Evaluation, Inspection
from veridical.evaluation.advice import Advice
from veridical.evaluation.curves import ConfidenceHistogram, Disagreement, ReliabilityPanel, RiskCurve, SweepPoint

#: Version of the JSON that ``ReportData.to_dict`` gives.
SCHEMA = 1

Tone = Literal["good", "better", "bad", "unknown"]


@dataclass(frozen=True)
class DisputedSample:
    """A sample on which the sources disagree.

    Attributes
    ----------
    sample : int
        Its position in the predictions, from 0.
    hv : float
    prediction : int
        The mean's label.
    confidence : float
        The mean's confidence.
    label : int or None
    votes : tuple of (class, sources)
        Which labels the sources name, the most frequent first.
    sample_id : str, int or None
        Its id, if the samples have ids.
    """

    sample: int
    hv: float
    prediction: int
    confidence: float
    label: int | None
    votes: tuple[tuple[int, int], ...]
    sample_id: str | int | None = None


@dataclass(frozen=True)
class ReportData:
    """Everything that a report shows; drawing adds no numbers.

    Attributes
    ----------
    title : str
    verdict : str
        The result in plain words.
    tone : {"good", "better", "bad", "unknown"}
        Calibrated in the end; improved but not calibrated; not improved; not measurable.
    method : str or None
        The method that the verdict is about; None without labels.
    method_title : str
        How the report calls it.
    inspection : Inspection
    evaluation : Evaluation or None
        The same object that :func:`veridical.evaluate` gives; None without labels.
    advice : Advice or None
        Which of the methods to use; None without labels.
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

    Examples
    --------
    >>> import veridical as vd
    >>> predictions = vd.load_demo().select(sources=slice(3), samples=slice(400))
    >>> data = vd.build_report(predictions, method="mean", methods=["mean"], intervals=False).data
    >>> data.tone in ("good", "better", "bad")
    True
    """

    title: str
    verdict: str
    tone: Tone
    method: str | None
    method_title: str
    inspection: Inspection
    evaluation: Evaluation | None
    advice: Advice | None
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
        content = asdict(self)
        content["inspection"] = self.inspection.to_dict()
        content["evaluation"] = None if self.evaluation is None else self.evaluation.to_dict()
        content["advice"] = None if self.advice is None else self.advice.to_dict()
        content["risk"] = [curve.to_dict() for curve in self.risk]
        content["disagreement"] = self.disagreement.to_dict()
        plain: dict[str, Any] = to_plain({"schema": SCHEMA, "type": "report", **content})
        return plain
