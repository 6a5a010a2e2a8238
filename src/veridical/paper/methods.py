"""Which calibrator stands behind each name in the paper's tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from veridical.calibrate import PAPER_SETTING, Calibrator, calibrators

_OPTIMISED = ("opt-hist", "opt-kde", "ptde-hist", "ptde-kde")


@dataclass(frozen=True)
class Method:
    """A row of Tables 2 to 4.

    Attributes
    ----------
    label : str
        What the table calls it.
    calibrator : str
        Its name in the registry of calibrators.
    parameters : mapping
        What to set beyond the defaults.
    """

    label: str
    calibrator: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def make(self, random_state: int) -> Calibrator:
        """A fresh calibrator; what is random in it follows the seed."""
        made = calibrators()[self.calibrator](**self.parameters)
        if "random_state" in made.get_params():
            made.set_params(random_state=random_state)
        return made

    @property
    def key(self) -> tuple[str, str]:
        """Equal for methods that do the same, whatever they are called."""
        return self.calibrator, repr(sorted(self.parameters.items()))

    @property
    def needs_truth(self) -> bool:
        """Whether truth discovery has to run."""
        return calibrators()[self.calibrator].needs_sources

    @property
    def shares_the_mean(self) -> bool:
        """Whether it starts from the mean of the sources, and needs nothing else of them but their truth."""
        return self.calibrator in _OPTIMISED or not (self.needs_truth or self.calibrator == "auto")


def _method(label: str, calibrator: str, literal_batch: int | None, **parameters: Any) -> Method:
    if literal_batch is not None and calibrator in _OPTIMISED:
        parameters |= {**PAPER_SETTING, "batch_size": literal_batch}
        if calibrator.startswith("ptde"):
            parameters["hv_scale"] = "raw"
    return Method(label, calibrator, parameters)


def paper_batch(n_samples: int) -> int:
    """The paper's batches: 1,000 of CIFAR's test set of 10,000, and 10,000 of ImageNet's of 50,000."""
    return 10_000 if n_samples >= 50_000 else 1_000


def table_methods(table: str, *, extended: bool = False, literal_batch: int | None = None) -> tuple[Method, ...]:
    """The methods of a table, in the paper's order.

    Parameters
    ----------
    table : {"table2", "table3", "table4"}
    extended : bool
        Also everything else that is registered.
    literal_batch : int, optional
        The paper's own setting of the optimised methods (one batch of so many samples per epoch, 70 and 5 epochs,
        raw HV) instead of this library's.
    """
    baselines = [
        _method("DE", "identity", literal_batch),
        _method("TS", "temperature", literal_batch, loss="mse"),  # the ETS authors' convention, which the paper follows
        _method("ETS", "ets", literal_batch),
        _method("IRM", "irm", literal_batch),
    ]
    optimised = [_method(name, name, literal_batch) for name in _OPTIMISED]
    chosen = {
        "table2": [*baselines, _method("pTDE", "ptde-kde", literal_batch)],
        "table3": optimised,
        "table4": [*baselines, _method("Spline", "spline", literal_batch), *optimised],
    }[table]
    if extended:
        shown = {method.calibrator for method in chosen if not method.parameters or method.calibrator in _OPTIMISED}
        chosen += [Method(name, name) for name in calibrators() if name not in shown]
    return tuple(chosen)
