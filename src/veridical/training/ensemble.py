"""Training a whole ensemble into a directory, member by member, so that a killed run can go on."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from veridical._atomic import atomic_file
from veridical.errors import DatasetError, ParameterError, ShapeError
from veridical.predictions import Predictions
from veridical.predictions.validation import check_choice, check_integer
from veridical.training.architectures import build, check_image_shape
from veridical.training.batches import ImageBatches
from veridical.training.checkpoints import TrainingState, load_weights, save_weights
from veridical.training.data.images import ImageSet, Normalisation
from veridical.training.devices import random_numbers_aside, resolve_device, resolve_precision
from veridical.training.loop import train_epoch
from veridical.training.progress import RunProgress
from veridical.training.recipes import RECIPES, Recipe, Trajectory, plan
from veridical.training.rundir import RunDirectory, versions
from veridical.training.stream import NpyStream
from veridical.training.torch_pass import ModulePass


@dataclass(frozen=True)
class TrainedEnsemble:
    """An ensemble in a directory.

    Attributes
    ----------
    directory : RunDirectory
    members : list of int
        Indices of the members that are whole.
    """

    directory: RunDirectory
    members: list[int]

    @property
    def settings(self) -> dict[str, Any]:
        """What the run was asked for."""
        return self.directory.settings()

    @property
    def source_names(self) -> list[str]:
        """What the members are called."""
        return [self.directory.weights(member).stem for member in self.members]

    @property
    def normalisation(self) -> Normalisation:
        """What the members want their images normalised with."""
        stored = self.settings["normalisation"]
        return Normalisation(tuple(stored["mean"]), tuple(stored["std"]))

    def accuracies(self) -> list[float | None]:
        """Each member's accuracy on the test images."""
        return [self.directory.record(member).get("test_accuracy") for member in self.members]

    def models(self) -> Iterator[nn.Module]:
        """The members' networks, one after another."""
        settings = self.settings
        for member in self.members:
            with random_numbers_aside(torch.device("cpu")):
                model = build(settings["arch"], settings["n_classes"], in_channels=settings["image_shape"][2])
            load_weights(self.directory.weights(member), model)
            yield model.eval()

    def predictions(self) -> Predictions:
        """The members' logits on the test images, mapped from the run's files."""
        run = self.directory
        missing = [m for m in self.members if not run.logits(m).is_file()]
        if missing or not self.members:
            raise DatasetError(f"{run.path} holds no predictions of its members; it was trained without test images.")
        return Predictions(
            [run.load_array(run.logits(member)) for member in self.members],
            run.test_labels(),
            kind="logits",
            source_names=self.source_names,
            class_names=self.settings["class_names"],
        )


def load_ensemble(directory: str | os.PathLike[str]) -> TrainedEnsemble:
    """An ensemble that :func:`train_ensemble` wrote (as many members as are whole)."""
    run = RunDirectory(Path(directory))
    run.settings()
    members = run.finished_members()
    if not members:
        raise DatasetError(f"{run.path} holds no finished member yet; run the training command again to go on.")
    return TrainedEnsemble(run, members)


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
    progress: bool = False,
    dataset: str | None = None,
) -> TrainedEnsemble:
    """Train a deep or snapshot ensemble; called again with the same settings, go on where it was broken off.

    Parameters
    ----------
    train, test : ImageSet
        Training images, and images to write each member's predictions for.
    out : path
        The run's directory.  Each member is written there as soon as it is trained: weights (safetensors),
        predictions, and a JSON record; the state of the member under way is written after each epoch.  All files
        appear whole or not at all.
    arch : str
        A name in ``training.ARCHITECTURES``.
    method : {"deep", "snapshot"}
        Independent runs from different seeds (Lakshminarayanan et al., 2017), or states of one run (Huang et al.,
        2017).
    members : int, optional
        Default: 5 for a deep ensemble; for snapshots one per epoch, or per cycle of a cyclic recipe.  A finished deep
        ensemble can be given more.
    recipe : str or Recipe
        A name in ``training.RECIPES``, or one with changed fields.
    random_state : int
        Seed from which each member's seed is derived.
    device : {"auto", "cpu", "cuda", "mps"}, optional
    precision : {"auto", "float32", "bfloat16"}
        What convolutions are trained in; predictions are always made in float32.
    progress : bool
        Show a progress bar.
    dataset : str, optional
        What the data set is called, for the run's metadata.

    Returns
    -------
    TrainedEnsemble

    Notes
    -----
    On the CPU a run that was killed and continued gives the same bytes as an unbroken one, on the same machine with
    the same number of threads.

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
    check_integer(random_state, "random_state", 0)
    if members is not None:
        check_integer(members, "members", 1)
    elif method == "deep":
        members = 5
    if isinstance(recipe, str):
        recipe = RECIPES[check_choice(recipe, RECIPES, "recipe")]
    _check_images(train, test, arch)
    used, trajectories = plan(method, recipe, members, _seeds(random_state, members or 1))
    used = replace(used, batch_size=min(used.batch_size, len(train)))
    where = resolve_device(device)
    settings = {
        "arch": arch,
        "method": method,
        "members": sum(len(trajectory.members) for trajectory in trajectories),
        "recipe": used.as_json(),
        "random_state": random_state,
        "seeds": [trajectory.seed for trajectory in trajectories],
        "device": where.type,
        "precision": resolve_precision(precision, where),
        **_describe_data(train, test, dataset),
        "versions": versions(),
    }
    run = RunDirectory.start(out, settings)
    with run.alone():
        if test is not None:
            run.save_test_labels(test.labels)
        _Trainer(run, train, test, used, settings, where, progress).train(trajectories)
    return TrainedEnsemble(run, sorted(m for trajectory in trajectories for m in trajectory.members.values()))


class _Trainer:
    """The moving parts of one call."""

    def __init__(
        self,
        run: RunDirectory,
        train: ImageSet,
        test: ImageSet | None,
        recipe: Recipe,
        settings: dict[str, Any],
        device: torch.device,
        progress: bool,
    ) -> None:
        self._run, self._recipe, self._settings, self._device = run, recipe, settings, device
        self._train = ImageBatches(train, batch_size=recipe.batch_size, device=device)
        self._test = None if test is None else ImageBatches(test, device=device, normalisation=train.normalisation)
        self._shown = progress

    def train(self, trajectories: list[Trajectory]) -> None:
        """Train what is not there yet."""
        waiting = [t for t in trajectories if not all(self._run.is_finished(m) for m in t.members.values())]
        batches = len(waiting) * self._recipe.epochs * self._train.steps_per_epoch
        with RunProgress(self._shown, batches) as progress:
            for trajectory in waiting:
                self._follow(trajectory, progress)

    def _follow(self, trajectory: Trajectory, progress: RunProgress) -> None:
        """One training run, from its start or from where it was broken off, to its end."""
        state, stored = self._fresh_state(trajectory.seed), self._run.state(trajectory.index)
        if stored.is_file():
            state.load(stored)
            progress.skip(state.epoch * self._train.steps_per_epoch)
        while state.epoch < self._recipe.epochs:
            name = f"run {trajectory.index + 1}, epoch {state.epoch + 1}/{self._recipe.epochs}"
            progress.epoch(name)
            self._train_one_epoch(state, trajectory.seed, name, progress)
            if state.epoch in trajectory.members:
                self._save_member(trajectory.members[state.epoch], state, trajectory.seed, progress)
            if state.epoch < self._recipe.epochs:
                state.save(stored)
        stored.unlink(missing_ok=True)

    def _fresh_state(self, seed: int) -> TrainingState:
        with random_numbers_aside(torch.device("cpu"), seed):
            model: nn.Module = build(
                self._settings["arch"], self._settings["n_classes"], in_channels=self._settings["image_shape"][2]
            )
        model = model.to(self._device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        optimiser = torch.optim.SGD(
            model.parameters(),
            lr=self._recipe.learning_rate,
            momentum=self._recipe.momentum,
            weight_decay=self._recipe.weight_decay,
            nesterov=self._recipe.nesterov and self._recipe.momentum > 0,
        )
        return TrainingState(model, optimiser, 0, [])

    def _train_one_epoch(self, state: TrainingState, seed: int, name: str, progress: RunProgress) -> None:
        started = time.perf_counter()
        steps = self._train.steps_per_epoch
        first = state.epoch * steps
        result = train_epoch(
            state.model,
            state.optimiser,
            self._train.training(seed, state.epoch, augment=self._recipe.augment),
            lambda step: self._recipe.learning_rate_at(first + step, steps),
            precision=self._settings["precision"],
            seed=seed + state.epoch,
            on_batch=progress.batch,
        )
        seconds = time.perf_counter() - started
        if not np.isfinite(result.loss):
            raise ParameterError(
                f"training diverged in epoch {state.epoch + 1} (its loss is {result.loss}); try a smaller learning "
                f"rate than {self._recipe.learning_rate:g}."
            )
        state.epoch += 1
        state.history.append({"loss": result.loss, "accuracy": result.accuracy, "seconds": round(seconds, 3)})
        progress.finished_epoch(name, result, seconds)

    def _save_member(self, member: int, state: TrainingState, seed: int, progress: RunProgress) -> None:
        notes = {key: self._settings[key] for key in ("arch", "n_classes", "image_shape", "normalisation")}
        weights = self._run.weights(member)
        save_weights(weights, state.model, {**notes, "seed": seed, "epoch": state.epoch})
        accuracy = None if self._test is None else self._save_logits(member, state.model)
        record = {"seed": seed, "epoch": state.epoch, "test_accuracy": accuracy, "history": state.history}
        self._run.finish_member(member, record)
        progress.finished_member(weights.stem, accuracy)

    def _save_logits(self, member: int, model: nn.Module) -> float:
        """Write the logits on the test images; their accuracy."""
        assert self._test is not None
        predict = ModulePass(model, self._device, "float32", None)
        right = count = 0
        with atomic_file(self._run.logits(member)) as file:
            stream = NpyStream(file, np.float32)
            for images, labels in self._test:
                logits = predict(images)
                stream.append(logits)
                right += int((logits.argmax(axis=1) == labels.cpu().numpy()).sum())
                count += len(logits)
            stream.finish((count, self._settings["n_classes"]))
        return right / count


def _check_images(train: ImageSet, test: ImageSet | None, arch: str) -> None:
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
    """A seed per run; the first ones stay the same when more are asked for."""
    return [int(seed) for seed in np.random.SeedSequence(random_state).generate_state(count)]
