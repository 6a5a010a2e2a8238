"""Where ensembles come from: training in PyTorch, other people's checkpoints, and predictions of any models.

This room meets the rest of the library only through predictions.  It needs ``pip install 'veridical[torch]'``
(:func:`collect_predictions` of scikit-learn classifiers does not); names are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from veridical._extras import require

if TYPE_CHECKING:
    from veridical.training.architectures import ARCHITECTURES, build
    from veridical.training.batches import ImageBatches
    from veridical.training.data import DATASETS, ImageSet, Normalisation, load_dataset
    from veridical.training.ensemble import TrainedEnsemble, load_ensemble, train_ensemble
    from veridical.training.export import collect_predictions
    from veridical.training.recipes import RECIPES, Recipe
    from veridical.training.zoo import find_checkpoints, load_checkpoint, load_checkpoints

_HOME = {
    "ARCHITECTURES": "architectures",
    "DATASETS": "data",
    "RECIPES": "recipes",
    "ImageBatches": "batches",
    "ImageSet": "data",
    "Normalisation": "data",
    "Recipe": "recipes",
    "TrainedEnsemble": "ensemble",
    "build": "architectures",
    "collect_predictions": "export",
    "find_checkpoints": "zoo",
    "load_checkpoint": "zoo",
    "load_checkpoints": "zoo",
    "load_dataset": "data",
    "load_ensemble": "ensemble",
    "train_ensemble": "ensemble",
}
_NEED_TORCH = frozenset(("batches", "ensemble", "zoo"))

__all__ = [
    "ARCHITECTURES",
    "DATASETS",
    "RECIPES",
    "ImageBatches",
    "ImageSet",
    "Normalisation",
    "Recipe",
    "TrainedEnsemble",
    "build",
    "collect_predictions",
    "find_checkpoints",
    "load_checkpoint",
    "load_checkpoints",
    "load_dataset",
    "load_ensemble",
    "train_ensemble",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'veridical.training' has no attribute {name!r}")
    module = _HOME[name]
    if module in _NEED_TORCH:
        for needed in ("torch", "safetensors"):
            require(needed, "torch")
    value = getattr(importlib.import_module(f"veridical.training.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
