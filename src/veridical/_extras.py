"""Optional dependencies: imported where they are used, with a message that names the extra to install."""

from __future__ import annotations

import importlib
from types import ModuleType

from veridical.errors import MissingExtraError


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
