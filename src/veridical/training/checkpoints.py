"""Weights and the state of an unfinished training run, as safetensors: plain numbers, nothing that can run."""

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
from veridical._json import to_json
from veridical.errors import CheckpointError, CorruptFileError
from veridical.predictions.files.file_checks import check_is_file

_METADATA = "veridical"
_MODEL, _MOMENTUM = "model.", "momentum."


def save_tensors(path: str | os.PathLike[str], tensors: Mapping[str, Tensor], metadata: dict[str, Any]) -> None:
    """Write tensors and JSON metadata to one file, or nothing."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_atomically(path, safetensors.torch.save(plain, metadata={_METADATA: to_json(metadata)}))


def load_tensors(path: str | os.PathLike[str]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and metadata that :func:`save_tensors` wrote; the metadata of other files are empty."""
    check_is_file(Path(path), "a .safetensors file")
    try:
        with safetensors.safe_open(os.fspath(path), framework="pt") as stored:
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118  (not a mapping)
            metadata = json.loads((stored.metadata() or {}).get(_METADATA, "{}"))
        if not isinstance(metadata, dict):
            raise ValueError("its metadata are not a JSON object")
    except (OSError, safetensors.SafetensorError, ValueError, RecursionError) as error:
        raise CorruptFileError(f"{path} cannot be read as safetensors ({error}); it may be truncated.") from error
    return tensors, metadata


def put_weights(model: nn.Module, tensors: Mapping[str, Tensor], path: str | os.PathLike[str]) -> None:
    """Put tensors into ``model``, or name the first that is missing, unknown, or of another shape."""
    expected = model.state_dict()
    for name, tensor in expected.items():
        if name not in tensors:
            if name.endswith("num_batches_tracked"):  # counts that old PyTorch did not write and nothing here reads
                continue
            raise CheckpointError(f"{path} has no tensor {name}; is it of another architecture?")
        _check_shape(name, tensors[name], tensor, path)
    unknown = next((name for name in tensors if name not in expected), None)
    if unknown is not None:
        raise CheckpointError(f"{path} has a tensor {unknown} that the network lacks; is it of another architecture?")
    model.load_state_dict(dict(tensors), strict=False)


def _check_shape(name: str, stored: Tensor, expected: Tensor, path: str | os.PathLike[str]) -> None:
    if stored.shape != expected.shape:
        raise CheckpointError(
            f"in {path} the tensor {name} has shape {tuple(stored.shape)}, and the network needs "
            f"{tuple(expected.shape)}; check the architecture and the number of classes."
        )


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
        tensors, metadata = load_tensors(path)
        epoch, history = metadata.get("epoch"), metadata.get("history")
        if type(epoch) is not int or not isinstance(history, list) or epoch != len(history):
            raise CorruptFileError(f"{path} does not say how many epochs are finished; remove it to start them again.")
        weights = {name[len(_MODEL) :]: tensor for name, tensor in tensors.items() if name.startswith(_MODEL)}
        put_weights(self.model, weights, path)
        for name, parameter in self.model.named_parameters():
            stored = tensors.get(f"{_MOMENTUM}{name}")
            if stored is not None:
                _check_shape(f"{_MOMENTUM}{name}", stored, parameter, path)
                momentum = torch.empty_like(parameter, requires_grad=False)
                self.optimiser.state[parameter]["momentum_buffer"] = momentum.copy_(stored)
        self.epoch, self.history = epoch, history
