"""Calibrators, combiners and metrics of one's own, known by their names like any other."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any, TypeVar

from veridical.calibrate.base import Calibrator
from veridical.calibrate.registry import calibrators, full_name, registered
from veridical.combine.base import Combiner
from veridical.combine.registry import COMBINERS, name_of_own
from veridical.errors import ParameterError, first_line, shown
from veridical.metrics.registry import METRICS, register_metric

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
    name = name_of_own(plugin)
    taken = calibrators().get(name) if name in calibrators() else COMBINERS.get(name)
    if full_name(name) != name or (taken is not None and taken.__module__.startswith("veridical.")):
        raise ParameterError(f"{name!r} is a name of the library; give {plugin.__name__} another one.")
    if issubclass(plugin, Calibrator):
        registered[name] = plugin
    elif issubclass(plugin, Combiner):
        COMBINERS[name] = plugin
    return plugin


def import_plugin(module: str) -> None:
    """Import a module that registers something, also from the working directory."""
    if "" in module.split("."):
        raise ParameterError(f"the plugin {module!r} is no name of a module; give one as in import package.module.")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    before = _everything()
    try:
        importlib.import_module(module)
    except (Exception, SystemExit) as error:  # a module may raise anything
        reason = first_line(error) or type(error).__name__
        raise ParameterError(f"the plugin {module!r} cannot be imported ({reason}); give a module's name.") from error
    after = _everything()  # is the same where the module was imported before
    its_own = [entry for entry in after if f"{getattr(entry, '__module__', '')}.".startswith(f"{module}.")]
    if after == before and not its_own:
        raise ParameterError(f"the plugin {module!r} registers nothing; call veridical.register in it.")


def _everything() -> list[Any]:
    """What can be registered and is."""
    return [*registered.values(), *COMBINERS.values(), *(metric.formula for metric in METRICS.values())]
