"""The metrics by name: what summaries, the command line and the documentation are made from.

Adding a metric is writing its module, with the public function ``NAME`` and ``NAME_of`` for a checked sample, and
adding one entry here.  Modules are imported when a metric is used, so that listing names costs nothing.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass

from veridical.predictions.validation import check_choice


@dataclass(frozen=True)
class Metric:
    """A metric, and what one needs to know to use it.

    Attributes
    ----------
    name : str
        The public function's name.
    title : str
        A short heading for tables.
    module : str
        Where it lives in :mod:`veridical.metrics`.
    meaning : str
        One line of explanation.
    lower_is_better : bool
    needs_vectors : bool
        Whether whole distributions (N, L) are needed, or confidences (N,) suffice.
    is_calibration_error : bool
        Whether it measures calibration alone, so that a noise floor belongs beside it.
    in_percent : bool
        Whether tables show it times 100.
    in_paper : bool
        Whether it is one of the paper's columns, which a summary shows.
    highest : float
        The largest possible value; the least is 0 for all.
    """

    name: str
    title: str
    module: str
    meaning: str
    lower_is_better: bool = True
    needs_vectors: bool = False
    is_calibration_error: bool = False
    in_percent: bool = False
    in_paper: bool = False
    highest: float = 1.0

    @property
    def function(self) -> Callable[..., float]:
        """The public function ``(y_true, probs, ...)``."""
        function: Callable[..., float] = getattr(self._load(), self.name)
        return function

    @property
    def of_sample(self) -> Callable[..., float]:
        """The same for a checked sample: ``(sample, ...)``."""
        function: Callable[..., float] = getattr(self._load(), f"{self.name}_of")
        return function

    def _load(self) -> object:
        return importlib.import_module(f"veridical.metrics.{self.module}")

    def text(self, value: float) -> str:
        """``value`` as tables show it: infinity in words, a dash for what is undefined."""
        if not math.isfinite(value):
            return "–" if math.isnan(value) else ("infinite" if value > 0 else "−infinite")
        return f"{100 * value:.2f} %" if self.in_percent else f"{value:.4f}"


def _error(
    name: str, title: str, module: str, meaning: str, *, in_paper: bool = False, vectors: bool = False
) -> Metric:
    return Metric(
        name,
        title,
        module,
        meaning,
        needs_vectors=vectors,
        is_calibration_error=True,
        in_percent=True,
        in_paper=in_paper,
    )


_ALL = (
    _error("ece_kde", "ECE-KDE", "kde", "calibration error by kernel density", in_paper=True),
    _error("ece", "ECE", "binned", "expected calibration error over bins of confidence", in_paper=True),
    Metric("nll", "NLL", "proper", "negative log-likelihood", needs_vectors=True, in_paper=True, highest=math.inf),
    Metric(
        "brier",
        "Brier",
        "proper",
        "squared error summed over classes (MSE)",
        needs_vectors=True,
        in_paper=True,
        highest=2.0,
    ),
    _error("ks_error", "KS", "ks", "largest cumulative gap of confidence and accuracy", in_paper=True),
    Metric(
        "accuracy",
        "Accuracy",
        "proper",
        "share of right predictions",
        lower_is_better=False,
        in_percent=True,
        in_paper=True,
    ),
    _error("smooth_ece", "smooth ECE", "smooth", "calibration error at its own bandwidth"),
    _error("classwise_ece", "classwise ECE", "binned", "mean of each class's calibration error", vectors=True),
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
        "chance that a wrong prediction is more doubtful than a right one",
        lower_is_better=False,
    ),
    Metric("aurc", "AURC", "selective", "error rate of the least doubtful samples, averaged over coverage"),
)

#: Name -> metric, the paper's columns first and in its order.
METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}


def get_metric(name: str) -> Metric:
    """The metric called ``name``; an unknown name is answered with the list of names."""
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
