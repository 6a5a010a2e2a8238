"""Prediction files: one reader and writer per format, one registry, :func:`load` and :func:`save`."""

from veridical.predictions.files.loading import load
from veridical.predictions.files.saving import save

__all__ = ["load", "save"]
