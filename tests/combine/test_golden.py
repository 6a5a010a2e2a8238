"""Truth discovery against the figures that the paper's authors' code gave on real ensembles."""

import numpy as np
import pytest
from conftest import REAL_ENSEMBLES, load_golden, load_logits, softmax

import veridical as vd


@pytest.mark.compiled
@pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-6), (np.float32, 1e-5)])
@pytest.mark.parametrize("kind", ["probs", "logits"])
@pytest.mark.parametrize("name", REAL_ENSEMBLES)
def test_six_updates(name, kind, dtype, atol):
    logits, labels = load_logits(name)
    golden = load_golden(name)
    scores = (logits if kind == "logits" else softmax(logits)).astype(dtype)
    truth = vd.discover(scores, kind=kind, accuracy_preserving=False, tol=0, max_iter=6)
    assert truth.probs.dtype == dtype
    samples = golden["samples"]["index"]
    for n, top5 in zip(samples, golden["samples"]["tde_top5"], strict=True):
        for label, score in top5:
            assert truth.probs[n, label] == pytest.approx(score, abs=atol)
    np.testing.assert_allclose(truth.hv[samples], golden["hv"]["first20"], atol=atol)
    assert truth.hv.mean(dtype=np.float64) == pytest.approx(golden["hv"]["mean"], abs=atol)
    figures = golden["tde_6_updates"]
    winning = truth.probs[np.arange(labels.size), labels].astype(np.float64)
    squares = ((truth.probs - np.eye(truth.probs.shape[1])[labels]) ** 2).sum(axis=1)
    assert -np.log(winning).mean() == pytest.approx(figures["nll"], abs=atol)
    assert squares.mean() == pytest.approx(figures["mse"], abs=atol)
    assert (truth.probs.argmax(axis=1) == labels).mean() == figures["acc"]


@pytest.mark.compiled
@pytest.mark.parametrize("name", REAL_ENSEMBLES)
def test_accuracy_is_that_of_the_mean(name):
    logits, labels = load_logits(name)
    golden = load_golden(name)
    truth = vd.discover(logits, kind="logits")
    assert (truth.probs.argmax(axis=1) == labels).mean() == golden["mean"]["acc"]
    assert golden["mean"]["acc"] == golden["atde_6_updates_final_projection"]["acc"]
