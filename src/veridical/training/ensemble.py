"""Training an ensemble into a directory, member by member, so that a killed run can be continued."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from torch import nn

from veridical._atomic import as_path
from veridical._progress import Progress, check_progress
from veridical.errors import DatasetError, ShapeError
from veridical.predictions import Predictions
from veridical.predictions.files import load
from veridical.predictions.validation import check_choice, check_integer, check_seed, check_type
from veridical.training.architectures import check_image_shape
from veridical.training.data.images import ImageSet, Normalisation
from veridical.training.devices import resolve_device, resolve_precision
from veridical.training.recipes import RECIPES, Recipe, plan
from veridical.training.run_directory import RunDirectory, describe_machine
from veridical.training.trainer import Trainer
from veridical.training.zoo import load_checkpoints


@dataclass(frozen=True)
class TrainedEnsemble:
    """An ensemble in a directory.

    Attributes
    ----------
    directory : RunDirectory
    members : list of int
        Indices of the finished members.
    settings : dict
        What the run was asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from veridical import training
    >>> images = training.ImageSet.of(np.zeros((20, 16, 16, 1), np.uint8), np.arange(20) % 2)
    >>> recipe = training.Recipe(epochs=1)
    >>> training.train_ensemble(images, images, out="run", arch="resnet8", members=1, recipe=recipe).source_names
    ['member-000']
    """

    directory: RunDirectory
    members: list[int]
    settings: dict[str, Any]

    @property
    def source_names(self) -> list[str]:
        """The members' names."""
        return [self.directory.weights(member).stem for member in self.members]

    @property
    def normalisation(self) -> Normalisation:
        """The normalisation of the images that the members were trained on."""
        stored = self.settings["normalisation"]
        return Normalisation(tuple(stored["mean"]), tuple(stored["std"]))

    def accuracies(self) -> list[float | None]:
        """Each member's accuracy on the test images."""
        return [self.directory.record(member).get("test_accuracy") for member in self.members]

    def models(self) -> Iterator[nn.Module]:
        """The members' networks, one after another."""
        weights = [self.directory.weights(member) for member in self.members]
        arch, n_classes, (_, _, in_channels) = (self.settings[key] for key in ("arch", "n_classes", "image_shape"))
        yield from load_checkpoints(weights, arch, n_classes, in_channels=in_channels)

    def predictions(self) -> Predictions:
        """The members' logits on the test images, mapped from the run's files."""
        if not all(self.directory.logits(member).is_file() for member in self.members):
            raise DatasetError(
                f"{self.directory.path} has no predictions of its members; it was trained without test images."
            )
        return load(self.directory.path).select(sources=self.source_names)


def load_ensemble(directory: str | os.PathLike[str]) -> TrainedEnsemble:
    """The finished members of an ensemble that :func:`train_ensemble` wrote.

    Parameters
    ----------
    directory : path

    Returns
    -------
    TrainedEnsemble

    Examples
    --------
    >>> import numpy as np
    >>> from veridical import training
    >>> images = training.ImageSet.of(np.zeros((20, 16, 16, 1), np.uint8), np.arange(20) % 2)
    >>> recipe = training.Recipe(epochs=1)
    >>> _ = training.train_ensemble(images, images, out="run", arch="resnet8", members=1, recipe=recipe)
    >>> training.load_ensemble("run").predictions().n_samples
    20
    """
    run = RunDirectory(as_path(directory))
    settings, members = run.settings(), run.finished_members()
    if not members:
        raise DatasetError(f"{run.path} has no finished member yet; run the training command again to continue.")
    return TrainedEnsemble(run, members, settings)


def train_ensemble(
    train: ImageSet,
    test: ImageSet | None = None,
    *,
    out: str | os.PathLike[str],
    arch: str = "resnet18",
    method: str = "deep",
    members: int | None = None,
    recipe: str | Recipe = "paper",
    random_state: int = 0,
    device: str | None = None,
    precision: str = "auto",
    progress: Progress | None = None,
    dataset: str | None = None,
) -> TrainedEnsemble:
    """Train a deep or snapshot ensemble; called again with the same settings, continue where it stopped.

    Parameters
    ----------
    train, test : ImageSet
        Training images, and images to predict with each finished member.
    out : path
        The run's directory.  Each member is written there as soon as it is trained: weights (safetensors),
        predictions, and a JSON record; the state of an unfinished member is written after each epoch.  A killed process
        leaves no half-written file.
    arch : str
        A name in ``training.ARCHITECTURES``.
    method : {"deep", "snapshot"}
        Independent runs from different seeds (Lakshminarayanan et al., 2017), or states of one run (Huang et al.,
        2017).
    members : int, optional
        Default: 5 for a deep ensemble; for snapshots one per epoch, or per cycle of a cyclic recipe.  Members can be
        added to a finished deep ensemble.
    recipe : str or Recipe
        A name in ``training.RECIPES``, or one with changed fields.
    random_state : int
        Seed from which each member's seed is derived.
    device : {"auto", "cpu", "cuda", "mps"}, optional
    precision : {"auto", "float32", "bfloat16"}
        Precision of the convolutions in training; predictions are always made in float32.
    progress : callable, optional
        Called as ``progress(done, total, what)`` after each batch.
    dataset : str, optional
        The data set's name, for the run's metadata.

    Returns
    -------
    TrainedEnsemble

    Notes
    -----
    On the CPU a run that was killed and continued gives the same bytes as an uninterrupted one, on the same machine
    with the same number of threads.  Finished epochs and members are logged to ``veridical.training``.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from veridical import training
    >>> rng = np.random.default_rng(0)
    >>> noise = training.ImageSet.of(rng.integers(0, 256, (32, 16, 16, 3), dtype=np.uint8), rng.integers(0, 3, 32))
    >>> recipe = training.Recipe(schedule="one-cycle", epochs=1, batch_size=16)
    >>> ensemble = training.train_ensemble(
    ...     noise, noise, out=tempfile.mkdtemp(), arch="resnet8", members=2, recipe=recipe
    ... )
    >>> ensemble.predictions()
    Predictions(2 sources, 32 samples, 3 classes, kind='logits', float32, labelled)
    """
    check_seed(random_state)
    if members is not None:
        check_integer(members, "members", 1)
    elif method == "deep":
        members = 5
    if isinstance(recipe, str):
        recipe = RECIPES[check_choice(recipe, RECIPES, "recipe")]
    report = check_progress(progress)
    check_type(recipe, Recipe, "recipe", "the name of one, or a veridical.training.Recipe")
    if dataset is not None:
        check_type(dataset, str, "dataset", "the name of a data set")
    _check_images(train, test, arch)
    recipe, trajectories = plan(method, recipe, members, _seeds(random_state, members or 1))
    recipe = replace(recipe, batch_size=min(recipe.batch_size, len(train)))
    torch_device = resolve_device(device)
    settings = {
        "arch": arch,
        "method": method,
        "members": sum(len(trajectory.members) for trajectory in trajectories),
        "recipe": asdict(recipe),
        "random_state": random_state,
        "seeds": [trajectory.seed for trajectory in trajectories],
        "device": torch_device.type,
        "precision": resolve_precision(precision, torch_device),
        **_describe_data(train, test, dataset),
        "versions": describe_machine(),
    }
    run = RunDirectory.start(out, settings)
    with run.lock():
        if test is not None:
            run.save_test_labels(test.labels)
        Trainer(run, train, test, recipe, settings, torch_device, report).train(trajectories)
    indices = sorted(member for trajectory in trajectories for member in trajectory.members.values())
    return TrainedEnsemble(run, indices, run.settings())


def _check_images(train: ImageSet, test: ImageSet | None, arch: str) -> None:
    for name, images in (("train", train), ("test", train if test is None else test)):
        check_type(images, ImageSet, name, "a veridical.training.ImageSet")
    check_image_shape(arch, train.image_shape)
    if len(train) < 2:
        raise DatasetError(f"there is {len(train)} training image; at least two are needed.")
    if test is not None and test.image_shape != train.image_shape:
        raise ShapeError(f"test images have shape {test.image_shape} and training images {train.image_shape}.")
    if test is not None and test.n_classes != train.n_classes:
        raise ShapeError(
            f"there are {test.n_classes} classes in the test set and {train.n_classes} in the training set."
        )


def _describe_data(train: ImageSet, test: ImageSet | None, dataset: str | None) -> dict[str, Any]:
    return {
        "dataset": dataset,
        "n_classes": train.n_classes,
        "class_names": None if train.class_names is None else list(train.class_names),
        "image_shape": list(train.image_shape),
        "normalisation": {"mean": list(train.normalisation.mean), "std": list(train.normalisation.std)},
        "train_images": len(train),
        "train_fingerprint": train.fingerprint(),
        "test_images": 0 if test is None else len(test),
        "test_fingerprint": None if test is None else test.fingerprint(),
        "published_checksums": train.published | ({} if test is None else test.published),
    }


def _seeds(random_state: int, count: int) -> list[int]:
    """A seed per run; the first ones do not depend on ``count``."""
    return [int(seed) for seed in np.random.SeedSequence(random_state).generate_state(count)]
