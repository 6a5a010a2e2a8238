"""Figures as the content of files; the same numbers give the same bytes."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Format -> metadata: what would change from run to run is left out of the file.
METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}
FIGURE_FORMATS = tuple(METADATA)


def figure_bytes(figure: Figure, format: str, style: dict[Any, Any], **options: Any) -> bytes:
    """A figure as a file of one of the formats, under matplotlib's settings ``style``; ``options`` of ``savefig``."""
    import matplotlib

    stream = io.BytesIO()
    with matplotlib.rc_context(style):
        figure.savefig(stream, format=format, metadata=METADATA[format], **options)
    return stream.getvalue()
