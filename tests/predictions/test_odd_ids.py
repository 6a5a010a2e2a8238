"""Unusual ids and groups of samples: large numbers, bytes, mixed types, images; and how samples are divided."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import veridical as vd
from veridical.errors import ParameterError, ShapeError
from veridical.predictions.sample_ids import check_groups, check_sample_ids, places_of
from veridical.predictions.splitting import fold_indices, split_groups, split_samples

# --- ids


@pytest.mark.parametrize(
    ("ids", "expected", "kind"),
    [
        ([3, 1], [3, 1], "i"),
        (np.array([3, 1], np.int8), [3, 1], "i"),
        ([np.int32(3), 1], [3, 1], "i"),
        (np.array([3, 1], np.uint64), [3, 1], "i"),
        (np.array([2**63 + 1, 1], np.uint64), ["9223372036854775809", "1"], "U"),
        ([2**70, 1], ["1180591620717411303424", "1"], "U"),
        ([2**63, -1], ["9223372036854775808", "-1"], "U"),
        ([1, "a"], ["1", "a"], "U"),
        ([b"a", "b"], ["a", "b"], "U"),
        ([b"\xff", b"a"], ["\\xff", "a"], "U"),
        ([True, False], ["True", "False"], "U"),
        ([1.5, 2.0], ["1.5", "2.0"], "U"),
        (("a", "b"), ["a", "b"], "U"),
        (np.array(["2020-01-01", "2020-01-02"], "datetime64[D]"), ["2020-01-01", "2020-01-02"], "U"),
    ],
)
def test_ids_are_whole_numbers_or_text(ids, expected, kind):
    checked = check_sample_ids(ids, 2)
    assert (checked.tolist(), checked.dtype.kind) == (expected, kind)


@pytest.mark.parametrize(
    ("ids", "error", "words"),
    [
        ([1, 2, 3], ShapeError, "sample_ids: there are 3 ids for 2 samples; give one id per sample"),
        ([[1, 2]], ParameterError, r"sample_ids: the id of sample 0 is \[1, 2\]"),
        (np.array([[1, 2]]), ShapeError, r"sample_ids have shape \(1, 2\); give one id for each of 2"),
        (["a", None], ParameterError, "sample_ids: the id of sample 1 is None; give a text or a whole number"),
        ([float("nan"), 1], ParameterError, "the id of sample 0 is nan"),
        ([{}, 1], ParameterError, "the id of sample 0 is {}"),
        ([np.array([1, 2]), 3], ParameterError, r"the id of sample 0 is an array of shape \(2,\)"),
        ([1, 1], ParameterError, "sample_ids: 1 id occurs more than once, the first is 1; give each sample its own id"),
        ([1, "1"], ParameterError, "1 id occurs more than once, the first is '1'"),
    ],
)
def test_bad_ids_are_rejected(ids, error, words):
    with pytest.raises(error, match=words):
        check_sample_ids(ids, 2)


def test_repeated_ids_are_counted():
    with pytest.raises(ParameterError, match="2 ids occur more than once, the first is 'a'"):
        check_sample_ids(list("abcab"), 5)


@pytest.mark.parametrize("ids", [[2**70, 1], [b"\xff", b"a"], np.array([2**63 + 1, 1], np.uint64)])
def test_unusual_ids_survive_a_file(tmp_path, ids):
    predictions = vd.Predictions(np.full((2, 2, 2), 0.5), sample_ids=ids)
    vd.save(predictions, tmp_path / "p.npz")
    assert vd.load(tmp_path / "p.npz").sample_ids.tolist() == predictions.sample_ids.tolist()


# --- ids of two sources


@given(st.permutations(list(range(7))))
def test_places_undo_a_permutation(order):
    ids, others = np.arange(7) * 10, np.array(order) * 10
    places = places_of(ids, others, "source 0", "source 1")
    np.testing.assert_array_equal(others[places], ids)


def test_numbers_and_text_are_compared_as_text():
    assert places_of(np.array([7, 8]), np.array(["8", "7"]), "source 0", "source 1").tolist() == [1, 0]


@pytest.mark.parametrize(
    ("others", "words"),
    [
        (["a"], r"source 1 has samples that differ from those in source 0: of 2 it lacks 1 \('b'\); all sources"),
        (["a", "b", "c", "d"], r"of 2 it has in addition 2 \('c', \.\.\.\);"),
        (["a", "c"], r"of 2 it lacks 1 \('b'\) and has in addition 1 \('c'\);"),
    ],
)
def test_samples_that_differ_are_named(others, words):
    with pytest.raises(ShapeError, match=words):
        places_of(np.array(["a", "b"]), np.array(others), "source 0", "source 1")


# --- groups


def test_groups_of_samples_images_and_pixels():
    assert check_groups(None, (3,)) is None
    assert check_groups(None, (2, 1, 3)).tolist() == [0, 0, 0, 1, 1, 1]
    assert check_groups(["x", "y"], (2, 1, 3)).tolist() == ["x"] * 3 + ["y"] * 3
    assert check_groups(np.arange(6).reshape(2, 1, 3), (2, 1, 3)).tolist() == [0, 1, 2, 3, 4, 5]
    assert check_groups(np.arange(6), (2, 1, 3)).tolist() == [0, 1, 2, 3, 4, 5]
    assert check_groups(["x", "y", "x"], (3,)).tolist() == ["x", "y", "x"]


@pytest.mark.parametrize("groups", [[1, 2], [[1, 2, 3]], [1, 2, 3, 4]])
def test_groups_of_another_shape_are_rejected(groups):
    with pytest.raises(ShapeError, match=r"groups have shape .*; give one group per sample, shape \(3,\)"):
        check_groups(groups, (3,))


# --- parts and folds


@given(st.integers(2, 60), st.floats(0.01, 0.99), st.integers(0, 99))
def test_two_parts_are_all_samples_once(n_samples, share, seed):
    first, second = split_samples(n_samples, share, np.random.default_rng(seed))
    assert sorted([*first, *second]) == list(range(n_samples))
    assert (np.diff(first) > 0).all()
    assert (np.diff(second) > 0).all()
    assert len(first) == min(max(int(n_samples * share), 1), n_samples - 1)


@given(st.lists(st.integers(0, 6), min_size=2, max_size=50), st.floats(0.05, 0.95), st.integers(0, 99))
def test_two_parts_keep_groups_together(groups, share, seed):
    groups = np.array(groups)
    if len(np.unique(groups)) < 2:
        with pytest.raises(ShapeError, match="1 group cannot be split into two parts; at least two are needed"):
            split_groups(groups, share, np.random.default_rng(seed))
        return
    first, second = split_groups(groups, share, np.random.default_rng(seed))
    assert sorted([*first, *second]) == list(range(len(groups)))
    assert len(first) > 0
    assert len(second) > 0
    assert not set(groups[first]) & set(groups[second])


def test_size_of_a_part_is_the_nearest_that_groups_allow():
    groups = np.repeat([0, 1, 2], [10, 10, 10])
    for share, n_first in ((0.1, 10), (0.4, 10), (0.6, 20), (0.99, 20)):
        first, _ = split_groups(groups, share, np.random.default_rng(0))
        assert len(first) == n_first


@pytest.mark.parametrize("n_samples", [0, 1])
def test_fewer_than_two_samples_cannot_be_split(n_samples):
    with pytest.raises(ShapeError, match=f"{n_samples} sample cannot be split into two parts"):
        split_samples(n_samples, 0.5, np.random.default_rng(0))


@given(st.integers(1, 40), st.integers(2, 12), st.integers(0, 99))
def test_folds_are_all_samples_once_and_of_equal_size(n_samples, n_folds, seed):
    folds = fold_indices(n_samples, None, n_folds, np.random.default_rng(seed))
    assert sorted(np.concatenate(folds).tolist()) == list(range(n_samples))
    sizes = [len(fold) for fold in folds]
    assert len(folds) == min(n_folds, n_samples)
    assert max(sizes) - min(sizes) <= 1


@given(st.lists(st.integers(0, 8), min_size=1, max_size=60), st.integers(2, 6), st.integers(0, 99))
def test_folds_keep_groups_together(groups, n_folds, seed):
    groups = np.array(groups)
    folds = fold_indices(len(groups), groups, n_folds, np.random.default_rng(seed))
    assert sorted(np.concatenate(folds).tolist()) == list(range(len(groups)))
    different, counts = np.unique(groups, return_counts=True)
    if len(different) == 1:  # divided like samples without groups
        assert len(folds) == min(n_folds, len(groups))
        return
    assert len(folds) == min(n_folds, len(different))
    for k, fold in enumerate(folds):
        others = np.concatenate([groups[other] for j, other in enumerate(folds) if j != k])
        assert not set(groups[fold]) & set(others)
    sizes = [len(fold) for fold in folds]
    assert max(sizes) - min(sizes) <= counts.max()  # each group goes to the smallest fold so far
