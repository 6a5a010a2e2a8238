"""Temperature scaling's promises: positive, converged, never worse than doing nothing."""

import gc
import weakref

import numpy as np
import pytest
from calibration_cases import labelled_ensemble
from hypothesis import given, settings
from hypothesis import strategies as st

import veridical as vd
from veridical.backends.rows import softmax
from veridical.calibrate.temperature import fit_temperature, log_probabilities
from veridical.errors import NotConvergedWarning, UnknownNameError


def scaled(logs, temperature):
    return softmax(np, logs / temperature)


def loss_of(probs, labels, loss):
    at_label = probs[np.arange(len(labels)), labels]
    return -np.log(at_label).mean() if loss == "nll" else (np.square(probs).sum(axis=1) - 2 * at_label + 1).mean()


@pytest.mark.parametrize("loss", ["nll", "mse"])
@pytest.mark.filterwarnings("ignore::veridical.errors.NotConvergedWarning")
@settings(max_examples=50)
@given(seed=st.integers(0, 10_000), sharpness=st.floats(0.05, 20), right=st.floats(0, 1))
def test_never_worse_than_one_and_at_a_minimum(loss, seed, sharpness, right):
    probs, labels = labelled_ensemble(np.random.default_rng(seed), 1, 40, 4, right=right)
    logs = log_probabilities(scaled(log_probabilities(probs[0]), 1 / sharpness))
    temperature = fit_temperature(logs, labels, loss)
    assert 0 < temperature < np.inf
    best = loss_of(scaled(logs, temperature), labels, loss)
    assert best <= loss_of(scaled(logs, 1.0), labels, loss) + 1e-12
    if 0.021 < temperature < 49 and temperature != 1.0:
        for nearby in (temperature * 0.99, temperature * 1.01):
            assert best <= loss_of(scaled(logs, nearby), labels, loss) + 1e-12


def test_finds_the_temperature_that_was_applied(rng):
    truth = rng.dirichlet(np.ones(5), 200_000)
    labels = (truth.cumsum(axis=1) < rng.random((200_000, 1))).sum(axis=1)
    sharpened = scaled(log_probabilities(truth), 0.5)
    for loss in ("nll", "mse"):
        assert vd.Temperature(loss=loss).fit(sharpened, labels).temperature_ == pytest.approx(2.0, rel=0.01)


@pytest.mark.parametrize("loss", ["nll", "mse"])
def test_data_without_error_end_at_the_bound_with_a_warning(loss):
    probs = np.array([[0.7, 0.3], [0.6, 0.4]])
    with pytest.warns(NotConvergedWarning, match="all predictions right"):
        calibrator = vd.Temperature(loss=loss).fit(probs, [0, 0])
    assert calibrator.temperature_ == pytest.approx(1 / 50)
    assert (calibrator.predict_confidence(probs) > 0.999).all()
    with pytest.warns(NotConvergedWarning):
        assert vd.Temperature(loss=loss).fit(probs, [1, 1]).temperature_ == pytest.approx(50)


def test_uniform_scores_stay(rng):
    calibrator = vd.Temperature().fit(np.full((10, 3), 1 / 3), rng.integers(0, 3, 10))
    assert calibrator.temperature_ == 1.0


def test_unknown_loss(rng):
    with pytest.raises(UnknownNameError, match="choose one of: nll, mse"):
        vd.Temperature(loss="ece").fit(*(array for array in labelled_ensemble(rng)))


def test_fit_lets_go_of_the_logarithms(rng):
    probs = rng.dirichlet([1.0, 2.0, 3.0], 500)
    labels = np.array([rng.choice(3, p=row) for row in np.sqrt(probs) / np.sqrt(probs).sum(axis=1, keepdims=True)])
    logs = log_probabilities(probs)
    remaining = weakref.ref(logs)
    gc.collect()
    gc.disable()  # what is in a cycle would stay
    try:
        assert fit_temperature(logs, labels, "nll") != 1
        del logs
        assert remaining() is None
    finally:
        gc.enable()
