"""The paper's protocol: its tables and figures from any ensemble's predictions, beside its own numbers.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from veridical._lazy import names_on_demand

if TYPE_CHECKING:
    from veridical.paper.complete import Settings, reproduce_all
    from veridical.paper.extended import Extended
    from veridical.paper.figure_data import (
        BinsBeforeAfter,
        DisagreementByScore,
        bins_before_after,
        disagreement_by_score,
    )
    from veridical.paper.figures import draw_figure2, draw_figure3, draw_figure_a, save_figure
    from veridical.paper.formats import FORMATS, format_table
    from veridical.paper.inputs import Ensemble, open_ensembles
    from veridical.paper.names import EnsembleName, recognise
    from veridical.paper.posthoc import table2, table3, table4
    from veridical.paper.published import Published, PublishedGroup, published_groups
    from veridical.paper.sweep import table1
    from veridical.paper.tables import PairedDifference, Row, Table, Value

_HOME = {
    "BinsBeforeAfter": "figure_data",
    "DisagreementByScore": "figure_data",
    "Ensemble": "inputs",
    "EnsembleName": "names",
    "Extended": "extended",
    "FORMATS": "formats",
    "PairedDifference": "tables",
    "Published": "published",
    "PublishedGroup": "published",
    "Row": "tables",
    "Settings": "complete",
    "Table": "tables",
    "Value": "tables",
    "bins_before_after": "figure_data",
    "disagreement_by_score": "figure_data",
    "draw_figure2": "figures",
    "draw_figure3": "figures",
    "draw_figure_a": "figures",
    "format_table": "formats",
    "open_ensembles": "inputs",
    "published_groups": "published",
    "recognise": "names",
    "reproduce_all": "complete",
    "save_figure": "figures",
    "table1": "sweep",
    "table2": "posthoc",
    "table3": "posthoc",
    "table4": "posthoc",
}

__all__ = [
    "FORMATS",
    "BinsBeforeAfter",
    "DisagreementByScore",
    "Ensemble",
    "EnsembleName",
    "Extended",
    "PairedDifference",
    "Published",
    "PublishedGroup",
    "Row",
    "Settings",
    "Table",
    "Value",
    "bins_before_after",
    "disagreement_by_score",
    "draw_figure2",
    "draw_figure3",
    "draw_figure_a",
    "format_table",
    "open_ensembles",
    "published_groups",
    "recognise",
    "reproduce_all",
    "save_figure",
    "table1",
    "table2",
    "table3",
    "table4",
]

__getattr__, __dir__ = names_on_demand(__name__, _HOME)
