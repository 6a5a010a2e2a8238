"""The style of the paper's figures, and figures as files; the same numbers give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from veridical._atomic import as_path, write_atomically
from veridical.errors import ParameterError
from veridical.plots import figure_files
from veridical.plots.figure_files import FIGURE_FORMATS
from veridical.predictions.validation import check_type

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_Row = TypeVar("_Row")
#: Blue, orange, green, and two more for fixed numbers of updates; colour-blind readers can tell them apart.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9")
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.hashsalt": "veridical",
    "savefig.dpi": 150,
}


def check_drawable(rows: Sequence[_Row]) -> Sequence[_Row]:
    """``rows`` if there is anything to draw."""
    if not rows:
        raise ParameterError("there are no results to draw; give at least one ensemble and one number of sources.")
    return rows


def settled(figure: Figure) -> Figure:
    """The figure with a fixed layout, which is computed once and not for every file format."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def figure_path(path: str | Path) -> Path:
    """Where a figure may be written: under a name that ends in .svg, .png or .pdf."""
    target = as_path(path)
    if target.suffix.lower().lstrip(".") not in FIGURE_FORMATS:
        raise ParameterError(f"{str(target)!r} is not the name of a figure; choose one in .svg, .png or .pdf.")
    return target


def figure_bytes(figure: Figure, form: str) -> bytes:
    """A figure as the content of a file.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    form : {"svg", "png", "pdf"}
    """
    return figure_files.figure_bytes(figure, form, STYLE)


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure as SVG, PNG or PDF, by the ending of its name; whole or not at all.

    Parameters
    ----------
    figure : matplotlib Figure
    path : path

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from veridical import paper
    >>> paper.save_figure(Figure(), "figure.svg")
    """
    from matplotlib.figure import Figure

    target = figure_path(path)
    check_type(figure, Figure, "the figure", "a figure of matplotlib's")
    write_atomically(target, figure_bytes(figure, target.suffix.lstrip(".").lower()))
