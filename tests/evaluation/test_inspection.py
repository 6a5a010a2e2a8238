"""What inspect says about sources."""

import numpy as np
import pytest
from ensembles import random_ensemble

import veridical as vd

pytestmark = pytest.mark.compiled


@pytest.fixture
def probs(rng):
    return random_ensemble(rng, 5, 300, 4)


def test_facts(probs, rng):
    labels = probs.mean(axis=0).argmax(axis=1)
    found = vd.inspect(vd.Predictions(probs, labels))
    for s, source in enumerate(found.sources):
        assert source.accuracy == (probs[s].argmax(axis=1) == labels).mean()
        assert source.accuracy == source.agreement
        assert source.mean_confidence == pytest.approx(probs[s].max(axis=1).mean())
        for t in range(5):
            assert found.agreement[s][t] == (probs[s].argmax(axis=1) == probs[t].argmax(axis=1)).mean()
    assert sum(source.mean_reliability for source in found.sources) == pytest.approx(1)
    assert found.warnings == ()
    assert "<table>" in found._repr_html_()


def test_an_outlier_is_found(probs, rng):
    probs[3] = rng.dirichlet(np.ones(4), 300)
    labels = probs[[0, 1, 2, 4]].mean(axis=0).argmax(axis=1)
    found = vd.inspect(vd.Predictions(probs, labels, source_names=["a", "b", "c", "noise", "e"]))
    assert found.outlier == 3
    assert any("noise is right on" in warning and "log-pool" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p: p[:1], "one source"),
        (lambda p: p[:2], "two sources"),
        (lambda p: p[[0, 1, 2, 1]], "source 3 and source 1 are identical"),
    ],
)
def test_warnings(probs, change, words):
    assert any(words in warning for warning in vd.inspect(change(probs)).warnings)


def test_missing_rows_are_counted(probs):
    probs[1, :10] = np.nan
    found = vd.inspect(probs)
    assert found.sources[1].missing == 10
    assert any("10 of 1500 rows are absent" in warning for warning in found.warnings)
