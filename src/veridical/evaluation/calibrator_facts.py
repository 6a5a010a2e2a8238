"""What a fitted calibrator is: its method, what it was fitted for, and what it learned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from veridical._names import shortened
from veridical._tables import Table, TableResult, html_table, text_table
from veridical.calibrate import Calibrator
from veridical.calibrate.saving import describe
from veridical.evaluation.evaluating import SCHEMA

#: Arrays of more numbers are shown by their shape and range.
_FEW = 6
#: More names than these are counted.
_MOST_NAMES = 10


@dataclass(frozen=True)
class CalibratorFacts(TableResult):
    """The result of :func:`inspect_calibrator`.

    Attributes
    ----------
    method, summary : str
        The method and what it does.
    chosen : str or None
        What "auto" chose, as "method on combine".
    n_sources, n_classes : int
        What it was fitted for.
    kind : str
        Kind of the scores it was fitted on, and of the arrays that it predicts for.
    source_names, class_names : list of str, or None
        Those of the fit, where they had names.
    keeps_labels : bool
        Whether labels stay those of the sources' mean.
    parameters : dict
        As the estimator was made.
    fitted : dict
        What the method learned (the chosen one, for "auto"): numbers, and arrays as nested lists.
    source_weights : list or None
        The weight of each source in a learned pool.
    mean_weight : float or None
        The weight of their mean in a log pool.
    candidates : list of dict
        The scores by which "auto" chose, best first.

    Examples
    --------
    >>> import veridical as vd
    >>> predictions = vd.load_demo().select(sources=slice(3), samples=slice(400))
    >>> facts = vd.inspect_calibrator(vd.Temperature(kind="logits").fit(predictions))
    >>> facts.method, facts.n_sources, facts.keeps_labels
    ('temperature', 3, True)
    """

    method: str
    summary: str
    chosen: str | None
    n_sources: int
    n_classes: int
    kind: str
    source_names: list[str] | None
    class_names: list[str] | None
    keeps_labels: bool
    parameters: Mapping[str, Any]
    fitted: Mapping[str, Any]
    source_weights: list[float] | None
    mean_weight: float | None
    candidates: list[dict[str, Any]]

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Heading and rows: the facts, then parameters that are set, then what was learned."""
        facts = {
            "does": self.summary,
            "chosen": self.chosen,
            "sources": self.n_sources,
            "classes": self.n_classes,
            "keeps labels": "yes" if self.keeps_labels else "no",
            **self.parameters,
            "kind": self.kind,  # that of the fit, in the place of the parameter
            "source names": _listed(self.source_names),
            "class names": _listed(self.class_names),
            "weights of sources": self.source_weights,
            "weight of their mean": self.mean_weight,
            **{name.removesuffix("_"): value for name, value in self.fitted.items()},
        }
        return ["calibrator", self.method], [
            [name, _brief(value)] for name, value in facts.items() if value is not None
        ]

    def candidate_table(self, caption: str = "") -> Table:
        """What "auto" tried; scores and their differences to the best, with standard errors."""
        rows = []
        for row in self.candidates:
            name = f"{row['method']} on {row['combine']}"
            figures = [f"{row[column]:.5f}" for column in ("score", "behind", "behind_spread")]
            rows.append([name + " *" * (name == self.chosen), *figures, f"{100 * row['ece_kde']:.2f}"])
        return Table.of(["candidate", "score", "behind", "±", "ECE-KDE (%)"], rows, caption)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"schema": SCHEMA, "type": "calibrator", **asdict(self)}

    def __str__(self) -> str:
        candidates = f"\n\n{text_table(self.candidate_table())}" if self.candidates else ""
        return super().__str__() + candidates

    def _repr_html_(self) -> str:
        candidates = html_table(self.candidate_table("Candidates")) if self.candidates else ""
        return super()._repr_html_() + candidates


def inspect_calibrator(calibrator: Calibrator) -> CalibratorFacts:
    """What is in a fitted calibrator.

    Parameters
    ----------
    calibrator : Calibrator
        Fitted, or read with :func:`veridical.load_calibrator`.

    Returns
    -------
    CalibratorFacts

    Examples
    --------
    >>> import veridical as vd
    >>> facts = vd.inspect_calibrator(vd.LogPool().fit(vd.load_demo()))
    >>> facts.method, facts.keeps_labels, len(facts.source_weights)
    ('log-pool', False, 20)
    """
    described = describe(calibrator)
    best = getattr(calibrator, "best_", None)
    class_names = getattr(calibrator, "class_names_", None)
    inner = described if best is None else describe(best)
    return CalibratorFacts(
        method=calibrator.name,
        summary=calibrator.summary,
        chosen=None if best is None else f"{best.name} on {best.combine}",
        n_sources=calibrator.n_sources_,
        n_classes=calibrator.n_classes_,
        kind=calibrator.kind_of_arrays,
        source_names=described["source_names"],
        class_names=None if class_names is None else list(class_names),
        keeps_labels=calibrator.keeps_mean_labels if best is None else best.keeps_mean_labels,
        parameters=described["parameters"],
        fitted={name: _plain(value) for name, value in inner["state"].items()},
        source_weights=_plain(inner["pooling"]["weights"]),
        mean_weight=inner["pooling"]["mean_weight"],
        candidates=getattr(calibrator, "table_", []),
    )


def _listed(names: list[str] | None) -> str | None:
    if names is None:
        return None
    rest = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(shortened(name, 40) for name in names[:_MOST_NAMES]) + rest


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def _brief(value: Any) -> str:
    """A value in a line: long arrays by their shape and range."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if not isinstance(value, list) or not value or not np.issubdtype(np.asarray(value).dtype, np.number):
        return str(value)
    array = np.asarray(value, dtype=np.float64)
    if array.ndim == 1 and array.size <= _FEW:
        return ", ".join(f"{number:.4g}" for number in array)
    shape = " x ".join(str(size) for size in array.shape)
    return f"{shape} numbers from {array.min():.4g} to {array.max():.4g}"
