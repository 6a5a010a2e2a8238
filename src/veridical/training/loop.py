"""One epoch of training: as little as possible around forward, backward and step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from veridical.training.devices import autocast, random_numbers_aside

#: Called after each batch with the number of images so far and of those classified right (on the device: reading it
#: waits for the device, so a caller does that rarely).
OnBatch = Callable[[int, Tensor], None]


@dataclass(frozen=True)
class EpochResult:
    """Means over an epoch's training images, as the network saw them."""

    loss: float
    accuracy: float


def train_epoch(
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    batches: Iterable[tuple[Tensor, Tensor]],
    learning_rate_at: Callable[[int], float],
    *,
    precision: str,
    seed: int,
    on_batch: OnBatch | None = None,
) -> EpochResult:
    """Train on all batches once.

    ``learning_rate_at(step)`` gives the rate of the epoch's step, counted from 0.  ``seed`` seeds dropout and the
    like for this epoch; PyTorch's global generator is put back afterwards.
    """
    model.train()
    device = next(model.parameters()).device
    loss_sum, right = torch.zeros((), device=device), torch.zeros((), dtype=torch.int64, device=device)
    seen = 0
    with random_numbers_aside(device, seed):
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
                right += (logits.argmax(dim=1) == labels).sum()
            if on_batch is not None:
                on_batch(seen, right)
    return EpochResult(float(loss_sum) / seen, int(right) / seen)
