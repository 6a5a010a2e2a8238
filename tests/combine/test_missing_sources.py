"""Sources that are absent for some samples."""

import numpy as np
import pytest
from ensembles import random_ensemble

import veridical as vd
from veridical.errors import MissingSourceError, NotFiniteError


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("kind", ["probs", "logits", "log_probs"])
@pytest.mark.parametrize("n_classes", [4, 60])
def test_skipping_equals_leaving_out(rng, dtype, kind, n_classes):
    probs = random_ensemble(rng, 6, 12, n_classes)
    scores = (probs if kind == "probs" else np.log(probs)).astype(dtype)
    absent = rng.random((6, 12)) < 0.4
    absent[0] = False
    scores[absent] = np.nan
    truth = vd.discover(scores, kind=kind, missing="skip")
    for n in range(12):
        here = ~absent[:, n]
        alone = vd.discover(scores[here, n : n + 1], kind=kind)
        np.testing.assert_allclose(truth.probs[n], alone.probs[0], atol=2e-6)
        assert truth.hv[n] == pytest.approx(alone.hv[0], rel=1e-4)
        assert truth.prediction[n] == alone.prediction[0]
        np.testing.assert_allclose(truth.reliability[here, n], alone.reliability[:, 0], atol=1e-4)
        assert (truth.reliability[~here, n] == 0).all()


def test_first_missing_is_named(rng):
    probs = random_ensemble(rng, 3, 5, 4)
    probs[2, 3] = probs[1, 4] = np.nan
    with pytest.raises(MissingSourceError, match=r"source 2 has no prediction for sample 3 .* missing=\"skip\""):
        vd.discover(probs)
    named = vd.Predictions(probs, source_names=["a", "b", "slow"])
    with pytest.raises(MissingSourceError, match=r"source 2 \(slow\)"):
        vd.discover(named)


def test_sample_without_sources_is_rejected(rng):
    probs = random_ensemble(rng, 3, 5, 4)
    probs[:, 2] = np.nan
    with pytest.raises(MissingSourceError, match="no source has a prediction for sample 2"):
        vd.discover(probs, missing="skip")


@pytest.mark.parametrize("position", [0, 3])
def test_partly_nan_row_is_rejected(rng, position):
    probs = random_ensemble(rng, 3, 5, 4)
    probs[1, 2, position] = np.nan
    with pytest.raises(NotFiniteError, match=f"source 1, sample 2: the probability of class {position} is nan"):
        vd.discover(probs, missing="skip")
