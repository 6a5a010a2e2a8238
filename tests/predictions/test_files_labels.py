"""Labels in a file of their own, as numbers or as names."""

import hashlib
import json
import pickle

import numpy as np
import pytest
from conftest import REAL_ENSEMBLES, ensemble_path
from test_files_damaged import write_labels

import veridical as vd
from veridical import errors
from veridical.predictions.files import cifar_batches

LABELS = np.asarray([2, 0, 1, 1])
CLASSES = ["cat", "dog", "owl"]


@pytest.fixture
def unlabelled(tmp_path):
    predictions = vd.Predictions(np.full((2, 4, 3), 1 / 3), class_names=CLASSES)
    return vd.save(predictions, tmp_path / "p.npz")


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".txt", ".csv", ".json", ".parquet", ".pt"])
def test_labels_are_read_from_every_format(tmp_path, unlabelled, suffix):
    path = tmp_path / f"labels{suffix}"
    write_labels(LABELS, path)
    np.testing.assert_array_equal(vd.load(unlabelled, labels=path).labels, LABELS)
    np.testing.assert_array_equal(vd.load(unlabelled, labels=str(path)).labels, LABELS)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("y.csv", "image,label\na.png,2\nb.png,0\nc.png,1\nd.png,1\n"),
        ("y.csv", "2\n0\n1\n1\n"),
        ("y.csv", "truth\nowl\ncat\ndog\ndog\n"),
        ("y.csv", "Labels,file\nowl,1\ncat,2\ndog,3\ndog,4\n"),
        ("y.txt", "owl\ncat\ndog\ndog\n\n\n"),
        ("y.txt", " 2\r\n0 \r\n1\r\n1"),
        ("y.txt", "2.0\n0.0\n1.0\n1.0"),
        ("y.json", '{"labels": [2, 0, 1, 1], "other": 3}'),
        ("y.json", '["owl", "cat", "dog", "dog"]'),
        ("y.json", "[[2], [0], [1], [1]]"),
    ],
)
def test_labels_are_read_from_every_layout(tmp_path, unlabelled, name, content):
    (tmp_path / name).write_text(content)
    np.testing.assert_array_equal(vd.load(unlabelled, labels=tmp_path / name).labels, LABELS)


def test_labels_may_be_arrays_and_names(unlabelled):
    np.testing.assert_array_equal(vd.load(unlabelled, labels=LABELS).labels, LABELS)
    np.testing.assert_array_equal(vd.load(unlabelled, labels=["owl", "cat", "dog", "dog"]).labels, LABELS)


def test_labels_argument_replaces_labels_in_the_file(tmp_path):
    path = vd.save(vd.Predictions(np.full((2, 4, 3), 1 / 3), [0, 0, 0, 0]), tmp_path / "p.npz")
    np.testing.assert_array_equal(vd.load(path, labels=LABELS).labels, LABELS)


def test_npz_labels_may_be_names(tmp_path):
    for names in (np.asarray(["owl", "cat", "dog", "dog"]), np.asarray([b"owl", b"cat", b"dog", b"dog"])):
        np.savez(tmp_path / "p.npz", probs=np.full((2, 4, 3), 1 / 3), labels=names, class_names=CLASSES)
        np.testing.assert_array_equal(vd.load(tmp_path / "p.npz").labels, LABELS)


def test_labels_are_read_from_cifar_pickles(tmp_path, unlabelled, monkeypatch):
    """As Python 2 wrote CIFAR: byte strings for keys, lists of numbers, no suffix."""
    batch = {b"data": np.zeros((4, 5), np.uint8), b"fine_labels": LABELS.tolist(), b"coarse_labels": [0, 0, 0, 0]}
    content = pickle.dumps(batch, protocol=2)
    monkeypatch.setitem(cifar_batches.PUBLISHED, "written here", {"test": hashlib.md5(content).hexdigest()})
    for name in ("test", "labels.pk"):
        (tmp_path / name).write_bytes(content)
        np.testing.assert_array_equal(vd.load(unlabelled, labels=tmp_path / name).labels, LABELS)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("y.txt", "2\n0\n1\n", "3 labels for 4 samples"),
        ("y.txt", "2\n0\n1\n7\n", "label of sample 3 is 7"),
        ("y.txt", "owl\ncat\ndog\nbat\n", "sample 3 is 'bat', and the classes are: cat, dog, owl"),
        ("y.txt", "2\n0\n1\n0.5\n", "sample 3 is '0.5', and the classes are"),
        ("y.txt", "1\n" * 3 + "9" * 40, "sample 3 is '9999.*', and the classes are"),
        ("y.csv", "a,b\n1,2\n", "has columns a, b; name the one with the labels: label"),
        ("y.csv", "a,label\n1,2\n3\n", "line 3 of .* has 1 entries, and there are 2 columns"),
        ("y.json", "[2, 0, 1", "cannot be read as labels .JSONDecodeError"),
        ("y.json", '{"a": [1], "b": [2]}', "holds a, b; name the one with the labels: labels"),
        ("y.json", "[[1, 2], [3, 4]]", r"shape \(2, 2\)"),
        ("y.json", "[[1, 2], [3]]", "cannot be read as labels"),
        ("y.json", "[true, false, true, true]", "labels are booleans, which are for two classes, and there are 3"),
        ("y.json", "[]", r"shape \(0,\)"),
        ("y.xml", "<labels/>", r"suffix \.xml; labels come as \.npz, \.npy, \.csv"),
    ],
)
def test_invalid_labels_are_rejected(tmp_path, unlabelled, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(errors.InvalidInputError, match=message):
        vd.load(unlabelled, labels=tmp_path / name)


def test_ragged_labels_are_rejected(unlabelled):
    with pytest.raises(errors.LabelError, match="cannot be made into one array"):
        vd.load(unlabelled, labels=[[0], [1, 2], [0], [1]])


def test_missing_labels_file_is_rejected(tmp_path, unlabelled):
    with pytest.raises(errors.FileFormatError, match=r"none\.txt does not exist"):
        vd.load(unlabelled, labels=tmp_path / "none.txt")


def test_named_labels_need_class_names(tmp_path):
    path = vd.save(vd.Predictions(np.full((2, 4, 3), 1 / 3)), tmp_path / "p.npz")
    with pytest.raises(errors.LabelError, match=r"p\.npz: labels are names \('owl', \.\.\.\)"):
        vd.load(path, labels=["owl", "cat", "dog", "dog"])


@pytest.mark.parametrize("name", REAL_ENSEMBLES)
def test_labels_of_real_ensembles_from_another_file(name, tmp_path):
    loaded = vd.load(ensemble_path(name))
    assert loaded.kind == "logits"
    (tmp_path / "y.json").write_text(json.dumps(loaded.labels.tolist()))
    apart = vd.load(ensemble_path(name), labels=tmp_path / "y.json")
    np.testing.assert_array_equal(apart.labels, loaded.labels)


@pytest.fixture
def with_ids(tmp_path):
    predictions = vd.Predictions(np.full((2, 4, 3), 1 / 3), class_names=CLASSES, sample_ids=["a", "b", "c", "d"])
    return vd.save(predictions, tmp_path / "ids.npz")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("header", [("image_name", "truth"), ("truth", "image_name"), ("id", "answer")])
def test_column_beside_the_ids_has_the_labels(tmp_path, with_ids, header, suffix):
    columns = [["d", "c", "b", "a"], ["dog", "dog", "cat", "owl"]]
    columns = columns[::-1] if header[0] == "truth" else columns
    path = tmp_path / f"y{suffix}"
    if suffix == ".csv":
        path.write_text("\n".join(map(",".join, [header, *zip(*columns, strict=True)])) + "\n")
    else:
        import pyarrow as pa
        import pyarrow.parquet

        pa.parquet.write_table(pa.table(dict(zip(header, columns, strict=True))), path)
    np.testing.assert_array_equal(vd.load(with_ids, labels=path).labels, LABELS)


def test_columns_without_ids_need_a_name(tmp_path, with_ids):
    (tmp_path / "y.csv").write_text("image_name,truth\nx,owl\ny,cat\n")
    with pytest.raises(errors.FileFormatError, match="has columns image_name, truth; name the one with the labels"):
        vd.load(with_ids, labels=tmp_path / "y.csv")


def test_labels_without_ids_are_taken_in_order_with_a_warning(tmp_path, with_ids, unlabelled):
    (tmp_path / "y.txt").write_text("2\n0\n1\n1\n")
    with pytest.warns(errors.UnmatchedIdWarning, match=r"y\.txt has no ids and the samples have") as caught:
        predictions = vd.load(with_ids, labels=tmp_path / "y.txt")
    np.testing.assert_array_equal(predictions.labels, LABELS)
    assert caught[0].filename == __file__
    vd.load(unlabelled, labels=tmp_path / "y.txt")  # nothing to say
    vd.load(with_ids, labels=LABELS)
