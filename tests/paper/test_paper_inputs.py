"""Prediction files and the labels that belong to them."""

import pickle

import numpy as np
import pytest
from small_ensembles import small_predictions, write_as_the_authors, write_npz

from veridical import paper
from veridical.errors import CorruptFileError, LabelError, ParameterError, UnsafePickleError, VeridicalError
from veridical.paper.cifar_labels import read_binary_batch


def test_the_shipped_ensemble_is_the_default():
    (ensemble,) = paper.open_ensembles()
    assert str(ensemble.name) == "CIFAR10 ResNet8 (deep ensemble)"
    assert ensemble.predictions.n_sources == 20
    with pytest.raises(ParameterError, match="labels were given without predictions"):
        paper.open_ensembles(labels=["labels.npy"])


def test_the_authors_files_are_logits(tmp_path):
    path, labels = write_as_the_authors(tmp_path)
    (ensemble,) = paper.open_ensembles([path], labels=[labels])
    assert ensemble.name == paper.EnsembleName("CIFAR10", "PreResNet110", "deep")
    assert ensemble.predictions.kind == "logits"
    np.testing.assert_array_equal(ensemble.predictions.labels, small_predictions(10, 400).labels)
    assert ensemble.first(3).n_sources == 3


def test_labels_are_needed(tmp_path):
    path, _ = write_as_the_authors(tmp_path)
    with pytest.raises(LabelError, match="holds no labels") as caught:
        paper.open_ensembles([path])
    assert "--labels" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_labels_of_the_wrong_length(tmp_path):
    path, labels = write_as_the_authors(tmp_path)
    np.save(labels, np.zeros(399, dtype=int))
    with pytest.raises(LabelError, match="399 labels for 400 samples"):
        paper.open_ensembles([path], labels=[labels])


def test_one_label_file_for_all_or_one_each(tmp_path):
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


def test_files_of_the_same_name_are_told_apart(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    paths = [write_npz(tmp_path / folder / "run.npz") for folder in "ab"]
    names = [str(ensemble.name) for ensemble in paper.open_ensembles(paths)]
    assert names == [str(path) for path in paths]


def test_plain_pickles_and_cifar_batches(tmp_path):
    path, _ = write_as_the_authors(tmp_path)
    expected = small_predictions(10, 400).labels
    stored = {
        "cifar10-labels.pk": expected.tolist(),
        "array.pkl": expected,
        "test_batch": {b"labels": expected.tolist(), b"data": np.zeros((400, 3072), np.uint8), b"batch_label": b"test"},
        "test": {b"fine_labels": expected.tolist(), b"coarse_labels": [0] * 400},
    }
    for name, content in stored.items():
        (tmp_path / name).write_bytes(pickle.dumps(content, protocol=2))
        (ensemble,) = paper.open_ensembles([path], labels=[tmp_path / name])
        np.testing.assert_array_equal(ensemble.predictions.labels, expected)


def test_a_pickle_that_would_run_something_is_refused(tmp_path):
    class Evil:
        def __reduce__(self):
            return (exec, (f"open({str(tmp_path / 'ran')!r}, 'w')",))

    path, _ = write_as_the_authors(tmp_path)
    (tmp_path / "labels.pk").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(UnsafePickleError):
        paper.open_ensembles([path], labels=[tmp_path / "labels.pk"])
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("label_bytes", [1, 2])
def test_cifar_in_its_binary_form(tmp_path, label_bytes):
    records = np.zeros((5, label_bytes + 3072), np.uint8)
    records[:, 0] = 19  # CIFAR-100's coarse label comes first
    records[:, label_bytes - 1] = [3, 8, 8, 0, 6]
    batch = tmp_path / "test.bin"
    records.tofile(batch)
    np.testing.assert_array_equal(read_binary_batch(batch), [3, 8, 8, 0, 6])
    path = tmp_path / "five.npz"
    np.savez(path, logits=small_predictions(2, 5).values)
    (ensemble,) = paper.open_ensembles([path], labels=[batch])
    np.testing.assert_array_equal(ensemble.predictions.labels, [3, 8, 8, 0, 6])


def test_broken_binary_batches(tmp_path):
    batch = tmp_path / "test.bin"
    with pytest.raises(CorruptFileError, match="cannot be read"):
        read_binary_batch(batch)
    batch.write_bytes(b"\0" * 3000)
    with pytest.raises(CorruptFileError, match="3000 bytes"):
        read_binary_batch(batch)
    batch.write_bytes(b"")
    with pytest.raises(CorruptFileError, match="0 bytes"):
        read_binary_batch(batch)


def test_a_missing_file(tmp_path):
    with pytest.raises(VeridicalError, match=r"nothing\.npy"):
        paper.open_ensembles([tmp_path / "nothing.npy"])
