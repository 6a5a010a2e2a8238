"""Weights and resumable training state as safetensors: plain numbers, nothing that can run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from veridical._atomic import write_atomically
from veridical.errors import CheckpointError, CorruptFileError

_NOTES = "veridical"
_MODEL, _MOMENTUM = "model.", "momentum."


def save_tensors(path: str | os.PathLike[str], tensors: Mapping[str, Tensor], notes: dict[str, Any]) -> None:
    """Write tensors and JSON notes to one file, or nothing."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_atomically(path, safetensors.torch.save(plain, metadata={_NOTES: json.dumps(notes)}))


def load_tensors(path: str | os.PathLike[str]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What :func:`save_tensors` wrote (notes are empty in files of others)."""
    try:
        with safetensors.safe_open(os.fspath(path), framework="pt") as stored:
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118  (no mapping)
            notes = (stored.metadata() or {}).get(_NOTES, "{}")
        parsed: dict[str, Any] = json.loads(notes)
    except (OSError, safetensors.SafetensorError, ValueError) as error:
        raise CorruptFileError(f"{path} cannot be read as safetensors ({error}); it may be truncated.") from error
    return tensors, parsed


def save_weights(path: str | os.PathLike[str], model: nn.Module, notes: dict[str, Any]) -> None:
    """Write a network's parameters and running statistics."""
    save_tensors(path, model.state_dict(), notes)


def load_weights(path: str | os.PathLike[str], model: nn.Module) -> dict[str, Any]:
    """Put the weights of a file into ``model`` and return the file's notes."""
    tensors, notes = load_tensors(path)
    put_weights(model, tensors, path)
    return notes


def put_weights(model: nn.Module, tensors: Mapping[str, Tensor], path: str | os.PathLike[str]) -> None:
    """Put tensors into ``model``, or name the first that is missing, unknown, or of another shape."""
    expected = model.state_dict()
    for name, tensor in expected.items():
        if name not in tensors:
            if name.endswith("num_batches_tracked"):  # counts that old PyTorch did not write and nothing here reads
                continue
            raise CheckpointError(f"{path} has no tensor {name}; is it of another architecture?")
        if tensors[name].shape != tensor.shape:
            raise CheckpointError(
                f"in {path} the tensor {name} has shape {tuple(tensors[name].shape)}, and the network needs "
                f"{tuple(tensor.shape)}; check the architecture and the number of classes."
            )
    unknown = next((name for name in tensors if name not in expected), None)
    if unknown is not None:
        raise CheckpointError(f"{path} holds a tensor {unknown} that the network lacks; is it of another architecture?")
    model.load_state_dict(dict(tensors), strict=False)


@dataclass
class TrainingState:
    """A network in training: what must be kept between two epochs."""

    model: nn.Module
    optimiser: torch.optim.SGD
    epoch: int
    history: list[dict[str, float]]

    def save(self, path: Path) -> None:
        """Write everything that the next epoch needs."""
        tensors = {f"{_MODEL}{name}": tensor for name, tensor in self.model.state_dict().items()}
        for name, parameter in self.model.named_parameters():
            momentum = self.optimiser.state[parameter].get("momentum_buffer")
            if momentum is not None:
                tensors[f"{_MOMENTUM}{name}"] = momentum
        save_tensors(path, tensors, {"epoch": self.epoch, "history": self.history})

    def load(self, path: Path) -> None:
        """Continue from what :meth:`save` wrote."""
        tensors, notes = load_tensors(path)
        weights = {name[len(_MODEL) :]: tensor for name, tensor in tensors.items() if name.startswith(_MODEL)}
        put_weights(self.model, weights, path)
        for name, parameter in self.model.named_parameters():
            if f"{_MOMENTUM}{name}" in tensors:
                momentum = torch.empty_like(parameter, requires_grad=False)
                self.optimiser.state[parameter]["momentum_buffer"] = momentum.copy_(tensors[f"{_MOMENTUM}{name}"])
        self.epoch, self.history = int(notes["epoch"]), list(notes["history"])
