"""What a prediction file's name says about the ensemble in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

#: Data sets, architectures and ensembles as files spell them (in lower case, without punctuation) -> as the paper does.
_DATASETS = {"cifar10": "CIFAR10", "cifar100": "CIFAR100", "imagenet": "ImageNet"}
_ARCHITECTURES = {
    "preresnet110": "PreResNet110",
    "preresnet164": "PreResNet164",
    "wideresnet28x10": "WideResNet28x10",
    "wideresnet": "WideResNet28x10",
    "resnet50": "ResNet50",
    "resnet18": "ResNet18",
    "densenet121": "DenseNet121",
    "resnext29": "ResNeXt29",
}
_ENSEMBLES = {
    "deepens": "deep",
    "deep": "deep",
    "de": "deep",
    "sse": "snapshot",
    "snapshot": "snapshot",
    "se": "snapshot",
}
_ENDINGS = re.compile(r"(\.(npy|npz|pkl|pk|pth|pt|zarr|csv|parquet))+$", re.IGNORECASE)


@dataclass(frozen=True)
class EnsembleName:
    """Which ensemble a row of a table is about.

    Attributes
    ----------
    dataset : str
        As the paper spells it, or the file's own name where that is not one of the authors'.
    architecture : str
        Empty where unknown.
    ensemble : str
        "deep", "snapshot", or empty where unknown.
    """

    dataset: str
    architecture: str = ""
    ensemble: str = ""

    @property
    def recognised(self) -> bool:
        """Whether this is an ensemble as the paper names them."""
        return bool(self.architecture)

    @property
    def mean_method(self) -> str:
        """What the paper calls the mean of these sources: DE, or SE for snapshots."""
        return "SE" if self.ensemble == "snapshot" else "DE"

    def __str__(self) -> str:
        if not self.recognised:
            return self.dataset
        return f"{self.dataset} {self.architecture} ({self.ensemble} ensemble)"


def recognise(path: str | Path) -> EnsembleName:
    """Data set, architecture and kind of ensemble from a file's name.

    Names like the authors' are understood: ``logits_CIFAR100-PreResNet110-deepens-100-1.pkl.npy``, that is data set,
    architecture, way of training, members and run.  Case does not matter.  Any other name stands for itself.

    Parameters
    ----------
    path : path
        Only its last part is looked at.

    Returns
    -------
    EnsembleName

    Examples
    --------
    >>> from veridical.paper import recognise
    >>> print(recognise("logits_CIFAR100-PreResNet110-deepens-100-1.pkl.npy"))
    CIFAR100 PreResNet110 (deep ensemble)
    >>> print(recognise("runs/my_models.npz"))
    my_models
    """
    named = Path(path) if Path(path).name not in ("", "..") else Path(path).resolve()  # "." is a directory of members
    last = named.name or str(named)
    stem = _ENDINGS.sub("", last) or last
    parts = re.sub(r"^logits[_-]", "", stem, flags=re.IGNORECASE).lower().split("-")
    if len(parts) >= 3:
        dataset, architecture, ensemble = (
            known.get(re.sub(r"[^a-z0-9]", "", part))
            for known, part in zip((_DATASETS, _ARCHITECTURES, _ENSEMBLES), parts, strict=False)
        )
        if dataset and architecture and ensemble and all(part.isdecimal() for part in parts[3:]):
            return EnsembleName(dataset, architecture, ensemble)
    return EnsembleName(stem)
