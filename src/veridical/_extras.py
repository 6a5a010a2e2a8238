"""Optional dependencies: imported where they are used, with a message that says what to install."""

from __future__ import annotations

import importlib
from types import ModuleType

from veridical.errors import MissingExtraError


def require(module: str, extra: str) -> ModuleType:
    """Import ``module``, or say which extra of veridical brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"This needs {module.partition('.')[0]}, which is not installed; run: pip install 'veridical[{extra}]'"
        ) from error
