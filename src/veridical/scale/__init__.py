"""Predictions larger than memory, on one machine in blocks and on several with Dask.

``veridical.scale.open`` gives predictions that are read in blocks; the ordinary functions take them.  The functions
here have, in addition, ``out`` and ``resume``: results are written block by block, and continued after an interruption.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from veridical._lazy import names_on_demand

if TYPE_CHECKING:
    from veridical.scale.blocked import Block, BlockedPredictions
    from veridical.scale.cluster import to_dask
    from veridical.scale.evaluating import evaluate, fit_calibrator
    from veridical.scale.opening import open
    from veridical.scale.streaming import apply_calibrator, consensus, discover

_MODULE_OF = {
    "Block": "blocked",
    "BlockedPredictions": "blocked",
    "apply_calibrator": "streaming",
    "consensus": "streaming",
    "discover": "streaming",
    "evaluate": "evaluating",
    "fit_calibrator": "evaluating",
    "open": "opening",
    "to_dask": "cluster",
}

__all__ = [
    "Block",
    "BlockedPredictions",
    "apply_calibrator",
    "consensus",
    "discover",
    "evaluate",
    "fit_calibrator",
    "open",
    "to_dask",
]

__getattr__, __dir__ = names_on_demand(__name__, _MODULE_OF)
