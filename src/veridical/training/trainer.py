"""Training the members of a run, trajectory by trajectory and epoch by epoch."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from veridical._atomic import atomic_file
from veridical._progress import Progress
from veridical.errors import ParameterError
from veridical.training.architectures import build
from veridical.training.batches import ImageBatches
from veridical.training.checkpoints import TrainingState, save_tensors
from veridical.training.collect import collect_predictions
from veridical.training.data.images import ImageSet
from veridical.training.devices import autocast, preserve_random_state
from veridical.training.recipes import Recipe, Trajectory
from veridical.training.run_directory import RunDirectory

#: A line for each finished epoch and member, at level INFO.
_log = logging.getLogger("veridical.training")

#: Reading the training accuracy waits for the device, so it is read this seldom (seconds).
_REFRESH = 0.5

#: Called after each batch with the number of images so far and of the correctly classified ones among them.
OnBatch = Callable[[int, Tensor], None]


class Trainer:
    """Trains the missing members of one run."""

    def __init__(
        self,
        run: RunDirectory,
        train: ImageSet,
        test: ImageSet | None,
        recipe: Recipe,
        settings: dict[str, Any],
        device: torch.device,
        progress: Progress,
    ) -> None:
        self._run, self._recipe, self._settings, self._device = run, recipe, settings, device
        self._train = ImageBatches(train, batch_size=recipe.batch_size, device=device)
        self._test = None if test is None else ImageBatches(test, device=device, normalisation=train.normalisation)
        self._progress = progress
        self._done_batches = self._total_batches = 0
        self._accuracy, self._read_at = "", 0.0

    def train(self, trajectories: list[Trajectory]) -> None:
        """Train the trajectories that have unfinished members."""
        unfinished = [t for t in trajectories if not all(map(self._run.is_finished, t.members.values()))]
        self._total_batches = len(unfinished) * self._recipe.epochs * self._train.steps_per_epoch
        for trajectory in unfinished:
            self._train_trajectory(trajectory)

    def _train_trajectory(self, trajectory: Trajectory) -> None:
        """Train from the first epoch, or from the one after the last that was finished, to the last."""
        state, stored = self._fresh_state(trajectory.seed), self._run.state(trajectory.index)
        if stored.is_file():
            state.load(stored)
            # Not counted: batches of an earlier process say nothing about the time left.
            self._total_batches -= state.epoch * self._train.steps_per_epoch
        while state.epoch < self._recipe.epochs:
            self._train_one_epoch(state, trajectory)
            if state.epoch in trajectory.members:
                self._save_member(trajectory.members[state.epoch], state, trajectory.seed)
            if state.epoch < self._recipe.epochs:
                state.save(stored)
        stored.unlink(missing_ok=True)

    def _fresh_state(self, seed: int) -> TrainingState:
        n_classes, in_channels = self._settings["n_classes"], self._settings["image_shape"][2]
        with preserve_random_state(torch.device("cpu"), seed):
            model: nn.Module = build(self._settings["arch"], n_classes, in_channels=in_channels)
        model = model.to(self._device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        optimiser = torch.optim.SGD(
            model.parameters(),
            lr=self._recipe.learning_rate,
            momentum=self._recipe.momentum,
            weight_decay=self._recipe.weight_decay,
            nesterov=self._recipe.nesterov and self._recipe.momentum > 0,
        )
        return TrainingState(model, optimiser, 0, [])

    def _train_one_epoch(self, state: TrainingState, trajectory: Trajectory) -> None:
        what = f"run {trajectory.index + 1}, epoch {state.epoch + 1}/{self._recipe.epochs}"
        started, self._read_at = time.perf_counter(), 0.0
        steps = self._train.steps_per_epoch
        first = state.epoch * steps
        loss, accuracy = train_epoch(
            state.model,
            state.optimiser,
            self._train.training(trajectory.seed, state.epoch, augment=self._recipe.augment),
            lambda step: self._recipe.learning_rate_at(first + step, steps),
            precision=self._settings["precision"],
            seed=trajectory.seed + state.epoch,
            on_batch=partial(self._report_batch, what),
        )
        seconds = time.perf_counter() - started
        if not np.isfinite(loss):
            raise ParameterError(
                f"training diverged in epoch {state.epoch + 1} (its loss is {loss}); try a smaller learning "
                f"rate than {self._recipe.learning_rate:g}."
            )
        state.epoch += 1
        state.history.append({"loss": loss, "accuracy": accuracy, "seconds": round(seconds, 3)})
        _log.info("%s: loss %.4f, training accuracy %.2f%%, %.1f s", what, loss, 100 * accuracy, seconds)

    def _report_batch(self, what: str, seen: int, n_correct: Tensor) -> None:
        self._done_batches += 1
        now = time.monotonic()
        if now - self._read_at > _REFRESH:
            self._accuracy, self._read_at = f"training accuracy {int(n_correct) / seen:.1%}", now
        self._progress(self._done_batches, self._total_batches, f"{what}, {self._accuracy}")

    def _save_member(self, member: int, state: TrainingState, seed: int) -> None:
        described = {key: self._settings[key] for key in ("arch", "n_classes", "image_shape", "normalisation")}
        weights = self._run.weights(member)
        save_tensors(weights, state.model.state_dict(), {**described, "seed": seed, "epoch": state.epoch})
        accuracy = None
        if self._test is not None:
            logits = collect_predictions(state.model, self._test, device=self._device)
            with atomic_file(self._run.logits(member)) as file:
                np.save(file, logits.values[0], allow_pickle=False)
            accuracy = float(np.mean(logits.values[0].argmax(axis=1) == logits.labels))
        record = {"seed": seed, "epoch": state.epoch, "test_accuracy": accuracy, "history": state.history}
        self._run.finish_member(member, record)
        _log.info("%s written%s", weights.stem, "" if accuracy is None else f", test accuracy {accuracy:.2%}")


def train_epoch(
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    batches: Iterable[tuple[Tensor, Tensor]],
    learning_rate_at: Callable[[int], float],
    *,
    precision: str,
    seed: int,
    on_batch: OnBatch = lambda seen, n_correct: None,
) -> tuple[float, float]:
    """Train on all batches once: mean loss and accuracy, of images as augmented and weights as they were then.

    ``learning_rate_at(step)`` is the rate of the epoch's step, counted from 0.  ``seed`` seeds what is random in the
    network, such as dropout; PyTorch's global generators are restored at the end.
    """
    model.train()
    device = next(model.parameters()).device
    loss_sum, n_correct = torch.zeros((), device=device), torch.zeros((), dtype=torch.int64, device=device)
    seen = 0
    with preserve_random_state(device, seed):
        for step, (images, labels) in enumerate(batches):
            for group in optimiser.param_groups:
                group["lr"] = learning_rate_at(step)
            with autocast(device, precision):
                logits = model(images)
            loss = functional.cross_entropy(logits.float(), labels)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            seen += len(labels)
            with torch.no_grad():
                loss_sum += loss * len(labels)
                n_correct += (logits.argmax(dim=1) == labels).sum()
            on_batch(seen, n_correct)
    return float(loss_sum) / seen, int(n_correct) / seen
