"""Zarr stores: everything in them is seen before anything is decoded."""

import json
import os
import pickle
import shutil

import numcodecs
import numpy as np
import pytest
import zarr

import veridical as vd
from veridical import errors
from veridical._outputs import check_outputs
from veridical.predictions.files import format_zarr

NOBODY = 65534


class Trap:
    """Leaves a file where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def write_trap(path, marker):
    """An array of format 2 whose only chunk is a pickle that leaves ``marker``."""
    zarr.create_array(str(path), shape=(2, 3, 2), dtype="float32", compressors=None, zarr_format=2)
    metadata = json.loads((path / ".zarray").read_text())
    metadata["filters"] = [{"id": "pickle", "protocol": 5}]
    (path / ".zarray").write_text(json.dumps(metadata))
    (path / "0.0.0").write_bytes(pickle.dumps(Trap(marker)))


@pytest.fixture
def store(tmp_path):
    """A store of format 2 with the array probs."""
    path = tmp_path / "p.zarr"
    group = zarr.open_group(str(path), mode="w", zarr_format=2)
    group.create_array("probs", data=np.full((2, 3, 2), 0.5, np.float32))
    return path


def test_zarr_links_that_leave_the_store_are_refused(tmp_path, store):
    marker = tmp_path / "marker"
    shutil.rmtree(store / "probs")
    write_trap(tmp_path / "elsewhere", marker)
    (store / "probs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(errors.FileFormatError, match=r"contains a link to .*elsewhere; put a copy"):
        vd.load(store)
    assert not marker.exists()


def test_zarr_linked_chunks_outside_the_store_are_refused(tmp_path, store):
    chunk = store / "probs" / "0.0.0"
    chunk.rename(tmp_path / "chunk")
    chunk.symlink_to(tmp_path / "chunk")
    with pytest.raises(errors.FileFormatError, match="contains a link to"):
        vd.load(store)


def test_zarr_links_within_the_store_are_refused(store):
    """A chunk under two names would be checked under one and read under the other."""
    (store / "probs").rename(store / "scores")
    (store / "probs").symlink_to("scores")
    with pytest.raises(errors.FileFormatError, match=r"contains a link to .*scores; put a copy"):
        vd.load(store)


@pytest.mark.parametrize("name", ["probs/.DS_Store", "probs/notes.txt", "probs/9.9.9"])
def test_zarr_files_that_are_no_chunks_are_left_alone(store, name):
    (store / name).write_bytes(b"\0\0\0\1Bud1")
    np.testing.assert_array_equal(vd.load(store).values, np.full((2, 3, 2), 0.5))


@pytest.mark.parametrize("name", ["probs/x.npz", "x.npz"])
def test_zarr_output_within_the_store_is_refused(store, name):
    with pytest.raises(errors.ParameterError, match="is a part of the input"):
        check_outputs({"--out": store / name}, vd.load(store).files)


def test_zarr_linked_store_is_read(tmp_path, store):
    (tmp_path / "link.zarr").symlink_to(store)
    assert vd.load(tmp_path / "link.zarr").n_sources == 2


def test_zarr_special_files_are_refused(store):
    (store / "probs" / "0.0.0").unlink()
    os.mkfifo(store / "probs" / "0.0.0")
    with pytest.raises(errors.FileFormatError, match=r"0\.0\.0 is not a regular file"):
        vd.load(store)


def test_zarr_directories_that_cannot_be_listed_are_refused(tmp_path, store):
    """Mode 0311: files within can be opened by name, and are not listed."""
    vd.load(store)  # imports everything while this process may still read all files
    marker = tmp_path / "marker"
    shutil.rmtree(store / "probs")
    write_trap(store / "probs", marker)
    (store / "probs").chmod(0o311)
    parents = [store, *(folder for folder in store.parents if folder.stat().st_uid == os.getuid())]
    modes = {folder: folder.stat().st_mode for folder in parents}
    is_root = os.geteuid() == 0
    try:
        if is_root:  # root lists every directory
            for folder, mode in modes.items():
                folder.chmod(mode | 0o055)
            os.seteuid(NOBODY)
        with pytest.raises(errors.FileFormatError, match=r"p\.zarr/probs cannot be listed \(Permission denied\)"):
            vd.load(store)
    finally:
        if is_root:
            os.seteuid(0)
            for folder, mode in modes.items():
                folder.chmod(mode)
        (store / "probs").chmod(0o755)
    assert not marker.exists()


def test_zarr_codecs_are_checked_in_the_array_that_is_opened(store, monkeypatch):
    """Whatever the walk through the store may have missed."""
    metadata = json.loads((store / "probs" / ".zarray").read_text())
    metadata["compressor"] = {"id": "base64"}  # not one of the known codecs; zarr itself would run it
    (store / "probs" / ".zarray").write_text(json.dumps(metadata))
    monkeypatch.setattr(format_zarr, "_check_store", lambda path: 1000)
    with pytest.raises(errors.FileFormatError, match="packed with 'base64', which could run programs"):
        vd.load(store)


def test_zarr_2_is_refused(tmp_path, store, monkeypatch):
    monkeypatch.setattr(zarr, "__version__", "2.18.7")
    needed = r"needs zarr 3 or later, and 2\.18\.7 is installed; run, in a clone of veridical: pip install '\.\[zarr\]'"
    with pytest.raises(errors.MissingExtraError, match=needed):
        vd.load(store)
    with pytest.raises(errors.MissingExtraError, match=needed):
        vd.save(vd.Predictions(np.full((2, 3, 2), 0.5)), tmp_path / "new.zarr")


def test_zarr_shards_are_read(tmp_path):
    values = np.random.default_rng(0).dirichlet(np.ones(4), (2, 60)).astype(np.float32)
    group = zarr.open_group(str(tmp_path / "s.zarr"), mode="w")
    array = group.create_array("probs", shape=values.shape, shards=(1, 60, 4), chunks=(1, 20, 4), dtype="float32")
    array[...] = values
    np.testing.assert_array_equal(vd.load(tmp_path / "s.zarr").values, values)


@pytest.mark.parametrize("inner", [False, True])
def test_zarr_checksum_after_the_compressor_is_read(tmp_path, inner):
    values = np.random.default_rng(0).dirichlet(np.ones(4), (2, 60)).astype(np.float32)
    group = zarr.open_group(str(tmp_path / "s.zarr"), mode="w")
    packing = [zarr.codecs.ZstdCodec(checksum=True), zarr.codecs.Crc32cCodec()]
    options = {"shards": (1, 60, 4)} if inner else {}
    group.create_array("probs", shape=values.shape, chunks=(1, 20, 4), dtype="f4", compressors=packing, **options)
    group["probs"][...] = values
    np.testing.assert_array_equal(vd.load(tmp_path / "s.zarr").values, values)


def test_zarr_filters_are_read(tmp_path):
    """Whole thousandths in two bytes, and then their differences."""
    values = np.round(np.random.default_rng(0).random((2, 60, 2)), 3)
    filters = [numcodecs.FixedScaleOffset(0, 1000, "f8", "i2"), numcodecs.Delta("i2")]
    group = zarr.open_group(str(tmp_path / "s.zarr"), mode="w", zarr_format=2)
    group.create_array("logits", shape=values.shape, chunks=(1, 20, 2), dtype="f8", filters=filters)[...] = values
    np.testing.assert_allclose(vd.load(tmp_path / "s.zarr").values, values, rtol=1e-12)
