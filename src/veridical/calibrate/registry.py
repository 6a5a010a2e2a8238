"""Every calibrator by name.  Adding a method is adding its file and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from veridical.calibrate.auto import Auto
from veridical.calibrate.base import Calibrator
from veridical.calibrate.binning import HistogramBinning
from veridical.calibrate.ece_optimisation import PTDE, OptHist, OptKDE, PTDEHist
from veridical.calibrate.isotonic import IRM, IROvA, Isotonic
from veridical.calibrate.linear_scaling import MatrixScaling, VectorScaling
from veridical.calibrate.logistic import Platt
from veridical.calibrate.plain import Identity, LinearPool, LogPool
from veridical.calibrate.spline import Spline
from veridical.calibrate.temperature import EnsembleTemperature, Temperature
from veridical.calibrate.truth_logit import TruthLogit

_METHODS: tuple[type[Calibrator], ...] = (
    Identity,
    Temperature,
    VectorScaling,
    MatrixScaling,
    EnsembleTemperature,
    IRM,
    IROvA,
    HistogramBinning,
    Isotonic,
    Platt,
    Spline,
    OptHist,
    OptKDE,
    PTDEHist,
    PTDE,
    TruthLogit,
    LinearPool,
    LogPool,
    Auto,
)
_BY_NAME: Mapping[str, type[Calibrator]] = MappingProxyType({method.name: method for method in _METHODS})

#: Short names for what people ask for: methods, and ways to combine.
ALIASES: Mapping[str, str] = MappingProxyType(
    {"de": "mean", "se": "mean", "ptde": "ptde-kde", "ts": "temperature", "opt": "opt-kde"}
)


def full_name(name: str) -> str:
    """The name in lower case, with short names spelt out; what is unknown stays as it is.

    Examples
    --------
    >>> from veridical.calibrate import full_name
    >>> full_name("TS"), full_name("ptde"), full_name("spline")
    ('temperature', 'ptde-kde', 'spline')
    """
    return ALIASES.get(name.lower(), name.lower())


def calibrators() -> Mapping[str, type[Calibrator]]:
    """All calibrators, name -> class.

    Each class has ``name``, ``summary``, ``needs_sources``, ``keeps_labels`` and ``combinations``.

    Examples
    --------
    >>> import veridical as vd
    >>> vd.calibrators()["ptde-kde"]
    <class 'veridical.calibrate.ece_optimisation.PTDE'>
    """
    return _BY_NAME
