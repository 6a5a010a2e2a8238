"""What is imported when it is first used: public names, so that ``import veridical`` costs nothing, and extras."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Mapping
from types import ModuleType
from typing import Any

from veridical.errors import MissingExtraError


def names_on_demand(
    package: str,
    names_in: Mapping[str, str],
    modules: Collection[str] = (),
    before: Callable[[str], None] = lambda module: None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """A package's ``__getattr__``, ``__dir__`` and ``__all__``.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    names_in : mapping
        Module inside the package -> the public names in it, separated by spaces.
    modules : collection of str
        Modules of the package that are public themselves.
    before : callable, optional
        Called with a module before it is imported, to say what it needs.
    """
    module_of = {name: module for module, names in names_in.items() for name in names.split()}

    def get(name: str) -> Any:
        if name in module_of:
            before(module_of[name])
            value = getattr(importlib.import_module(f"{package}.{module_of[name]}"), name)
        elif name in modules:
            value = importlib.import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    public = sorted({*module_of, *modules})
    return get, lambda: sorted({*vars(sys.modules[package]), *public}), public


def require(module: str, extra: str, at_least: int = 0) -> ModuleType:
    """Import ``module`` of major version ``at_least`` or later, or name the extra of veridical to install."""
    package = module.partition(".")[0]
    install = f"run, in a clone of veridical: pip install '.[{extra}]'"
    try:
        imported = importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(f"This needs {package}, which is not installed; {install}") from error
    if at_least and int(imported.__version__.partition(".")[0]) < at_least:
        raise MissingExtraError(
            f"This needs {package} {at_least} or later, and {imported.__version__} is installed; {install}"
        )
    return imported
