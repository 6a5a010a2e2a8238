"""Many sources to one vector per sample: the mean, truth discovery, consensus, learned pools.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from veridical._lazy import names_on_demand

if TYPE_CHECKING:
    from veridical.combine.across_samples.consensus import Consensus, consensus
    from veridical.combine.combined import Combined
    from veridical.combine.combiner import Combiner, apply_label_free, fit_combiner
    from veridical.combine.projection import keep_labels
    from veridical.combine.registry import COMBINERS, CombinerInfo, label_free_combiners, label_keeping_combiners
    from veridical.combine.truth import Truth
    from veridical.combine.truth_discovery import discover

_MODULE_OF = {
    "COMBINERS": "registry",
    "Combined": "combined",
    "Combiner": "combiner",
    "CombinerInfo": "registry",
    "Consensus": "across_samples.consensus",
    "Truth": "truth",
    "apply_label_free": "combiner",
    "consensus": "across_samples.consensus",
    "discover": "truth_discovery",
    "fit_combiner": "combiner",
    "keep_labels": "projection",
    "label_free_combiners": "registry",
    "label_keeping_combiners": "registry",
}

__all__ = [
    "COMBINERS",
    "Combined",
    "Combiner",
    "CombinerInfo",
    "Consensus",
    "Truth",
    "apply_label_free",
    "consensus",
    "discover",
    "fit_combiner",
    "keep_labels",
    "label_free_combiners",
    "label_keeping_combiners",
]

__getattr__, __dir__ = names_on_demand(__name__, _MODULE_OF)
