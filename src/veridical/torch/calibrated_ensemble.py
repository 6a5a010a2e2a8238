"""Networks, their combination and its calibration as one module."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import torch
from torch import nn

from veridical._lazy import require
from veridical.backends.foreign import to_tensor
from veridical.calibrate import Calibrator
from veridical.combine.sources import load
from veridical.errors import ParameterError, ShapeError, failures_of_model, shown
from veridical.predictions import Predictions
from veridical.predictions.validation import KINDS, as_numbers, check_choice, check_type, entries_of


class CalibratedEnsemble(nn.Module):
    """Run networks on the same input, combine their outputs and calibrate the result.

    ``torch.compile`` and ``torch.export`` take the module: everything after the networks is made of operations of
    PyTorch, truth discovery in a fixed number of updates.

    Parameters
    ----------
    modules : iterable of nn.Module
        Each returns scores of shape (N, L).
    calibrator : Calibrator
        Fitted on the scores of these networks, or to be fitted by :meth:`fit`.
    kind : {"logits", "probs", "log_probs"}
        What the networks return.

    Attributes
    ----------
    members : nn.ModuleList
    calibrator : Calibrator

    Examples
    --------
    >>> import torch
    >>> import veridical as vd
    >>> _ = torch.manual_seed(0)
    >>> networks = [torch.nn.Linear(8, 3) for _ in range(5)]
    >>> inputs = torch.randn(200, 8)
    >>> labels = torch.distributions.Categorical(logits=sum(net(inputs) for net in networks)).sample()
    >>> ensemble = vd.torch.CalibratedEnsemble(networks, vd.Temperature()).fit([(inputs, labels)])
    >>> ensemble(torch.randn(2, 8)).shape
    torch.Size([2, 3])
    """

    def __init__(self, modules: Iterable[nn.Module], calibrator: Calibrator, kind: str = "logits") -> None:
        super().__init__()
        members = [
            check_type(member, nn.Module, f"module {place}", "an nn.Module")
            for place, member in enumerate(entries_of(modules, "modules are", "a list of nn.Module"))
        ]
        if not members:
            raise ParameterError("there are no modules; give at least one.")
        if not isinstance(calibrator, Calibrator):
            raise ParameterError(f"calibrator is {shown(calibrator)}; give one of veridical.calibrators().")
        self.members = nn.ModuleList(members)
        self.calibrator = calibrator
        self.kind = check_choice(kind, KINDS, "kind")
        self._namespace = require("array_api_compat.torch", "arrays")

    def scores(self, inputs: Any) -> torch.Tensor:
        """(S, N, L) what the networks return."""
        return torch.stack([member(inputs) for member in self.members])

    def forward(self, inputs: Any) -> torch.Tensor:
        """(N, L) calibrated distributions."""
        return self._answer("predict_proba", inputs)

    def confidence(self, inputs: Any) -> torch.Tensor:
        """(N,) probability that the predicted label is right."""
        return self._answer("predict_confidence", inputs)

    def _answer(self, answer: str, inputs: Any) -> torch.Tensor:
        calibrator = self.calibrator.fitted_calibrator
        calibrator.check_fitted()
        scores = self.scores(inputs)
        if scores.shape[0] != calibrator.n_sources_ or scores.shape[2] != calibrator.n_classes_:
            raise ShapeError(
                f"the calibrator was fitted for {calibrator.n_sources_} sources and {calibrator.n_classes_} classes, "
                f"and the networks' scores have shape {tuple(scores.shape)}; fit one for them."
            )
        loaded = load(self._namespace, scores, self.kind, "raise", traced=True)
        combined = calibrator.combiner_.combine_arrays(loaded)
        return calibrator.predict_combined(combined, answer)  # type: ignore[no-any-return]

    @torch.no_grad()
    def fit(self, batches: Iterable[tuple[Any, Any]]) -> Self:
        """Fit the calibrator on (inputs, labels) that the networks were not trained on; they run in evaluation mode."""
        was_training = self.training
        self.eval()
        try:
            parts = []
            pairs = map(_as_pair, entries_of(batches, "batches are", "pairs (inputs, labels)"))
            for place, (inputs, labels) in enumerate(pairs):
                with failures_of_model(f"batch {place}"):
                    parts.append((self.scores(inputs).float().cpu(), _as_labels(labels)))
        finally:
            self.train(was_training)
        if not parts:
            raise ShapeError("there are no batches to calibrate on; give at least one.")
        scores, labels = torch.cat([part for part, _ in parts], dim=1), torch.cat([part for _, part in parts])
        self.calibrator.fit(Predictions(scores.numpy(), labels.numpy(), kind=self.kind))  # type: ignore[arg-type]
        return self

    def extra_repr(self) -> str:
        return f"{self.calibrator!r}, kind={self.kind!r}"


def _as_pair(batch: Any) -> tuple[Any, Any]:
    """The inputs and labels of a batch."""
    if not isinstance(batch, (tuple, list)) or len(batch) != 2:
        raise ParameterError(f"a batch is {shown(batch)}; give a pair (inputs, labels).")
    return batch[0], batch[1]


def _as_labels(labels: Any) -> torch.Tensor:
    """The labels of a batch as a tensor on the host."""
    return labels.cpu() if isinstance(labels, torch.Tensor) else to_tensor(as_numbers(labels, "the labels"))
