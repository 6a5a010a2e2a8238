"""The page that shows a whole reproduction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from veridical._version import __version__
from veridical.paper.figures import FIGURE_FORMATS
from veridical.paper.formats import SUFFIXES
from veridical.paper.inputs import Ensemble
from veridical.paper.layout import headings, lines_of, verdict_title, verdicts
from veridical.paper.tables import Table

_FIGURES = (
    (
        "figure2",
        "Figure 2",
        "Each metric by number of sources.  Crosses are the paper's own figures.",
    ),
    (
        "figure3",
        "Figure 3",
        "Accuracy in bins of confidence on an evaluation half, before and after calibration; colours count samples.",
    ),
    (
        "figureA",
        "Figures A1 to A3",
        "The sources' disagreement (HV) against the winning score, and, where the score is the same, among right and "
        "wrong predictions.",
    ),
)


def render_page(ensembles: Sequence[Ensemble], tables: Sequence[Table], settings: Mapping[str, Any]) -> str:
    """``index.html``: tables in place, figures beside it, links to every file.  Names from files are text in it."""
    import jinja2

    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(files("veridical.paper").joinpath("index.html.j2").read_text(encoding="utf-8"))
    return template.render(
        version=__version__,
        ensembles=[(str(ensemble.name), repr(ensemble.predictions)) for ensemble in ensembles],
        tables=[
            {
                "table": table,
                "number": table.name.removeprefix("table"),
                "heads": headings(table),
                "groups": [[list(lines_of(table, row)) for row in group] for group in table.groups()],
                "verdict_title": verdict_title(table),
                "verdicts": verdicts(table),
            }
            for table in tables
        ],
        suffixes=list(SUFFIXES.values()),
        figures=_FIGURES,
        figure_formats=FIGURE_FORMATS,
        settings={key: value for key, value in settings.items() if value is not None},
    )
