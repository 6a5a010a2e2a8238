"""One pass of a torch module over batches, after which the module is as before."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from veridical.backends.foreign import to_tensor
from veridical.errors import ParameterError
from veridical.predictions.validation import as_numbers
from veridical.training.devices import autocast, preserve_random_state, resolve_device, resolve_precision


class ModulePass:
    """Scores of a module in evaluation mode; with ``dropout_seed``, dropout is on and the seed decides its masks."""

    def __init__(self, model: nn.Module, device: Any, precision: str, dropout_seed: int | None) -> None:
        first = next(model.parameters(), None)
        own_device = torch.device("cpu") if first is None else first.device
        self._device = own_device if device is None else resolve_device(device)
        self._model = model
        self._dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.get_default_dtype())
        self._precision = resolve_precision(precision, self._device)
        self._dropouts = [m for m in model.modules() if isinstance(m, _DropoutNd) and m.p > 0]
        if dropout_seed is not None and not self._dropouts:
            raise ParameterError("mc_samples needs a module with dropout, and this one has none; remove mc_samples.")
        self._dropout_seed = dropout_seed
        self._batch = 0

    def __call__(self, inputs: Any) -> npt.NDArray[Any]:
        values = inputs if isinstance(inputs, Tensor) else self._as_tensor(inputs)
        modes = [(module, module.training) for module in self._model.modules()]
        self._model.eval()
        try:
            self._model.to(self._device)
            with torch.inference_mode(), autocast(self._device, self._precision):
                scores = self._run(values.to(self._device, non_blocking=True))
        finally:
            for module, was_training in modes:
                module.training = was_training
        return scores.float().cpu().numpy()

    def _as_tensor(self, inputs: Any) -> Tensor:
        """Numbers as a tensor, in the module's precision, because NumPy's is mostly float64."""
        values: Tensor = to_tensor(as_numbers(inputs, "a batch of inputs"))
        return values.to(self._dtype) if values.is_floating_point() else values

    def _run(self, values: Tensor) -> Tensor:
        seeded: AbstractContextManager[None] = nullcontext()
        if self._dropout_seed is not None:
            for module in self._dropouts:
                module.training = True
            # A seed per batch, so that the masks do not depend on what else draws random numbers.
            seed = np.random.SeedSequence((self._dropout_seed, self._batch)).generate_state(1, np.uint64)[0]
            self._batch += 1
            seeded = preserve_random_state(self._device, int(seed))
        with seeded:
            scores: Tensor = self._model(values)
        return scores
