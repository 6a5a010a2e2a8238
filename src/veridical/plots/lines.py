"""Lines: risk against coverage, and metrics against the number of sources."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from veridical._names import printable
from veridical.errors import ParameterError
from veridical.evaluation.curves import RiskCurve, SweepPoint, sweep_points
from veridical.evaluation.engine import Engine
from veridical.evaluation.facts import labelled
from veridical.evaluation.methods import resolve_method
from veridical.metrics import METRICS
from veridical.metrics.sample import check_sample
from veridical.plots.calibration import outcomes_and_probs
from veridical.plots.style import axes_or_new, colour, series_roles, styled
from veridical.predictions.validation import Kind, check_choice

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@styled
def risk_coverage(
    y_true: Any,
    probs: Any = None,
    *,
    doubt: Any = None,
    chosen: str | None = None,
    legend: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Error rate among the samples that are kept, when the most doubtful ones are left out.

    Parameters
    ----------
    y_true : (N,) labels, (N,) booleans, or a result
        Also curves of a report (``report.data.risk``), which need no ``probs``.
    probs : (N, L) or (N,) array, a result with ``probs``, or a dict
        With a dict of name -> array, one line each.
    doubt : (N,) array, or dict of name -> array, optional
        What to order samples by, larger where a prediction is more doubtful (HV, for example); by default minus the
        confidence.  With a dict and one ``probs``, one line for each name.
    chosen : str, optional
        The line to emphasise, by the colour that reports use for the method that they are about.
    legend : bool
        Add the names of the lines and their areas.
    ax : matplotlib Axes, optional
        By default a new figure is made.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import veridical as vd
    >>> ax = vd.plots.risk_coverage([True, True, False], {"by confidence": [0.9, 0.8, 0.7]})
    >>> len(ax.lines)
    1
    """
    curves = _curves(y_true, probs, doubt)
    axes = axes_or_new(ax, 5.2, 3.4)
    roles = series_roles([curve.ranking for curve in curves], chosen)
    for curve in curves:
        (line,) = axes.plot(
            [100 * share for share in curve.coverage],
            [100 * risk for risk in curve.risk],
            color=colour(roles[curve.ranking]),
            linewidth=1.7,
            label=f"{printable(curve.title)} (AURC {100 * curve.aurc:.2f}%)",
        )
        line.set_gid(f"line-{curve.ranking}")
    axes.set(xlim=(0, 100), xlabel="samples kept, least doubtful first (%)", ylabel="wrong among them (%)")
    axes.set_ylim(bottom=0)
    axes.grid(True)
    if legend:
        axes.legend(loc="upper left")
    return axes


def _curves(y_true: Any, probs: Any, doubt: Any) -> list[RiskCurve]:
    if isinstance(y_true, RiskCurve):
        return [y_true]
    if isinstance(y_true, Sequence) and y_true and all(isinstance(curve, RiskCurve) for curve in y_true):
        return list(y_true)
    if isinstance(probs, Mapping):
        named = probs
    else:
        named = dict.fromkeys(
            doubt if isinstance(doubt, Mapping) else ["confidence" if doubt is None else "doubt"], probs
        )
    if not named:
        raise ParameterError("there is nothing to draw; give at least one name with its array.")
    doubts = doubt if isinstance(doubt, Mapping) else dict.fromkeys(named, doubt)
    for name in doubts:
        check_choice(name, named, "name in doubt")
    curves = []
    for name, values in named.items():
        sample = check_sample(*outcomes_and_probs(y_true, values), None, doubts.get(name))
        curves.append(RiskCurve.of(name, name, sample, sample.doubt))
    return curves


@styled
def metric_sweep(
    points: Any,
    metric: str = "ece",
    *,
    labels: Any = None,
    kind: Kind | None = None,
    sources_axis: int | None = None,
    chosen: str | None = None,
    legend: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """One metric against the number of sources, for the mean and truth discovery.

    Parameters
    ----------
    points : Predictions, array of shape (S, N, L), or a result
        Points of a report (``report.data.sweep``) are drawn as they are; predictions are combined here.
    metric : str
        A metric of :func:`veridical.metrics.summary`.
    labels, kind, sources_axis
        As in :func:`veridical.evaluate`, for predictions.
    chosen : str, optional
        As in :func:`risk_coverage`.
    legend : bool
        Add the names of the lines.
    ax : matplotlib Axes, optional
        By default a new figure is made.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import veridical as vd
    >>> ax = vd.plots.metric_sweep(vd.load_demo().select(sources=slice(3), samples=slice(300)), "ece")
    >>> len(ax.lines) >= 3
    True
    """
    if not _are_points(points):
        points = sweep_points(Engine(labelled(points, labels, kind, sources_axis)))
    if not points:
        raise ParameterError("there is one source; a sweep over numbers of sources needs two or more.")
    check_choice(metric, points[0].values, "metric")
    described = METRICS[metric]
    scale = 100 if described.in_percent else 1
    methods = list(dict.fromkeys(point.method for point in points))
    roles = series_roles(methods, chosen)
    axes = axes_or_new(ax, 4.2, 3.0)
    for k, method in enumerate(methods):
        line = [(point.n_sources, scale * point.values[metric]) for point in points if point.method == method]
        (drawn,) = axes.plot(
            [n_sources for n_sources, _ in line],
            [height if math.isfinite(height) else math.nan for _, height in line],
            color=colour(roles[method]),
            marker="o",
            markersize=4.4 - k * 0.9,  # what coincides stays visible as a rim
            linewidth=1.9 - k * 0.4,
            label=resolve_method(method).title,
        )
        drawn.set_gid(f"line-{method}")
    axes.set(xlabel="sources", ylabel=f"{described.title} (%)" if described.in_percent else described.title)
    axes.ticklabel_format(useOffset=False)
    axes.locator_params(axis="x", integer=True)
    axes.locator_params(axis="y", nbins=5)
    axes.grid(True)
    if legend:
        axes.legend()
    return axes


def _are_points(points: Any) -> bool:
    return isinstance(points, (tuple, list)) and all(isinstance(point, SweepPoint) for point in points)
