"""The paper's protocol: its tables and figures from any ensemble's predictions, beside its published numbers.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from veridical._lazy import names_on_demand

if TYPE_CHECKING:
    from veridical.paper.ensembles import Ensemble, EnsembleName, open_ensembles, recognise
    from veridical.paper.extended import Extended
    from veridical.paper.figure_2 import draw_figure2
    from veridical.paper.figure_3 import BinsBeforeAfter, bins_before_after, draw_figure3
    from veridical.paper.figure_a import DisagreementByScore, disagreement_by_score, draw_figure_a
    from veridical.paper.figure_files import save_figure
    from veridical.paper.formats import FORMATS, format_table
    from veridical.paper.published import Published, PublishedGroup, published_groups
    from veridical.paper.reproduction import Settings, reproduce_all
    from veridical.paper.table_1 import table1
    from veridical.paper.tables import PairedDifference, Row, Table, Value
    from veridical.paper.tables_2_to_4 import table2, table3, table4

_MODULE_OF = {
    "BinsBeforeAfter": "figure_3",
    "DisagreementByScore": "figure_a",
    "Ensemble": "ensembles",
    "EnsembleName": "ensembles",
    "Extended": "extended",
    "FORMATS": "formats",
    "PairedDifference": "tables",
    "Published": "published",
    "PublishedGroup": "published",
    "Row": "tables",
    "Settings": "reproduction",
    "Table": "tables",
    "Value": "tables",
    "bins_before_after": "figure_3",
    "disagreement_by_score": "figure_a",
    "draw_figure2": "figure_2",
    "draw_figure3": "figure_3",
    "draw_figure_a": "figure_a",
    "format_table": "formats",
    "open_ensembles": "ensembles",
    "published_groups": "published",
    "recognise": "ensembles",
    "reproduce_all": "reproduction",
    "save_figure": "figure_files",
    "table1": "table_1",
    "table2": "tables_2_to_4",
    "table3": "tables_2_to_4",
    "table4": "tables_2_to_4",
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

__getattr__, __dir__ = names_on_demand(__name__, _MODULE_OF)
