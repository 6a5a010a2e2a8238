"""Codecs of ``.zarr`` stores that are read, and the size that a chunk claims, checked before it is unpacked.

The metadata of an array contain the size of its chunks; so does each compressed chunk, and memory is allocated by that.
"""

from __future__ import annotations

import itertools
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
#: The one that may follow the compressor: four bytes at the end.
_LAST_CHECKSUM = "crc32c"
_LAYOUTS = {"bytes", "endian", "transpose"}
_SHARDS = "sharding_indexed"
#: Entries of a filter's configuration that say which type of number it takes, and which it gives.
_TYPES = (("dtype", "decode_dtype"), ("astype", "encode_dtype"))
#: What filters and checksums may add to a chunk.
_ALWAYS_ALLOWED = 1 << 20
#: Deflate packs at most 1,032 bytes into one.
_DEFLATE_RATIO = 1032
_UNPACKED_AT_ONCE = 1 << 14
#: Blocks of a frame that does not say its size hold up to 128 kB when they are full, and are often split.
_ZSTD_MAGIC, _ZSTD_USUAL_BLOCK = 0xFD2FB528, 1 << 14
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
        for entry in itertools.chain(*_TYPES):
            if options.get(entry) is not None and np.dtype(options[entry]).kind not in "fiub":
                raise FileFormatError(f"{path} is packed with {name!r} by way of {options[entry]!r}; write numbers.")
        if name == _SHARDS:
            check_codecs(options["codecs"], path)
            if any(_name(inner) == _SHARDS for inner in options["codecs"]):
                raise FileFormatError(f"{path} has shards within shards; write it again with one level.")
            if not {_name(inner) for inner in options["index_codecs"]} <= {"bytes", "endian", "crc32c"}:
                raise FileFormatError(f"{path} has shards with a packed index; write it again without.")
    packed = _place_of_packer(codecs)
    after = codecs[packed + 1 :]
    if _place_of_packer(after) < len(after):
        raise FileFormatError(f"{path} is compressed twice; write it again with one compressor.")
    for codec in after:  # all else would hide from us what the compressor is called with
        if _name(codec) != _LAST_CHECKSUM or _options(codec).get("location", "end") != "end":
            raise FileFormatError(
                f"{path} is packed and then changed by {_name(codec)!r}; write it again with the compressor last."
            )


def _place_of_packer(codecs: Sequence[Codec]) -> int:
    """The place of the compressor or of the shards among the codecs, or their number without one."""
    packers = (place for place, codec in enumerate(codecs) if _name(codec) in {*_COMPRESSORS, _SHARDS})
    return next(packers, len(codecs))


def _name(codec: Codec) -> str:
    """The name of a codec in the metadata of format 2 (id) or 3 (name)."""
    return str(codec.get("id", codec.get("name"))).removeprefix("numcodecs.")


def _options(codec: Codec) -> dict[str, Any]:
    return dict(codec.get("configuration") or codec)


def check_chunks(
    files: Collection[Path], codecs: Sequence[Codec], shape: Sequence[int], itemsize: int, path: Path
) -> None:
    """Refuse chunk files that claim to unpack to more than a chunk of this shape holds."""
    filtered = _filtered_size(codecs, itemsize, path)
    for codec in codecs:
        if _name(codec) == _SHARDS:
            filtered = _filtered_size(_options(codec)["codecs"], filtered, path)
    for file in files if _place_of_packer(codecs) < len(codecs) else ():
        try:
            _check_content(file.read_bytes(), codecs, shape, filtered)
        except (ValueError, LookupError, struct.error, zlib.error) as error:
            raise CorruptFileError(
                f"{path}: chunk {file.name} claims more than a chunk of shape {tuple(shape)} holds, or is damaged "
                f"({error}); write it again."
            ) from None


def _filtered_size(codecs: Sequence[Codec], itemsize: float, path: Path) -> float:
    """The bytes of a number of ``itemsize`` bytes after all filters.

    Each must take numbers of the size that the one before gives: otherwise each of many could multiply the chunk.
    """
    for codec in codecs:
        if _name(codec) in _FILTERS:
            takes, gives = _sizes_of_filter(codec, itemsize)
            if takes != itemsize:
                raise FileFormatError(
                    f"{path} has the filter {_name(codec)!r} for numbers of {takes:g} bytes, and it gets numbers of "
                    f"{itemsize:g} bytes; write it again with filters that fit."
                )
            itemsize = gives
    return itemsize


def _sizes_of_filter(codec: Codec, itemsize: float) -> tuple[float, float]:
    """The bytes of a number that a filter takes, and of one that it gives, when a chunk is written."""
    if _name(codec) == "packbits":
        return 1, 1 / 8
    options = _options(codec)
    types = [next((options[entry] for entry in names if options.get(entry) is not None), None) for names in _TYPES]
    takes = itemsize if types[0] is None else np.dtype(types[0]).itemsize
    return takes, takes if types[1] is None else np.dtype(types[1]).itemsize


def _check_content(content: bytes, codecs: Sequence[Codec], shape: Sequence[int], itemsize: float) -> None:
    """Raise ValueError where a chunk, or one within a shard, claims too many bytes."""
    place = _place_of_packer(codecs)
    if place == len(codecs):
        return
    content = content[: max(len(content) - 4 * (len(codecs) - place - 1), 0)]  # checksums follow
    name, options = _name(codecs[place]), _options(codecs[place])
    if name == _SHARDS:
        for part in _parts_of_shard(content, options, shape):
            _check_content(part, options["codecs"], options["chunk_shape"], itemsize)
        return
    limit = int(math.prod(shape) * itemsize) + _ALWAYS_ALLOWED
    claim = _COMPRESSORS[name](content, limit)
    if claim > limit:
        raise ValueError(f"{claim:,} bytes")


def _parts_of_shard(content: bytes, options: dict[str, Any], shape: Sequence[int]) -> Iterator[bytes]:
    """The chunks within a shard, by its index of offsets and lengths."""
    n_chunks = math.prod(-(-size // part) for size, part in zip(shape, options["chunk_shape"], strict=True))
    length = 16 * n_chunks + 4 * any(_name(codec) == "crc32c" for codec in options["index_codecs"])
    if length > len(content):
        raise ValueError("its index is not there")
    start = len(content) - length if options.get("index_location", "end") == "end" else 0
    total = 0
    for offset, size in struct.iter_unpack("<QQ", content[start : start + 16 * n_chunks]):
        if (offset, size) != (_NOT_THERE, _NOT_THERE):
            total += size
            if total > len(content):
                raise ValueError("its chunks overlap")
            yield content[offset : offset + size]


def _blosc_size(content: bytes, limit: int) -> int:
    unpacked, _, stored = struct.unpack_from("<III", content, 4)
    if stored != len(content):
        raise ValueError("it is truncated")
    return int(unpacked)


def _lz4_size(content: bytes, limit: int) -> int:
    return int(struct.unpack_from("<I", content)[0])


def _deflate_size(content: bytes, limit: int) -> int:
    """What a gzip or zlib stream unpacks to; counted where it could be more than ``limit``."""
    if _DEFLATE_RATIO * len(content) <= limit:
        return _DEFLATE_RATIO * len(content)
    stream = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # either of the two
    size = position = 0
    while size <= limit and not stream.eof and position < len(content):
        size += len(stream.decompress(content[position : position + _UNPACKED_AT_ONCE]))
        position += _UNPACKED_AT_ONCE
    if size <= limit and (not stream.eof or stream.unused_data or position < len(content)):
        raise ValueError("it is not one whole stream")
    return size


def _zstd_size(content: bytes, limit: int) -> int:
    """The content size in the frame's header, or what its blocks hold, whichever is more.

    One frame must fill the chunk: decoders unpack whatever follows.
    """
    magic, descriptor = struct.unpack_from("<IB", content)
    if magic != _ZSTD_MAGIC:
        raise ValueError("it is not zstd")
    has_one_segment, has_checksum, size_code = descriptor >> 5 & 1, descriptor >> 2 & 1, descriptor >> 6
    position = 5 + (0 if has_one_segment else 1) + (0, 1, 2, 4)[descriptor & 3]
    width = (has_one_segment, 2, 4, 8)[size_code]
    claim = int.from_bytes(content[position : position + width], "little") + (256 if width == 2 else 0)
    position += width
    size = 0
    is_last = False
    while not is_last and max(size, claim) <= limit:
        header = int.from_bytes(content[position : position + 3], "little")
        is_last, kind, length = bool(header & 1), header >> 1 & 3, header >> 3
        size += length if kind != 2 else 0 if width else _ZSTD_USUAL_BLOCK
        position += 3 + (1 if kind == 1 else length)
        if position > len(content):
            raise ValueError("it is truncated")
    if is_last and position + 4 * has_checksum != len(content):
        raise ValueError("it is not one whole frame")
    return max(size, claim)


#: Compressor -> size that its output claims when unpacked; called with the output and the limit.
_COMPRESSORS: dict[str, Callable[[bytes, int], int]] = {
    "zstd": _zstd_size,
    "blosc": _blosc_size,
    "gzip": _deflate_size,
    "zlib": _deflate_size,
    "lz4": _lz4_size,
}
