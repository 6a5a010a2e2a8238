"""Calibrators, combiners and metrics of one's own, known by their names like any other."""

from __future__ import annotations

import importlib
import os
import re
import sys
from typing import Any, TypeVar

from veridical.calibrate.base import Calibrator
from veridical.calibrate.registry import calibrators, full_name, registered
from veridical.combine.base import Combiner
from veridical.combine.registry import COMBINERS
from veridical.errors import ParameterError, shown
from veridical.metrics.registry import register_metric

_Plugin = TypeVar("_Plugin")


def register(plugin: _Plugin, **properties: Any) -> _Plugin:
    """Make a calibrator, a combiner or a metric of one's own known by its name.

    Everything that takes the name of a method then takes its name: :func:`veridical.compare_calibrators`,
    :func:`veridical.evaluate`, :class:`veridical.Auto`, reports and commands, which import the module that calls this
    with ``--plugin MODULE``.  A fitted calibrator can be saved, and be loaded where the class is registered.

    Parameters
    ----------
    plugin : class or function
        A subclass of :class:`veridical.calibrate.Calibrator` or :class:`veridical.combine.Combiner` with a ``name``, or
        a metric as in :func:`veridical.metrics.register_metric`.  The name of a class that was registered before is
        replaced; those of the library are taken.
    **properties
        Of a metric, such as its title.

    Returns
    -------
    The class or function itself, so that this can stand above it as a decorator.

    Examples
    --------
    >>> import veridical as vd
    >>> @vd.register
    ... class Halfway(vd.calibrate.Calibrator):
    ...     name = "halfway"
    ...     summary = "Halfway between the confidence and one half."
    ...
    ...     def _fit(self, combined, labels):
    ...         pass
    ...
    ...     def formula(self, xp, combined):
    ...         return 0.5 * combined.confidence + 0.25
    >>> "halfway" in vd.calibrators()
    True
    """
    if callable(plugin) and not isinstance(plugin, type):
        register_metric(plugin, **properties)
        return plugin
    if properties or not (isinstance(plugin, type) and issubclass(plugin, (Calibrator, Combiner))):
        raise ParameterError(
            f"{shown(plugin)} is neither a calibrator nor a combiner; give a subclass of one, or a metric's function."
        )
    name = getattr(plugin, "name", None)
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise ParameterError(f"{plugin.__name__} has the name {name!r}; use lower-case letters, digits and -.")
    taken = calibrators().get(name) if name in calibrators() else COMBINERS.get(name)
    if full_name(name) != name or (taken is not None and taken.__module__.startswith("veridical.")):
        raise ParameterError(f"{name!r} is a name of the library; give {plugin.__name__} another one.")
    if issubclass(plugin, Calibrator):
        registered[name] = plugin
    elif issubclass(plugin, Combiner):
        COMBINERS[name] = plugin
    return plugin


def import_plugin(module: str) -> None:
    """Import a module that registers classes, also from the working directory."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise ParameterError(
            f"the plugin {module!r} cannot be imported ({error}); give the name of a module."
        ) from None
