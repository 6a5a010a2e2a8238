"""Codecs of ``.zarr`` stores that are read: those that compress and do arithmetic, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from veridical.errors import FileFormatError

Codec = dict[str, Any]

_COMPRESSORS = ("zstd", "blosc", "gzip", "zlib", "lz4")
#: Others exist, a pickle among them, and what one version of a library refuses another runs.
_KNOWN = {
    *_COMPRESSORS,
    *("shuffle", "delta", "fixedscaleoffset", "quantize", "bitround", "astype", "packbits"),
    *("crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3"),
    *("bytes", "endian", "transpose", "sharding_indexed"),
}


def check_codecs(codecs: Sequence[Codec], path: Path) -> None:
    """Refuse codecs that are not known to be harmless."""
    for codec in codecs:
        name = str(codec.get("id", codec.get("name"))).removeprefix("numcodecs.")  # of format 2, or 3
        if name not in _KNOWN:
            raise FileFormatError(
                f"{path} is packed with {name!r}, which could run programs when it is read; write it again with one "
                f"of: {', '.join(_COMPRESSORS)}."
            )
        options = dict(codec.get("configuration") or codec)
        for entry in ("dtype", "astype", "encode_dtype", "decode_dtype"):  # of filters
            if options.get(entry) is not None and np.dtype(options[entry]).kind not in "fiub":
                raise FileFormatError(f"{path} is packed with {name!r} by way of {options[entry]!r}; write numbers.")
        for inner in ("codecs", "index_codecs"):  # of shards
            check_codecs(options.get(inner) or (), path)
