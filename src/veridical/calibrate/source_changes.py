"""A warning about sources that a calibrator was not fitted on, and about those that are not there."""

from __future__ import annotations

import warnings

from veridical.errors import ChangedSourcesWarning


def warn_about_changes(new: list[str], gone: list[str]) -> None:
    """Name the sources that have no fitted weight, and the fitted ones that are not there."""
    parts = []
    if new:
        parts.append(f"not fitted on, with the mean weight: {', '.join(new)}")
    if gone:
        parts.append(f"fitted on, left out: {', '.join(gone)}")
    if parts:
        warnings.warn(
            f"the sources are not those of the fit ({'; '.join(parts)}); fit again when labels are there.",
            ChangedSourcesWarning,
            stacklevel=5,
        )
