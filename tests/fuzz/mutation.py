"""Damaged files: bytes changed at random, entries of archives and of JSON documents replaced by others.

Formats with checksums refuse changed bytes at once; so entries within them are changed, too, and the checksums made to
fit again, as someone would who wants the content to be believed.
"""

from __future__ import annotations

import io
import json
import random
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: Numbers that are often read as a size, an offset or a count.
_SIZES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF)
#: Values that take the place of others in JSON.
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 10**9, 10**30, 0.5, -0.5, 1e308, "", "a", "nan", "\ud800", "../../etc/passwd", [],
    {}, [0], [[]], [None], {"a": 1}, ["a"], [1e308], {"dtype": "float64", "shape": [], "data": ""}, [0.5] * 3,
    "x" * 1000,
)  # fmt: skip


_DTYPES = ("'<f4'", "'|O'", "'<f2'", "'>f8'", "'<c16'", "'<U8'", "'<M8[s]'", "[('a', '<f8')]", "'|V8'", "'<i8'")


def mutate_bytes(content: bytes, rng: random.Random) -> bytes:
    """One to eight changes of single bytes, runs of bytes, or numbers."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        at = rng.randrange(len(changed) + 1)
        rng.choice(_CHANGES)(changed, at, rng)
    return bytes(changed)


def _flip(content: bytearray, at: int, rng: random.Random) -> None:
    if at < len(content):
        content[at] ^= 1 << rng.randrange(8)


def _replace(content: bytearray, at: int, rng: random.Random) -> None:
    count = rng.choice((1, 2, 4, 16))
    content[at : at + count] = rng.randbytes(count)


def _number(content: bytearray, at: int, rng: random.Random) -> None:
    width = rng.choice((1, 2, 4, 8))
    number = rng.choice(_SIZES) & ((1 << 8 * width) - 1)
    content[at : at + width] = number.to_bytes(width, rng.choice(("little", "big")))


def _insert(content: bytearray, at: int, rng: random.Random) -> None:
    content[at:at] = rng.randbytes(rng.choice((1, 4, 64)))


def _delete(content: bytearray, at: int, rng: random.Random) -> None:
    del content[at : at + rng.choice((1, 4, 64))]


def _repeat(content: bytearray, at: int, rng: random.Random) -> None:
    content[at:at] = content[at : at + rng.choice((1, 8, 64))] * rng.choice((1, 3, 50))


def _truncate(content: bytearray, at: int, rng: random.Random) -> None:
    del content[at:]


_CHANGES: tuple[Callable[[bytearray, int, random.Random], None], ...] = (
    _flip, _flip, _replace, _number, _number, _insert, _delete, _repeat, _truncate,
)  # fmt: skip


def mutate_zip(content: bytes, rng: random.Random) -> bytes:
    """Change one entry of an archive, or its name, and pack it with checksums that fit."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = [(info.filename, archive.read(info)) for info in archive.infolist()]
    chosen = rng.randrange(len(entries))
    name, data = entries[chosen]
    what = rng.randrange(8)
    if what == 0:
        entries[chosen] = (
            rng.choice(("probs.npy", "logits.npy", "labels.npy", "../x.npy", "x.npy", name * 2)),
            data,
        )
    elif what == 1:
        entries.append((name, data))
    elif what == 2:
        del entries[chosen]
    else:
        entries[chosen] = (name, mutate_npy(data, rng) if data[:6] == b"\x93NUMPY" else mutate_bytes(data, rng))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for entry, data in entries:
            try:
                archive.writestr(entry, data)
            except UserWarning:  # the same name twice
                continue
    return packed.getvalue()


def mutate_npy(content: bytes, rng: random.Random) -> bytes:
    """Change the header of an array, with a length that fits, or any byte."""
    if rng.random() < 0.5:
        return mutate_bytes(content, rng)
    size = struct.unpack("<H", content[8:10])[0]
    header, numbers = content[10 : 10 + size].decode("latin1"), content[10 + size :]
    before, after = rng.choice(
        (
            ("'<f8'", rng.choice(_DTYPES)),
            ("False", rng.choice(("True", "1", "None", "[]"))),
            ("(", rng.choice(("(0, ", "(10000000000, ", "(-1, ", "((", "(1, 1, 1, 1, ", "(4294967296, 4294967296, "))),
            (")", rng.choice((", 0)", ", 1000000000)", "))", ", -3)"))),
            ("descr", rng.choice(("descr2", "shape", ""))),
        )
    )  # fmt: skip
    header = header.replace(before, after, 1)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin1") + numbers


def mutate_json(content: bytes, rng: random.Random, *, drop: tuple[str, ...] = ()) -> bytes:
    """Replace, remove or add one value of a document; entries called ``drop`` (checksums) are removed."""
    if rng.random() < 0.2:
        return mutate_bytes(content, rng)
    document = json.loads(content)
    for name in drop:
        if isinstance(document, dict):
            document.pop(name, None)
    places = list(_places(document))
    if places:
        holder, key = rng.choice(places)
        what = rng.randrange(6)
        if what == 0:
            del holder[key]
        elif what == 1 and isinstance(holder, dict):
            holder[rng.choice(("extra", "", "format", key + "2"))] = rng.choice(_VALUES)
        elif what == 2 and isinstance(holder[key], (list, str)):
            holder[key] = holder[key] * rng.choice((0, 2, 3))
        else:
            holder[key] = rng.choice(_VALUES)
    return json.dumps(document).encode("utf-8", "surrogatepass")


def _places(document: Any) -> Any:
    """(container, key) of every value."""
    keys = document if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    for key in list(keys):
        yield document, key
        yield from _places(document[key])


def mutate_directory(folder: Path, rng: random.Random) -> None:
    """Change one file below a directory, or remove it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = rng.choice(files)
    if rng.random() < 0.1:
        path.unlink()
    elif path.suffix == ".json":
        path.write_bytes(mutate_json(path.read_bytes(), rng))
    elif path.suffix == ".npy":
        path.write_bytes(mutate_npy(path.read_bytes(), rng))
    else:
        path.write_bytes(mutate_bytes(path.read_bytes(), rng))
