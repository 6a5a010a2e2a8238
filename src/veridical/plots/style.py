"""Colours and lettering of all figures: one colour per role and no colour twice, in a light and a dark theme.

On the page of a report every colour of the light theme is replaced by a variable of the style sheet, so that figures
follow the reader's theme.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np

from veridical._names import printable
from veridical.errors import ParameterError, shown
from veridical.predictions.validation import check_choice, check_flag

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")

#: Role -> (light, dark).  The names are the style sheet's variables.
COLOURS = {
    "ink": ("#1d2430", "#e9ebf0"),
    "quiet": ("#596273", "#a6aebc"),
    "rule": ("#dfe3ea", "#2f3642"),
    "frame": ("#aeb6c2", "#4d5665"),
    "surface": ("#ffffff", "#181c24"),
    "band": ("#f2b84b", "#d9982b"),
    "right": ("#7f9ccb", "#5b7fb8"),
    "wrong": ("#d9775f", "#d0705a"),
    "series-0": ("#4f5b6f", "#b4bccb"),
    "series-1": ("#c4591b", "#f0935a"),
    "series-2": ("#14805e", "#4cc59c"),
    "series-3": ("#3457d5", "#8aa2ff"),
    "series-4": ("#a3307a", "#e583c2"),
    "series-5": ("#876a00", "#d8b83f"),
    "series-6": ("#0b7a99", "#55bfdc"),
    "series-7": ("#6b48b8", "#b79af5"),
    "level-0": ("#e4ecf8", "#1f2b42"),
    "level-1": ("#c2d4f0", "#283f69"),
    "level-2": ("#98b6e5", "#345894"),
    "level-3": ("#6b92d6", "#4b79c0"),
    "level-4": ("#426bbd", "#76a1df"),
    "level-5": ("#28478c", "#b7d1f6"),
}
N_SERIES, N_LEVELS = 8, 6
#: The usual methods always have the same colour; the method that the report is about is the fourth.
_USUAL = {"mean": 0, "tde": 1, "atde": 2, "hv": 4}

THEMES = ("light", "dark")
_dark: ContextVar[bool] = ContextVar("dark", default=False)


def colour(role: str) -> str:
    """The colour that a role has in the current theme."""
    return COLOURS[role][_dark.get()]


def rc_parameters() -> dict[Any, Any]:
    """Settings of matplotlib for the current theme."""
    return {
        "font.family": "sans-serif",
        "font.size": 9.2,
        "axes.titlesize": 9.2,
        "axes.labelcolor": colour("quiet"),
        "axes.edgecolor": colour("frame"),
        "axes.linewidth": 0.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.facecolor": "none",
        "figure.facecolor": "none",
        "grid.color": colour("rule"),
        "grid.linewidth": 0.7,
        "legend.frameon": False,
        "legend.fontsize": 8,
        "savefig.facecolor": "none",
        "svg.hashsalt": "veridical",
        "text.color": colour("ink"),
        "text.parse_math": False,  # a dollar in a name is a dollar
        "xtick.color": colour("frame"),
        "xtick.labelcolor": colour("quiet"),
        "ytick.color": colour("frame"),
        "ytick.labelcolor": colour("quiet"),
    }


@contextmanager
def drawing_style() -> Iterator[None]:
    """The lettering of figures; letters that the font lacks are left to the reader's program."""
    import matplotlib

    with matplotlib.rc_context(rc_parameters()), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


@contextmanager
def theme(name: str) -> Iterator[None]:
    """Draw in the colours of a theme, and give new figures its lettering and background.

    Parameters
    ----------
    name : {"light", "dark"}

    Examples
    --------
    >>> import veridical as vd
    >>> with vd.plots.theme("dark"):
    ...     ax = vd.plots.confidence_histogram([True, True, False], [0.9, 0.8, 0.7])
    >>> ax.figure.get_facecolor() == (24 / 255, 28 / 255, 36 / 255, 1.0)
    True
    """
    import matplotlib

    token = _dark.set(check_choice(name, THEMES, "theme") == "dark")
    surface: dict[Any, Any] = {key: colour("surface") for key in ("figure.facecolor", "savefig.facecolor")}
    try:
        with drawing_style(), matplotlib.rc_context(surface):
            yield
    finally:
        _dark.reset(token)


def styled(draw: Callable[P, Axes]) -> Callable[P, Axes]:
    """A function that draws in this style."""

    @wraps(draw)
    def drawn(*args: P.args, **options: P.kwargs) -> Axes:
        check_flag(options.get("legend", True), "legend")
        with drawing_style():
            return draw(*args, **options)

    return drawn


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """``ax``, or axes of a new figure of so many inches, as pyplot makes them, with the background of the theme."""
    import matplotlib.axes
    import matplotlib.pyplot as plt

    if ax is not None:
        if not isinstance(ax, matplotlib.axes.Axes):
            raise ParameterError(f"ax is {shown(ax)}; give matplotlib Axes, or leave it out for a new figure.")
        return ax

    figure, axes = plt.subplots(figsize=(width, height), layout="constrained", facecolor=colour("surface"))
    assert figure is not None
    return axes


def fill_cells(axes: Axes, x_edges: Any, y_edges: Any, roles: Sequence[Sequence[str | None]]) -> None:
    """Fill the cells of a grid; one path per colour keeps files small."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    corners = ((0, 0), (1, 0), (1, 1), (0, 1), (0, 0))
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    for role in sorted({role for line in roles for role in line if role}):
        inside = [(r, c) for r, line in enumerate(roles) for c, cell in enumerate(line) if cell == role]
        vertices = [(x_edges[c + i], y_edges[r + j]) for r, c in inside for i, j in corners]
        path = Path(np.asarray(vertices), codes * len(inside))
        axes.add_patch(PathPatch(path, facecolor=colour(role), edgecolor="none", linewidth=0, antialiased=False))


def legend_of_colours(axes: Axes, entries: Sequence[tuple[str, str]], title: str = "", **options: Any) -> None:
    """A legend of (role of a colour, text)."""
    from matplotlib.patches import Patch

    handles = [Patch(color=colour(role), label=text) for role, text in entries]
    axes.legend(handles=handles, title=title or None, title_fontsize=8, **options)


def shortened(name: str, length: int) -> str:
    """At most ``length`` characters, the last an ellipsis where something was cut."""
    text = printable(name)
    return text if len(text) <= length else text[: length - 1] + "…"


def series_roles(methods: Sequence[str], chosen: str | None = None) -> dict[str, str]:
    """Method -> role of its colour."""
    roles = dict(_USUAL)
    if chosen is not None and not isinstance(chosen, str):
        raise ParameterError(f"chosen is {shown(chosen)}; give the name of a method.")
    if chosen is not None and chosen not in roles:
        roles[chosen] = 3
    spare = [k for k in range(N_SERIES) if k not in roles.values()] or [N_SERIES - 1]
    others = [method for method in methods if method not in roles]
    roles |= {method: spare[i % len(spare)] for i, method in enumerate(others)}
    return {method: f"series-{k}" for method, k in roles.items()}


def level_role(share: float) -> str:
    """The role of a count, from its share of the largest count."""
    return f"level-{sum(share > bound for bound in LEVEL_BOUNDS)}"


#: Shares of the largest count at which the colour changes.
LEVEL_BOUNDS = (0.05, 0.1, 0.2, 0.4, 0.7)


#: Format -> metadata: what would change from run to run is left out of the file.
METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}
FIGURE_FORMATS = tuple(METADATA)


def figure_bytes(figure: Figure, format: str, style: dict[Any, Any], **options: Any) -> bytes:
    """A figure as a file of one of the formats, under matplotlib's settings ``style``; ``options`` of ``savefig``."""
    import matplotlib

    stream = io.BytesIO()
    with matplotlib.rc_context(style):
        figure.savefig(stream, format=format, metadata=METADATA[format], **options)
    return stream.getvalue()
