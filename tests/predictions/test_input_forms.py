"""Arrays, lists, frames, votes and images as predictions, and the sentence for what is wrong with each."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import veridical as vd
from veridical.errors import (
    ConfidenceError,
    DtypeError,
    InvalidInputError,
    LabelError,
    NotFiniteError,
    NotNormalisedError,
    ParameterError,
    ShapeError,
    UnknownNameError,
)
from veridical.predictions.inputs import check_has_sources
from veridical.predictions.validation import (
    check_choice,
    check_confidences,
    check_distributions,
    check_flag,
    check_labels,
    check_outcomes,
    check_random_state,
    check_same_length,
    check_weights,
    result_dtype,
)


@pytest.fixture
def probs(rng):
    return rng.dirichlet(np.ones(3), (2, 5))


# --- arrays and lists


@pytest.mark.parametrize(
    ("values", "options", "error", "words"),
    [
        (np.zeros(3), {}, ShapeError, r"has 1 dimension \(shape \(3,\)\); give shape \(sources, samples, classes\)"),
        (np.zeros((2, 3, 4, 5)), {}, ShapeError, r"for sequences \(sources, samples, steps, classes\) pass class"),
        (np.zeros((3, 2)), {"sources_axis": 1}, ParameterError, r"shape \(3, 2\) is one source; leave sources_axis"),
        (np.zeros((2, 3, 1)), {}, ShapeError, r'has 1 class \(shape .*p alone with kind="binary"'),
        (np.zeros((0, 3, 2)), {}, ShapeError, r"there are no sources \(shape \(0, 3, 2\)\)"),
        (np.zeros((2, 3, 4)), {"class_axis": 0}, ParameterError, "class_axis and sources_axis are both 0"),
        (np.zeros((2, 3, 4)), {"class_axis": 3}, ParameterError, "class_axis is 3; the array has axes 0 to 2"),
        (np.zeros((2, 3, 4)), {"class_axis": True}, ParameterError, "class_axis is True"),
        (np.zeros((2, 3, 4)), {"sources_axis": True}, ParameterError, "sources_axis is True; it is 0 for"),
        ([np.zeros((3, 2)), np.zeros((4, 2))], {}, ShapeError, r"source 1 has shape \(4, 2\) and source 0"),
        ([np.zeros((3, 2)), np.zeros(3)], {}, ShapeError, r"source 1 has 1 dimension \(shape \(3,\)\)"),
        ([np.zeros((3, 2))], {"sources_axis": 1}, ParameterError, "separate sources have no axis of sources"),
        ({}, {}, ShapeError, "there are no sources; at least one is needed"),
        ({"a": np.zeros((3, 1))}, {}, ShapeError, "source 0 has 1 class"),
        ("probs.npy", {}, DtypeError, "the predictions are 'probs.npy'; read a file with veridical.load"),
        (iter([np.zeros((3, 2))]), {}, DtypeError, "the predictions are a list_iterator; pass a list of arrays"),
        (np.zeros((2, 3, 4)), {"kind": "magic"}, UnknownNameError, "kind 'magic' is unknown; choose one of"),
        (np.zeros((2, 3, 4)), {"sample_shape": (2, 2)}, ShapeError, r"sample_shape is \(2, 2\), and there are 3"),
        (np.zeros((2, 3, 4)), {"sample_shape": (-1, -3)}, ShapeError, "give a shape of so many"),
        (np.zeros((2, 3, 4)), {"sample_shape": (1.5, 2)}, ParameterError, r"give whole numbers, as in \(N, H, W\)"),
        (np.zeros((2, 3, 4)), {"sample_shape": 3}, ParameterError, "sample_shape is 3; give whole numbers"),
        (np.zeros((1, 4)), {"source_names": ["a", "b"]}, ShapeError, r"One sample of several sources has shape \(so"),
    ],
)
def test_bad_forms_are_explained(values, options, error, words):
    with pytest.raises(error, match=words):
        vd.Predictions(values, **options)


@pytest.mark.parametrize(
    ("sources_axis", "class_axis"), [(0, None), (1, None), (2, None), (0, 1), (1, 0), (2, -3), (1, -1)]
)
def test_axes_may_be_in_any_order(probs, sources_axis, class_axis):
    last = class_axis if class_axis is not None else max({0, 1, 2} - {sources_axis})
    (samples_axis,) = {0, 1, 2} - {sources_axis, last % 3}
    order = np.argsort([sources_axis, samples_axis, last % 3])
    array = probs.transpose(order)
    predictions = vd.Predictions(array, sources_axis=sources_axis, class_axis=class_axis)
    np.testing.assert_array_equal(predictions.values, probs)


@given(
    arrays.arrays(
        np.float64,
        st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.just(2)),
        elements=st.floats(-3, 3),
    )
)
@settings(max_examples=25)
def test_images_are_pixels_and_come_back_as_images(logits):
    predictions = vd.Predictions(logits, kind="logits")
    assert predictions.sample_shape == logits.shape[1:4]
    assert predictions.n_samples == np.prod(logits.shape[1:4])
    np.testing.assert_array_equal(predictions.in_sample_shape(predictions.values[0]), logits[0])
    channels_first = vd.Predictions(np.moveaxis(logits, -1, 2), kind="logits", class_axis=2)
    np.testing.assert_array_equal(channels_first.values, predictions.values)
    flat = predictions.flat()
    assert flat.sample_shape == (predictions.n_samples,)
    assert flat.flat() is flat
    np.testing.assert_array_equal(flat.groups, np.repeat(np.arange(logits.shape[1]), np.prod(logits.shape[2:4])))


def test_results_of_another_length_have_no_shape(probs):
    predictions = vd.Predictions(probs)
    with pytest.raises(ShapeError, match=r"the results have shape \(4,\); give one entry for each of 5 samples"):
        predictions.in_sample_shape(np.zeros(4))


def test_dictionary_of_one_array_per_source_keeps_their_order(probs):
    predictions = vd.Predictions({"b": probs[0], "a": probs[1]})
    assert predictions.source_names == ("b", "a")
    np.testing.assert_array_equal(predictions.values, probs)
    assert not predictions.is_stacked
    assert vd.Predictions(probs).is_stacked


def test_precision_of_mixed_sources_is_the_largest(probs):
    mixed = vd.Predictions([probs[0].astype(np.float32), probs[1]])
    assert (mixed.dtype, mixed.result_dtype) == (np.float64, np.float64)
    coarse = vd.Predictions([probs[0].astype(np.float16), probs[1].astype(np.float32)])
    assert (coarse.dtype, coarse.result_dtype) == (np.float32, np.float32)
    assert coarse.sum_tolerance == vd.Predictions(probs.astype(np.float16)).sum_tolerance
    whole = vd.Predictions([np.eye(3, dtype=np.int64)[[0, 1]], np.eye(3, dtype=np.float16)[[0, 1]]])
    assert whole.dtype == np.float16


def test_samples_are_a_part_of_all_sources(probs):
    for predictions in (vd.Predictions(probs), vd.Predictions(list(probs))):
        np.testing.assert_array_equal(predictions.samples(1, 3), probs[:, 1:3])
        np.testing.assert_array_equal(np.stack(list(predictions)), probs)


def test_names_in_messages(probs):
    plain, named = vd.Predictions(probs), vd.Predictions(probs, source_names=["a", "b"])
    assert (plain.source_name(1), named.source_name(1)) == ("source 1", "source 1 (b)")


def test_predictions_in_a_notebook_are_escaped(probs):
    page = vd.Predictions(probs)._repr_html_()
    assert page == (
        "<strong>Predictions</strong><ul><li>2 sources</li><li>5 samples</li><li>3 classes</li>"
        "<li>kind=&#x27;probs&#x27;</li><li>float64</li><li>unlabelled</li></ul>"
    )


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (None, "unlabelled"),
        ([0, 1, 2, 0, 1], "labelled"),
        ([0, 1, -1, -1, 1], "3 of 5 labelled"),
        ([-1] * 5, "unlabelled"),
    ],
)
def test_representation_counts_labels(probs, labels, words):
    assert repr(vd.Predictions(probs, labels)).endswith(f", {words})")


def test_known_labels_are_selected(probs):
    predictions = vd.Predictions(probs, [0, -1, 2, -1, 1])
    known = predictions.labelled()
    assert known.labels.tolist() == [0, 2, 1]
    np.testing.assert_array_equal(known.values, probs[:, [0, 2, 4]])
    assert known.labelled() is known
    assert vd.Predictions(probs).labelled().n_samples == 5


# --- classes in another order


@pytest.mark.parametrize("as_list", [False, True])
def test_classes_in_another_order_take_labels_with_them(probs, as_list):
    predictions = vd.Predictions(list(probs) if as_list else probs, [0, 1, 2, -1, 0], class_names=["x", "y", "z"])
    other = predictions.in_class_order(["z", "x", "y"])
    np.testing.assert_array_equal(other.values, probs[..., [2, 0, 1]])
    assert other.labels.tolist() == [1, 2, 0, -1, 1]
    assert other.class_names == ("z", "x", "y")
    back = other.in_class_order(["x", "y", "z"])
    np.testing.assert_array_equal(back.values, probs)
    assert back.labels.tolist() == predictions.labels.tolist()
    with pytest.raises(ParameterError, match="give the names of the classes in a new order"):
        predictions.in_class_order(["x", "y", "w"])


# --- data frames


def frames(probs, **options):
    return [pd.DataFrame(source, columns=["x", "y", "z"], **options) for source in probs]


def test_frames_give_names_of_classes_and_ids(probs):
    predictions = vd.Predictions(frames(probs, index=list("vwxyz")))
    assert predictions.class_names == ("x", "y", "z")
    assert predictions.sample_ids.tolist() == list("vwxyz")
    np.testing.assert_array_equal(predictions.values, probs)


def test_frames_are_put_into_one_order(probs):
    first, second = frames(probs, index=list("vwxyz"))
    second = second.iloc[::-1][["z", "x", "y"]]
    np.testing.assert_array_equal(vd.Predictions([first, second]).values, probs)
    by_names = vd.Predictions([first, second], class_names=["y", "z", "x"])
    np.testing.assert_array_equal(by_names.values, probs[..., [1, 2, 0]])
    assert by_names.class_names == ("y", "z", "x")


def test_numbered_columns_have_no_names(probs):
    numbered = [pd.DataFrame(source) for source in probs]
    assert vd.Predictions(numbered).class_names is None
    assert vd.Predictions(numbered, class_names=["x", "y", "z"]).class_names == ("x", "y", "z")


def test_one_frame_is_one_source(probs):
    predictions = vd.Predictions(frames(probs)[0])
    assert (predictions.n_sources, predictions.sample_ids) == (1, None)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda f: f.rename(columns={"z": "w"}), ShapeError, "source 1 has no column 'z'"),
        (lambda f: f.assign(w=0.0), ShapeError, "source 1 has a column 'w' that others lack"),
        (lambda f: f.set_axis(["x", "y", "x"], axis=1), ShapeError, "source 1 has two columns of one name"),
        (
            lambda f: f.iloc[:4],
            ShapeError,
            r"source 1 has shape \(4, 3\) and source 0 has shape \(5, 3\); all sources must predict",
        ),
        (
            lambda f: f.set_axis(list("vwxyz")),
            ShapeError,
            "source 1 has samples that differ from those in source 0: of 5 it lacks 5",
        ),
        (lambda f: f.assign(y=list("abcde")), DtypeError, "column 'y' of source 1 does not hold numbers"),
        (lambda f: f.to_numpy(), DtypeError, "source 1 is not a data frame and others are"),
    ],
)
def test_frames_that_differ_are_explained(probs, change, error, words):
    first, second = frames(probs)
    with pytest.raises(error, match=words):
        vd.Predictions([first, change(second)])


def test_frames_of_other_samples_are_explained(probs):
    first, second = frames(probs, index=list("vwxyz"))
    with pytest.raises(ShapeError, match=r"of 5 it lacks 1 \('v'\) and has in addition 1 \('q'\)"):
        vd.Predictions([first, second.rename(index={"v": "q"})])
    with pytest.raises(ParameterError, match="the index of source 1: 1 id occurs more than once, the first is 'w'"):
        vd.Predictions([first, second.rename(index={"v": "w"})])


def test_binary_frames_have_one_column(probs):
    columns = [pd.DataFrame({"p": source[:, 0]}) for source in probs]
    predictions = vd.Predictions(columns, kind="binary")
    np.testing.assert_allclose(predictions.values[..., 1], probs[..., 0])
    with pytest.raises(ShapeError, match="source 0 has 3 columns; binary scores are one column"):
        vd.Predictions(frames(probs), kind="binary")


# --- binary scores


@pytest.mark.parametrize(
    ("values", "options", "error", "words"),
    [
        (np.zeros((2, 3, 4)), {}, ShapeError, r"the binary scores have shape \(2, 3, 4\)"),
        (np.zeros((0, 3)), {}, ShapeError, "there are no sources"),
        (np.zeros(3), {"class_axis": 0}, ParameterError, "binary scores have no axis of classes"),
        (np.zeros(3), {"sources_axis": 1}, ShapeError, r"the binary scores have shape \(3,\)"),
        ([[0.5, 1.5]], {}, ConfidenceError, "source 0, sample 1: the probability of the positive class is 1.5"),
        ({"a": np.array([0.5]), "b": np.array([-0.5])}, {}, ConfidenceError, "source 1, sample 0: .* is -0.5"),
        ([np.zeros((3, 2))], {}, ShapeError, r"source 0 has shape \(3, 2\); binary scores are one probability"),
    ],
)
def test_bad_binary_scores_are_explained(values, options, error, words):
    with pytest.raises(error, match=words):
        vd.Predictions(values, kind="binary", **options)


def test_binary_scores_keep_gaps_and_images():
    predictions = vd.Predictions([[0.25, np.nan]], kind="binary")
    np.testing.assert_array_equal(predictions.values, [[[0.75, 0.25], [np.nan, np.nan]]])
    assert (predictions.kind, predictions.input_kind) == ("probs", "binary")
    images = vd.Predictions(np.full((2, 3, 4, 5), 0.5), kind="binary")
    assert (images.n_sources, images.sample_shape, images.n_classes) == (2, (3, 4, 5), 2)
    columns = vd.Predictions(np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]), kind="binary", sources_axis=1)
    np.testing.assert_allclose(columns.values[..., 1], [[0.1, 0.4], [0.2, 0.5], [0.3, 0.6]])


def test_two_dimensions_may_be_one_sample(probs):
    with pytest.raises(ShapeError, match=r"for one sample of several sources array\[:, None\]"):
        check_has_sources(probs[0], None)
    assert check_has_sources(probs, None) is probs
    assert check_has_sources(probs[0], "binary") is not None
    frame = pd.DataFrame(probs[0])
    assert check_has_sources(frame, None) is frame


# --- votes


@pytest.mark.parametrize(
    ("votes", "options", "error", "words"),
    [
        ([[0, 1]], {"sources_axis": 2}, ParameterError, "sources_axis is 2; votes have shape"),
        (np.zeros((0, 3), int), {}, ShapeError, r"the votes have shape \(0, 3\); give one label per source and sample"),
        ([[0, 1]], {"sources_axis": True}, ParameterError, "sources_axis is True"),
        ([["x", "x"]], {}, LabelError, "the votes name 1 class; give all classes as class_names"),
        (
            [["x", "z"]],
            {"class_names": ["x", "y"]},
            LabelError,
            "sample 1: the vote is 'z', and the classes are x, y",
        ),
        ([[0, 1], [0]], {}, ShapeError, "the votes cannot be made into one array"),
        ([[0, 1]], {"class_names": ["x", "x"]}, ParameterError, "two classes are called 'x'"),
        ([[0, 1]], {"class_names": "xy"}, ParameterError, "class names are 'xy'; give a list of"),
        ([[0, 1]], {"class_names": 2}, ParameterError, "class names are 2; give a list of"),
    ],
)
def test_bad_votes_are_explained(votes, options, error, words):
    with pytest.raises(error, match=words):
        vd.Predictions(votes, kind="labels", **options)


def test_names_of_votes_are_sorted_and_stripped():
    predictions = vd.Predictions([[" b", "a"], [None, "c "]], kind="labels")
    assert predictions.class_names == ("a", "b", "c")
    np.testing.assert_array_equal(predictions.values[0], [[0, 1, 0], [1, 0, 0]])
    np.testing.assert_array_equal(predictions.values[1], [[np.nan] * 3, [0, 0, 1]])


@given(arrays.arrays(np.int64, st.tuples(st.integers(1, 4), st.integers(1, 6)), elements=st.integers(-1, 3)))
def test_votes_are_read_back_from_their_vectors(votes):
    values = vd.Predictions(votes, kind="labels", class_names=list("wxyz")).values
    back = np.where(np.isnan(values[..., 0]), -1, np.nan_to_num(values).argmax(axis=-1))
    np.testing.assert_array_equal(back, votes)
    np.testing.assert_array_equal(np.nan_to_num(values).sum(axis=-1), votes >= 0)


def test_too_many_votes_for_vectors(monkeypatch):
    monkeypatch.setattr("veridical.predictions.votes._MOST_NUMBERS", 7)
    with pytest.raises(ShapeError, match="2 sources, 2 samples and 2 classes are too many for vectors"):
        vd.Predictions([[0, 1], [1, 0]], kind="labels")


# --- single checks


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([[0, 1]], r"labels have shape \(1, 2\); give one integer per sample, shape \(2,\)"),
        ([0], "there are 1 labels for 2 samples"),
        ([0.5, 1], r"the label of sample 0 is 0.5 \(dtype float64\); give integers from 0 to 2"),
        ([0, np.inf], "the label of sample 1 is inf"),
        ([0, 2.0**60], "the label of sample 1 is 1.15"),
        (["a", "b"], "labels have dtype <U1; give integers from 0 to 2"),
        ([0, 3], "the label of sample 1 is 3; with 3 classes labels go from 0 to 2"),
        ([-1, 0], "the label of sample 0 is -1"),
        ([[0], [0, 1]], "labels cannot be made into one array"),
    ],
)
def test_bad_labels_are_located(labels, words):
    with pytest.raises(LabelError, match=words):
        check_labels(labels, 2, 3)


def test_labels_are_copied_as_integers():
    labels = np.array([1.0, 2.0])
    checked = check_labels(labels, 2, 3)
    assert checked.dtype == np.int64
    labels[0] = 0
    assert checked.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        ([[0.5]], ShapeError, r"confidence has shape \(1, 1\); give one number per sample"),
        ([], ShapeError, "confidence is empty; at least one sample is needed"),
        (
            [0.5, 1.2],
            ConfidenceError,
            "confidence of sample 1 is 1.2; confidences are probabilities, from 0 to 1",
        ),
        ([0.5, -0.1], ConfidenceError, "confidence of sample 1 is -0.1"),
        ([np.nan], NotFiniteError, "confidence of sample 0 is nan; replace it by a number from 0 to 1"),
        ([np.inf], NotFiniteError, "confidence of sample 0 is inf"),
        (["x"], DtypeError, "confidence has dtype"),
    ],
)
def test_bad_confidences_are_located(values, error, words):
    with pytest.raises(error, match=words):
        check_confidences(values)


@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        ([0, 1], LabelError, "y_true has dtype int64 beside one confidence per sample; give booleans"),
        ([[True]], ShapeError, r"y_true has shape \(1, 1\); give one boolean per sample"),
    ],
)
def test_bad_outcomes_are_explained(values, error, words):
    with pytest.raises(error, match=words):
        check_outcomes(values)


@pytest.mark.parametrize(
    ("weights", "error", "words"),
    [
        ([1.0], ShapeError, r"sample_weight has shape \(1,\); give one weight per sample, shape \(2,\)"),
        ([1.0, -1.0], InvalidInputError, "the weight of sample 1 is -1; weights are finite and at least 0"),
        ([np.nan, 1.0], InvalidInputError, "the weight of sample 0 is nan"),
        ([0.0, 0.0], InvalidInputError, "all sample weights are zero; at least one must be positive"),
    ],
)
def test_bad_weights_are_located(weights, error, words):
    with pytest.raises(error, match=words):
        check_weights(weights, 2)


def test_lengths_that_differ_are_listed():
    assert check_same_length(a=np.zeros(3), b=np.ones(3)) == 3
    with pytest.raises(ShapeError, match="lengths differ: a has 3, b has 2; give one entry per sample in each"):
        check_same_length(a=np.zeros(3), b=np.ones(2))


def test_flags_choices_and_generators():
    assert check_flag(np.True_, "flag") is True
    with pytest.raises(ParameterError, match="flag is 1; give True or False"):
        check_flag(1, "flag")
    assert check_choice("a", ("a", "b"), "letter") == "a"
    with pytest.raises(UnknownNameError, match="letter 'c' is unknown; choose one of: a, b"):
        check_choice("c", ("a", "b"), "letter")
    generator = np.random.default_rng(0)
    assert check_random_state(generator) is generator
    assert check_random_state(3).random() == np.random.default_rng(3).random()
    for bad in (-1, True, "x", 1.5):
        with pytest.raises(ParameterError, match=r"random_state is .*; give a whole number of at least 0"):
            check_random_state(bad)


@pytest.mark.parametrize(
    ("dtype", "expected"), [("f2", "f4"), ("f4", "f4"), ("f8", "f8"), ("i8", "f4"), ("?", "f4"), ("longdouble", "f8")]
)
def test_results_have_single_or_double_precision(dtype, expected):
    assert result_dtype(np.dtype(dtype)) == np.dtype(expected)


@pytest.mark.parametrize(
    ("rows", "error", "words"),
    [
        ([[0.5, 0.5], [0.6, 0.6]], NotNormalisedError, "probs, sample 1: .* divide each row by its sum"),
        ([[0.5, 0.5], [-1e-5, 1.00001]], InvalidInputError, "this looks like rounding: clip at 0"),
        ([[3.0, -2.0]], InvalidInputError, "if these are unnormalised scores, take their softmax first"),
        ([[0.5, np.nan]], NotFiniteError, "probs, sample 0: the probability of class 1 is nan"),
        ([[0.5, np.inf]], NotFiniteError, "the probability of class 1 is inf"),
        ([0.5, 0.5], ShapeError, r"probs has 1 dimension \(shape \(2,\)\); give shape \(samples, classes\)"),
        ([[1.0]], ShapeError, "probs has 1 class .* give both columns, 1 - p and p"),
    ],
)
def test_bad_distributions_are_located(rows, error, words):
    with pytest.raises(error, match=words):
        check_distributions(np.array(rows))


@given(arrays.arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(2, 5)), elements=st.floats(0.01, 1)))
def test_rows_are_renormalised_one_by_one(values):
    exact = values / values.sum(axis=1, keepdims=True)
    coarse = exact.astype(np.float16)
    checked = check_distributions(coarse)
    assert checked.dtype == np.float32
    np.testing.assert_allclose(checked.sum(axis=1, dtype=np.float64), 1.0, atol=1e-6)
    for n in range(len(coarse)):
        np.testing.assert_array_equal(check_distributions(coarse[n : n + 1])[0], checked[n])
    np.testing.assert_allclose(checked, exact, atol=2e-3)


def test_numbers_are_names_of_classes_that_votes_name():
    predictions = vd.Predictions([["1", "2"]], kind="labels", class_names=[2, 1])
    assert predictions.class_names == ("2", "1")
    np.testing.assert_array_equal(predictions.values[0], [[0, 1], [1, 0]])


@pytest.mark.parametrize("dtype", ["Float64", "Float32", "double[pyarrow]"])
def test_frames_of_nullable_numbers(probs, dtype):
    first, second = frames(probs)
    second.iloc[1] = np.nan
    predictions = vd.Predictions([first.astype(dtype), second.astype(dtype)])
    np.testing.assert_allclose(predictions.values[0], first.to_numpy(), rtol=1e-6)
    assert np.isnan(predictions.values[1, 1]).all()
    assert not np.isnan(predictions.values[1, 2]).any()
