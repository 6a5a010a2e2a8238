"""A calibration metric for validation loops, in the manner of torchmetrics."""

from __future__ import annotations

from typing import Any

import torch

from veridical.errors import ParameterError, shown
from veridical.metrics.registry import SUMMARY_METRICS
from veridical.metrics.state import DEFAULT_CELLS, CalibrationState
from veridical.metrics.state_summary import EQUAL_WIDTH
from veridical.predictions.validation import check_choice, check_integer

METRICS = (*SUMMARY_METRICS, EQUAL_WIDTH)


class CalibrationError:
    """Calibration error over any number of batches, epochs and ranks.

    Batches are added to a :class:`veridical.metrics.CalibrationState` of fixed size (0.5 MB), not kept.  All sums are
    integers, so the result does not depend on the order of batches or ranks, to the last bit.

    Parameters
    ----------
    metric : {"ece", "ece_width", "ece_kde", "ks_error", "nll", "brier", "accuracy"}
        What :meth:`compute` returns.
    kind : {"probs", "logits"}
        What ``update`` is given.
    n_bins : int
    n_cells : int
        Cells of the state.
    sync_on_compute : bool
        Whether :meth:`compute` merges the states of all ranks where ``torch.distributed`` is initialised.

    Examples
    --------
    >>> import torch
    >>> import veridical as vd
    >>> error = vd.torch.CalibrationError()
    >>> error.update(torch.tensor([[0.75, 0.25]] * 4), torch.tensor([0, 0, 0, 1]))
    >>> error.compute()
    tensor(0.)
    """

    def __init__(
        self,
        metric: str = "ece",
        *,
        kind: str = "probs",
        n_bins: int = 15,
        n_cells: int = DEFAULT_CELLS,
        sync_on_compute: bool = True,
    ) -> None:
        self.metric = check_choice(metric, METRICS, "metric")
        self.kind = check_choice(kind, ("probs", "logits"), "kind")
        self.state = CalibrationState(n_cells)
        self.n_bins = check_integer(n_bins, "n_bins", 1, n_cells)
        self.sync_on_compute = sync_on_compute
        self._device: Any = torch.device("cpu")

    def update(self, preds: torch.Tensor, target: torch.Tensor) -> None:
        """Add a batch: (N, L) scores with N labels, or N confidences with N booleans (was the prediction right?)."""
        for name, values in (("preds", preds), ("target", target)):
            if not isinstance(values, torch.Tensor):
                raise ParameterError(f"{name} is {shown(values)}; give a tensor.")
        self.state.update(*self._batch(preds, target))
        self._device = preds.device

    def _batch(self, preds: torch.Tensor, target: torch.Tensor) -> tuple[Any, Any]:
        preds = preds.detach()
        if self.kind == "logits":
            if preds.ndim != 2:
                raise ParameterError(f"logits of shape {tuple(preds.shape)} cannot be added; give shape (N, L).")
            preds = torch.softmax(preds.double() if preds.device.type == "cpu" else preds.float(), dim=1)
        return target.detach(), preds

    def compute(self) -> torch.Tensor:
        """The metric over all batches, of all ranks, since the last :meth:`reset`."""
        return self._value(self._all_ranks() if self.sync_on_compute else self.state)

    def _value(self, state: CalibrationState) -> torch.Tensor:
        value = state.compute(n_bins=self.n_bins)[self.metric]
        return torch.tensor(value, dtype=torch.get_default_dtype(), device=self._device)

    def _all_ranks(self) -> CalibrationState:
        distributed = torch.distributed
        if not (distributed.is_available() and distributed.is_initialized()):
            return self.state
        states: list[Any] = [None] * distributed.get_world_size()
        distributed.all_gather_object(states, self.state.to_dict())
        first, *others = (CalibrationState.from_dict(state) for state in states)
        return first.merge(*others)

    def reset(self) -> None:
        """Forget all batches."""
        self.state = CalibrationState(self.state.n_cells)

    def merge_state(self, other: CalibrationError | CalibrationState) -> None:
        """Add the batches of another metric."""
        state = other.state if isinstance(other, CalibrationError) else other
        if not isinstance(state, CalibrationState):
            raise ParameterError(f"cannot merge {shown(other)}; give a CalibrationError or a CalibrationState.")
        self.state = self.state.merge(state)

    def forward(self, preds: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Add a batch, and return the metric of this batch alone."""
        self.update(preds, target)
        return self._value(CalibrationState(self.state.n_cells).update(*self._batch(preds, target)))

    __call__ = forward

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint."""
        return self.state.to_dict()

    def load_state_dict(self, content: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        self.state = CalibrationState.from_dict(content)

    def __repr__(self) -> str:
        return f"CalibrationError(metric={self.metric!r}, kind={self.kind!r}): {self.state.n_samples:,} samples"
