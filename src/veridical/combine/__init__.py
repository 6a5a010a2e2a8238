"""Many sources to one vector per sample: the mean, truth discovery, consensus, learned pools."""

from veridical.combine.combined import Combined
from veridical.combine.combiner import Combiner, apply_label_free, fit_combiner
from veridical.combine.consensus_of_sources import Consensus, consensus
from veridical.combine.projection import keep_labels
from veridical.combine.registry import COMBINERS, CombinerInfo, label_free_combiners, label_keeping_combiners
from veridical.combine.truth_discovery import Truth, discover

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
