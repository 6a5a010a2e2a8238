"""``CalibratedEnsemble`` on small classifiers: a distribution per sample, or an error that names the cause.

Errors about samples and labels are scikit-learn's, whose conventions the class keeps; whatever this package raises
itself is under the rule of ``rule.py``.
"""

from __future__ import annotations

import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import often
from hunting import hunted
from hypothesis import given
from hypothesis import strategies as st
from odd_values import mostly, odd_values
from rule import check_sentence, counts
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import veridical as vd
from veridical.errors import VeridicalError

pytestmark = pytest.mark.compiled

PACKAGE = str(Path(vd.__file__).parent)
MEMBERS = (
    GaussianNB, DummyClassifier, lambda: DecisionTreeClassifier(max_depth=2), RidgeClassifier, LinearSVC,
    lambda: DummyClassifier(strategy="uniform", random_state=0),
)  # fmt: skip
METHODS = ("mean", "atde", "consensus", "temperature", "ptde", "log-pool+vector", "truth-logit", "histogram", "nothing")


def check_estimator_call(call: Any, *arguments: Any, **options: Any) -> Any:
    """The result, or None where it is refused by this package with a sentence, or elsewhere with a reason."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # members have much to say about three samples
            result = call(*arguments, **options)
    except VeridicalError as error:
        check_sentence(str(error))
        counts["rejected"] += 1
        return None
    except Exception as error:
        # scikit-learn makes an array of labels at once, and one of range(10**12) has no room.
        says_why = bool(str(error)) or isinstance(error, MemoryError)
        if traceback.extract_tb(error.__traceback__)[-1].filename.startswith(PACKAGE) or not says_why:
            raise
        counts["rejected elsewhere"] += 1
        return None
    counts["returned"] += 1
    return result


@st.composite
def samples(draw: Any) -> tuple[Any, Any]:
    """Features and labels of two or three classes, in several types."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, n_classes = draw(st.sampled_from((0, 1, 4, 12, 12, 30, 30))), draw(st.sampled_from((1, 2, 2, 3)))
    labels = np.arange(n) % n_classes
    features = rng.normal(size=(n, 2)) + labels[:, None]
    names = draw(st.sampled_from((np.arange(3), np.array(["a", "b", "c"]), np.array([-1.0, 0.0, 7.0]))))
    return features, names[labels]


@hunted(12)
@given(st.data())
def test_calibrated_ensemble(data):
    features, labels = data.draw(samples())
    members = [make() for make in data.draw(st.lists(st.sampled_from(MEMBERS), min_size=1, max_size=2))]
    options = {
        "method": data.draw(st.sampled_from(METHODS)),
        "cv": data.draw(often(2, (3, 5, [(np.arange(2), np.arange(2, 4))]))),
        "serve": data.draw(st.sampled_from(("refit", "folds"))),
        "prefit": data.draw(often(False, (True,))),
    }
    if data.draw(st.integers(0, 2)) == 0:
        name = data.draw(st.sampled_from((*options, "estimators", "random_state", "n_jobs")))
        options[name] = data.draw(odd_values())
    ensemble = vd.CalibratedEnsemble(**{"estimators": members, **options})
    check_estimator_call(repr, ensemble)
    weights = data.draw(mostly(often(None, (np.ones(len(labels)), np.zeros(len(labels))))))
    groups = {"groups": np.arange(len(labels)) // 2} if data.draw(st.integers(0, 4)) == 0 else {}
    odd = data.draw(st.sampled_from((False, False, False, True)))
    fitted = check_estimator_call(
        ensemble.fit, features, data.draw(odd_values()) if odd else labels, sample_weight=weights, **groups
    )
    if fitted is None:
        check_estimator_call(ensemble.predict_proba, features)
        return
    probs = check_estimator_call(fitted.predict_proba, features)
    assert probs is not None
    assert np.isfinite(probs).all()
    assert np.allclose(probs.sum(axis=1), 1, atol=1e-4)
    for name in ("predict", "predict_confidence", "source_reliability"):
        assert check_estimator_call(getattr(fitted, name), features) is not None
        check_estimator_call(getattr(fitted, name), data.draw(odd_values()))
