"""What numbers, names, indices and options may come as, and the sentence for what they may not."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

import veridical as vd
from veridical import errors
from veridical.predictions.sums import tolerance_of
from veridical.predictions.validation import check_integer, check_real, check_seed

PROBS = np.array([[[0.9, 0.1], [0.4, 0.6], [0.5, 0.5]], [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]]], np.float32)


class Unconvertible:
    """An object that has no numbers to give."""

    def __array__(self, *arguments, **options):
        raise RuntimeError("no numbers here\nat all")


def test_tensors_that_require_grad_are_predictions():
    tensor = torch.tensor(PROBS, requires_grad=True)
    for values in (tensor, list(tensor), tensor * 1):
        np.testing.assert_array_equal(vd.Predictions(values).values, PROBS)


def test_tensors_share_their_memory():
    tensor = torch.tensor(PROBS)
    assert np.shares_memory(vd.Predictions(tensor).values, tensor.numpy())


def test_tensors_of_bfloat16_become_float32():
    loaded = vd.Predictions(torch.tensor(PROBS).bfloat16(), kind="logits")
    assert loaded.dtype == np.float32
    np.testing.assert_array_equal(loaded.values, torch.tensor(PROBS).bfloat16().float().numpy())


def test_tensors_are_labels():
    labels = torch.tensor([0.0, 1.0, 1.0], requires_grad=True)
    assert vd.Predictions(PROBS, labels).labels.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (torch.tensor(PROBS).to_sparse(), r"is a sparse or quantised tensor; give tensor\.to_dense\(\)"),
        (torch.empty(2, 3, 2, device="meta"), "is a meta tensor, which has a shape and no numbers"),
        (torch.tensor(PROBS) + 0j, "has dtype complex64; give real numbers"),
    ],
)
def test_tensors_without_plain_numbers_are_refused(tensor, message):
    with pytest.raises(errors.DtypeError, match=message):
        vd.Predictions(tensor)


def test_objects_whose_conversion_fails_are_refused():
    with pytest.raises(
        errors.DtypeError, match=r"of type Unconvertible cannot be made into an array \(no numbers here"
    ):
        vd.Predictions(Unconvertible())
    with pytest.raises(errors.LabelError, match="of type Unconvertible cannot be made into an array"):
        vd.Predictions(PROBS, Unconvertible())


@pytest.mark.parametrize("wrap", [lambda masked: masked, list, lambda masked: [list(source) for source in masked]])
def test_masked_predictions_are_refused_at_any_depth(wrap):
    masked = np.ma.array(PROBS, mask=PROBS > 0.8)
    with pytest.raises(errors.DtypeError, match="a masked array would lose its mask"):
        vd.Predictions(wrap(masked))


def test_masked_labels_are_refused():
    with pytest.raises(errors.LabelError, match="a masked array would lose its mask"):
        vd.Predictions(PROBS, np.ma.array([0, 1, 1], mask=[False, True, False]))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (5, "names are 5; give a list of 2 strings"),
        (b"ab", "names are b'ab'; give a list of 2 strings"),
        ({"a", "b"}, "give a list of 2 strings"),
        ([1, [2]], r"the name of \w+ 1 is \[2\]; give a string"),
        ([None, "b"], r"the name of \w+ 0 is None; give a string"),
        (["a"], "there are 1 \\w+ names for 2"),
        (["a"] * 9, "there are 9 \\w+ names for 2"),
        (itertools.count(), "there are more than 2 \\w+ names for 2"),
        (Unconvertible(), "give a list of 2 strings"),
    ],
)
@pytest.mark.parametrize("what", ["source_names", "class_names"])
def test_names_that_are_not_a_list_of_strings_are_refused(names, message, what):
    with pytest.raises(errors.InvalidInputError, match=message):
        vd.Predictions(PROBS, **{what: names})


def test_names_may_be_numbers_and_paths():
    predictions = vd.Predictions(PROBS, source_names=[Path("a"), 7], class_names=np.array([3, 4]))
    assert (predictions.source_names, predictions.class_names) == (("a", "7"), ("3", "4"))


def test_many_names_are_checked_in_time():
    """Two names that are equal among 200,000: looked up, not compared one by one."""
    names = [*map(str, range(200_000)), "0"]
    with pytest.raises(errors.ParameterError, match="two classes are called '0'"):
        vd.Predictions(np.zeros((1, 1, 200_001)), class_names=names)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": slice("a", None)}, "these samples cannot be selected: slice indices must be integers"),
        ({"samples": slice(0, 2, 0)}, "these samples cannot be selected: slice step cannot be zero"),
        ({"sources": slice("a", None)}, "these sources cannot be selected: slice indices must be integers"),
        ({"sources": slice(5, None)}, "no sources are selected"),
        ({"sources": [False, False]}, "no sources are selected"),
        ({"samples": [[0, 1]]}, r"they have shape \(1, 2\); give a slice, a list of indices or a mask"),
        ({"samples": [[0], [1, 2]]}, "samples cannot be made into one array"),
        ({"samples": Unconvertible()}, "samples of type Unconvertible cannot be made into an array"),
        ({"samples": 0.5}, "these samples cannot be selected"),
    ],
)
def test_select_refuses_what_is_not_an_index(options, message):
    with pytest.raises(errors.InvalidInputError, match=message):
        vd.Predictions(PROBS).select(**options)


@pytest.mark.parametrize("n_classes", [2, 1000, 500_000, 1_000_000])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_tolerance_grows_with_the_classes(n_classes, dtype):
    """Every uniform distribution sums to one, however many numbers were rounded."""
    uniform = np.full((1, 1, n_classes), 1 / n_classes, dtype)
    assert vd.discover(uniform).probs.shape == (1, n_classes)
    assert vd.metrics.accuracy([0], uniform[0]) in (0.0, 1.0)
    assert abs(float(uniform.sum(dtype=np.float64)) - 1) < tolerance_of(uniform.dtype, n_classes) < 0.04


def test_tolerance_of_few_classes_stays_small():
    assert tolerance_of(np.dtype("float32"), 10) < 1.01e-4
    with pytest.raises(errors.NotNormalisedError):
        vd.discover(np.array([[[0.5, 0.5002]]], np.float32))


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 10**400, float("1e999"), True, "1", None, [1.0]])
def test_real_numbers_are_finite(value):
    with pytest.raises(errors.ParameterError, match="penalty is "):
        check_real(value, "penalty", 0.0)
    with pytest.raises(errors.ParameterError):
        vd.TruthLogit(penalty=value).fit(PROBS, [0, 1, 0])


def test_infinity_is_named_in_the_message():
    with pytest.raises(errors.ParameterError, match="penalty is inf; give a finite number of at least 0"):
        check_real(np.inf, "penalty", 0.0)


@pytest.mark.parametrize("value", [10**30, 2**31, -1, 1.5, True, "1", None])
def test_counts_are_whole_and_have_a_limit(value):
    with pytest.raises(errors.ParameterError, match="max_iter is "):
        check_integer(value, "max_iter", 0)
    with pytest.raises(errors.ParameterError, match="max_iter is "):
        vd.discover(PROBS, max_iter=value)


def test_seeds_may_be_large():
    assert check_seed(2**62) == 2**62
    with pytest.raises(errors.ParameterError, match="random_state is 1267650600228229401496703205376; give"):
        check_seed(2**100)


@pytest.mark.parametrize("calibrator", [vd.Spline(n_knots=10**9), vd.HistogramBinning(n_bins=10**9)])
def test_calibrators_refuse_counts_that_no_memory_holds(calibrator):
    with pytest.raises(errors.ParameterError, match=r"is 1000000000; give a whole number from \d+ to 1,000"):
        calibrator.fit(PROBS, [0, 1, 0])
