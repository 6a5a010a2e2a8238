"""One epoch of training."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from veridical.training.devices import autocast, preserve_random_state

#: Called after each batch with the number of images so far and of the correctly classified ones among them (a tensor:
#: reading it waits for the device, so a caller does that rarely).
OnBatch = Callable[[int, Tensor], None]


@dataclass(frozen=True)
class EpochResult:
    """Means over the training images of an epoch, augmented and as the weights were when each batch was used."""

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
            if on_batch is not None:
                on_batch(seen, n_correct)
    return EpochResult(float(loss_sum) / seen, int(n_correct) / seen)
