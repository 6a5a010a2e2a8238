"""Ensembles of one file per source."""

import json

import numpy as np
import pytest
import torch
from ensembles import random_ensemble
from test_files import is_mapped

import veridical as vd
from veridical import errors


@pytest.fixture
def probs(rng):
    return random_ensemble(rng, 12, 8, 3, dtype=np.float32)


def write_members(folder, probs, suffix=".npy", name="member_{}"):
    """One file per source in any format."""
    for s, source in enumerate(probs):
        path = folder / f"{name.format(s)}{suffix}"
        if suffix == ".npy":
            np.save(path, source)
        elif suffix == ".npz":
            np.savez(path, probs=source)
        elif suffix == ".pt":
            torch.save(torch.from_numpy(source), path)
        elif suffix == ".csv":
            rows = [",".join(map(repr, row)) for row in source.tolist()]
            path.write_text("\n".join(["cat,dog,owl", *rows]) + "\n")
        else:
            import pyarrow as pa
            import pyarrow.parquet

            pa.parquet.write_table(pa.table(dict(zip(["cat", "dog", "owl"], source.T, strict=True))), path)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".parquet", ".pt"])
def test_directory_and_pattern(tmp_path, probs, suffix):
    write_members(tmp_path, probs, suffix)
    (tmp_path / "README.md").write_text("not predictions")
    (tmp_path / f".hidden{suffix}").write_text("not predictions")
    (tmp_path / "labels.txt").write_text("0\n1\n2\n0\n1\n2\n0\n1\n")
    whole = vd.load(tmp_path)
    part = vd.load(str(tmp_path / f"member_1*{suffix}"))
    np.testing.assert_array_equal(whole.values, probs)
    assert whole.source_names == tuple(f"member_{s}" for s in range(12))  # 2 before 10
    assert whole.labels.tolist() == [0, 1, 2, 0, 1, 2, 0, 1]
    np.testing.assert_array_equal(part.values, probs[[1, 10, 11]])
    assert part.labels is None
    assert whole.class_names == (("cat", "dog", "owl") if suffix in (".csv", ".parquet") else None)


def test_sources_are_mapped_and_not_stacked(tmp_path, probs):
    write_members(tmp_path, probs)
    loaded = vd.load(tmp_path)
    assert not loaded.is_stacked
    for source in loaded:
        assert is_mapped(source)
    np.testing.assert_array_equal(vd.discover(loaded).probs, vd.discover(probs).probs)


@pytest.mark.filterwarnings("ignore::veridical.errors.SuspectKindWarning")
def test_run_json_declares_kind_and_classes(tmp_path, probs):
    write_members(tmp_path, probs)
    described = {"kind": "logits", "class_names": ["cat", "dog", "owl"]}
    (tmp_path / "run.json").write_text(json.dumps(described))
    loaded = vd.load(tmp_path)
    assert (loaded.kind, loaded.class_names) == ("logits", ("cat", "dog", "owl"))
    for foreign in ('{"kind": "deep", "class_names": ["x"]}', '{"kind": ["logits"]}', "[1]", "no JSON", ""):
        (tmp_path / "run.json").write_text(foreign)
        loaded = vd.load(tmp_path)
        assert (loaded.kind, loaded.class_names) == ("probs", None)


def test_kind_in_files_overrides_run_json(tmp_path, probs):
    write_members(tmp_path, probs, ".npz")
    (tmp_path / "run.json").write_text('{"kind": "logits"}')
    assert vd.load(tmp_path).kind == "probs"


def test_labels_beside_predictions_of_the_same_format(tmp_path, probs):
    write_members(tmp_path, probs)
    np.save(tmp_path / "labels.npy", np.arange(8) % 3)
    assert vd.load(tmp_path).n_sources == 12
    assert vd.load(tmp_path).labels.tolist() == [0, 1, 2, 0, 1, 2, 0, 1]
    assert vd.load(str(tmp_path / "*.npy")).labels.tolist() == [0, 1, 2, 0, 1, 2, 0, 1]
    assert vd.load(tmp_path, labels=[2] * 8).labels.tolist() == [2] * 8
    (tmp_path / "labels.txt").write_text("0\n" * 8)
    with pytest.raises(errors.FileFormatError, match=r"has labels\.npy and labels\.txt; keep one"):
        vd.load(tmp_path)


def test_kind_is_declared_by_names(tmp_path, probs):
    write_members(tmp_path, probs, name="log_probs_{}")
    assert vd.load(tmp_path).kind == "log_probs"
    with pytest.raises(errors.ParameterError, match="kind='probs' contradicts"):
        vd.load(tmp_path, kind="probs")
    np.save(tmp_path / "logits_99.npy", probs[0])
    with pytest.raises(
        errors.FileFormatError, match=r"log_probs_0\.npy holds log_probs and .*logits_99\.npy holds logits"
    ):
        vd.load(tmp_path)


def test_sources_must_have_equal_shapes(tmp_path, probs):
    write_members(tmp_path, probs)
    np.save(tmp_path / "member_7.npy", probs[7, :-1])
    with pytest.raises(
        errors.ShapeError, match=r"member_7\.npy has shape \(7, 3\) and .*member_0\.npy has shape \(8, 3\)"
    ):
        vd.load(tmp_path)


def test_file_with_all_sources_is_rejected_in_a_set(tmp_path, probs):
    np.save(tmp_path / "a.npy", probs)
    with pytest.raises(errors.ShapeError, match=r"a\.npy has shape \(12, 8, 3\); .* file with all sources by itself"):
        vd.load(tmp_path)
    np.save(tmp_path / "a.npy", probs[:1])
    assert vd.load(tmp_path).n_sources == 1


def test_labels_of_sources_must_agree(tmp_path, probs):
    for s in range(3):
        np.savez(tmp_path / f"{s}.npz", probs=probs[s], labels=np.arange(8) % 3)
    assert vd.load(tmp_path).labels.tolist() == [0, 1, 2, 0, 1, 2, 0, 1]
    np.savez(tmp_path / "0.npz", probs=probs[0])
    assert vd.load(tmp_path).labels.tolist() == [0, 1, 2, 0, 1, 2, 0, 1]
    np.savez(tmp_path / "2.npz", probs=probs[2], labels=np.arange(8)[::-1] % 3)
    with pytest.raises(errors.LabelError, match=r"2\.npz has labels that differ from those in .*1\.npz"):
        vd.load(tmp_path)


def test_classes_and_samples_of_sources_must_agree(tmp_path):
    (tmp_path / "a.csv").write_text("sample,cat,dog\n0,0.5,0.5\n1,0.25,0.75\n")
    (tmp_path / "b.csv").write_text("sample,cat,dog\n1,0.125,0.875\n0,1,0\n")
    np.testing.assert_array_equal(vd.load(tmp_path).values[1], [[1, 0], [0.125, 0.875]])
    (tmp_path / "b.csv").write_text("sample,cat,dog\n1,0.125,0.875\n2,1,0\n")
    with pytest.raises(errors.FileFormatError, match=r"b\.csv has samples that differ from those in .*a\.csv"):
        vd.load(tmp_path)
    (tmp_path / "b.csv").write_text("sample,dog,cat\n0,0.125,0.875\n1,1,0\n")
    matched = vd.load(tmp_path)
    assert matched.class_names == ("cat", "dog")
    np.testing.assert_array_equal(matched.values[1], [[0.875, 0.125], [0, 1]])
    (tmp_path / "b.csv").write_text("sample,cat,cow\n0,0.125,0.875\n1,1,0\n")
    with pytest.raises(errors.ShapeError, match=r"b\.csv has no column 'dog'"):
        vd.load(tmp_path)


def test_directory_with_several_formats_is_rejected(tmp_path, probs):
    write_members(tmp_path, probs[:2])
    write_members(tmp_path, probs[:2], ".csv")
    with pytest.raises(errors.FileFormatError, match=r"holds \.csv and \.npy files; .*\*\.csv"):
        vd.load(tmp_path)
    assert vd.load(str(tmp_path / "*.npy")).n_sources == 2
    mixed = vd.load(str(tmp_path / "member_1.*"))
    assert mixed.source_names == ("member_1.csv", "member_1.npy")
    assert mixed.class_names == ("cat", "dog", "owl")


def test_directory_without_predictions_is_rejected(tmp_path):
    with pytest.raises(errors.FileFormatError, match="has no prediction files; give one file per source"):
        vd.load(tmp_path)
    with pytest.raises(errors.FileFormatError, match=r"no file matches .*member_\*\.npy; check the name"):
        vd.load(str(tmp_path / "member_*.npy"))


def test_existing_file_with_wildcards_in_its_name_is_read(tmp_path, probs):
    np.save(tmp_path / "run[1].npy", probs)
    assert vd.load(tmp_path / "run[1].npy").n_sources == 12


def test_list_of_files_is_read_like_a_pattern(tmp_path, probs):
    write_members(tmp_path, probs)
    (tmp_path / "labels.txt").write_text("0\n1\n" * 4)
    expected = vd.load(str(tmp_path / "*"))
    for files in (sorted(tmp_path.iterdir()), [str(path) for path in tmp_path.iterdir()]):
        predictions = vd.load(files)
        np.testing.assert_array_equal(predictions.values, probs)
        assert predictions.source_names == expected.source_names
        np.testing.assert_array_equal(predictions.labels, expected.labels)
    alone = vd.load([tmp_path / "member_3.npy"])
    np.testing.assert_array_equal(alone.values[0], probs[3])


@pytest.mark.parametrize("files", [[], [1], ["a.npy", None]])
def test_list_of_something_else_than_files_is_rejected(files):
    with pytest.raises(errors.ParameterError, match="path is a"):
        vd.load(files)


def test_missing_file_of_a_list_is_named(tmp_path, probs):
    write_members(tmp_path, probs)
    with pytest.raises(errors.FileFormatError, match=r"absent\.npy does not exist"):
        vd.load([tmp_path / "member_0.npy", tmp_path / "absent.npy"])


def test_file_of_labels_is_not_a_source(tmp_path, probs):
    write_members(tmp_path, probs)
    labels = tmp_path / "val_labels.npy"
    np.save(labels, np.arange(8) % 3)
    with pytest.raises(errors.FileFormatError, match=r"val_labels\.npy has one whole number per sample and looks like"):
        vd.load(tmp_path)
    predictions = vd.load(tmp_path, labels=labels)
    assert (predictions.n_sources, predictions.labels.tolist()) == (12, [0, 1, 2, 0, 1, 2, 0, 1])
    assert predictions.files[-1] == labels
