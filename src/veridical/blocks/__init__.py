"""Functions over blocks of samples, from files, arrays and Dask; public as :mod:`veridical.scale`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veridical._lazy import names_on_demand

if TYPE_CHECKING:
    from veridical.blocks.blocked import Block as Block
    from veridical.blocks.blocked import BlockedPredictions as BlockedPredictions
    from veridical.blocks.evaluating import evaluate as evaluate
    from veridical.blocks.evaluating import fit_calibrator as fit_calibrator
    from veridical.blocks.on_dask import to_dask as to_dask
    from veridical.blocks.opening import open as open
    from veridical.blocks.samplewise import apply_calibrator as apply_calibrator
    from veridical.blocks.samplewise import consensus as consensus
    from veridical.blocks.samplewise import discover as discover

#: Module -> the public names in it.
_NAMES_IN = {
    "blocked": "Block BlockedPredictions",
    "on_dask": "to_dask",
    "evaluating": "evaluate fit_calibrator",
    "opening": "open",
    "samplewise": "apply_calibrator consensus discover",
}

__getattr__, __dir__, __all__ = names_on_demand(__name__, _NAMES_IN)
