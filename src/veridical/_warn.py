"""Warnings that point at the line of the caller's program, however deep in the package they arise."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

_PACKAGE = str(Path(__file__).parent) + os.sep


def warn_caller(message: str, category: type[Warning]) -> None:
    """Issue a warning at the first line outside this package; Python shows it once for each such line."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
