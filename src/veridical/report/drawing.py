"""What all figures of a report have in common: a canvas, axes, and what hovering over them says."""

from __future__ import annotations

import io
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from veridical._json import to_json
from veridical.report.style import COLOURS, RC, colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: What would change from run to run is left out of the file.
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}
FIGURE_FORMATS = tuple(_METADATA)
_VARIABLE = {light: f"var(--{role})" for role, (light, _) in COLOURS.items()}
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")


@dataclass(frozen=True)
class Drawing:
    """A figure, and what makes it speak.

    Attributes
    ----------
    name : str
        Stem of its file, and what its ids on the page begin with.
    alt : str
        What it shows, in words.
    figure : matplotlib Figure
    tips : dict
        Id of an element -> what hovering over it says.
    series : dict
        Id of an element -> the method that it belongs to, for hiding it.
    hover : dict
        For charts that are read by position: numbers behind the area that has the id "frame".
    """

    name: str
    alt: str
    figure: Figure
    tips: dict[str, str] = field(default_factory=dict)
    series: dict[str, str] = field(default_factory=dict)
    hover: dict[str, Any] = field(default_factory=dict)


@contextmanager
def drawing_style() -> Iterator[None]:
    """The report's lettering; letters that the font lacks are the browser's to find."""
    import matplotlib

    with matplotlib.rc_context(RC), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def new_axes(width: float, height: float, left: float = 0.52, bottom: float = 0.45) -> tuple[Figure, Axes]:
    """A figure of so many inches with one pair of axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((left / width, bottom / height, 1 - (left + 0.12) / width, 1 - (bottom + 0.12) / height))
    axes.patch.set_gid("frame")
    return figure, axes


def cells(axes: Axes, x_edges: Any, y_edges: Any, roles: Sequence[Sequence[str | None]]) -> None:
    """Fill the cells of a grid; one path per colour keeps the file small."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    corners = ((0, 0), (1, 0), (1, 1), (0, 1), (0, 0))
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    for role in sorted({role for line in roles for role in line if role}):
        inside = [(r, c) for r, line in enumerate(roles) for c, found in enumerate(line) if found == role]
        vertices = [(x_edges[c + i], y_edges[r + j]) for r, c in inside for i, j in corners]
        path = Path(np.asarray(vertices), codes * len(inside))
        axes.add_patch(PathPatch(path, facecolor=colour(role), edgecolor="none", linewidth=0, antialiased=False))


def image_bytes(drawing: Drawing, format: str) -> bytes:
    """The figure as a file for papers; the same numbers give the same bytes."""
    import matplotlib

    stream = io.BytesIO()
    with drawing_style(), matplotlib.rc_context({"savefig.facecolor": "white"}):
        drawing.figure.savefig(stream, format=format, dpi=200, metadata=_METADATA[format])
    return stream.getvalue()


def inline_svg(drawing: Drawing) -> Markup:
    """The figure as an element of the page: text as text, colours as variables, ids of its own."""
    import matplotlib

    stream = io.BytesIO()
    with drawing_style(), matplotlib.rc_context({"svg.fonttype": "none"}):
        drawing.figure.savefig(stream, format="svg", metadata=_METADATA["svg"])
    root = ET.fromstring(stream.getvalue())
    _drop_metadata(root)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        _rewrite(element, drawing)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.attrib |= {"role": "img", "aria-label": drawing.alt}
    if drawing.hover:
        root.set("data-hover", to_json(drawing.hover))
    return Markup(ET.tostring(root, encoding="unicode"))


def _drop_metadata(root: ET.Element) -> None:
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.rpartition("}")[2] in ("metadata", "style"):
                parent.remove(child)


def _rewrite(element: ET.Element, drawing: Drawing) -> None:
    found = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
    own = found.get("id", "")
    if own in drawing.tips:
        found["data-tip"] = drawing.tips[own]
    if own in drawing.series:
        found["data-series"] = drawing.series[own]
    for key, value in found.items():
        if key == "id":
            found[key] = f"{drawing.name}-{value}"
        elif key == "href":
            found[key] = f"#{drawing.name}-{value.removeprefix('#')}"
        elif key == "clip-path":
            found[key] = value.replace("url(#", f"url(#{drawing.name}-")
        elif key == "style":
            found[key] = _themed(value)
        elif key in ("d", "transform"):
            found[key] = _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.2f}", " ".join(value.split()))
    element.attrib.clear()
    element.attrib.update(found)


def _themed(style: str) -> str:
    """Colours become variables, and the font's family is left to the page."""
    style = re.sub(r"font: ([\d.]+px)[^;]*", r"font-size: \1", style)
    return re.sub(r"#[0-9a-f]{6}", lambda found: _VARIABLE.get(found[0], found[0]), style)
