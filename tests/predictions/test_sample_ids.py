"""Ids and groups of samples: in files, through selections, and labels that join by them."""

import numpy as np
import pandas as pd
import pytest
from ensembles import random_ensemble

import veridical as vd
from veridical import errors

IDS = [f"img_{n}" for n in (7, 3, 11, 2, 5, 13)]


@pytest.fixture
def predictions(rng):
    return vd.Predictions(
        random_ensemble(rng, 2, 6, 3),
        [0, 1, 2, -1, 1, 0],
        class_names=["cat", "dog", "owl"],
        sample_ids=IDS,
        groups=["a", "a", "b", "b", "c", "c"],
    )


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet", ".zarr"])
@pytest.mark.parametrize("ids", [IDS, [70, 30, 110, 20, 50, 130]], ids=["text", "numbers"])
def test_ids_groups_and_unknown_labels_survive_a_file(tmp_path, predictions, suffix, ids):
    original = vd.Predictions(
        predictions.values,
        predictions.labels,
        class_names=predictions.class_names,
        sample_ids=ids,
        groups=predictions.groups,
    )
    loaded = vd.load(vd.save(original, tmp_path / f"p{suffix}"))
    place_of = {entry: n for n, entry in enumerate(loaded.sample_ids.tolist())}
    order = [place_of[entry] for entry in ids]
    assert len(order) == 6
    np.testing.assert_array_equal(loaded.values[:, order], original.values)
    assert loaded.labels[order].tolist() == original.labels.tolist()
    assert loaded.groups[order].tolist() == original.groups.tolist()


def test_ids_and_groups_follow_a_selection(predictions):
    part = predictions.select(samples=[4, 0])
    assert part.sample_ids.tolist() == ["img_5", "img_7"]
    assert part.groups.tolist() == ["c", "a"]
    first, second = predictions.split(random_state=1)
    assert sorted([*first.sample_ids, *second.sample_ids]) == sorted(IDS)
    assert not set(first.groups) & set(second.groups)


def test_labels_join_by_id_in_any_order(tmp_path, predictions):
    order = [5, 2, 0, 4, 1, 3]
    labels = np.array([0, 1, 2, 2, 1, 0])
    table = pd.DataFrame({"id": np.array(IDS)[order], "label": labels[order]})
    table.to_csv(tmp_path / "labels.csv", index=False)
    table.to_parquet(tmp_path / "labels.parquet", index=False)
    path = vd.save(predictions, tmp_path / "p.npz")
    for name in ("labels.csv", "labels.parquet"):
        assert vd.load(path, tmp_path / name).labels.tolist() == labels.tolist()
    assert predictions.with_labels(dict(zip(IDS, labels, strict=True))).labels.tolist() == labels.tolist()
    series = pd.Series(labels[order], index=np.array(IDS)[order])
    assert predictions.with_labels(series).labels.tolist() == labels.tolist()


def test_missing_and_extra_ids_are_counted_and_named(predictions):
    with pytest.warns(
        errors.UnmatchedIdWarning,
        match=r"4 samples have no label \('img_11', \.\.\.\) and 1 label belongs to no sample \('img_99'",
    ):
        joined = predictions.with_labels({"img_7": 0, "img_3": 1, "img_99": 1})
    assert joined.labels.tolist() == [0, 1, -1, -1, -1, -1]
    assert joined.labelled().sample_ids.tolist() == ["img_7", "img_3"]
    with pytest.raises(errors.LabelError, match=r"none of the 1 ids \(such as 'x'\) is the id of a sample"):
        predictions.with_labels({"x": 0})


def test_duplicate_ids_are_refused(tmp_path, predictions):
    with pytest.raises(errors.ParameterError, match="1 id occurs more than once, the first is 'a'"):
        vd.Predictions(predictions.values, sample_ids=["a", "a", "b", "c", "d", "e"])
    path = tmp_path / "labels.csv"
    path.write_text("id,label\nimg_7,cat\nimg_7,dog\n")
    with pytest.raises(errors.LabelError, match=r"1 sample has two different labels, the first is 'img_7'"):
        vd.load(vd.save(predictions, tmp_path / "p.npz"), path)


def test_numbers_match_ids_that_are_text(tmp_path, predictions):
    values = predictions.values
    numbers = [70, 30, 110, 20, 50, 130]
    as_text, as_numbers = (vd.Predictions(values, sample_ids=ids) for ids in ([str(n) for n in numbers], numbers))
    labels = np.array([0, 1, 2, 2, 1, 0])
    for joined in (
        as_text.with_labels(dict(zip(numbers, labels, strict=True))),
        as_numbers.with_labels({str(n): label for n, label in zip(numbers, labels, strict=True)}),
    ):
        assert joined.labels.tolist() == labels.tolist()


def test_labels_of_some_numbered_samples_join(tmp_path, predictions):
    path = tmp_path / "p.csv"
    vd.save(vd.Predictions(predictions.values), path)
    (tmp_path / "labels.csv").write_text("sample,label\n4,2\n1,0\n")
    with pytest.warns(errors.UnmatchedIdWarning, match="4 samples have no label"):
        loaded = vd.load(path, tmp_path / "labels.csv")
    assert loaded.labels.tolist() == [-1, 0, -1, -1, 2, -1]


def test_labels_with_names_need_samples_with_names(predictions):
    unnamed = vd.Predictions(predictions.values)
    table = vd.predictions.labels.LabelTable(["a", "b"], np.array([0, 1]), "labels.csv")
    with pytest.raises(errors.LabelError, match=r"2 labels with ids for 6 samples without; give .* sample ids"):
        unnamed.with_labels(table)


@pytest.mark.parametrize("column", ["id", "sample_id", "sample"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_column_of_ids_may_be_called_id(tmp_path, column, suffix):
    frame = pd.DataFrame({column: ["x", "y"], "cat": [0.25, 0.5], "dog": [0.75, 0.5]})
    path = tmp_path / f"p{suffix}"
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path, index=False)
    loaded = vd.load(path)
    assert loaded.sample_ids.tolist() == ["x", "y"]
    assert loaded.class_names == ("cat", "dog")
    np.testing.assert_array_equal(loaded.values[0], [[0.25, 0.75], [0.5, 0.5]])


def test_binary_column_in_a_table(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("sample,source,p\n0,a,0.25\n1,a,0.5\n0,b,1\n1,b,0\n")
    loaded = vd.load(path, kind="binary")
    np.testing.assert_array_equal(loaded.values, [[[0.75, 0.25], [0.5, 0.5]], [[0, 1], [1, 0]]])
    assert loaded.source_names == ("a", "b")
    with pytest.raises(errors.ShapeError, match=r'kind="binary" for the probability of the positive class alone'):
        vd.load(path)
