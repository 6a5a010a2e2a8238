"""MAPIE's conformal prediction sets around a calibrated ensemble."""

import numpy as np
import pytest
from mapie.classification import SplitConformalClassifier
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

import veridical as vd

pytestmark = pytest.mark.compiled


@pytest.mark.parametrize("score", ["lac", "aps", "top_k"])
def test_sets_of_mapie_cover_what_they_promise(score):
    X, y = load_digits(return_X_y=True)
    X, X_rest, y, y_rest = train_test_split(X / 16, y, train_size=500, random_state=0, stratify=y)
    X_conformal, X_test, y_conformal, y_test = train_test_split(X_rest, y_rest, train_size=600, random_state=0)
    ensemble = vd.CalibratedEnsemble([LogisticRegression(max_iter=500), GaussianNB(var_smoothing=1e-2)], "temperature")
    ensemble.fit(X, y)
    conformal = SplitConformalClassifier(ensemble, confidence_level=0.9, conformity_score=score, prefit=True)
    conformal.conformalize(X_conformal, y_conformal)
    labels, sets = conformal.predict_set(X_test)
    assert (labels == ensemble.predict(X_test)).all()
    covered = sets[np.arange(len(y_test)), y_test, 0].mean()
    assert covered > 0.9 - 3 * np.sqrt(0.9 * 0.1 / len(y_test)) - 3 * np.sqrt(0.9 * 0.1 / len(y_conformal))
    if score == "lac":
        assert sets.sum(axis=1).mean() < 1.2  # useful: hardly more than one class each


def test_sets_of_mapie_with_text_labels():
    X, y = load_digits(n_class=3, return_X_y=True)
    y = np.array(["zero", "one", "two"])[y]
    ensemble = vd.CalibratedEnsemble([LogisticRegression(max_iter=500)], "temperature").fit(X[:200] / 16, y[:200])
    conformal = SplitConformalClassifier(ensemble, confidence_level=0.95, prefit=True)
    conformal.conformalize(X[200:400] / 16, y[200:400])
    labels, sets = conformal.predict_set(X[400:] / 16)
    assert set(labels) <= {"zero", "one", "two"}
    assert sets.shape == (len(X) - 400, 3, 1)
