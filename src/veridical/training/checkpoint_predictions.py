"""Predictions of trained networks for a data set: of a run of this library, or of checkpoints from elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from torch import nn

from veridical._atomic import as_path
from veridical._outputs import check_outputs
from veridical.errors import ParameterError, ShapeError
from veridical.predictions import Predictions
from veridical.training.architectures import check_image_shape
from veridical.training.batches import ImageBatches
from veridical.training.collect import collect_predictions
from veridical.training.data import DATASETS, load_dataset
from veridical.training.data.images import ImageSet, Normalisation
from veridical.training.devices import resolve_device
from veridical.training.ensemble import TrainedEnsemble, load_ensemble
from veridical.training.zoo import find_checkpoints, load_checkpoints, zoo_normalisation

#: Networks, their names, and the normalisation of their images.
_Networks = tuple[Iterator[nn.Module], Sequence[str], Normalisation]


def predict_dataset(
    checkpoints: str | os.PathLike[str],
    data: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    split: str = "test",
    limit: int | None = None,
    arch: str | None = None,
    layout: str = "veridical",
    batch_size: int = 512,
    device: str | None = None,
    precision: str = "float32",
) -> Predictions:
    """Logits of all networks in a directory for one split of a data set.

    Parameters
    ----------
    checkpoints : path
        The directory of a run that :func:`train_ensemble` wrote, or a directory of checkpoint files (or one file).
    data : path
        Directory of the data set's files, as in :func:`load_dataset`.
    out : path, optional
        A ``.npz`` file to write to, as in :func:`collect_predictions`.
    dataset : str, optional
        A name in ``training.DATASETS``; by default the one that the run was trained on.
    split : {"test", "train"}
    limit : int, optional
        Take only the first ``limit`` images.
    arch : str, optional
        A name in ``training.ARCHITECTURES``; needed for checkpoints that are not a run of this library.
    layout : {"veridical", "pytorch-ensembles"}
        Whose names of tensors the checkpoints have.
    batch_size : int
    device : {"auto", "cpu", "cuda", "mps"}, optional
    precision : {"float32", "bfloat16", "auto"}

    Returns
    -------
    Predictions
        Logits (S, N, L) with labels and names.

    Examples
    --------
    >>> import numpy as np
    >>> from veridical import training
    >>> images, labels = np.zeros((20, 16, 16, 1), np.uint8), np.arange(20) % 2
    >>> np.savez("images.npz", train_images=images, train_labels=labels, test_images=images, test_labels=labels)
    >>> train, recipe = training.load_dataset("npz", "images.npz"), training.Recipe(epochs=1)
    >>> _ = training.train_ensemble(train, out="run", arch="resnet8", members=1, recipe=recipe)
    >>> training.predict_dataset("run", "images.npz", dataset="npz").n_samples
    20
    """
    check_outputs({"out": out}, [data, checkpoints])
    is_run = (as_path(checkpoints) / "run.json").is_file()
    ensemble = load_ensemble(checkpoints) if is_run else None
    if dataset is None and ensemble is not None:
        dataset = ensemble.settings.get("dataset")
    if dataset is None:
        raise ParameterError(f"the data set is not known; give dataset=, one of: {', '.join(DATASETS)}.")
    images = load_dataset(dataset, data, split, limit=limit)
    networks, names, normalisation = (
        _of_checkpoints(checkpoints, images, arch, layout) if ensemble is None else _of_run(ensemble, images)
    )
    torch_device = resolve_device(device)
    return collect_predictions(
        networks,
        ImageBatches(images, batch_size=batch_size, device=torch_device, normalisation=normalisation),
        out=out,
        source_names=names,
        class_names=images.class_names,
        device=torch_device,
        precision=precision,
    )


def _of_run(ensemble: TrainedEnsemble, images: ImageSet) -> _Networks:
    image_shape, n_classes = ensemble.settings["image_shape"], ensemble.settings["n_classes"]
    if list(images.image_shape) != image_shape:
        raise ShapeError(f"the images have shape {images.image_shape}, and the run was trained on {image_shape}.")
    if images.n_classes != n_classes:
        raise ShapeError(f"the data set has {images.n_classes} classes, and the run was trained on {n_classes}.")
    return ensemble.models(), ensemble.source_names, ensemble.normalisation


def _of_checkpoints(checkpoints: str | os.PathLike[str], images: ImageSet, arch: str | None, layout: str) -> _Networks:
    if arch is None:
        raise ParameterError(
            f"{checkpoints} is not a training run of veridical (it has no run.json); give arch= and, if "
            "needed, layout=."
        )
    check_image_shape(arch, images.image_shape)
    files = find_checkpoints(checkpoints)
    networks = load_checkpoints(files, arch, images.n_classes, in_channels=images.image_shape[2], layout=layout)
    normalisation = zoo_normalisation(arch, layout, files) or images.normalisation
    return networks, [file.name for file in files], normalisation
