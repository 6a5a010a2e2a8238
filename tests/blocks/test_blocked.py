"""Blocked predictions: what is opened, what is read, and what changes under the reader."""

import os
import threading

import numpy as np
import pytest
import zarr
from blocked_ensembles import BLOCK_MEMORY

import veridical as vd
from veridical import errors, scale


def read_all(predictions):
    return np.concatenate([block.predictions.values for block in predictions.blocks()], axis=1)


class TestOpen:
    @pytest.mark.parametrize("sources_axis", [0, 1, 2])
    def test_npy_with_sources_on_any_axis(self, blocked_ensemble, tmp_path, sources_axis):
        probs, labels = blocked_ensemble
        np.save(tmp_path / "probs.npy", np.ascontiguousarray(np.moveaxis(probs, 0, sources_axis)))
        opened = scale.open(tmp_path / "probs.npy", labels, sources_axis=sources_axis, block_memory=BLOCK_MEMORY)
        assert opened.shape == probs.shape
        assert opened.n_blocks > 3
        assert np.array_equal(read_all(opened), probs)

    @pytest.mark.parametrize("dtype", [">f4", "<f8", "<f2"])
    def test_npy_of_any_dtype_and_order(self, blocked_ensemble, tmp_path, dtype):
        probs = np.asfortranarray(blocked_ensemble[0].astype(dtype))
        np.save(tmp_path / "probs.npy", probs)
        opened = scale.open(tmp_path / "probs.npy", block_memory=BLOCK_MEMORY)
        assert np.array_equal(read_all(opened), probs)
        assert opened.dtype == probs.dtype.newbyteorder("=")

    @pytest.mark.parametrize(("chunks", "zarr_format"), [((1, 1000, 4), 2), ((5, 70, 2), 3), ((2, 100, 4), 3)])
    def test_zarr_of_any_chunks(self, blocked_ensemble, tmp_path, chunks, zarr_format):
        probs, labels = blocked_ensemble
        group = zarr.open_group(str(tmp_path / "mine.zarr"), mode="w", zarr_format=zarr_format)
        group.create_array("probs", shape=probs.shape, chunks=chunks, dtype="float32")[...] = probs
        group.create_array("labels", shape=labels.shape, chunks=(500,), dtype="int64")[...] = labels
        opened = scale.open(tmp_path / "mine.zarr", block_memory=BLOCK_MEMORY)
        assert np.array_equal(opened.labels, labels)
        assert np.array_equal(read_all(opened), probs)
        if opened.block_size > chunks[1]:
            assert opened.block_size % chunks[1] == 0

    def test_saved_zarr_keeps_names_and_kind(self, blocked_ensemble, tmp_path):
        probs, labels = blocked_ensemble
        predictions = vd.Predictions(np.log(probs), labels, kind="log_probs", source_names=list("abcde"))
        vd.save(predictions, tmp_path / "mine.zarr")
        opened = scale.open(tmp_path / "mine.zarr", block_memory=BLOCK_MEMORY)
        assert (opened.kind, opened.source_names) == ("log_probs", tuple("abcde"))

    def test_kind_is_declared_by_the_name(self, blocked_ensemble, tmp_path):
        np.save(tmp_path / "logits_mine.npy", blocked_ensemble[0])
        assert scale.open(tmp_path / "logits_mine.npy").kind == "logits"
        with pytest.raises(errors.ParameterError, match="contradicts"):
            scale.open(tmp_path / "logits_mine.npy", kind="probs")

    def test_labels_are_checked(self, blocked_files):
        labels = np.load(blocked_files / "labels.npy")
        labels[7] = 4
        with pytest.raises(errors.LabelError, match="sample 7"):
            scale.open(blocked_files / "probs.npy", labels)

    def test_other_files_are_rejected(self, tmp_path):
        (tmp_path / "probs.csv").write_text("a")
        with pytest.raises(errors.FileFormatError, match=r"not a \.npy or \.zarr, which"):
            scale.open(tmp_path / "probs.csv")
        with pytest.raises(errors.FileFormatError, match="does not exist"):
            scale.open(tmp_path / "nothing.npy")

    def test_block_size_depends_on_the_memory(self, blocked_files):
        small, large = (scale.open(blocked_files / "probs.npy", block_memory=memory) for memory in (1 << 16, 1 << 18))
        assert small.block_size == 204
        assert large.block_size == 819
        with pytest.raises(errors.ParameterError, match="block_memory"):
            scale.open(blocked_files / "probs.npy", block_memory=10)


class TestBlocks:
    def test_next_block_is_read_while_this_one_is_used(self, blocked_files):
        opened = scale.open(blocked_files / "probs.npy", block_memory=BLOCK_MEMORY)
        read, reached = opened.reader.read, threading.Event()

        def watched(start, stop, out):
            if start == opened.block_size:
                reached.set()
            return read(start, stop, out)

        opened.reader.read = watched
        blocks = opened.blocks()
        next(blocks)
        assert reached.wait(20)  # the second block is read although nobody asked for it yet
        blocks.close()

    def test_kept_blocks_stay_as_they_are(self, blocked_ensemble, blocked_files):
        opened = scale.open(blocked_files / "probs.npy", block_memory=BLOCK_MEMORY)
        kept = list(opened.blocks())
        assert np.array_equal(np.concatenate([block.predictions.values for block in kept], axis=1), blocked_ensemble[0])


class TestChangedFile:
    def test_truncated_file_is_an_error(self, blocked_files):
        opened = scale.open(blocked_files / "probs.npy", block_memory=BLOCK_MEMORY)
        os.truncate(blocked_files / "probs.npy", 1000)
        with pytest.raises(errors.CorruptFileError, match=r"probs\.npy shrank from .* to 1,000 bytes"):
            scale.discover(opened)

    def test_truncated_map_is_an_error(self, blocked_files):
        mapped = scale.open(np.load(blocked_files / "probs.npy", mmap_mode="r")[:, 1:], block_memory=BLOCK_MEMORY)
        os.truncate(blocked_files / "probs.npy", 1000)
        with pytest.raises(errors.CorruptFileError, match="shrank while it was read"):
            scale.discover(mapped)

    def test_rewritten_file_is_an_error(self, blocked_ensemble, blocked_files):
        opened = scale.open(blocked_files / "probs.npy", block_memory=BLOCK_MEMORY)
        with (blocked_files / "probs.npy").open("r+b") as file:
            file.seek(5000)
            file.write(b"\0" * 16)
        os.utime(blocked_files / "probs.npy", ns=(0, 10**18))
        with pytest.raises(errors.CorruptFileError, match="was changed while it was read"):
            scale.discover(opened)

    def test_damaged_chunk_names_its_samples(self, blocked_ensemble, tmp_path):
        probs, _ = blocked_ensemble
        array = zarr.create_array(str(tmp_path / "probs.zarr"), shape=probs.shape, chunks=(5, 500, 4), dtype="float32")
        array[...] = probs
        (tmp_path / "probs.zarr" / "c" / "0" / "3" / "0").write_bytes(b"not a chunk at all")
        opened = scale.open(tmp_path / "probs.zarr", block_memory=4 * 500 * 5 * 4 * 4)
        assert opened.block_size == 500
        with pytest.raises(errors.FileFormatError, match=r"1500 to 1999|chunk"):
            scale.discover(opened)
