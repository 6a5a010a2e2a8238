"""Every calibrator by name.  Adding a method is adding its file and a line here."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from veridical.calibrate.base import Calibrator
from veridical.errors import ParameterError, shown

#: Name -> module and class.  A module is imported when its method is used, so that a saved temperature is loaded
#: without the code of all other methods.  "auto" evaluates methods to choose one, so it belongs to the evaluation.
_CLASSES = {
    "identity": "calibrate.combined_only:Identity",
    "temperature": "calibrate.temperature:Temperature",
    "vector": "calibrate.linear_scaling:VectorScaling",
    "matrix": "calibrate.linear_scaling:MatrixScaling",
    "ets": "calibrate.temperature:EnsembleTemperature",
    "irm": "calibrate.isotonic:IRM",
    "irova": "calibrate.isotonic:IROvA",
    "histogram": "calibrate.binning:HistogramBinning",
    "isotonic": "calibrate.isotonic:Isotonic",
    "platt": "calibrate.logistic:Platt",
    "spline": "calibrate.spline:Spline",
    "opt-hist": "calibrate.ece_optimisation:OptHist",
    "opt-kde": "calibrate.ece_optimisation:OptKDE",
    "ptde-hist": "calibrate.ece_optimisation:PTDEHist",
    "ptde-kde": "calibrate.ece_optimisation:PTDE",
    "truth-logit": "calibrate.logistic:TruthLogit",
    "consensus": "calibrate.combined_only:ConsensusPool",
    "aconsensus": "calibrate.combined_only:LabelKeepingConsensus",
    "linear-pool": "calibrate.combined_only:LinearPool",
    "log-pool": "calibrate.combined_only:LogPool",
    "auto": "evaluation.auto:Auto",
}

#: Classes of one's own; see :func:`veridical.register`.
registered: dict[str, type[Calibrator]] = {}

#: Short names for what people ask for: methods, and ways to combine.
ALIASES: Mapping[str, str] = MappingProxyType(
    {"de": "mean", "se": "mean", "ptde": "ptde-kde", "ts": "temperature", "opt": "opt-kde"}
)


class _Calibrators(Mapping[str, type[Calibrator]]):
    """Name -> class; classes are imported when they are looked up."""

    def __getitem__(self, name: str) -> type[Calibrator]:
        if name in registered:
            return registered[name]
        module, class_name = _CLASSES[name].split(":")
        calibrator: type[Calibrator] = getattr(importlib.import_module(f"veridical.{module}"), class_name)
        return calibrator

    def __contains__(self, name: object) -> bool:
        return name in _CLASSES or name in registered

    def __iter__(self) -> Iterator[str]:
        return iter((*_CLASSES, *registered))

    def __len__(self) -> int:
        return len(_CLASSES) + len(registered)


_CALIBRATORS = _Calibrators()


def full_name(name: str) -> str:
    """The name in lower case, with short names spelt out; what is unknown stays as it is.

    Examples
    --------
    >>> from veridical.calibrate import full_name
    >>> full_name("TS"), full_name("ptde"), full_name("spline")
    ('temperature', 'ptde-kde', 'spline')
    """
    if not isinstance(name, str):
        raise ParameterError(f"the name of a method is {shown(name)}; give a string.")
    return ALIASES.get(name.lower(), name.lower())


def calibrators() -> Mapping[str, type[Calibrator]]:
    """All calibrators, name -> class.

    Each class has ``name``, ``title``, ``summary``, ``needs_sources``, ``keeps_labels`` and ``combiners``.

    Examples
    --------
    >>> import veridical as vd
    >>> vd.calibrators()["ptde-kde"]
    <class 'veridical.calibrate.ece_optimisation.PTDE'>
    """
    return _CALIBRATORS


def check_calibrator(value: object) -> Calibrator:
    """``value`` if it is a calibrator."""
    if not isinstance(value, Calibrator):
        raise ParameterError(
            f"{shown(value)} is not a calibrator; give one that was fitted or load_calibrator returns."
        )
    return value
