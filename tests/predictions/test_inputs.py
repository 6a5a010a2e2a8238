"""Every form of scores gives the result of the plain array."""

import numpy as np
import pandas as pd
import pytest
from ensembles import random_ensemble
from sklearn.linear_model import LogisticRegression

import veridical as vd
from veridical import errors

NAMES = ["cat", "dog", "owl"]


@pytest.fixture
def probs(rng):
    return random_ensemble(rng, 3, 8, 3)


def test_two_dimensions_are_one_source(probs):
    np.testing.assert_array_equal(vd.Predictions(probs[0]).values, probs[:1])
    labels = probs[0].argmax(axis=1)
    one, stacked = (vd.evaluate(values, labels, methods=["mean"], floors=False) for values in (probs[0], probs[:1]))
    assert one["mean"].summary["nll"].value == stacked["mean"].summary["nll"].value


def test_one_sample_of_several_sources_is_refused(probs, rng):
    one_sample = probs[:, 0]
    with pytest.raises(errors.ShapeError, match=r"for one sample of several sources array\[:, None\]"):
        vd.discover(one_sample)
    calibrator = vd.Temperature().fit(probs, rng.integers(0, 3, 8))
    with pytest.raises(errors.ShapeError, match=r"fitted on 3 sources .* for one sample \(sources, 1, classes\)"):
        calibrator.predict_proba(one_sample)
    with pytest.raises(errors.ShapeError, match="fitted on 3 sources"):
        vd.apply_calibrator(calibrator, one_sample)
    assert calibrator.predict_proba(one_sample[:, None]).shape == (1, 3)


@pytest.mark.parametrize("form", ["array", "one source", "list", "dictionary", "frames"])
def test_binary_scores_equal_both_columns(rng, form):
    scores = rng.random((3, 40))
    scores = scores[:1] if form == "one source" else scores
    both = np.stack((1 - scores, scores), axis=2)
    values = {
        "array": scores,
        "one source": scores[0],
        "list": list(scores),
        "dictionary": dict(zip("abc", scores, strict=False)),
        "frames": [pd.DataFrame({"p": source}) for source in scores],
    }[form]
    predictions = vd.Predictions(values, kind="binary")
    np.testing.assert_allclose(predictions.values, both, rtol=1e-15)
    assert predictions.kind == "probs"
    labels = rng.random(40) < scores[0]
    fitted = vd.Temperature(kind="binary").fit(values, labels)
    np.testing.assert_allclose(
        fitted.predict_proba(values), vd.Temperature().fit(both, labels.astype(int)).predict_proba(both), rtol=1e-12
    )


def test_calibrator_remembers_kind(tmp_path, rng):
    logits = rng.normal(size=(3, 60, 4)) + 2 * rng.normal(size=(60, 4))
    labels = (logits.mean(axis=0) + rng.gumbel(size=(60, 4))).argmax(axis=1)
    fitted = vd.Temperature().fit(vd.Predictions(logits, labels, kind="logits"))
    expected = fitted.predict_proba(vd.Predictions(logits, kind="logits"))
    fitted.save(tmp_path / "cal.json")
    for calibrator in (fitted, vd.load_calibrator(tmp_path / "cal.json")):
        assert calibrator.kind_ == "logits"
        np.testing.assert_array_equal(calibrator.predict_proba(logits), expected)
        np.testing.assert_array_equal(vd.apply_calibrator(calibrator, logits).probs, expected)
        with pytest.raises(errors.ParameterError, match="fitted on logits and the array has probabilities"):
            calibrator.predict_proba(expected[None])
    scored = vd.fit_calibrator(logits, labels, kind="logits", method="temperature").calibrator
    np.testing.assert_array_equal(scored.predict_proba(logits), expected)
    scores = rng.random((2, 50))
    binary = vd.Temperature(kind="binary").fit(scores, rng.random(50) < scores.mean(axis=0))
    binary.save(tmp_path / "binary.json")
    assert vd.load_calibrator(tmp_path / "binary.json").predict_proba(rng.random((2, 5))).shape == (5, 2)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["dog", "cat", None, "owl"], [1, 0, -1, 2]),
        (["dog", "cat", "", "owl"], [1, 0, -1, 2]),
        (np.array([1.0, 0.0, np.nan, 2.0]), [1, 0, -1, 2]),
        ([1, 0, -1, 2], [1, 0, -1, 2]),
        (pd.Categorical(["dog", "cat", None, "owl"], categories=["owl", "dog", "cat"]), [1, 0, -1, 2]),
        (pd.Series(["dog", "cat", pd.NA, "owl"], dtype="string"), [1, 0, -1, 2]),
    ],
    ids=["texts", "blank", "floats", "integers", "categories", "series"],
)
def test_labels_of_every_type(rng, labels, expected):
    predictions = vd.Predictions(random_ensemble(rng, 2, 4, 3), labels, class_names=NAMES)
    assert predictions.labels.tolist() == expected
    assert predictions.n_labelled == 3
    assert predictions.labelled().n_samples == 3


@pytest.mark.parametrize("channels_first", [False, True])
def test_dense_predictions_keep_their_shape(rng, channels_first):
    flat = random_ensemble(rng, 3, 4 * 5 * 6, 3)
    dense = flat.reshape(3, 4, 5, 6, 3)
    labels = rng.integers(0, 3, (4, 5, 6))
    values = np.moveaxis(dense, -1, 2) if channels_first else dense
    predictions = vd.Predictions(values, labels, class_axis=2 if channels_first else None)
    assert predictions.sample_shape == (4, 5, 6)
    assert predictions.groups.tolist() == np.repeat(np.arange(4), 30).tolist()
    truth = vd.discover(predictions)
    assert truth.probs.shape == (4, 5, 6, 3)
    assert truth.reliability.shape == (3, 4, 5, 6)
    np.testing.assert_array_equal(truth.probs.reshape(-1, 3), vd.discover(flat).probs)
    np.testing.assert_array_equal(truth.hv.ravel(), vd.discover(flat).hv)
    fitted = vd.Temperature().fit(predictions)
    expected = vd.Temperature().fit(flat, labels.ravel())
    np.testing.assert_array_equal(fitted.predict_proba(predictions).reshape(-1, 3), expected.predict_proba(flat))
    assert fitted.predict(predictions).shape == fitted.predict_confidence(predictions).shape == (4, 5, 6)
    calibrated = vd.apply_calibrator(fitted, predictions)
    assert calibrated.probs.shape == (4, 5, 6, 3)
    assert calibrated.labels.tolist() == labels.tolist()
    first, second = predictions.split(random_state=0)
    assert not set(first.groups) & set(second.groups)
    dense_scores, flat_scores = (
        vd.evaluate(values, labels, methods=["mean"], floors=False)["mean"].summary["nll"].value
        for values, labels in ((predictions, None), (flat, labels.ravel()))
    )
    assert dense_scores == flat_scores


def test_estimators_get_the_sentence_that_helps(probs):
    for values in ([LogisticRegression()], {"a": LogisticRegression()}, LogisticRegression()):
        with pytest.raises(errors.DtypeError, match=r"are estimators \(LogisticRegression\); pass .*predict_proba"):
            vd.Predictions(values)
    with pytest.raises(errors.DtypeError, match=r"dtype object; .*real numbers"):
        vd.Predictions(np.array([[[None, 1.0]]], dtype=object))
    with pytest.raises(errors.DtypeError, match="pass a list of arrays"):
        vd.Predictions(source for source in probs)
    with pytest.raises(errors.DtypeError, match=r"read a file with veridical\.load"):
        vd.Predictions("predictions.npz")


def test_tensors_that_require_grad_or_are_bfloat16(probs, rng):
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(probs, requires_grad=True)
    np.testing.assert_array_equal(vd.Predictions(tensor).values, probs)
    many = random_ensemble(rng, 2, 400, 10, np.float32)
    low = torch.tensor(many).bfloat16()
    sums = low.float().sum(dim=2)
    assert float((sums - 1).abs().max()) > 1e-3  # further from one than float32 may be
    assert vd.discover(low).probs.shape == (400, 10)
    assert vd.discover({"a": low[0], "b": low[1]}).probs.shape == (400, 10)
    assert vd.Predictions(low).select(samples=slice(5)).sum_tolerance == vd.Predictions(low).sum_tolerance
    labels = torch.tensor(rng.integers(0, 10, 400))
    error = vd.metrics.ece(labels, low[0])
    assert error == pytest.approx(vd.metrics.ece(labels.numpy(), many[0]), abs=0.01)
    with pytest.raises(errors.NotNormalisedError):
        vd.metrics.ece(labels, 1.05 * low[0])


def test_probabilities_declared_as_logits_are_suspected(rng):
    probs = rng.dirichlet([1, 1, 1], (4, 50)).astype(np.float16)
    labels = probs[0].argmax(axis=1)
    for values in (probs, list(probs), {"a": probs[0], "b": probs[1]}, probs[0]):
        with pytest.warns(errors.SuspectKindWarning, match='look like probabilities .* pass kind="probs"') as caught:
            predictions = vd.Predictions(values, labels, kind="logits")
        assert (len(caught), caught[0].filename) == (1, __file__)
        predictions.select(samples=slice(10)).flat().labelled()  # said once
    with pytest.warns(errors.SuspectKindWarning):
        vd.Temperature(kind="logits").fit(probs, labels)


def test_logits_are_not_taken_for_probabilities(rng):
    for logits in (rng.normal(size=(3, 20, 4)), np.zeros((2, 5, 3)), np.full((2, 5, 3), np.nan), [[[1.0, 0.0]]]):
        assert vd.Predictions(logits, kind="logits").kind == "logits"
    halves = np.full((2, 5, 2), 0.5)
    halves[1, 0] = [-1.0, 2.0]
    assert vd.Predictions(halves, kind="logits").kind == "logits"
