"""Prediction files and the labels that belong to them."""

import hashlib
import pickle

import numpy as np
import pytest
from small_ensembles import small_predictions, write_as_the_authors, write_npz

from veridical import paper
from veridical.errors import CorruptFileError, LabelError, ParameterError, VeridicalError
from veridical.predictions.files import cifar_batches


def test_shipped_ensemble_is_the_default():
    (ensemble,) = paper.open_ensembles()
    assert str(ensemble.name) == "CIFAR10 ResNet8 (deep ensemble)"
    assert ensemble.predictions.n_sources == 20
    with pytest.raises(ParameterError, match="labels without predictions"):
        paper.open_ensembles(labels=["labels.npy"])


def test_authors_files_are_logits(tmp_path):
    path, labels = write_as_the_authors(tmp_path)
    (ensemble,) = paper.open_ensembles([path], labels=[labels])
    assert ensemble.name == paper.EnsembleName("CIFAR10", "PreResNet110", "deep")
    assert ensemble.predictions.kind == "logits"
    np.testing.assert_array_equal(ensemble.predictions.labels, small_predictions(10, 400).labels)
    assert ensemble.engine(3).predictions.n_sources == 3
    assert ensemble.engine(3) is ensemble.engine(3)


def test_ensemble_without_labels_is_rejected(tmp_path):
    path, _ = write_as_the_authors(tmp_path)
    with pytest.raises(LabelError, match="has no labels") as caught:
        paper.open_ensembles([path])
    assert "labels=" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_labels_of_wrong_length_are_rejected(tmp_path):
    path, labels = write_as_the_authors(tmp_path)
    np.save(labels, np.zeros(399, dtype=int))
    with pytest.raises(LabelError, match="399 labels for 400 samples"):
        paper.open_ensembles([path], labels=[labels])


def test_label_files_are_one_for_all_or_one_each(tmp_path):
    first, labels = write_as_the_authors(tmp_path)
    second = tmp_path / "other.npz"
    np.savez(second, logits=small_predictions(2, 400).values)
    both = paper.open_ensembles([first, second], labels=[labels])
    assert [ensemble.predictions.n_sources for ensemble in both] == [10, 2]
    np.testing.assert_array_equal(both[0].predictions.labels, both[1].predictions.labels)
    each = paper.open_ensembles([first, second], labels=[labels, labels])
    assert len(each) == 2
    with pytest.raises(ParameterError, match="3 label files for 2 prediction files"):
        paper.open_ensembles([first, second], labels=[labels] * 3)


def test_files_of_the_same_name_are_shown_with_their_paths(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    paths = [write_npz(tmp_path / folder / "run.npz") for folder in "ab"]
    names = [str(ensemble.name) for ensemble in paper.open_ensembles(paths)]
    assert names == [str(path) for path in paths]


def test_labels_may_be_published_python_batches(tmp_path, monkeypatch):
    path, _ = write_as_the_authors(tmp_path)
    expected = small_predictions(10, 400).labels
    stored = {
        "test_batch": {b"labels": expected.tolist(), b"data": np.zeros((400, 3072), np.uint8), b"batch_label": b"test"},
        "test": {b"fine_labels": expected.tolist(), b"coarse_labels": [0] * 400},
    }
    for name, content in stored.items():
        (tmp_path / name).write_bytes(pickle.dumps(content, protocol=2))
        checksum = hashlib.md5((tmp_path / name).read_bytes()).hexdigest()
        monkeypatch.setitem(cifar_batches.PUBLISHED, "written here", {name: checksum})
        (ensemble,) = paper.open_ensembles([path], labels=[tmp_path / name])
        np.testing.assert_array_equal(ensemble.predictions.labels, expected)


@pytest.mark.parametrize("label_bytes", [1, 2])
def test_labels_may_be_binary_cifar_batches(tmp_path, label_bytes):
    records = np.zeros((5, label_bytes + 3072), np.uint8)
    records[:, 0] = 19  # CIFAR-100's coarse label comes first
    records[:, label_bytes - 1] = [3, 8, 8, 0, 6]
    batch = tmp_path / "test.bin"
    records.tofile(batch)
    path = tmp_path / "five.npz"
    np.savez(path, logits=small_predictions(2, 5).values)
    (ensemble,) = paper.open_ensembles([path], labels=[batch])
    np.testing.assert_array_equal(ensemble.predictions.labels, [3, 8, 8, 0, 6])


def test_damaged_binary_batches_are_rejected(tmp_path):
    path, batch = write_npz(tmp_path / "five.npz", 2, 5), tmp_path / "test.bin"
    with pytest.raises(VeridicalError, match=r"test\.bin does not exist"):
        paper.open_ensembles([path], labels=[batch])
    for content in (b"\0" * 3000, b"\0"):
        batch.write_bytes(content)
        with pytest.raises(CorruptFileError, match=f"has {len(content)} bytes, which is not a whole number of images"):
            paper.open_ensembles([path], labels=[batch])


def test_missing_file_is_named(tmp_path):
    with pytest.raises(VeridicalError, match=r"nothing\.npy"):
        paper.open_ensembles([tmp_path / "nothing.npy"])
