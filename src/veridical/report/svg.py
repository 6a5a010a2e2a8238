"""Figures as elements of the page, with texts to show on hovering, and as files."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from veridical._json import to_json
from veridical.plots.style import COLOURS, drawing_style, figure_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_VARIABLE = {light: f"var(--{role})" for role, (light, _) in COLOURS.items()}
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")


@dataclass(frozen=True)
class Drawing:
    """A figure, and what the page needs to make it interactive.

    Attributes
    ----------
    name : str
        Stem of its file, and what its ids on the page begin with.
    alt : str
        What it shows, in words.
    figure : matplotlib Figure
    tips : dict
        Id of an element -> the text that is shown on hovering.
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


def new_axes(
    width: float,
    total_height: float,
    left: float = 0.52,
    bottom: float = 0.45,
    *,
    height: float | None = None,
    figure: Figure | None = None,
    sharex: Axes | None = None,
) -> tuple[Figure, Axes]:
    """A figure of so many inches with axes; ``figure`` and ``height`` are for more axes in the same figure."""
    from matplotlib.figure import Figure

    height = total_height - bottom - 0.12 if height is None else height
    with drawing_style():
        is_new = figure is None
        figure = figure or Figure(figsize=(width, total_height))
        box = (left / width, bottom / total_height, 1 - (left + 0.12) / width, height / total_height)
        axes = figure.add_axes(box, sharex=sharex)
    if is_new:
        axes.patch.set_gid("frame")
    return figure, axes


def image_bytes(drawing: Drawing, format: str) -> bytes:
    """The figure as a file for papers; the same numbers give the same bytes."""
    with drawing_style():
        return figure_bytes(drawing.figure, format, {"savefig.facecolor": "white"}, dpi=200)


def inline_svg(drawing: Drawing) -> Markup:
    """The figure as an element of the page: text as text, colours as variables, ids of its own."""
    with drawing_style():
        root = ET.fromstring(figure_bytes(drawing.figure, "svg", {"svg.fonttype": "none"}))
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
    attributes = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
    own = attributes.get("id", "")
    if own in drawing.tips:
        attributes["data-tip"] = drawing.tips[own]
    if own in drawing.series:
        attributes["data-series"] = drawing.series[own]
    for key, value in attributes.items():
        if key == "id":
            attributes[key] = f"{drawing.name}-{value}"
        elif key == "href":
            attributes[key] = f"#{drawing.name}-{value.removeprefix('#')}"
        elif key == "clip-path":
            attributes[key] = value.replace("url(#", f"url(#{drawing.name}-")
        elif key == "style":
            attributes[key] = _themed(value)
        elif key in ("d", "transform"):
            attributes[key] = _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.2f}", " ".join(value.split()))
    element.attrib.clear()
    element.attrib.update(attributes)


def _themed(style: str) -> str:
    """Colours become variables, and the font's family is left to the page."""
    style = re.sub(r"font: ([\d.]+px)[^;]*", r"font-size: \1", style)
    return re.sub(r"#[0-9a-f]{6}", lambda match: _VARIABLE.get(match[0], match[0]), style)
