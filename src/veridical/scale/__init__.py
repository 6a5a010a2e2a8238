"""Predictions larger than memory, on one machine in blocks and on several with Dask.

``veridical.scale.open`` gives predictions that are read in blocks; the ordinary functions take them.  The functions
here have, in addition, ``out`` and ``resume``: results are written block by block, and continued after an interruption.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from veridical._lazy import names_on_demand

if TYPE_CHECKING:
    from veridical.scale.blocked import Block as Block
    from veridical.scale.blocked import BlockedPredictions as BlockedPredictions
    from veridical.scale.cluster import to_dask as to_dask
    from veridical.scale.evaluating import evaluate as evaluate
    from veridical.scale.evaluating import fit_calibrator as fit_calibrator
    from veridical.scale.opening import open as open
    from veridical.scale.streaming import apply_calibrator as apply_calibrator
    from veridical.scale.streaming import consensus as consensus
    from veridical.scale.streaming import discover as discover

#: Module -> the public names in it.
_NAMES_IN = {
    "blocked": "Block BlockedPredictions",
    "cluster": "to_dask",
    "evaluating": "evaluate fit_calibrator",
    "opening": "open",
    "streaming": "apply_calibrator consensus discover",
}

__getattr__, __dir__, __all__ = names_on_demand(__name__, _NAMES_IN)
