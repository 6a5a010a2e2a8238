"""Inputs on which rounding could decide: votes with few distinct scores, one-hot and tied ones, confident logits.

Every method on every combiner: a sample's numbers do not depend on its neighbours, on the way they are computed, nor on
the order of samples, sources and classes, in the fit or after it.
"""

import functools

import numpy as np
import pytest
import torch
from calibration_cases import NAMES

import veridical as vd
from veridical.backends import array_path
from veridical.combine import fit_combiner

pytestmark = pytest.mark.compiled

N_SOURCES, N_CLASSES, N_FIT, N_NEW = 5, 4, 400, 96
METHODS = [
    (name, combiner)
    for name in NAMES
    if name != "auto"
    for combiner in vd.calibrators()[name].combiners
    if combiner in ("mean", "atde", "consensus", "aconsensus")
]
SOURCES, CLASSES = np.array([3, 1, 4, 0, 2]), np.array([2, 0, 3, 1])


def votes(rng, n_samples):
    """Labels, and votes for them that are right more often than not."""
    labels = rng.integers(0, N_CLASSES, n_samples)
    chosen = rng.integers(0, N_CLASSES, (N_SOURCES, n_samples))
    return np.where(rng.random(chosen.shape) < 0.6, labels, chosen), labels


def smoothed_votes(rng, n_samples):
    chosen, labels = votes(rng, n_samples)
    return np.where(np.eye(N_CLASSES, dtype=bool)[chosen], 0.7, 0.1), labels


def single_votes(rng, n_samples):
    """The same in single precision, whose rounding scatters more."""
    probs, labels = smoothed_votes(rng, n_samples)
    return probs.astype(np.float32), labels


def one_hot(rng, n_samples):
    chosen, labels = votes(rng, n_samples)
    return np.eye(N_CLASSES)[chosen], labels


def forests(rng, n_samples):
    """Each source is a forest of ten trees."""
    labels = rng.integers(0, N_CLASSES, n_samples)
    probs = np.zeros((N_SOURCES, n_samples, N_CLASSES))
    for source in probs:
        for _ in range(10):
            tree = np.where(rng.random(n_samples) < 0.5, labels, rng.integers(0, N_CLASSES, n_samples))
            source[np.arange(n_samples), tree] += 0.1
    return probs, labels


def confident_logits(rng, n_samples):
    labels = rng.integers(0, N_CLASSES, n_samples)
    logits = 12 * rng.standard_normal((n_samples, N_CLASSES)) + 4 * rng.standard_normal(
        (N_SOURCES, n_samples, N_CLASSES)
    )
    logits[:, np.arange(n_samples), labels] += 18
    return logits.astype(np.float32), labels


def confident_floats(rng, n_samples):
    logits, labels = confident_logits(rng, n_samples)
    probs = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return probs / probs.sum(axis=-1, keepdims=True), labels


DATA = {
    make.__name__: make for make in (smoothed_votes, one_hot, forests, single_votes, confident_logits, confident_floats)
}


#: On other combiners than the mean, single precision has fewer digits than bins and steps tell apart.
SINGLE = ("single_votes", "confident_logits", "confident_floats")
#: Isotonic steps for all classes may be as narrow as the rounding of tiny single-precision probabilities, and HV is the
#: difference of nearly equal ones: there, numbers are as good as their inputs.
NOT_IN_SINGLE_PRECISION = ("irm", "irova", "truth-logit")
CASES = [
    (data, name, combiner)
    for data in DATA
    for name, combiner in METHODS
    if not (data in SINGLE and combiner != "mean")
    if not (data.startswith("confident") and name in NOT_IN_SINGLE_PRECISION)
]


def kind_of(data):
    return "logits" if data == "confident_logits" else "probs"


@functools.cache
def samples_of(data):
    """(fit, its labels, new): the mean of no sample to fit on has a tie, which goes to the first class."""
    rng = np.random.default_rng(0)
    probs, labels = DATA[data](rng, 3 * (N_FIT + N_NEW))
    scores = probs.astype(np.float64)
    if kind_of(data) == "logits":
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
    ordered = np.sort(scores.mean(axis=0), axis=-1)
    clear = np.flatnonzero(ordered[:, -1] - ordered[:, -2] > 1e-6)
    fit, new = clear[:N_FIT], slice(2 * (N_FIT + N_NEW), 2 * (N_FIT + N_NEW) + N_NEW)
    labels[::7] = (labels[::7] + 1) % N_CLASSES
    return probs[:, fit], labels[fit], probs[:, new], np.diff(ordered[new, -2:])[:, 0] > 1e-6


@functools.cache
def combined_for_fit(data, combiner, change):
    """The sources of the fit combined, after a change of order, and the labels."""
    probs, labels = samples_of(data)[:2]
    if change == "samples":
        order = np.random.default_rng(1).permutation(len(labels))
        probs, labels = probs[:, order], labels[order]
    elif change == "sources":
        probs = probs[SOURCES]
    elif change == "classes":
        probs, labels = probs[:, :, CLASSES], np.argsort(CLASSES)[labels]
    predictions = vd.Predictions(probs, labels, kind=kind_of(data))
    return *fit_combiner(combiner, predictions, labels, vd.Identity()), labels


def fitted(data, name, combiner, change=None):
    method = vd.calibrators()[name]
    settings = {"random_state": 0} if "random_state" in method().get_params() else {}
    calibrator = method(combine=combiner, kind=kind_of(data), **settings)
    return calibrator.fit_combined(*combined_for_fit(data, combiner, change))


def tolerance(data):
    """Results of float32 are float32."""
    return 1e-7 if samples_of(data)[2].dtype == np.float64 else 1e-6


def assert_same(results, expected, data, what):
    for values, others in zip(results[:2], expected[:2], strict=True):
        np.testing.assert_allclose(values, others, rtol=0, atol=tolerance(data), err_msg=what)
    np.testing.assert_array_equal(results[2], expected[2], err_msg=what)


def one_by_one(calibrator, new):
    parts = [calibrator.predict_all(new[:, i : i + 1]) for i in range(new.shape[1])]
    return [np.concatenate(results) for results in zip(*parts, strict=True)]


@pytest.mark.parametrize(("data", "name", "combiner"), CASES, ids=lambda value: value)
def test_paths_agree(data, name, combiner):
    new = samples_of(data)[2]
    calibrator = fitted(data, name, combiner)
    whole = calibrator.predict_all(new)
    assert_same(one_by_one(calibrator, new), whole, data, "one by one")
    tiled = calibrator.predict_all(np.tile(new, (1, 3, 1)))
    assert_same([np.split(results, 3)[1] for results in tiled], whole, data, "tiled")
    with array_path():
        assert_same(calibrator.predict_all(torch.from_numpy(new)), whole, data, "PyTorch")
    with_gradients = calibrator.predict_all(torch.from_numpy(new).requires_grad_())
    assert_same([results.detach() for results in with_gradients], whole, data, "PyTorch with gradients")
    assert_same(calibrator.load_kernels().predict_all(new[:, :40]), [results[:40] for results in whole], data, "kernel")


@pytest.mark.parametrize(("data", "name", "combiner"), CASES, ids=lambda value: value)
def test_orders_of_samples_sources_and_classes_commute(data, name, combiner):
    new = samples_of(data)[2][:, samples_of(data)[3]]
    expected = fitted(data, name, combiner).predict_all(new)
    assert_same(fitted(data, name, combiner, "samples").predict_all(new), expected, data, "samples")
    assert_same(fitted(data, name, combiner, "sources").predict_all(new[SOURCES]), expected, data, "sources")
    probs, confidence, labels = fitted(data, name, combiner, "classes").predict_all(new[:, :, CLASSES])
    renamed = probs[:, np.argsort(CLASSES)], confidence, CLASSES[labels]
    assert_same(renamed, expected, data, "classes")


@pytest.mark.parametrize(("name", "combiner"), METHODS, ids=lambda value: value)
def test_order_in_memory_changes_nothing(name, combiner):
    new = samples_of("forests")[2]
    calibrator = fitted("forests", name, combiner)
    for n_samples in (10, new.shape[1]):
        expected = calibrator.predict_all(new[:, :n_samples])
        for order in ((2, 1, 0), (1, 2, 0), (2, 0, 1), (1, 0, 2)):
            stored = np.ascontiguousarray(new[:, :n_samples].transpose(order)).transpose(np.argsort(order))
            assert_same(calibrator.predict_all(stored), expected, "forests", str(order))


def test_means_that_tie_have_the_lowest_label():
    """Sums in the order of the sources part where their means, the sums divided, are equal."""
    places = np.array([1, 0, 3, 1, 0])
    probs = np.where(np.eye(4, dtype=bool)[places], 0.7, 0.1)[:, None]
    assert vd.discover(probs, max_iter=0).prediction.tolist() == [0]
    assert vd.discover(np.repeat(probs, 100, axis=1)).prediction.tolist() == [0] * 100
