"""Members that are fitted, combined and calibrated together."""

import pickle
import warnings

import numpy as np
import pytest
import sklearn
from lightgbm import LGBMClassifier
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.metrics import log_loss
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    RepeatedStratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
    train_test_split,
)
from sklearn.multiclass import OutputCodeClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

import veridical as vd
from veridical.errors import (
    InvalidInputError,
    LabelError,
    ParameterError,
    SampleWeightWarning,
    UnfittedError,
    UnseenClassWarning,
)

pytestmark = pytest.mark.compiled

LOGISTIC = make_pipeline(StandardScaler(), LogisticRegression())


@pytest.fixture(scope="module")
def wine():
    """Training and test samples, labels as text."""
    X, y = load_wine(return_X_y=True)
    return train_test_split(X, np.array(["barbera", "barolo", "grignolino"])[y], random_state=0, stratify=y)


def members():
    return [
        ("logistic", LOGISTIC),
        ("bayes", GaussianNB()),
        ("tree", DecisionTreeClassifier(max_depth=3, random_state=0)),
    ]


@pytest.mark.parametrize("serve", ["refit", "folds"])
def test_answers_of_a_fitted_ensemble(wine, serve):
    X, X_test, y, y_test = wine
    ensemble = vd.CalibratedEnsemble(members(), method="temperature", serve=serve).fit(X, y)
    probs = ensemble.predict_proba(X_test)
    assert ensemble.classes_.tolist() == ["barbera", "barolo", "grignolino"]
    np.testing.assert_allclose(probs.sum(axis=1), 1.0)
    assert (ensemble.predict(X_test) == ensemble.classes_[probs.argmax(axis=1)]).all()
    np.testing.assert_allclose(ensemble.predict_confidence(X_test), probs.max(axis=1), atol=1e-6)
    reliability = ensemble.source_reliability(X_test)
    assert reliability.shape == (len(X_test), 3)
    np.testing.assert_allclose(reliability.sum(axis=1), 1.0)
    assert ensemble.source_names_ == ("logistic", "bayes", "tree")
    assert len(ensemble.estimators_) == (1 if serve == "refit" else 5)
    assert ensemble.score(X_test, y_test) > 0.9
    assert log_loss(y_test, probs) < 0.3


def test_calibrator_sees_only_predictions_of_unseen_samples():
    """A tree that knows its training samples by heart is no better than chance on labels that are random."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 5)), rng.integers(0, 2, 400)
    ensemble = vd.CalibratedEnsemble([DecisionTreeClassifier(random_state=0)], method="platt", serve="refit").fit(X, y)
    assert ensemble.estimators_[0][0].score(X, y) == 1.0
    assert ensemble.predict_confidence(rng.standard_normal((200, 5))).max() < 0.6


def test_refit_members_are_those_of_a_plain_fit(wine):
    X, X_test, y, _ = wine
    ensemble = vd.CalibratedEnsemble(members(), method="mean", serve="refit").fit(X, y)
    alone = [clone(member).fit(X, y).predict_proba(X_test) for _, member in members()]
    np.testing.assert_allclose(ensemble.predict_proba(X_test), np.mean(alone, axis=0), atol=1e-6)


def test_folds_are_averaged_after_calibration(wine):
    X, X_test, y, _ = wine
    ensemble = vd.CalibratedEnsemble(members(), method="temperature", serve="folds", cv=3).fit(X, y)
    parts = []
    for copy in ensemble.estimators_:
        sources = np.stack([member.predict_proba(X_test) for member in copy])
        parts.append(ensemble.calibrator_.predict_proba(sources))
    np.testing.assert_allclose(ensemble.predict_proba(X_test), np.mean(parts, axis=0), atol=1e-9)


@pytest.mark.parametrize("method", ["auto", "ptde", "atde", "log-pool+vector", vd.Spline(combine="atde")])
def test_every_kind_of_method(wine, method):
    X, X_test, y, y_test = wine
    ensemble = vd.CalibratedEnsemble([LOGISTIC, GaussianNB()], method=method, cv=3).fit(X, y)
    assert log_loss(y_test, ensemble.predict_proba(X_test)) < 0.4
    if method == "auto":
        losses = [row["score"] for row in ensemble.candidates_]
        assert losses == sorted(losses)
        assert len(losses) == 10
        rows = {(row["combine"], row["method"]): row for row in ensemble.candidates_}
        chosen = rows[ensemble.calibrator_.combine, ensemble.calibrator_.name]
        pool = rows["log-pool", "log-pool"]
        assert chosen is (pool if pool["behind"] <= 2 * pool["behind_spread"] else ensemble.candidates_[0])
    again = vd.CalibratedEnsemble([LOGISTIC, GaussianNB()], method=method, cv=3).fit(X, y)
    assert (again.predict_proba(X_test) == ensemble.predict_proba(X_test)).all()


def test_boosting_libraries_with_text_labels_and_a_class_missing_in_a_fold(wine):
    X, X_test, y, y_test = wine
    y, rare = y.copy(), 0
    y[rare] = "zinfandel"  # one sample: no fold can both know and predict this class
    boosters = [
        LGBMClassifier(n_estimators=20, n_jobs=1, verbose=-1, random_state=0),
        make_pipeline(StandardScaler(), XGBClassifier(n_estimators=20, n_jobs=1, random_state=0)),
        LOGISTIC,
    ]
    ensemble = vd.CalibratedEnsemble(boosters, method="temperature", cv=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the least populated class has one member
        warnings.simplefilter("always", UnseenClassWarning)
        with pytest.warns(UnseenClassWarning, match="1 of 133 samples are left out of the calibration"):
            ensemble.fit(X, y)
    assert ensemble.n_calibration_samples_ == 132
    assert ensemble.classes_.tolist() == ["barbera", "barolo", "grignolino", "zinfandel"]
    probs = ensemble.predict_proba(np.asarray(X_test))
    assert np.isfinite(probs).all()
    assert (ensemble.classes_[probs.argmax(axis=1)] == y_test).mean() > 0.9


def test_classifiers_without_probabilities(wine):
    X, X_test, y, y_test = wine
    scorers = [
        make_pipeline(StandardScaler(), LinearSVC(random_state=0)),
        make_pipeline(StandardScaler(), Perceptron(random_state=0)),
        make_pipeline(StandardScaler(), SVC(decision_function_shape="ovr")),
    ]
    ensemble = vd.CalibratedEnsemble(scorers, method="mean").fit(X, y)
    assert log_loss(y_test, ensemble.predict_proba(X_test)) < 0.3
    binary = y != "barolo"
    ensemble.fit(X, binary)
    assert ensemble.classes_.dtype == bool
    assert log_loss(y_test != "barolo", ensemble.predict_proba(X_test)) < 0.3


def test_votes_and_pairwise_margins(wine):
    X, X_test, y, y_test = wine
    voters = [
        OutputCodeClassifier(LOGISTIC, random_state=0),
        SVC(decision_function_shape="ovo", kernel="linear"),
        LOGISTIC,
    ]
    ensemble = vd.CalibratedEnsemble(voters, method="temperature").fit(X, y)
    assert ensemble.score(X_test, y_test) > 0.9


@pytest.mark.parametrize(
    "whole",
    [
        VotingClassifier([*members(), ("gone", "drop")], voting="soft"),
        VotingClassifier(members(), voting="hard"),
        StackingClassifier(members(), cv=3),
        BaggingClassifier(LOGISTIC, n_estimators=5, max_features=0.5, random_state=0),
        RandomForestClassifier(10, random_state=0),
        ExtraTreesClassifier(10, random_state=0),
    ],
    ids=lambda whole: type(whole).__name__,
)
def test_ensembles_of_scikit_learn(wine, whole):
    X, X_test, y, y_test = wine
    fitted = clone(whole).fit(X[:80], y[:80])
    ensemble = vd.CalibratedEnsemble(fitted, method="mean", prefit=True).fit(X[80:], y[80:])
    assert len(ensemble.source_names_) == len(fitted.estimators_)
    assert ensemble.n_calibration_samples_ == len(X) - 80
    if isinstance(whole, (RandomForestClassifier, ExtraTreesClassifier, BaggingClassifier)) or (
        isinstance(whole, VotingClassifier) and whole.voting == "soft"
    ):
        np.testing.assert_allclose(ensemble.predict_proba(X_test), fitted.predict_proba(X_test), atol=2e-6)
    from_scratch = vd.CalibratedEnsemble(clone(whole), method="temperature", cv=3).fit(X, y)
    assert len(from_scratch.source_names_) == len(fitted.estimators_)
    assert from_scratch.score(X_test, y_test) > 0.85


def test_stacking_of_prefit_members(wine):
    X, X_test, y, _ = wine
    parts = [(name, member.fit(X[:70], y[:70])) for name, member in members()]
    stacking = StackingClassifier(parts, cv="prefit").fit(X[70:90], y[70:90])
    ensemble = vd.CalibratedEnsemble(stacking, method="mean", prefit=True).fit(X[90:], y[90:])
    mean = np.mean([member.predict_proba(X_test) for _, member in parts], axis=0)
    np.testing.assert_allclose(ensemble.predict_proba(X_test), mean, atol=1e-6)


def test_prefit_members_may_know_different_classes(wine):
    X, X_test, y, y_test = wine
    two = y != "barolo"
    narrow = LogisticRegression(max_iter=5000).fit(X[two], y[two])
    wide = clone(LOGISTIC).fit(X, y)
    ensemble = vd.CalibratedEnsemble([narrow, wide], method="log-pool", prefit=True).fit(X_test, y_test)
    assert ensemble.classes_.tolist() == ["barbera", "barolo", "grignolino"]
    assert ensemble.predict_proba(X_test).shape == (len(X_test), 3)


def test_prefit_errors(wine):
    X, _, y, _ = wine
    with pytest.raises(UnfittedError, match="estimator logisticregression is not fitted"):
        vd.CalibratedEnsemble([LogisticRegression()], prefit=True).fit(X, y)
    with pytest.raises(LabelError, match="some labels are text and some are numbers"):
        vd.CalibratedEnsemble([GaussianNB().fit(X, np.arange(len(X)) % 3)], prefit=True).fit(X, y)


def test_groups_stay_together():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 10)
    centres, labels = rng.standard_normal((40, 8)), np.arange(40) % 2
    rng.shuffle(groups)
    X, y = centres[groups] + 0.01 * rng.standard_normal((400, 8)), labels[groups]  # the label is the group's alone
    nearest = [KNeighborsClassifier(1), KNeighborsClassifier(3)]
    leaky = vd.CalibratedEnsemble(nearest, method="platt").fit(X, y)
    assert leaky.predict_confidence(X).mean() > 0.95
    for cv in (GroupKFold(5), 5):
        honest = vd.CalibratedEnsemble(nearest, method="platt", cv=cv).fit(X, y, groups=groups)
        assert honest.predict_confidence(X).mean() < 0.75


def test_time_series_and_repeated_splits(wine):
    X, X_test, y, _ = wine
    forward = vd.CalibratedEnsemble(members(), method="temperature", cv=TimeSeriesSplit(4)).fit(X, y)
    assert forward.n_calibration_samples_ == 4 * (len(X) // 5)
    twice = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    repeated = vd.CalibratedEnsemble(members(), method="temperature", cv=twice).fit(X, y)
    assert repeated.n_calibration_samples_ == 2 * len(X)
    assert repeated.predict_proba(X_test).shape == (len(X_test), 3)


def test_grid_search_over_members_and_methods(wine):
    X, X_test, y, _ = wine
    ensemble = vd.CalibratedEnsemble(members(), method="temperature", cv=3)
    grid = {"tree__max_depth": [1, 3], "method": ["mean", "temperature"], "bayes": [GaussianNB(var_smoothing=1e-6)]}
    search = GridSearchCV(ensemble, grid, scoring="neg_log_loss", cv=3).fit(X, y)
    assert search.best_params_["tree__max_depth"] == 3
    assert search.best_estimator_.estimators_[0][1].var_smoothing == 1e-6
    assert search.predict(X_test).shape == (len(X_test),)
    names = vd.CalibratedEnsemble([GaussianNB(), GaussianNB()]).get_params()
    assert {"gaussiannb-1", "gaussiannb-2__var_smoothing"} <= set(names)


def test_cross_val_predict_and_pipeline(wine):
    X, _, y, _ = wine
    ensemble = make_pipeline(
        StandardScaler(), vd.CalibratedEnsemble([LogisticRegression(), GaussianNB()], method="temperature", cv=3)
    )
    probs = cross_val_predict(ensemble, X, y, cv=3, method="predict_proba")
    assert log_loss(y, probs) < 0.2


def test_text_goes_to_the_members_as_it_is():
    texts = ["good film", "great film", "fine play", "bad film", "awful play", "poor film"] * 8
    labels = (["pos"] * 3 + ["neg"] * 3) * 8
    reader = make_pipeline(CountVectorizer(), MultinomialNB())
    ensemble = vd.CalibratedEnsemble([reader, clone(reader)], method="temperature", cv=3).fit(texts, labels)
    assert ensemble.predict(["good play", "awful film"]).tolist() == ["pos", "neg"]


def test_data_frames_keep_their_names():
    frame, y = load_iris(return_X_y=True, as_frame=True)
    ensemble = vd.CalibratedEnsemble([LOGISTIC, GaussianNB()], method="mean", cv=3).fit(frame, y)
    assert ensemble.feature_names_in_.tolist() == frame.columns.tolist()
    forest = RandomForestClassifier(5, random_state=0).fit(frame, y)
    wrapped = vd.CalibratedEnsemble(forest, method="mean", prefit=True).fit(frame, y)
    np.testing.assert_allclose(wrapped.predict_proba(frame), forest.predict_proba(frame), atol=2e-6)
    assert wrapped.n_features_in_ == 4


def test_many_samples_are_predicted_in_portions(wine, monkeypatch):
    X, X_test, y, _ = wine
    ensemble = vd.CalibratedEnsemble(members(), method="ptde").fit(X, y)
    whole = ensemble.predict_proba(X_test), ensemble.predict_confidence(X_test), ensemble.source_reliability(X_test)
    monkeypatch.setattr("veridical.ensemble.calibrated_ensemble._MOST_NUMBERS", 3 * 3 * 7)
    parts = ensemble.predict_proba(X_test), ensemble.predict_confidence(X_test), ensemble.source_reliability(X_test)
    for first, second in zip(whole, parts, strict=True):
        np.testing.assert_allclose(first, second, atol=1e-12)


def test_weights_reach_members_and_calibrator():
    X, y = make_classification(600, n_features=5, flip_y=0.3, random_state=0)
    weights = np.where(y == 1, 5.0, 1.0)
    pair = [make_pipeline(StandardScaler(), LogisticRegression()), GaussianNB()]
    plain = vd.CalibratedEnsemble(pair, method="vector").fit(X, y)
    weighted = vd.CalibratedEnsemble(pair, method="vector", serve="refit").fit(X, y, sample_weight=weights)
    assert weighted.predict_proba(X)[:, 1].mean() > plain.predict_proba(X)[:, 1].mean() + 0.15
    alone = clone(pair[1]).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(weighted.estimators_[0][1].class_prior_, alone.class_prior_)
    expected = np.average(y, weights=weights)
    assert abs(np.average(weighted.predict_proba(X)[:, 1], weights=weights) - expected) < 0.02
    with pytest.warns(SampleWeightWarning, match="members that take no sample weights: kneighborsclassifier"):
        vd.CalibratedEnsemble([KNeighborsClassifier(), GaussianNB()], method="mean").fit(X, y, sample_weight=weights)


def test_calibration_of_weighted_samples_repeats_them(wine):
    X, _, y, _ = wine
    fitted = [clone(LOGISTIC).fit(X[:60], y[:60]), GaussianNB().fit(X[:60], y[:60])]
    rest, labels = X[60:], y[60:]
    whole = np.arange(len(labels)) % 3  # weights 0, 1 and 2
    weighted = vd.CalibratedEnsemble(fitted, method="temperature", prefit=True).fit(rest, labels, sample_weight=whole)
    assert weighted.n_calibration_samples_ == np.count_nonzero(whole)
    equal = vd.CalibratedEnsemble(fitted, method="temperature", prefit=True).fit(
        rest, labels, sample_weight=np.full(len(labels), 0.1)
    )
    plain = vd.CalibratedEnsemble(fitted, method="temperature", prefit=True).fit(rest, labels)
    assert equal.calibrator_.temperature_ == plain.calibrator_.temperature_


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"sample_weight": np.zeros(60)}, InvalidInputError, "all sample weights are zero"),
        ({"sample_weight": np.eye(60)[0]}, InvalidInputError, "all samples that fold 0 leaves for its members"),
        ({"sample_weight": np.full(60, -1.0)}, InvalidInputError, "weight of sample 0 is -1"),
        ({"groups": np.zeros(60)}, ParameterError, "cv cannot split 60 samples .*number of groups: 1"),
    ],
)
def test_weights_and_groups_that_leave_nothing_to_fit(parameters, error, message):
    X, y = make_classification(60, random_state=0)
    with pytest.raises(error, match=message):
        vd.CalibratedEnsemble([LogisticRegression(), GaussianNB()], cv=3).fit(X, y, **parameters)


def test_metadata_routing():
    X, y = make_classification(200, random_state=0)
    weights, groups = np.linspace(0.1, 2.0, 200), np.arange(200) // 4
    with sklearn.config_context(enable_metadata_routing=True):
        with pytest.raises(ValueError, match="sample_weight"):  # neither requested nor declined
            vd.CalibratedEnsemble([GaussianNB()], method="mean", cv=3).fit(X, y, sample_weight=weights)
        ensemble = (
            vd.CalibratedEnsemble(
                [
                    ("asks", GaussianNB().set_fit_request(sample_weight=True)),
                    ("declines", GaussianNB().set_fit_request(sample_weight=False)),
                ],
                method="mean",
                cv=GroupKFold(3),
                serve="refit",
            )
            .set_fit_request(sample_weight=True)
            .set_score_request(sample_weight=True)
        )
        ensemble.fit(X, y, sample_weight=weights, groups=groups)
        asks, declines = ensemble.estimators_[0]
        np.testing.assert_allclose(asks.theta_, GaussianNB().fit(X, y, sample_weight=weights).theta_)
        np.testing.assert_allclose(declines.theta_, GaussianNB().fit(X, y).theta_)
        search = GridSearchCV(ensemble, {"method": ["mean"]}, cv=GroupKFold(2))
        search.fit(X, y, sample_weight=weights, groups=groups)
        assert search.predict(X).shape == (200,)


def test_pickle_and_save_of_the_calibrator(wine, tmp_path):
    X, X_test, y, _ = wine
    ensemble = vd.CalibratedEnsemble(members(), method="ptde").fit(X, y)
    copy = pickle.loads(pickle.dumps(ensemble))
    assert (copy.predict_proba(X_test) == ensemble.predict_proba(X_test)).all()
    ensemble.calibrator_.save(tmp_path / "cal.json")
    assert vd.load_calibrator(tmp_path / "cal.json").n_sources_ == 3


def test_parallel_members_are_the_same(wine):
    X, X_test, y, _ = wine
    serial, parallel = (
        vd.CalibratedEnsemble(members(), method="temperature", cv=2, n_jobs=n).fit(X, y).predict_proba(X_test)
        for n in (1, 2)
    )
    assert (serial == parallel).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"estimators": []}, r"estimators is \[\]; give a list of classifiers"),
        ({"estimators": "logistic"}, "estimators is 'logistic'"),
        ({"estimators": [("a", GaussianNB()), GaussianNB()]}, "name all of them or none"),
        ({"estimators": [("a__b", GaussianNB())]}, "estimator name 'a__b' cannot be used"),
        ({"estimators": [("a", GaussianNB()), ("a", GaussianNB())]}, "estimator name 'a' cannot be used"),
        ({"estimators": [StandardScaler()]}, "estimator standardscaler is StandardScaler"),
        ({"estimators": [GaussianNB()], "method": "nonsense"}, "method 'nonsense' is unknown"),
        ({"estimators": [GaussianNB()], "serve": "both"}, "serve 'both' is unknown"),
        ({"estimators": [GaussianNB()], "prefit": "yes"}, "prefit is 'yes'; give True or False"),
    ],
)
def test_bad_parameters_are_named(wine, arguments, message):
    X, _, y, _ = wine
    with pytest.raises(ParameterError, match=message):
        vd.CalibratedEnsemble(**arguments).fit(X, y)


def test_bad_data_are_named(wine):
    X = wine[0]
    ensemble = vd.CalibratedEnsemble([GaussianNB()], method="mean")
    with pytest.raises(LabelError, match="requires y to be passed"):
        ensemble.fit(X, None)
    with pytest.raises(LabelError, match="y has one class, 'barolo'"):
        ensemble.fit(X, ["barolo"] * len(X))
    with pytest.raises(NotFittedError):
        vd.CalibratedEnsemble([GaussianNB()]).predict(X)


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: vd.PTDE(LogisticRegression()),
        lambda: vd.Temperature([LogisticRegression(), GaussianNB()]),
        lambda: vd.PTDE([("logistic", LogisticRegression())]),
        lambda: vd.PTDE(estimator=LogisticRegression()),
        lambda: vd.Auto(estimators=[LogisticRegression()]),
        lambda: vd.PTDE().fit(LogisticRegression(), [0, 1]),
    ],
)
def test_calibrators_point_estimators_to_the_ensemble(misuse):
    with pytest.raises(
        ParameterError, match=r"calibrates predictions and got an estimator.*CalibratedEnsemble\(\[\.\.\.\]"
    ):
        misuse()


def test_breast_cancer_is_better_than_the_plain_mean():
    X, y = load_breast_cancer(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    pair = [LOGISTIC, GaussianNB()]
    calibrated = vd.CalibratedEnsemble(pair).fit(X, y)
    mean = vd.CalibratedEnsemble(pair, method="mean").fit(X, y)
    assert log_loss(y_test, calibrated.predict_proba(X_test)) < log_loss(y_test, mean.predict_proba(X_test))
