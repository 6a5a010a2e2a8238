"""The verdict of a jury as one HTML page: notes, jurors, who repeats whom, and the least certain items."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from veridical._atomic import write_atomically
from veridical._names import printable
from veridical._outputs import check_outputs, check_report_target
from veridical._tables import Table
from veridical.jury import JuryResult
from veridical.jury.pairs import LEAST_VOTES
from veridical.jury.result import DASH
from veridical.metrics import reliability_curve
from veridical.plots.calibration import count_legend, reliability_diagram
from veridical.plots.sources import dependence_matrix, matrix_legend
from veridical.report.html_page import page_resource, page_template, scrolled_table, theme_css
from veridical.report.svg import Drawing, inline_svg, new_axes

#: The matrix shows at most so many jurors, those with the most votes; tables show so many rows.
_MOST_IN_MATRIX, _MOST_JURORS, _MOST_ITEMS = 60, 2000, 25
#: A reliability diagram of fewer known answers would show noise.
_LEAST_IN_DIAGRAM = 50
_UNCERTAIN = ("item", "label", "confidence", "runner-up", "votes", "distinct")


def write_jury_report(result: JuryResult, path: str | Path, *, title: str = "The jury") -> None:
    """Write the page; it appears whole or not at all."""
    target = check_report_target(path)
    check_outputs({"path": target}, result.files)
    write_atomically(target, render_jury(result, title).encode())


def render_jury(result: JuryResult, title: str = "The jury") -> str:
    """The page as one HTML document without scripts."""
    heading, rows, n_left_out = _jurors(result)
    findings = [[finding.juror, finding.text] for finding in result.jurors_to_check[:_MOST_JURORS]]
    return page_template("jury.html.j2").render(
        title=printable(title),
        style=Markup(theme_css() + "\n" + page_resource("page.css")),
        tiles=_tiles(result),
        notes=[printable(note) for note in result.notes],
        jurors=scrolled_table(Table.of(heading, rows, f"Jurors by weight; {DASH}"), "juror-table"),
        has_right="right" in heading,
        n_left_out=n_left_out,
        findings=scrolled_table(Table.of(["juror", "finding"], findings, "Jurors to look at"), "findings-table")
        if findings
        else None,
        **_matrix(result),
        reliability=_reliability(result),
        n_in_matrix=min(len(result.jurors), _MOST_IN_MATRIX),
        uncertain=scrolled_table(
            Table.of(_UNCERTAIN, _uncertain(result), "Answers with the lowest confidence"), "uncertain-table"
        ),
    )


def _tiles(result: JuryResult) -> list[tuple[str, str, str]]:
    answered = result.answered
    distinct = float(result.distinct_jurors[answered].mean())
    votes = float(result.n_votes[answered].mean())
    tiles = [
        ("Items", f"{len(result.item_ids):,}", f"{int(answered.sum()):,} with votes"),
        ("Jurors", f"{len(result.jurors):,}", f"{int(result.n_votes.sum()):,} votes"),
        ("Distinct jurors per item", f"{distinct:.1f}", f"of {votes:.1f} that voted"),
        *_overall(result),
        ("Mean confidence", f"{100 * float(result.confidence[answered].mean()):.1f}%", "of the answers"),
    ]
    if result.calibration is not None:
        choice = result.calibration
        tiles.append(("Right on known answers", f"{100 * choice.accuracy:.1f}%", f"{choice.n_gold:,} left out in turn"))
    return tiles


def _overall(result: JuryResult) -> list[tuple[str, str, str]]:
    """A tile with the number of distinct jurors overall, where it is known."""
    if result.distinct_jurors_overall is None:
        return []
    counted = f"of {result.n_counted_jurors:,} with weight and {LEAST_VOTES}+ votes"
    if result.error_correlation is not None:
        counted += f"; by their errors, worth {result.error_correlation.n_independent:,.1f} independent ones"
    return [("Distinct jurors overall", f"{result.distinct_jurors_overall:,.1f}", counted)]


def _jurors(result: JuryResult) -> tuple[list[str], list[list[str]], int]:
    """Heading and rows of the table of jurors, and how many are left out: those in the middle by weight times votes."""
    heading, rows = result.rows()
    n_left_out = max(len(rows) - _MOST_JURORS, 0)
    if not n_left_out:
        return heading, rows, 0
    influence = np.array([juror.weight * juror.n_votes for juror in result.ranked_jurors()])
    order = np.argsort(-influence, kind="stable")
    n_first = (_MOST_JURORS + 1) // 2
    shown = np.sort(np.concatenate([order[:n_first], order[len(order) - (_MOST_JURORS - n_first) :]]))
    return heading, [rows[s] for s in shown], n_left_out


def _matrix(result: JuryResult) -> dict[str, Any]:
    """The dependence of the jurors with the most votes, as a figure and the meaning of its colours."""
    if len(result.jurors) < 2:
        return {"matrix": None, "legend": []}
    n_votes = np.array([juror.n_votes for juror in result.jurors])
    shown = np.sort(np.argsort(-n_votes, kind="stable")[:_MOST_IN_MATRIX])
    dependence = result.dependence[np.ix_(shown, shown)].astype(np.float64)
    if np.isnan(dependence[~np.eye(len(shown), dtype=bool)]).all():
        return {"matrix": None, "legend": []}
    order = order_by_dependence(np.nan_to_num(dependence))
    names = [result.jurors[shown[s]].name for s in order]
    figure, axes = new_axes(7.2, 7.2, left=1.2, bottom=1.2)
    dependence_matrix(dependence[np.ix_(order, order)], names, legend=False, ax=axes)
    drawing = Drawing("dependence", "Dependence of the jurors on each other, similar ones together", figure)
    return {"matrix": inline_svg(drawing), "legend": matrix_legend(dependence)}


def _reliability(result: JuryResult) -> dict[str, Any] | None:
    """Confidence against accuracy on known answers that were left out of the fit, if there are enough of them."""
    choice = result.calibration
    if choice is None or choice.n_gold < _LEAST_IN_DIAGRAM:
        return None
    figure, axes = new_axes(4.5, 4.0, left=0.62)
    curve = reliability_curve(choice.held_out.correct, choice.held_out.confidence, n_bins=min(choice.n_gold // 10, 15))
    reliability_diagram(curve, legend=False, ax=axes)
    alt = (
        f"Reliability diagram: accuracy against confidence in {len(curve.counts)} bins of {choice.n_gold} known "
        f"answers that were left out of the fit.  ECE {100 * choice.ece:.1f}%."
    )
    return {
        "figure": inline_svg(Drawing("reliability", alt, figure)),
        "legend": count_legend(max(curve.counts)),
        "n_gold": choice.n_gold,
        "ece": f"{100 * choice.ece:.1f}%",
        "floor": f"{100 * choice.ece_floor.mean:.1f}%",
        "highest": f"{100 * choice.ece_floor.quantiles[0.95]:.1f}%",
    }


def _uncertain(result: JuryResult) -> list[list[str]]:
    """The answers with the lowest confidence."""
    answered = np.flatnonzero(result.answered)
    least = answered[np.argsort(result.confidence[answered], kind="stable")[:_MOST_ITEMS]]
    rows = []
    for n in least:
        order = np.argsort(-result.probs[n], kind="stable")
        second = next(int(l) for l in order if l != result.label[n])
        rows.append(
            [
                str(result.item_ids[n]),
                result.class_names[result.label[n]],
                f"{100 * result.confidence[n]:.1f}%",
                f"{result.class_names[second]} ({100 * result.probs[n, second]:.1f}%)",
                str(int(result.n_votes[n])),
                f"{result.distinct_jurors[n]:.1f}",
            ]
        )
    return rows


def order_by_dependence(dependence: Any) -> list[int]:
    """The sources in the order of the leaves of an average-linkage clustering by 1 - dependence.

    Examples
    --------
    Sources 0 and 2 stand together:

    >>> order_by_dependence([[1, 0, 0.9], [0, 1, 0.1], [0.9, 0.1, 1]])
    [1, 2, 0]
    """
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    matrix = np.asarray(dependence, dtype=np.float64)
    if len(matrix) < 3:
        return list(range(len(matrix)))
    distance = np.clip(1.0 - np.maximum(matrix, matrix.T), 0.0, 1.0)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=True)
    return [int(s) for s in leaves_list(tree)]
