"""Tables as notebooks show them."""

from __future__ import annotations

import html
from collections.abc import Sequence


def html_table(heading: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """A plain HTML table; every cell is text."""
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in heading)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
