"""Results that are written block by block, appear under their name when they are complete, and can be continued.

While a result ``NAME`` is written it is in the directory ``.NAME.partial`` beside it, with ``progress.json``: what is
computed from what, and how many blocks are finished.  Every few seconds, what is written is brought to the disk, and
then that number.  The last step is one rename.  ``.NAME.lock`` says which process does that; there is one at a time.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.lib import format as npy_format

from veridical._atomic import as_path, end_of_links, move_into_place, storage_errors, write_atomically
from veridical._json import read_json, to_json
from veridical._lazy import require
from veridical._locking import ProcessLock
from veridical.errors import CorruptFileError, FileFormatError, ParameterError, StorageError, shown
from veridical.predictions.files.format_zarr import is_zarr
from veridical.predictions.validation import Array

_PROGRESS = "progress.json"
_COPY_BYTES = 1 << 24
#: To bring files to the disk takes a tenth of a second, in which nothing is computed.
_SECONDS_BETWEEN_COMMITS = 5.0
#: What a Zarr array is written in where it has no block size: labels and names.
_SMALL_CHUNK = 1 << 20


class ArraySpec(NamedTuple):
    """An array of the result: its shape, its dtype, and which axis is that of the samples."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    samples_axis: int = 0

    @classmethod
    def of(cls, empty: Array, n_samples: int) -> ArraySpec:
        """The array of ``n_samples`` samples that has this one for none."""
        axis = empty.shape.index(0)
        return cls((*empty.shape[:axis], n_samples, *empty.shape[axis + 1 :]), empty.dtype, axis)

    def part(self, samples: slice) -> tuple[slice, ...]:
        """Where some samples are in the array."""
        return (*[slice(None)] * self.samples_axis, samples)

    @property
    def n_bytes(self) -> int:
        """Size of the numbers."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


def write_arrays(
    target: Path, path: Path, specs: Mapping[str, ArraySpec], start: int, arrays: Mapping[str, Array]
) -> None:
    """Write the arrays of a block that begins at sample ``start`` into a result that any process has begun."""
    with _partial_is_kept(target):
        group = _open_group(path, "r+") if path.suffix == ".zarr" else None
        for name, spec in specs.items():
            values = np.asarray(arrays[name])
            if group is None:
                _write_npy(path / f"{name}.npy", spec, start, values)
            else:
                group[name][spec.part(slice(start, start + values.shape[spec.samples_axis]))] = values


def _write_npy(path: Path, spec: ArraySpec, start: int, values: Array) -> None:
    """Write by position: a map of a file on a full disk would end the interpreter."""
    axis = spec.samples_axis
    row = spec.dtype.itemsize * int(np.prod(spec.shape[axis + 1 :], dtype=np.int64))
    with path.open("r+b", buffering=0) as file:
        first = os.fstat(file.fileno()).st_size - spec.n_bytes
        for k, part in enumerate(values.reshape(-1, *values.shape[axis:])):
            view = np.ascontiguousarray(part, spec.dtype).data.cast("B")
            position = first + (k * spec.shape[axis] + start) * row
            while len(view):
                written = os.pwrite(file.fileno(), view, position)
                view, position = view[written:], position + written


def _create_arrays(path: Path, specs: Mapping[str, ArraySpec], block_size: int) -> None:
    """Arrays of no content yet; those of a Zarr group have one chunk per block."""
    path.mkdir()
    group = _open_group(path, "a") if path.suffix == ".zarr" else None
    for name, spec in specs.items():
        if group is not None:
            chunks = [*spec.shape]
            chunks[spec.samples_axis] = min(block_size, chunks[spec.samples_axis])
            group.create_array(name, shape=spec.shape, chunks=tuple(chunks), dtype=spec.dtype)
            continue
        with (path / f"{name}.npy").open("wb") as file:
            header = {"descr": npy_format.dtype_to_descr(spec.dtype), "fortran_order": False, "shape": spec.shape}
            npy_format.write_array_header_1_0(file, header)
            file.truncate(file.tell() + spec.n_bytes)


def _are_whole(path: Path, specs: Mapping[str, ArraySpec]) -> bool:
    """Whether arrays that were begun are there, with all their bytes."""
    if path.suffix == ".zarr":
        return is_zarr(path) and all(name in _open_group(path, "r") for name in specs)
    files = {path / f"{name}.npy": spec.n_bytes for name, spec in specs.items()}
    return all(file.is_file() and file.stat().st_size > n_bytes for file, n_bytes in files.items())


def _open_group(path: Path, mode: str) -> Any:
    return require("zarr", "zarr", at_least=3).open_group(str(path), mode=mode)


class BlockOutput:
    """Arrays that are written block by block.

    Parameters
    ----------
    target : path
        ``.zarr``: a group of arrays; ``.npz``: an archive of them; without suffix: a directory with one ``.npy`` per
        array.
    specs : mapping
        Name -> array.
    job : dict
        What is computed from what, ready for JSON; a result is only continued if this is the same.
    block_size : int
    resume : bool
        Continue after the last finished block, if there is one; otherwise start anew.
    """

    def __init__(
        self, target: Any, specs: Mapping[str, ArraySpec], job: dict[str, Any], block_size: int, *, resume: bool = False
    ) -> None:
        self.target = check_block_target(target)
        suffix = self.target.suffix.lower()
        self.specs = dict(specs)
        with storage_errors(self.target):
            self._place = end_of_links(self.target)
        self.folder = self._place.parent / f".{self._place.name}.partial"
        self.arrays_path = self.folder / ("arrays.zarr" if suffix == ".zarr" else "arrays")
        shapes = {name: [*spec.shape] for name, spec in self.specs.items()}
        #: As it comes back from a JSON file.
        self._job = json.loads(to_json({**job, "block_size": block_size, "arrays": shapes}))
        with storage_errors(self.target):
            self._lock = ProcessLock(
                self._place.parent / f".{self._place.name}.lock", f"{self.target} is being written"
            )
            try:
                self.blocks_done: int = self._read_progress() if resume else 0
                if not self.blocks_done:
                    self._start_anew(block_size)
            except BaseException:
                self._lock.release()
                raise
        self._finished: set[int] = set()
        self._last_commit = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *exception: object) -> None:
        try:
            if kind is not None:
                with suppress(OSError, ValueError):  # the error on its way out says what is wrong
                    self._commit()
        finally:
            self._lock.release()

    def _start_anew(self, block_size: int) -> None:
        if self.folder.exists():
            shutil.rmtree(self.folder)
        needed = sum(spec.n_bytes for spec in self.specs.values())
        free = shutil.disk_usage(self._place.parent).free
        if needed > free and self.target.suffix.lower() != ".zarr":  # which compresses
            raise StorageError(
                f"there is no space to write {self.target}: it needs {needed / 1e9:.3g} GB and {free / 1e9:.3g} GB are "
                "free; free some space or choose another directory."
            )
        self.folder.mkdir(mode=0o700)  # the result may replace a private one
        _create_arrays(self.arrays_path, self.specs, block_size)

    def _read_progress(self) -> int:
        if not (self.folder / _PROGRESS).is_file():
            return 0
        content = read_json(self.folder / _PROGRESS)
        n_blocks = max(-(-spec.shape[spec.samples_axis] // self._job["block_size"]) for spec in self.specs.values())
        done = content.get("blocks_done") if isinstance(content, dict) else None
        if type(done) is not int or not 0 <= done <= n_blocks:
            raise CorruptFileError(f"{self.folder / _PROGRESS} is damaged; leave resume=True out.")
        if content.get("job") != self._job:
            raise ParameterError(
                f"{self.folder} is the beginning of another result: {_difference(content.get('job'), self._job)}; "
                "give the same input and options, or leave resume=True out to start anew."
            )
        if not _are_whole(self.arrays_path, self.specs):
            raise CorruptFileError(
                f"{self.folder} lacks arrays that were written; leave resume=True out to start anew."
            )
        return done

    def write(self, start: int, arrays: Mapping[str, Array]) -> None:
        """Write the arrays of a block that begins at sample ``start``."""
        self._lock.check()
        write_arrays(self.target, self.arrays_path, self.specs, start, arrays)

    def commit(self, block: int) -> None:
        """Remember that a block is written; on the disk, every few seconds, how many are, from the first."""
        self._finished.add(block)
        while self.blocks_done in self._finished:
            self._finished.remove(self.blocks_done)
            self.blocks_done += 1
        if time.monotonic() - self._last_commit >= _SECONDS_BETWEEN_COMMITS:
            with _partial_is_kept(self.target):
                self._commit()

    def _commit(self) -> None:
        """Bring what is written to the disk, and then how much it is."""
        self._lock.check()
        self._flush()
        content = {"job": self._job, "blocks_done": self.blocks_done}
        write_atomically(self.folder / _PROGRESS, to_json(content).encode())
        self._last_commit = time.monotonic()

    def _flush(self) -> None:
        for path in self.arrays_path.glob("*.npy"):  # chunks of a store are files that were written and closed
            with path.open("rb") as file:
                os.fsync(file.fileno())

    def finish(self, extra: Mapping[str, Array]) -> None:
        """Add small arrays, and give the result its name."""
        with _partial_is_kept(self.target):
            self._flush()
            result, suffix = self.arrays_path, self.target.suffix.lower()
            if suffix == ".zarr":
                self._add_to_group(extra)
            else:
                for name, values in extra.items():
                    np.save(self.arrays_path / f"{name}.npy", values)
            if suffix == ".npz":
                result = self._zip()
            self._lock.check()  # only what this process wrote gets the name
            move_into_place(result, self._place)
            shutil.rmtree(self.folder)

    def _add_to_group(self, extra: Mapping[str, Array]) -> None:
        group = _open_group(self.arrays_path, "a")
        for name, values in extra.items():
            if values.dtype.kind in "US":
                group.attrs[name] = values.tolist()
                continue
            chunks = tuple(min(size, _SMALL_CHUNK) or 1 for size in values.shape)
            group.create_array(name, shape=values.shape, chunks=chunks, dtype=values.dtype, overwrite=True)[...] = (
                values
            )

    def _zip(self) -> Path:
        path = self.folder / "arrays.npz"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
            for file in sorted(self.arrays_path.iterdir()):
                entry = zipfile.ZipInfo(file.name)  # dated 1980, so that the same numbers are the same bytes
                entry.file_size = file.stat().st_size
                with archive.open(entry, "w", force_zip64=True) as stream, file.open("rb") as numbers:
                    shutil.copyfileobj(numbers, stream, _COPY_BYTES)
        return path


@contextmanager
def _partial_is_kept(target: Path) -> Iterator[None]:
    """Say in one sentence that the result could not be written, and how to continue it."""
    try:
        with storage_errors(target):
            yield
    except StorageError as error:
        text = str(error).rstrip(".")
        raise StorageError(f"{text}; the finished blocks are kept: continue with resume=True.") from error


def check_block_target(target: Any) -> Path:
    """Where a result may be written: under a known suffix, and never in place of something else."""
    path = as_path(target)
    suffix = path.suffix.lower()
    if suffix not in ("", ".npz", ".zarr"):
        raise FileFormatError(
            f"{path} has the suffix {path.suffix!r}; results are written as .zarr or .npz, or to a directory of .npy "
            "files (a name without suffix)."
        )
    with storage_errors(path):
        if not path.exists():
            return path
        if suffix == ".zarr" and not is_zarr(path):
            raise StorageError(f"{path} exists and is not a .zarr store; remove it or choose another name.")
        if suffix == ".npz" and path.is_dir():
            raise StorageError(f"{path} is a directory; remove it or choose another name.")
        if not suffix and not (path.is_dir() and all(file.suffix == ".npy" for file in path.iterdir())):
            raise StorageError(f"{path} exists and is not a directory of .npy files; remove it or choose another name.")
    return path


def _difference(before: Any, now: dict[str, Any]) -> str:
    """The first entry in which two jobs differ."""
    before = before if isinstance(before, dict) else {}
    name = next((name for name, value in now.items() if before.get(name) != value), "the version")
    return f"{name.replace('_', ' ')} was {shown(before.get(name))} and is {shown(now.get(name))}"


def read_arrays(path: Path) -> dict[str, Any]:
    """The arrays of a finished result: .npy files are mapped, Zarr arrays are read when they are sliced."""
    suffix = path.suffix.lower()
    if suffix == ".zarr":
        return dict(_open_group(path, "r").arrays())
    if suffix == ".npz":
        with np.load(path) as archive:
            return {name: archive[name] for name in archive.files}
    return {file.stem: np.load(file, mmap_mode="r") for file in sorted(path.glob("*.npy"))}
