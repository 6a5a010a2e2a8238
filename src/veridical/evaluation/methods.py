"""Methods by name: a way of combining sources, a calibrator on top of one, or all single sources."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from veridical.calibrate import Calibrator, calibrators, full_name, load_calibrator
from veridical.calibrate.registry import ALIASES
from veridical.combine import COMBINERS, label_free_combiners
from veridical.errors import ParameterError, shown
from veridical.predictions.validation import check_choice

#: Stands for all sources, one row each.
MEMBERS = "members"


@dataclass(frozen=True)
class Method:
    """A way from sources to distributions: a combiner, and a calibrator on top of it where there is one.

    Attributes
    ----------
    name : str
        What one types: ``mean``, ``temperature``, or ``log-pool+matrix`` for a calibrator on a combiner.
    title : str
        What tables and figures show.
    combiner : str
    calibrator : str or None
        Its name in the registry of calibrators.
    parameters : mapping
        Parameters of the calibrator beyond its defaults.
    fitted : Calibrator or None
        A calibrator that is applied as it was saved.
    """

    name: str
    title: str
    combiner: str
    calibrator: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    fitted: Calibrator | None = field(default=None, compare=False)

    @property
    def needs_fit(self) -> bool:
        """Whether there is a calibrator to fit."""
        return self.calibrator is not None and self.fitted is None

    @property
    def chooses(self) -> bool:
        """Whether the calibrator evaluates others to choose among them."""
        return self.needs_fit and hasattr(calibrators()[str(self.calibrator)], "fit_with_engine")

    @classmethod
    def of(cls, calibrator: Calibrator) -> Method:
        """The method of a fitted calibrator."""
        return cls(calibrator.name, calibrator.title, calibrator.combine, calibrator.name, calibrator.get_params())

    def make(self, random_state: int | None, **shared: Any) -> Calibrator:
        """A new calibrator; ``shared`` parameters and ``random_state`` go to calibrators that have them."""
        assert self.calibrator is not None
        chosen = calibrators()[self.calibrator]
        known = inspect.signature(chosen).parameters
        for parameter in self.parameters:
            check_choice(parameter, known, f"parameter of {self.calibrator}")
        defaults = {**shared, "random_state": random_state, "combine": self.combiner}
        return chosen(**{**{key: value for key, value in defaults.items() if key in known}, **self.parameters})


def resolve_method(name: str, parameters: Mapping[str, Any] | None = None, *, only_calibrators: bool = False) -> Method:
    """The method of that name; an unknown one is answered with the list of names, or of those that are fitted."""
    if parameters is not None and not isinstance(parameters, Mapping):
        raise ParameterError(f"parameters are {shown(parameters)}; give a dictionary from their names to values.")
    if not isinstance(name, str):
        raise ParameterError(f"method is {shown(name)}; give the name of a method, such as 'temperature'.")
    combiner, plus, base = name.strip().rpartition("+")
    base = full_name(base)
    if not plus and base in label_free_combiners():
        if parameters:
            raise ParameterError(f"{base} has no parameters; leave {next(iter(parameters))!r} out.")
        return Method(base, COMBINERS[base].title, base)
    without_fit = () if plus or only_calibrators else (MEMBERS, *label_free_combiners())
    if base not in calibrators() and base != MEMBERS:
        check_choice(base, [*without_fit, *calibrators()], "method", ALIASES)
    chosen = calibrators()[base] if base != MEMBERS else None
    if chosen is None:
        raise ParameterError("'members' stands for every single source; name one method, such as 'ptde'.")
    if not plus:
        combine = inspect.signature(chosen).parameters["combine"].default
        return Method(base, chosen.title, combine, base, dict(parameters or {}))
    combiner = check_choice(full_name(combiner), chosen.combiners, f"combine for {base}")
    title = f"{COMBINERS[combiner].title} + {chosen.title}"
    return Method(f"{combiner}+{base}", title, combiner, base, dict(parameters or {}))


def _is_name(method: object) -> bool:
    """Whether it is the name of a method, rather than a fitted calibrator or the path of one."""
    is_path = isinstance(method, os.PathLike) or (isinstance(method, str) and method.strip().endswith(".json"))
    return not is_path and not isinstance(method, Calibrator)


def _fitted_method(calibrator: Any) -> Method:
    """A fitted calibrator, or the path of a saved one, as a method; it is called by its file."""
    if isinstance(calibrator, Calibrator):
        calibrator.check_fitted()
        name, fitted = f"fitted {calibrator.name}", calibrator
    else:
        name = os.fspath(calibrator).strip() if isinstance(calibrator, str) else os.fspath(calibrator)
        fitted = load_calibrator(name)
    combine = fitted.fitted_calibrator.combine
    return Method(name, f"{fitted.title} ({Path(name).name})", combine, fitted.name, fitted=fitted)


def resolve_methods(names: Sequence[str]) -> tuple[Method | None, ...]:
    """Methods in order and each once; None stands for the single sources."""
    if isinstance(names, (str, bytes, bytearray, memoryview)) or not isinstance(names, Sequence):
        raise ParameterError(f'methods is {shown(names)}; give a list of names, such as ["mean", "temperature"].')
    if not names:
        raise ParameterError('methods is empty; name at least one, such as ["mean"].')
    methods: dict[str, Method | None] = {}
    for name in names:
        if isinstance(name, str) and name.strip() == MEMBERS:
            methods[MEMBERS] = None
            continue
        method = resolve_method(name) if _is_name(name) else _fitted_method(name)
        methods[method.name] = method
    return tuple(methods.values())
