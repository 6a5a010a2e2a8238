"""Figures on the sources: who is trusted, who depends on whom, where they disagree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from veridical.combine import discover
from veridical.errors import NotFiniteError, ParameterError, ShapeError, shown
from veridical.evaluation.curves import Disagreement
from veridical.evaluation.inspection import Inspection, inspect
from veridical.evaluation.source_value import SourceValues
from veridical.metrics.sample import check_doubt
from veridical.plots.style import (
    N_LEVELS,
    axes_or_new,
    colour,
    fill_cells,
    legend_of_colours,
    shortened,
    styled,
)
from veridical.predictions import Predictions
from veridical.predictions.validation import (
    Array,
    as_numbers,
    check_choice,
    check_confidences,
    check_names,
    check_outcomes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The names of more sources would not fit beside a matrix.
NAMED_UP_TO = 60
_SIDES = ("all", "right", "wrong")


@styled
def source_reliability(inspection: Any, *, ax: Axes | None = None) -> Axes:
    """How far truth discovery trusts each source, against its accuracy or, without labels, its agreement.

    Parameters
    ----------
    inspection : Inspection, Predictions, or array of shape (S, N, L)
    ax : matplotlib Axes, optional
        By default a new figure is made.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import veridical as vd
    >>> ax = vd.plots.source_reliability(vd.load_demo().select(sources=slice(3), samples=slice(300)))
    >>> ax.get_xlabel() != ""
    True
    """
    shown: Inspection = inspection if isinstance(inspection, Inspection) else inspect(inspection)
    shares, what = shares_of(shown)
    axes = axes_or_new(ax, 4.5, 4.3)
    axes.axhline(100 * shown.equal_share, color=colour("quiet"), linewidth=1, linestyle=(0, (4, 3)))
    for s, (source, share) in enumerate(zip(shown.sources, shares, strict=True)):
        if math.isnan(share):
            continue
        role = "wrong" if s == shown.outlier and shown.least_trusted else "series-3"
        (dot,) = axes.plot(
            100 * share,
            100 * source.mean_reliability,
            "o",
            color=colour(role),
            markersize=6.5,
            markeredgecolor=colour("surface"),
        )
        dot.set_gid(f"source-{s}")
    axes.margins(0.1, 0.16)
    if shown.least_trusted:
        _name_outlier(axes, shown, 100 * shares[shown.outlier])
    axes.set(xlabel=f"{what} (%)", ylabel="mean reliability (%)")
    axes.ticklabel_format(useOffset=False)
    axes.grid(True)
    return axes


def shares_of(inspection: Inspection) -> tuple[list[float], str]:
    """Accuracy of each source or, without labels, agreement with the mean; and which of the two it is.

    NaN for a source that has no predictions.
    """
    accuracies = [source.accuracy for source in inspection.sources]
    if any(accuracy is not None for accuracy in accuracies):
        return [math.nan if accuracy is None else accuracy for accuracy in accuracies], "accuracy"
    return [source.agreement for source in inspection.sources], "agreement with the mean"


def _name_outlier(axes: Axes, inspection: Inspection, x: float) -> None:
    source = inspection.sources[inspection.outlier]
    left = x < sum(axes.get_xlim()) / 2
    axes.annotate(
        shortened(source.name, 28),
        (x, 100 * source.mean_reliability),
        xytext=(7 if left else -7, 0),
        textcoords="offset points",
        ha="left" if left else "right",
        va="center",
    )


@styled
def dependence_matrix(
    matrix: Any,
    names: Sequence[str] | None = None,
    *,
    limits: tuple[float, float] | None = None,
    legend: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """A matrix of what pairs of sources have in common, such as how often they name the same label.

    Colours have a fixed meaning: chance differences between sources that are all alike do not look like structure.

    Parameters
    ----------
    matrix : (S, S) array, or Inspection
        Of an inspection, the agreement of its sources.  The diagonal is not shown.
    names : sequence of S names, optional
    limits : (low, high), optional
        Where the weakest colour begins and the strongest ends; values beyond them have these two.  By default 0 and 1
        where all values lie between, as shares do, otherwise the least and the largest value; of an inspection, round
        steps of a hundredth at least.
    legend : bool
        Add the meaning of colours.
    ax : matplotlib Axes, optional
        By default a new figure is made.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import veridical as vd
    >>> ax = vd.plots.dependence_matrix([[1.0, 0.9], [0.9, 1.0]], ["a", "b"])
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['a', 'b']
    """
    if of_inspection := isinstance(matrix, Inspection):
        names = matrix.data.source_names if names is None else names
        matrix = matrix.agreement
    values = as_numbers(matrix, "matrix").astype(np.float64)
    n_sources = len(values) if values.ndim == 2 else 0
    if n_sources < 2 or values.shape != (n_sources, n_sources):
        raise ShapeError(f"matrix has shape {values.shape}; give one row and one column per source, two at least.")
    if np.isinf(values).any() or np.isnan(_between(values)).all():
        raise NotFiniteError("matrix is infinite somewhere or NaN everywhere; give numbers, and NaN for unknown pairs.")
    limits = round_limits(values) if of_inspection and limits is None else _check_limits(limits)
    names = check_names(names, n_sources, "source") or [f"source {s}" for s in range(n_sources)]
    axes = axes_or_new(ax, 4.8, 4.5)
    size = letter_size(n_sources)
    labels = [shortened(name, 18) if n_sources <= NAMED_UP_TO else "" for name in names]
    positions = np.arange(n_sources + 1)
    fill_cells(axes, positions, positions, _matrix_roles(values, limits))
    axes.set(xlim=(0, n_sources), ylim=(n_sources, 0))
    axes.set_xticks(positions[:-1] + 0.5, labels, rotation=90, fontsize=size)
    axes.set_yticks(positions[:-1] + 0.5, labels, fontsize=size)
    axes.tick_params(length=0, pad=2)
    if legend:
        legend_of_colours(axes, matrix_legend(values, limits), loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return axes


def letter_size(n_sources: int) -> float:
    """Size of the names beside a matrix."""
    return 7.5 if n_sources <= 16 else 6.2 if n_sources <= 30 else 4.8


def _between(matrix: Array) -> Array:
    """The entries of different sources."""
    return matrix[~np.eye(len(matrix), dtype=bool)]


def _check_limits(limits: Any) -> tuple[float, float] | None:
    """Two increasing numbers."""
    if limits is None:
        return None
    ends = as_numbers(limits, "limits").astype(np.float64)
    if ends.shape != (2,) or not np.isfinite(ends).all() or ends[0] >= ends[1]:
        raise ParameterError(f"limits is {shown(limits)}; give two increasing numbers, such as (0, 1).")
    return float(ends[0]), float(ends[1])


def _colour_bounds(matrix: Array, limits: tuple[float, float] | None) -> Array:
    """(N_LEVELS + 1,) where each colour begins and ends."""
    between = _between(matrix)
    low, high = float(np.nanmin(between)), float(np.nanmax(between))
    if limits is None:
        limits = (0.0, 1.0) if low >= 0 and high <= 1 else (low, high)
    return np.linspace(*limits, N_LEVELS + 1)


def round_limits(matrix: Array) -> tuple[float, float]:
    """Limits for shares that are close together: round steps, of a hundredth at least, that hold all of them."""
    between = _between(matrix)
    low, high = 100 * float(np.nanmin(between)), 100 * float(np.nanmax(between))
    for step in (1, 2, 5, 10):
        start = min(step * math.floor(low / step), 100 - N_LEVELS * step)
        if start + N_LEVELS * step >= high - 1e-9 and start >= 0:
            return start / 100, (start + N_LEVELS * step) / 100
    return 0.0, 1.0


def _matrix_roles(matrix: Array, limits: tuple[float, float] | None) -> list[list[str | None]]:
    bounds = _colour_bounds(matrix, limits)
    levels = np.clip((matrix - bounds[0]) / ((bounds[-1] - bounds[0]) / N_LEVELS or 1.0), 0, N_LEVELS - 1)
    hidden = np.eye(len(matrix), dtype=bool) | np.isnan(matrix)
    return [
        [None if skip else f"level-{int(level)}" for level, skip in zip(*line, strict=True)]
        for line in zip(levels, hidden, strict=True)
    ]


def matrix_legend(matrix: Array, limits: tuple[float, float] | None = None) -> list[tuple[str, str]]:
    """(role of the colour, which values have it)."""
    between = _between(matrix)
    in_percent = np.nanmin(between) >= 0 and np.nanmax(between) <= 1
    bounds = _colour_bounds(matrix, limits)
    texts = [f"{100 * bound:.0f}" if in_percent else f"{bound:.3g}" for bound in bounds]
    unit = "%" if in_percent else ""
    if bounds[0] == bounds[-1]:
        return [("level-0", f"{texts[0]}{unit}")]
    return [(f"level-{k}", f"{texts[k]}–{texts[k + 1]}{unit}") for k in range(N_LEVELS)]


@styled
def hv_against_confidence(
    hv: Any, confidence: Any = None, correct: Any = None, *, side: str = "all", ax: Axes | None = None
) -> Axes:
    """Disagreement of the sources (HV) against the confidence of their mean, as a density with its median.

    Parameters
    ----------
    hv : (N,) array, Predictions, or Disagreement of a report
        Predictions are combined here, and need neither ``confidence`` nor ``correct``.
    confidence : (N,) array
    correct : (N,) booleans, optional
    side : {"all", "right", "wrong"}
        Which predictions to show.
    ax : matplotlib Axes, optional
        By default a new figure is made.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import veridical as vd
    >>> ax = vd.plots.hv_against_confidence(vd.load_demo().select(sources=slice(3), samples=slice(300)))
    >>> ax.get_ylabel() != ""
    True
    """
    check_choice(side, _SIDES, "side")
    grid = hv if isinstance(hv, Disagreement) else _disagreement(hv, confidence, correct)
    right, wrong = np.asarray(grid.right), np.asarray(grid.wrong)
    counts = {"all": right + wrong, "right": right, "wrong": wrong}[side]
    most = int((right + wrong if side == "all" else np.maximum(right, wrong)).max())
    axes = axes_or_new(ax, 4.5, 3.4)
    roles = [[_density_role(int(count), most) for count in line] for line in counts]
    fill_cells(axes, grid.confidence_edges, grid.hv_edges, roles)
    middles = [(a + b) / 2 for a, b in zip(grid.confidence_edges, grid.confidence_edges[1:], strict=False)]
    axes.plot(middles, grid.median, color=colour("series-1"), linewidth=1.5)
    axes.set(
        xlim=(grid.confidence_edges[0], grid.confidence_edges[-1]),
        ylim=(0, grid.hv_edges[-1]),
        xlabel="confidence of the mean",
        ylabel="HV",
    )
    axes.grid(True)
    return axes


def _disagreement(hv: Any, confidence: Any, correct: Any) -> Disagreement:
    if isinstance(hv, Predictions):
        hv = hv.flat().labelled()
        mean, truth = discover(hv, max_iter=0, missing="skip"), discover(hv, missing="skip")
        right = None if hv.labels is None else mean.prediction == hv.labels
        return Disagreement.of(truth.hv.astype(np.float64), mean.probs.max(axis=1), right)
    if confidence is None:
        raise ParameterError("confidence is missing; give one number per sample, or predictions in place of hv.")
    columns = [as_numbers(hv, "hv"), as_numbers(confidence, "confidence")]
    right = None if correct is None else check_outcomes(correct, "correct")
    lengths = {column.shape for column in (*columns, *(() if right is None else (right,)))}
    if len(lengths) > 1 or columns[0].ndim != 1 or not columns[0].size:
        raise ShapeError("hv, confidence and correct differ in shape or are empty; give one number per sample.")
    return Disagreement.of(check_doubt(columns[0], len(columns[0]), "hv"), check_confidences(columns[1]), right)


def _density_role(count: int, most: int) -> str | None:
    """Levels by the logarithm: most cells hold few samples."""
    if not count:
        return None
    return f"level-{min(int(N_LEVELS * math.log(count) / math.log(most + 1)), N_LEVELS - 1)}"


@styled
def source_value(value: Any, *, ax: Axes | None = None) -> Axes:
    """The NLL that the mean loses without each source, with 95% intervals; to the left of zero it gains.

    Parameters
    ----------
    value : SourceValues, Inspection, or Predictions with labels
    ax : matplotlib Axes, optional
        By default a new figure is made.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import veridical as vd
    >>> ax = vd.plots.source_value(vd.load_demo().select(sources=slice(3), samples=slice(300)))
    >>> [label.get_text() for label in ax.get_yticklabels()][:1] != []
    True
    """
    if not isinstance(value, SourceValues):
        inspection = value if isinstance(value, Inspection) else inspect(value)
        if inspection.value is None:
            raise ParameterError("the value of sources needs labels and at least two sources; give both.")
        value = inspection.value
    axes = axes_or_new(ax, 4.5, max(2.2, 0.6 + 0.22 * len(value.sources)))
    axes.axvline(0, color=colour("quiet"), linewidth=1, linestyle=(0, (4, 3)))
    for s, source in enumerate(value.sources):
        effect = source.nll_without
        role = "wrong" if effect.high < 0 else "series-2" if effect.low > 0 else "series-0"
        (line,) = axes.plot(
            [effect.low, effect.high], [s, s], color=colour(role), linewidth=2.4, solid_capstyle="round"
        )
        (dot,) = axes.plot(effect.value, s, "o", color=colour(role), markersize=5.5, markeredgecolor=colour("surface"))
        line.set_gid(f"interval-{s}")
        dot.set_gid(f"value-{s}")
    names = [shortened(source.name, 18) for source in value.sources]
    named = len(names) <= NAMED_UP_TO
    axes.set_yticks(range(len(names)), names if named else [""] * len(names), fontsize=letter_size(len(names)))
    axes.set(ylim=(len(names) - 0.5, -0.5), xlabel="NLL of the mean without it, minus NLL of the mean")
    axes.tick_params(axis="y", length=0)
    axes.locator_params(axis="x", nbins=5)
    axes.grid(True, axis="x")
    return axes
