"""The metrics by name, for summaries, tables, the command line and the documentation.

Adding a metric is writing its module, with the public function ``NAME`` and ``NAME_of`` for a checked sample, and
adding one entry here.  Modules are imported when a metric is used, so that listing names is cheap.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from veridical.errors import ParameterError, shown
from veridical.predictions.validation import check_choice, check_type

if TYPE_CHECKING:
    from veridical.metrics.sample import Sample

Evaluate = Callable[..., float]


@dataclass(frozen=True)
class Metric:
    """A metric and its properties.

    Attributes
    ----------
    name : str
        The public function's name.
    title : str
        The name in sentences and legends.
    module : str
        Its module in :mod:`veridical.metrics`.
    meaning : str
        One line of explanation.
    lower_is_better : bool
    needs_vectors : bool
        Whether whole distributions (N, L) are needed, or confidences (N,) suffice.
    is_calibration_error : bool
        Whether it measures calibration alone, so that it has a noise floor.
    in_percent : bool
        Whether tables show it times 100.
    in_summary : bool
        Whether it is one of the paper's columns, which summaries and tables show by default.
    highest : float
        The largest possible value; the least is 0 for all.
    short_title : str
        The column heading where the title is too long for one.
    formula : callable, optional
        The public function, of a metric that was registered.

    Examples
    --------
    >>> from veridical import metrics
    >>> metric = metrics.METRICS["brier"]
    >>> metric.highest, metric.is_better(0.1, 0.2)
    (2.0, True)
    """

    name: str
    title: str
    module: str
    meaning: str
    lower_is_better: bool = True
    needs_vectors: bool = False
    is_calibration_error: bool = False
    in_percent: bool = False
    in_summary: bool = False
    highest: float = 1.0
    short_title: str = ""
    formula: Callable[..., float] | None = field(default=None, repr=False, compare=False)

    @property
    def heading(self) -> str:
        """The column heading: the title, or a shorter form of it."""
        return self.short_title or self.title

    @property
    def decimals(self) -> int:
        """Decimal places in tables."""
        return 2 if self.in_percent else 4

    @property
    def function(self) -> Callable[..., float]:
        """The public function ``(y_true, probs, ...)``."""
        function: Callable[..., float] = self.formula or getattr(self._load(), self.name)
        return function

    @property
    def of_sample(self) -> Callable[..., float]:
        """The same for a checked sample: ``(sample, ...)``."""
        if self.formula is not None:
            return self._of_sample
        function: Callable[..., float] = getattr(self._load(), f"{self.name}_of")
        return function

    def _of_sample(self, sample: Sample, **options: Any) -> float:
        assert self.formula is not None
        outcomes = reversed(sample.vectors(self.name)) if self.needs_vectors else (sample.correct, sample.confidence)
        return float(self.formula(*outcomes, sample_weight=sample.weight, **options))

    @property
    def limit(self) -> Evaluate:
        """For calibration errors: what a checked sample of known chances would give if it were repeated forever."""
        if self.formula is not None:
            return self.of_sample
        limit: Evaluate = getattr(self._load(), f"{self.name}_limit", self.of_sample)
        return limit

    def _load(self) -> object:
        return importlib.import_module(f"veridical.metrics.{self.module}")

    def scaled(self, value: float) -> float:
        """``value`` in the unit of tables: percent where ``in_percent`` is set."""
        return 100 * value if self.in_percent else value

    def number(self, value: float, decimals: int | None = None) -> str:
        """``value`` in a table column, without its unit: "infinite" for infinity, a dash for NaN."""
        if not math.isfinite(value):
            return "–" if math.isnan(value) else ("infinite" if value > 0 else "−infinite")
        return f"{self.scaled(value):.{self.decimals if decimals is None else decimals}f}"

    def text(self, value: float, decimals: int | None = None) -> str:
        """``value`` in a sentence or a mixed table: :meth:`number` with its unit."""
        unit = " %" if self.in_percent and math.isfinite(value) else ""
        return self.number(value, decimals) + unit

    def is_better(self, a: float, b: float) -> bool:
        """Whether ``a`` is a better value than ``b``."""
        return a < b if self.lower_is_better else a > b

    def best(self, values: Iterable[float]) -> float:
        """The best of at least one value."""
        return min(values) if self.lower_is_better else max(values)


_error = partial(Metric, is_calibration_error=True, in_percent=True)

_ALL = (
    _error("ece_kde", "ECE-KDE", "kde", "calibration error by kernel density", in_summary=True),
    _error("ece", "ECE", "binned", "expected calibration error over bins of confidence", in_summary=True),
    Metric("nll", "NLL", "proper", "negative log-likelihood", needs_vectors=True, in_summary=True, highest=math.inf),
    Metric(
        "brier",
        "Brier",
        "proper",
        "squared error summed over classes (MSE)",
        needs_vectors=True,
        in_summary=True,
        highest=2.0,
    ),
    _error("ks_error", "KS", "ks", "largest cumulative gap of confidence and accuracy", in_summary=True),
    Metric(
        "accuracy",
        "Accuracy",
        "proper",
        "share of right predictions",
        lower_is_better=False,
        in_percent=True,
        in_summary=True,
        short_title="Acc",
    ),
    _error("smooth_ece", "smooth ECE", "smooth", "calibration error at its own bandwidth"),
    _error("classwise_ece", "classwise ECE", "binned", "mean of each class's calibration error", needs_vectors=True),
    _error("debiased_ece", "debiased ECE", "binned", "root of the debiased squared calibration error"),
    Metric(
        "calibrated_nll",
        "calibrated NLL",
        "proper",
        "negative log-likelihood after cross-fitted temperature scaling",
        needs_vectors=True,
        highest=math.inf,
    ),
    Metric(
        "error_auroc",
        "error AUROC",
        "selective",
        "probability that a wrong prediction has a larger doubt than a right one",
        lower_is_better=False,
    ),
    Metric("aurc", "AURC", "selective", "error rate of the samples with the least doubt, averaged over coverage"),
)

#: Name -> metric, the paper's columns first and in its order.
METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}


class _SummaryMetrics(Sequence[str]):
    """The names of metrics that are in summaries, those that are registered later included."""

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(name for name, metric in METRICS.items() if metric.in_summary)

    def __getitem__(self, index: Any) -> Any:
        return self._names[index]

    def __len__(self) -> int:
        return len(self._names)

    def __eq__(self, other: object) -> bool:
        return self._names == (other._names if isinstance(other, _SummaryMetrics) else other)

    __hash__ = None  # type: ignore[assignment]  # names may be added

    def __repr__(self) -> str:
        return repr(self._names)


#: Names of the metrics that summaries, tables and reports show by default, in the order of their columns.
SUMMARY_METRICS: Sequence[str] = _SummaryMetrics()


def register_metric(function: Callable[..., float], *, title: str = "", meaning: str = "", **properties: Any) -> Metric:
    """Make a function known as a metric: to summaries, evaluations, comparisons, reports and the command line.

    Parameters
    ----------
    function : callable
        ``function(y_true, probs, *, sample_weight=None)``, with any other options as keywords.  ``y_true`` are booleans
        (is the prediction right?) and ``probs`` confidences (N,), or, with ``needs_vectors=True``, labels and
        distributions.  Resamples are passed as weights.  Its name is the metric's.
    title, meaning : str
        By default the name, and the first line of the docstring.
    **properties
        Of :class:`Metric`, such as ``lower_is_better=False`` or ``is_calibration_error=True``.  A metric of confidences
        is in summaries, and so in every table, unless ``in_summary=False``.

    Returns
    -------
    Metric

    Examples
    --------
    >>> import numpy as np
    >>> from veridical import metrics
    >>> def mean_gap(y_true, probs, *, sample_weight=None):
    ...     return abs(np.average(probs - y_true, weights=sample_weight))
    >>> metric = metrics.register_metric(mean_gap, title="gap", is_calibration_error=True, in_percent=True)
    >>> metrics.summary([True, False], [0.75, 0.75], floors=False)["mean_gap"].value
    0.25
    >>> del metrics.METRICS["mean_gap"]
    """
    check_type(title, str, "title", "a string")
    check_type(meaning, str, "meaning", "a string")
    name = getattr(function, "__name__", "") if callable(function) else ""
    if not name.isidentifier() or (name in METRICS and METRICS[name].formula is None):
        raise ParameterError(f"a metric cannot be called {shown(name)}; give a function with a name of its own.")
    meaning = meaning or (function.__doc__ or "").strip().partition("\n")[0]
    described = {"in_summary": not properties.get("needs_vectors", False), **properties}
    METRICS[name] = Metric(name, title or name, "", meaning, formula=function, **described)
    return METRICS[name]


def get_metric(name: str) -> Metric:
    """The metric called ``name``; an unknown name is an error that lists the names.

    Parameters
    ----------
    name : str

    Returns
    -------
    Metric

    Examples
    --------
    >>> from veridical import metrics
    >>> metrics.get_metric("ece").title
    'ECE'
    """
    return METRICS[check_choice(name, METRICS, "metric")]


def markdown_table() -> str:
    """All metrics as a Markdown table, as the documentation shows them."""
    head = ["| name | meaning | better | needs | floor |", "|---|---|---|---|---|"]
    rows = [
        f"| `{metric.name}` | {metric.meaning} | {'lower' if metric.lower_is_better else 'higher'} "
        f"| {'distributions' if metric.needs_vectors else 'confidences'} "
        f"| {'yes' if metric.is_calibration_error else ''} |"
        for metric in METRICS.values()
    ]
    return "\n".join([*head, *rows])
