"""CalibratedEnsemble under scikit-learn's own checks."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import veridical as vd

pytestmark = pytest.mark.compiled

#: scikit-learn expects the same of its own CalibratedClassifierCV.
_FOLDS = "leaving a sample out also changes the folds, so it is not the same as weight zero"


def expected_failures(ensemble):
    return {
        "check_sample_weight_equivalence_on_dense_data": _FOLDS,
        "check_sample_weight_equivalence_on_sparse_data": _FOLDS,
    }


@parametrize_with_checks(
    [
        vd.CalibratedEnsemble(
            [("logistic", LogisticRegression(C=1)), ("bayes", GaussianNB())], method="temperature", cv=3, serve="refit"
        ),
        vd.CalibratedEnsemble(
            [LogisticRegression(C=1), DecisionTreeClassifier(max_depth=3, random_state=0)],
            method="log-pool",
            cv=3,
            serve="folds",
        ),
    ],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore")
def test_estimator_checks(estimator, check):
    check(estimator)
