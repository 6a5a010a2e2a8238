"""Public names of a package that are imported when they are first used, so that ``import veridical`` costs nothing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any


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
