"""Ensembles: training in PyTorch, checkpoints from elsewhere, and predictions of any models.

The rest of the library uses only the predictions.  This package needs the extra ``torch``
(:func:`collect_predictions` of scikit-learn classifiers does not); names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from veridical._lazy import names_on_demand, require

if TYPE_CHECKING:
    from veridical.training.architectures import ARCHITECTURES as ARCHITECTURES
    from veridical.training.architectures import build as build
    from veridical.training.batches import ImageBatches as ImageBatches
    from veridical.training.checkpoint_predictions import predict_dataset as predict_dataset
    from veridical.training.collect import collect_predictions as collect_predictions
    from veridical.training.data import DATASETS as DATASETS
    from veridical.training.data import ImageSet as ImageSet
    from veridical.training.data import Normalisation as Normalisation
    from veridical.training.data import load_dataset as load_dataset
    from veridical.training.ensemble import TrainedEnsemble as TrainedEnsemble
    from veridical.training.ensemble import load_ensemble as load_ensemble
    from veridical.training.ensemble import train_ensemble as train_ensemble
    from veridical.training.recipes import RECIPES as RECIPES
    from veridical.training.recipes import Recipe as Recipe
    from veridical.training.zoo import find_checkpoints as find_checkpoints
    from veridical.training.zoo import load_checkpoint as load_checkpoint
    from veridical.training.zoo import load_checkpoints as load_checkpoints

#: Module -> the public names in it.
_NAMES_IN = {
    "architectures": "ARCHITECTURES build",
    "batches": "ImageBatches",
    "checkpoint_predictions": "predict_dataset",
    "collect": "collect_predictions",
    "data": "DATASETS ImageSet Normalisation load_dataset",
    "ensemble": "TrainedEnsemble load_ensemble train_ensemble",
    "recipes": "RECIPES Recipe",
    "zoo": "find_checkpoints load_checkpoint load_checkpoints",
}

_NEED_TORCH = frozenset(("batches", "checkpoint_predictions", "ensemble", "zoo"))


def _check_torch(module: str) -> None:
    if module in _NEED_TORCH:
        for needed in ("torch", "safetensors"):
            require(needed, "torch")


__getattr__, __dir__, __all__ = names_on_demand(__name__, _NAMES_IN, before=_check_torch)
