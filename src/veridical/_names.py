"""Names of files, sources and classes as people read them."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: What a terminal would act on or no encoding can hold: control characters (escape sequences and line breaks among
#: them), halves of surrogate pairs, marks of the direction of text, and two spaces without width.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def printable(name: str) -> str:
    r"""``name`` on one line, with an escape sequence for each character that a terminal or a file cannot take.

    Examples
    --------
    >>> print(printable("red \x1b[31m cat"))
    red \x1b[31m cat
    """
    return _UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode(), name)


#: How Python writes objects that have no text of their own.
_ADDRESS = re.compile(" object at 0x[0-9a-fA-F]+>")
#: The most characters of a word in a message, of a message, of a name in a table, and of any other cell.
_WORD, _MESSAGE, NAME, CELL = 300, 2000, 200, 200
#: Names are similar if this share of their letters is the same, in the same order.
_LEAST_SIMILAR = 0.7


def shortened(text: str, most: int = NAME) -> str:
    """``text`` with at most so many characters; the middle of a longer one is left out.

    Examples
    --------
    >>> shortened("a" * 50 + "/model_7.npy", 24)
    'aaaaaaaaaaa…/model_7.npy'
    """
    if len(text) <= most:
        return text
    end = min(12, most // 2)
    return f"{text[: most - end - 1]}…{text[len(text) - end :]}"


def one_line(message: str) -> str:
    """A message that a terminal can take, without addresses in memory and the middle of very long names."""
    message = _ADDRESS.sub(">", message)
    if len(message) > _WORD:
        message = re.sub(rf"\S{{{_WORD},}}", lambda match: shortened(match[0], _WORD), message)
    return printable(shortened(message, _MESSAGE))


def nearest_name(name: str, names: Iterable[str]) -> str | None:
    """The most similar of the names, whatever the case of its letters; None where none is similar.

    Examples
    --------
    >>> nearest_name("Temprature", ["temperature", "platt"])
    'temperature'
    """
    from difflib import get_close_matches  # only for a message

    folded = {other.casefold(): other for other in names}
    close = get_close_matches(name.casefold()[:100], list(folded), 1, _LEAST_SIMILAR)
    return folded[close[0]] if close else None


def natural_order(name: str) -> tuple[list[tuple[int, int, str]], str]:
    """A sort key by which ``member_2`` comes before ``member_10``; numbers may have any length.

    Examples
    --------
    >>> sorted(["member_10", "member_2", "all"], key=natural_order)
    ['all', 'member_2', 'member_10']
    """
    parts = []
    for zeros, digits, text in re.findall(r"(0*)([0-9]+)|([^0-9]+)", name):
        # Of two numbers the one with more digits is larger.
        parts.append((0, len(digits), digits) if digits else (1, len(zeros), text))
    return parts, name
