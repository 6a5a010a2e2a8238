"""Calibrators as scikit-learn estimators."""

import inspect
import pickle

import numpy as np
import pytest
from calibration_cases import NAMES, labelled_ensemble
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.utils import estimator_checks

import veridical as vd
from veridical.errors import LabelError, ParameterError, ShapeError, UnfittedError

#: Checks that need no data: scikit-learn runs no others by itself where X has three dimensions.
APPLICABLE = (
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_get_params_invariance",
    "check_set_params",
    "check_mixin_order",
)
_THREE_LABELS = "fits three labels to two columns; labels are the columns' numbers, so a third one is refused"
_SPARSE = "distributions are dense; sparse input is refused, in words that scikit-learn does not look for"
_OTHER_WORDS = "refused as it should be, with a message of our own in place of scikit-learn's"
#: Checks that a calibrator of (N, L) logits is expected to fail, and why.
EXPECTED_TO_FAIL = {
    "check_estimators_overwrite_params": _THREE_LABELS,
    "check_estimators_fit_returns_self": _THREE_LABELS,
    "check_readonly_memmap_input": _THREE_LABELS,
    "check_classifiers_train": _THREE_LABELS,
    "check_n_features_in_after_fitting": "the last axis holds classes, not features: n_classes_ says how many",
    "check_n_features_in": "the last axis holds classes, not features: n_classes_ says how many",
    "check_complex_data": f"complex numbers are {_OTHER_WORDS}",
    "check_dtype_object": "arrays of Python objects are refused, even where all of them are numbers",
    "check_estimators_empty_data_messages": f"no columns are {_OTHER_WORDS}",
    "check_estimators_nan_inf": f"NaN is {_OTHER_WORDS}, which writes it as NumPy does: nan",
    "check_estimator_sparse_tag": _SPARSE,
    "check_estimator_sparse_array": _SPARSE,
    "check_estimator_sparse_matrix": _SPARSE,
    "check_classifier_data_not_an_array": "its stand-in for an array forbids numpy.ndim, by which (N, L) is told apart",
    "check_classifiers_one_label": "wants the one label seen in y everywhere; a calibrator keeps the model's labels",
    "check_classifiers_classes": "labels are the columns' numbers, so strings are refused",
    "check_classifiers_regression_target": f"labels that are not whole numbers are {_OTHER_WORDS}",
    "check_supervised_y_2d": "a column of labels is refused instead of flattened with a warning",
    "check_fit2d_1feature": f"one column is not a distribution, and {_OTHER_WORDS}",
    "check_fit2d_predict1d": f"one row without its axis is {_OTHER_WORDS}",
    "check_requires_y_none": f"labels that are left out are {_OTHER_WORDS}",
}


@pytest.mark.filterwarnings("ignore::veridical.errors.NotConvergedWarning")
# Calibrators follow the protocol without the base class, which would be imported with every saved calibrator.
@pytest.mark.filterwarnings("ignore:Estimator Temperature does not inherit:UserWarning")
def test_all_estimator_checks():
    """Everything else passes, and what is expected to fail still does, so that no reason outlives its cause."""
    results = estimator_checks.check_estimator(
        vd.Temperature(kind="logits"), expected_failed_checks=EXPECTED_TO_FAIL, on_skip=None, on_fail="raise"
    )
    status = {name: {row["status"] for row in results if row["check_name"] == name} for name in EXPECTED_TO_FAIL}
    assert status == {name: {"xfail"} for name in EXPECTED_TO_FAIL}
    assert sum(row["status"] == "passed" for row in results) > len(EXPECTED_TO_FAIL)


@pytest.mark.parametrize("check", APPLICABLE)
@pytest.mark.parametrize("name", NAMES)
def test_estimator_checks(name, check):
    function = getattr(estimator_checks, check, None)
    if function is None:
        pytest.skip("this scikit-learn has no such check")
    method = vd.calibrators()[name]
    function(method.__name__, method())


@pytest.mark.parametrize("name", NAMES)
def test_clone_and_repr(name, rng):
    method = vd.calibrators()[name]
    calibrator = method(kind="logits", sources_axis=1)
    copy = clone(calibrator)
    assert copy.get_params() == calibrator.get_params()
    assert repr(copy) == repr(calibrator)
    assert "kind='logits'" in repr(calibrator)
    assert is_classifier(calibrator)
    copy.set_params(combine=next(iter(method.combiners)))
    probs = labelled_ensemble(rng)[0].swapaxes(0, 1)
    for use in (copy.predict, copy.predict_proba, copy.predict_confidence, copy.predict_all):
        with pytest.raises(NotFittedError, match=f"this {method.__name__} is not fitted; call fit") as caught:
            use(probs)
        assert isinstance(caught.value, UnfittedError)


@pytest.mark.parametrize("name", NAMES)
def test_positional_parameters_are_explained(name):
    method = vd.calibrators()[name]
    with pytest.raises(ParameterError, match=rf"parameters are given by name, .*: {method.__name__}\(\)\.fit\("):
        method(vd.Temperature())
    assert all(
        parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in inspect.signature(method).parameters.values()
    )


@pytest.mark.parametrize("value", [np.inf, np.nan, -1.0, "1"])
def test_truth_logit_rejects_penalties_that_are_not_finite(value, rng):
    with pytest.raises(ParameterError, match="penalty is"):
        vd.TruthLogit(penalty=value).fit(*labelled_ensemble(rng, n_samples=20))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("auto", "matrix")])
def test_cross_validation_as_it_is(name, rng):
    probs, labels = labelled_ensemble(rng, n_samples=120)
    sample_first = probs.swapaxes(0, 1)
    calibrator = vd.calibrators()[name](sources_axis=1)
    out_of_fold = cross_val_predict(calibrator, sample_first, labels, cv=3, method="predict_proba")
    assert out_of_fold.shape == (120, 4)
    np.testing.assert_allclose(out_of_fold.sum(axis=1), 1.0)
    if calibrator.keeps_labels:
        assert (out_of_fold.argmax(axis=1) == probs.mean(axis=0).argmax(axis=1)).all()
    scores = cross_val_score(calibrator, sample_first, labels, cv=3, scoring="neg_log_loss")
    assert np.isfinite(scores).all()


def test_grid_search(rng):
    probs, labels = labelled_ensemble(rng, n_samples=200)
    search = GridSearchCV(
        vd.PTDE(sources_axis=1, random_state=0),
        {"n_bins": [5, 15], "combine": ["mean", "atde"]},
        scoring="neg_brier_score",
        cv=3,
    )
    search.fit(probs.swapaxes(0, 1), labels)
    assert search.best_params_["n_bins"] in (5, 15)
    assert search.predict_proba(probs.swapaxes(0, 1)).shape == (200, 4)


def test_fit_changes_no_parameter_and_predict_nothing(rng):
    probs, labels = labelled_ensemble(rng)
    for name in NAMES:
        calibrator = vd.calibrators()[name]()
        before = calibrator.get_params()
        if name == "auto":
            calibrator.set_params(candidates=["platt"])
            before = calibrator.get_params()
        calibrator.fit(probs, labels)
        assert calibrator.get_params() == before
        attributes = {key: id(value) for key, value in vars(calibrator).items()}
        calibrator.predict_proba(probs)
        assert {key: id(value) for key, value in vars(calibrator).items()} == attributes


def test_bad_input(rng):
    probs, labels = labelled_ensemble(rng)
    with pytest.raises(LabelError, match="calibration needs labels"):
        vd.Temperature().fit(probs)
    with pytest.raises(LabelError, match="the label of sample 0 is 9"):
        vd.Temperature().fit(probs, np.full(len(labels), 9))
    with pytest.raises(LabelError, match="there are 3 labels for 300 samples"):
        vd.Temperature().fit(probs, labels[:3])
    with pytest.raises(ShapeError, match="no samples"):
        vd.Temperature().fit(probs[:, :0], labels[:0])
    too_much, absent = probs.copy(), probs.copy()
    too_much[1, 2] *= 1.2
    absent[1, 2] = np.nan
    with pytest.raises(vd.errors.NotNormalisedError, match="source 1, sample 2"):
        vd.Temperature().fit(too_much, labels)
    with pytest.raises(vd.errors.MissingSourceError, match='missing="skip"'):
        vd.PTDE().fit(absent, labels)
    with pytest.raises(vd.errors.UnknownNameError, match="combine for temperature 'median' is unknown"):
        vd.Temperature(combine="median").fit(probs, labels)
    for ragged in ([probs[0], probs[1][:100]], [[0.5, 0.5], [1.0]], [[[0.5, 0.5]], [[1.0]]]):
        with pytest.raises(ShapeError, match=r"all sources must predict the same|rows of equal length"):
            vd.Temperature().fit(ragged, labels)
    with pytest.raises(ParameterError, match="contradicts"):
        vd.Temperature(kind="logits").fit(vd.Predictions(probs, labels))


def test_separate_arrays_and_nested_lists(rng):
    probs, labels = labelled_ensemble(rng, n_samples=40)
    expected = vd.PTDE().fit(probs, labels).predict_proba(probs)
    np.testing.assert_array_equal(vd.PTDE().fit(list(probs), labels).predict_proba(list(probs)), expected)
    rows = probs.mean(axis=0).tolist()
    assert vd.Spline().fit(rows, labels.tolist()).predict_proba(rows).shape == (40, 4)


def test_unfitted_error_reaches_other_processes():
    with pytest.raises(NotFittedError) as caught:
        vd.Temperature().predict([[[0.5, 0.5]]])
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is type(caught.value)
    assert str(again) == str(caught.value)
