"""The Predictions container."""

import numpy as np
import pytest
from ensembles import random_ensemble

import veridical as vd
from veridical import errors


@pytest.fixture
def predictions(rng):
    labels = rng.integers(0, 3, 8)
    return vd.Predictions(random_ensemble(rng, 4, 8, 3), labels, source_names=list("abcd"), class_names=["x", "y", "z"])


def test_predictions_describe_themselves(predictions):
    assert (predictions.n_sources, predictions.n_samples, predictions.n_classes) == (4, 8, 3)
    assert repr(predictions) == "Predictions(4 sources, 8 samples, 3 classes, kind='probs', float64, labelled)"
    assert "unlabelled" in repr(vd.Predictions(predictions.values))
    assert "<li>4 sources</li>" in predictions._repr_html_()


def test_predictions_share_memory_with_the_input(rng):
    probs = random_ensemble(rng, 4, 8, 3)
    assert vd.Predictions(probs).values is probs
    assert np.shares_memory(vd.Predictions(probs.swapaxes(0, 1), sources_axis=1).values, probs)
    for source, original in zip(vd.Predictions(list(probs)), probs, strict=True):
        assert np.shares_memory(source, original)


@pytest.mark.parametrize("as_list", [False, True])
def test_select(predictions, as_list):
    values = list(predictions.values) if as_list else predictions.values
    whole = vd.Predictions(values, predictions.labels, source_names=list("abcd"), class_names=["x", "y", "z"])
    part = whole.select(sources=["d", "b"], samples=[5, 1])
    np.testing.assert_array_equal(part.values, predictions.values[[3, 1]][:, [5, 1]])
    np.testing.assert_array_equal(part.labels, predictions.labels[[5, 1]])
    assert part.source_names == ("d", "b")
    assert part.class_names == ("x", "y", "z")
    assert whole.select(sources=slice(0, 2)).n_sources == 2
    assert whole.select(sources=2).source_names == ("c",)
    assert whole.select(samples=predictions.labels == 0).n_samples == (predictions.labels == 0).sum()
    assert whole.select().n_samples == 8


def test_select_unknown_source(predictions):
    with pytest.raises(errors.ParameterError, match="there is no source called 'q'; the sources are: a, b, c, d"):
        predictions.select(sources=["q"])


def test_split(predictions):
    first, second = predictions.split(random_state=3)
    assert (first.n_samples, second.n_samples) == (4, 4)
    rows = {tuple(row) for part in (first, second) for row in part.values[0].tolist()}
    assert rows == {tuple(row) for row in predictions.values[0].tolist()}
    again, _ = predictions.split(random_state=3)
    np.testing.assert_array_equal(first.values, again.values)
    other, _ = predictions.split(random_state=4)
    assert not np.array_equal(first.values, other.values)
    assert predictions.split(random_state=0, size=0.25)[0].n_samples == 2


def test_split_rejects_one_sample(rng):
    with pytest.raises(errors.ShapeError, match="1 sample cannot be split"):
        vd.Predictions(random_ensemble(rng, 2, 1, 3)).split(random_state=0)
    with pytest.raises(errors.ParameterError, match="size is 1"):
        vd.Predictions(random_ensemble(rng, 2, 4, 3)).split(size=1)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1], "2 labels for 3 samples"),
        ([0, 1, 2], "label of sample 2 is 2; with 2 classes labels go from 0 to 1"),
        ([0, -2, 1], "label of sample 1 is -2"),
        ([0.5, 0, 1], "label of sample 0 is 0.5 .*dtype float64"),
        ([0, 1e300, 1], "label of sample 1 is 1e"),
        ([0, [1, 2], 1], "one integer per sample"),
        ([[0], [1], [0]], "shape"),
        (["a", "b", "a"], "labels are names"),
        ([object(), 0, 1], "label of sample 0 is an object of type object"),
    ],
)
def test_labels_that_are_not_valid_are_rejected(labels, message):
    with pytest.raises(errors.LabelError, match=message):
        vd.Predictions(np.full((1, 3, 2), 0.5), labels)


def test_whole_floats_are_labels():
    assert vd.Predictions(np.full((1, 2, 2), 0.5), [0.0, 1.0]).labels.dtype == np.int64


def test_labels_are_a_copy():
    labels = np.array([0, 1])
    predictions = vd.Predictions(np.full((1, 2, 2), 0.5), labels)
    labels[0] = 99
    assert predictions.labels.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": [99]}, "samples .*99"),
        ({"sources": [9]}, "sources .*9"),
        ({"samples": [True, False]}, "samples"),
        ({"sources": []}, "no sources"),
        ({"sources": "a"}, None),
        ({"samples": 3}, None),
    ],
)
def test_select_single_and_invalid_indices(predictions, options, message):
    if message is None:
        part = predictions.select(**options)
        assert 1 in (part.n_sources, part.n_samples)
    else:
        with pytest.raises(errors.ParameterError, match=message):
            predictions.select(**options)


@pytest.mark.parametrize("options", [{"random_state": "x"}, {"random_state": -1}, {"size": "x"}, {"size": 0}])
def test_split_with_bad_options(predictions, options):
    with pytest.raises(errors.ParameterError):
        predictions.split(**options)


def test_names_must_differ():
    with pytest.raises(errors.ParameterError, match="two sources are called 'a'"):
        vd.Predictions(np.full((2, 3, 2), 0.5), source_names=["a", "a"])


def test_present_marks_rows_of_nan():
    values = np.full((2, 3, 2), 0.5)
    values[1, 2] = np.nan
    for predictions in (vd.Predictions(values), vd.Predictions(list(values))):
        assert predictions.present().tolist() == [[True, True, True], [True, True, False]]
