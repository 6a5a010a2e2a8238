"""Many sources to one vector per sample: the mean, truth discovery, consensus, learned pools.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from veridical._lazy import names_on_demand

if TYPE_CHECKING:
    from veridical.combine.across_samples.consensus import Consensus as Consensus
    from veridical.combine.across_samples.consensus import consensus as consensus
    from veridical.combine.base import Combiner as Combiner
    from veridical.combine.base import keep_labels as keep_labels
    from veridical.combine.combined import Combined as Combined
    from veridical.combine.registry import COMBINERS as COMBINERS
    from veridical.combine.registry import apply_label_free as apply_label_free
    from veridical.combine.registry import fit_combiner as fit_combiner
    from veridical.combine.registry import label_free_combiners as label_free_combiners
    from veridical.combine.registry import label_keeping_combiners as label_keeping_combiners
    from veridical.combine.registry import register_combiner as register_combiner
    from veridical.combine.truth import Truth as Truth
    from veridical.combine.truth_discovery import discover as discover

#: Module -> the public names in it.
_NAMES_IN = {
    "across_samples.consensus": "Consensus consensus",
    "base": "Combiner keep_labels",
    "combined": "Combined",
    "registry": (
        "COMBINERS apply_label_free fit_combiner label_free_combiners label_keeping_combiners register_combiner"
    ),
    "truth": "Truth",
    "truth_discovery": "discover",
}

__getattr__, __dir__, __all__ = names_on_demand(__name__, _NAMES_IN)
