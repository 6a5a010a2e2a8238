"""Ensembles: training in PyTorch, checkpoints from elsewhere, and predictions of any models.

The rest of the library uses only the predictions.  This package needs the extra ``torch``
(:func:`collect_predictions` of scikit-learn classifiers does not); names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from veridical._extras import require
from veridical._lazy import names_on_demand

if TYPE_CHECKING:
    from veridical.training.architectures import ARCHITECTURES, build
    from veridical.training.batches import ImageBatches
    from veridical.training.checkpoint_predictions import predict_dataset
    from veridical.training.collect import collect_predictions
    from veridical.training.data import DATASETS, ImageSet, Normalisation, load_dataset
    from veridical.training.ensemble import TrainedEnsemble, load_ensemble, train_ensemble
    from veridical.training.recipes import RECIPES, Recipe
    from veridical.training.zoo import find_checkpoints, load_checkpoint, load_checkpoints

_MODULE_OF = {
    "ARCHITECTURES": "architectures",
    "DATASETS": "data",
    "RECIPES": "recipes",
    "ImageBatches": "batches",
    "ImageSet": "data",
    "Normalisation": "data",
    "Recipe": "recipes",
    "TrainedEnsemble": "ensemble",
    "build": "architectures",
    "collect_predictions": "collect",
    "find_checkpoints": "zoo",
    "load_checkpoint": "zoo",
    "load_checkpoints": "zoo",
    "load_dataset": "data",
    "load_ensemble": "ensemble",
    "predict_dataset": "checkpoint_predictions",
    "train_ensemble": "ensemble",
}
_NEED_TORCH = frozenset(("batches", "checkpoint_predictions", "ensemble", "zoo"))

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
    "predict_dataset",
    "train_ensemble",
]


def _check_torch(module: str) -> None:
    if module in _NEED_TORCH:
        for needed in ("torch", "safetensors"):
            require(needed, "torch")


__getattr__, __dir__ = names_on_demand(__name__, _MODULE_OF, before=_check_torch)
