"""Codecs of ``.zarr`` stores that are read, and the size that a chunk claims, checked before it is unpacked.

The metadata of an array contain the size of its chunks; so does each compressed chunk, and memory is allocated by that.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from veridical.errors import CorruptFileError, FileFormatError

Codec = dict[str, Any]

#: Codecs that do arithmetic and nothing else, beside the compressors.  Others exist, a pickle among them, and what one
#: version of a library refuses another runs.
_FILTERS = {"shuffle", "delta", "fixedscaleoffset", "quantize", "bitround", "astype", "packbits"}
_CHECKSUMS = {"crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3"}
_LAYOUTS = {"bytes", "endian", "transpose"}
_SHARDS = "sharding_indexed"
#: Entries of a codec's configuration that say in which type of number it computes.
_TYPES = ("dtype", "astype", "encode_dtype", "decode_dtype")
#: Filters may turn numbers of eight bytes into numbers of one, and headers take a little.
_MOST_GROWTH, _ALWAYS_ALLOWED = 8, 1 << 20
#: Deflate packs at most 1,032 bytes into one.
_DEFLATE_RATIO = 1032
_ZSTD_MAGIC, _ZSTD_LARGEST_BLOCK = 0xFD2FB528, 1 << 17
#: Entry in a shard's index for a chunk that is missing.
_NOT_THERE = 2**64 - 1


def check_codecs(codecs: Sequence[Codec], path: Path) -> None:
    """Refuse codecs that are not known to be harmless, and more than one compressor."""
    names = [_name(codec) for codec in codecs]
    for codec, name in zip(codecs, names, strict=True):
        if name not in {*_COMPRESSORS, *_FILTERS, *_CHECKSUMS, *_LAYOUTS, _SHARDS}:
            raise FileFormatError(
                f"{path} is packed with {name!r}, which could run programs when it is read; write it again with one "
                f"of: {', '.join(_COMPRESSORS)}."
            )
        options = _options(codec)
        for entry in _TYPES:
            if options.get(entry) is not None and np.dtype(options[entry]).kind not in "fiub":
                raise FileFormatError(f"{path} is packed with {name!r} by way of {options[entry]!r}; write numbers.")
        if name == _SHARDS:
            check_codecs(options["codecs"], path)
            if not {_name(inner) for inner in options["index_codecs"]} <= {"bytes", "endian", "crc32c"}:
                raise FileFormatError(f"{path} has shards with a packed index; write it again without.")
    if sum(name in _COMPRESSORS or name == _SHARDS for name in names) > 1:
        raise FileFormatError(f"{path} is compressed twice; write it again with one compressor.")


def _name(codec: Codec) -> str:
    """The name of a codec in the metadata of format 2 (id) or 3 (name)."""
    return str(codec.get("id", codec.get("name"))).removeprefix("numcodecs.")


def _options(codec: Codec) -> dict[str, Any]:
    return dict(codec.get("configuration") or codec)


def check_chunks(
    files: Collection[Path], codecs: Sequence[Codec], shape: Sequence[int], itemsize: int, path: Path
) -> None:
    """Refuse chunk files that claim to unpack to more than a chunk of this shape holds."""
    packed = next((codec for codec in codecs if _name(codec) in _COMPRESSORS or _name(codec) == _SHARDS), None)
    for file in files if packed is not None else ():
        try:
            _check_content(file.read_bytes(), packed, shape, itemsize)
        except (ValueError, LookupError, struct.error, zlib.error) as error:
            raise CorruptFileError(
                f"{path}: chunk {file.name} claims more than a chunk of shape {tuple(shape)} holds, or is damaged "
                f"({error}); write it again."
            ) from None


def _check_content(content: bytes, codec: Codec | None, shape: Sequence[int], itemsize: int) -> None:
    """Raise ValueError where a chunk, or one within a shard, claims too many bytes."""
    if codec is None:
        return
    if _name(codec) == _SHARDS:
        options = _options(codec)
        inner = next((entry for entry in options["codecs"] if _name(entry) in _COMPRESSORS), None)
        for part in _parts_of_shard(content, options, shape):
            _check_content(part, inner, options["chunk_shape"], itemsize)
        return
    limit = _MOST_GROWTH * math.prod(shape) * itemsize + _ALWAYS_ALLOWED
    claim = _COMPRESSORS[_name(codec)](content, limit)
    if claim > limit:
        raise ValueError(f"{claim:,} bytes")


def _parts_of_shard(content: bytes, options: dict[str, Any], shape: Sequence[int]) -> Iterator[bytes]:
    """The chunks within a shard, by its index of offsets and lengths."""
    n_chunks = math.prod(-(-size // part) for size, part in zip(shape, options["chunk_shape"], strict=True))
    length = 16 * n_chunks + 4 * any(_name(codec) == "crc32c" for codec in options["index_codecs"])
    if length > len(content):
        raise ValueError("its index is not there")
    start = len(content) - length if options.get("index_location", "end") == "end" else 0
    for offset, size in struct.iter_unpack("<QQ", content[start : start + 16 * n_chunks]):
        if (offset, size) != (_NOT_THERE, _NOT_THERE):
            yield content[offset : offset + size]


def _blosc_size(content: bytes, limit: int) -> int:
    return int(struct.unpack_from("<I", content, 4)[0])


def _lz4_size(content: bytes, limit: int) -> int:
    return int(struct.unpack_from("<I", content)[0])


def _deflate_size(content: bytes, limit: int) -> int:
    """What a gzip or zlib stream unpacks to; counted where it could be more than ``limit``."""
    if _DEFLATE_RATIO * len(content) <= limit:
        return _DEFLATE_RATIO * len(content)
    size, rest = 0, content
    while rest and size <= limit:
        stream = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # either of the two
        size += len(stream.decompress(rest, _ALWAYS_ALLOWED))
        while not stream.eof and size <= limit:
            part = stream.decompress(stream.unconsumed_tail, _ALWAYS_ALLOWED)
            if not part and not stream.eof:
                raise ValueError("it is truncated")
            size += len(part)
        rest = stream.unused_data
    return size


def _zstd_size(content: bytes, limit: int) -> int:
    """The content size in the frame's header; without one, the most that its blocks can hold."""
    magic, descriptor = struct.unpack_from("<IB", content)
    if magic != _ZSTD_MAGIC:
        raise ValueError("it is not zstd")
    has_one_segment, size_code = descriptor >> 5 & 1, descriptor >> 6
    position = 5 + (0 if has_one_segment else 1) + (0, 1, 2, 4)[descriptor & 3]
    width = (has_one_segment, 2, 4, 8)[size_code]
    if width:
        return int.from_bytes(content[position : position + width], "little") + (256 if width == 2 else 0)
    size = 0
    is_last = False
    while not is_last:
        header = int.from_bytes(content[position : position + 3], "little")
        is_last, kind, length = bool(header & 1), header >> 1 & 3, header >> 3
        size += _ZSTD_LARGEST_BLOCK if kind == 2 else length
        position += 3 + (1 if kind == 1 else length)
        if position > len(content):
            raise ValueError("it is truncated")
    return size


#: Compressor -> size that its output claims when unpacked; called with the output and the limit.
_COMPRESSORS: dict[str, Callable[[bytes, int], int]] = {
    "zstd": _zstd_size,
    "blosc": _blosc_size,
    "gzip": _deflate_size,
    "zlib": _deflate_size,
    "lz4": _lz4_size,
}
