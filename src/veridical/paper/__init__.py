"""The paper's protocol: its tables and figures from any ensemble's predictions, beside its published numbers.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from veridical._lazy import names_on_demand

if TYPE_CHECKING:
    from veridical.paper.by_sources import table1 as table1
    from veridical.paper.ensembles import Ensemble as Ensemble
    from veridical.paper.ensembles import EnsembleName as EnsembleName
    from veridical.paper.ensembles import open_ensembles as open_ensembles
    from veridical.paper.ensembles import recognise as recognise
    from veridical.paper.extended import Extended as Extended
    from veridical.paper.figures import draw_figure2 as draw_figure2
    from veridical.paper.figures import draw_figure3 as draw_figure3
    from veridical.paper.figures import draw_figure_a as draw_figure_a
    from veridical.paper.figures import save_figure as save_figure
    from veridical.paper.formats import FORMATS as FORMATS
    from veridical.paper.formats import format_table as format_table
    from veridical.paper.panels import BinsBeforeAfter as BinsBeforeAfter
    from veridical.paper.panels import DisagreementByScore as DisagreementByScore
    from veridical.paper.panels import bins_before_after as bins_before_after
    from veridical.paper.panels import disagreement_by_score as disagreement_by_score
    from veridical.paper.posthoc import table2 as table2
    from veridical.paper.posthoc import table3 as table3
    from veridical.paper.posthoc import table4 as table4
    from veridical.paper.published import Published as Published
    from veridical.paper.published import PublishedGroup as PublishedGroup
    from veridical.paper.published import published_groups as published_groups
    from veridical.paper.reproduction import Settings as Settings
    from veridical.paper.reproduction import reproduce_all as reproduce_all
    from veridical.paper.tables import PairedDifference as PairedDifference
    from veridical.paper.tables import Row as Row
    from veridical.paper.tables import Table as Table
    from veridical.paper.tables import Value as Value

#: Module -> the public names in it.
_NAMES_IN = {
    "ensembles": "Ensemble EnsembleName open_ensembles recognise",
    "extended": "Extended",
    "figures": "draw_figure2 draw_figure3 draw_figure_a save_figure",
    "formats": "FORMATS format_table",
    "panels": "BinsBeforeAfter DisagreementByScore bins_before_after disagreement_by_score",
    "published": "Published PublishedGroup published_groups",
    "reproduction": "Settings reproduce_all",
    "by_sources": "table1",
    "tables": "PairedDifference Row Table Value",
    "posthoc": "table2 table3 table4",
}

__getattr__, __dir__, __all__ = names_on_demand(__name__, _NAMES_IN)
