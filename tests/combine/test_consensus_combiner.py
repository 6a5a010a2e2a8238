"""combine="consensus": weights from the calibration samples that travel with the calibrator."""

import json

import numpy as np
import pytest
from conftest import load_logits, softmax
from test_consensus import mixed_ensemble, with_gaps

import veridical as vd
from veridical import metrics
from veridical.combine import COMBINERS
from veridical.combine.across_samples.combiners import ConsensusMean
from veridical.combine.pool_prior import prior_shares
from veridical.errors import CampsWarning, ChangedSourcesWarning, SavedFileError, ShapeError


def named(probs, names="abcdef"):
    return vd.Predictions(probs, source_names=list(names[: len(probs)]))


def test_registry_says_that_weights_are_fitted_without_labels():
    info = COMBINERS["consensus"]
    assert info.has_weights
    assert not info.needs_labels
    assert not info.keeps_labels


@pytest.mark.parametrize("gaps", [False, True])
def test_weights_come_from_the_calibration_samples(rng, gaps):
    probs, labels = mixed_ensemble(rng)
    probs = with_gaps(probs, rng) if gaps else probs
    fitted = vd.Identity(combine="consensus", missing="skip").fit(probs[:, :300], labels[:300])
    consensus = vd.consensus(probs[:, :300])
    np.testing.assert_array_equal(fitted.combiner_.weights, consensus.weights)
    np.testing.assert_array_equal(fitted.combiner_.dependence, consensus.dependence)
    np.testing.assert_allclose(fitted.predict_proba(probs[:, :300]), consensus.probs, atol=1e-12)
    later = fitted.predict_proba(probs[:, 300:])
    for n in (0, 57):
        alone = fitted.predict_proba(probs[:, 300 + n : 301 + n])
        np.testing.assert_allclose(alone[0], later[n], atol=1e-12)


def test_labels_play_no_part_in_the_weights(rng):
    probs, labels = mixed_ensemble(rng)
    honest = vd.Identity(combine="consensus").fit(probs, labels)
    shuffled = vd.Identity(combine="consensus").fit(probs, rng.permutation(labels))
    np.testing.assert_array_equal(honest.combiner_.weights, shuffled.combiner_.weights)


@pytest.mark.compiled
def test_temperature_on_the_consensus_is_better_than_on_the_mean():
    logits, labels = load_logits("cifar100-mixed-3")
    probs = softmax(logits)
    losses = {}
    for combine in ("mean", "consensus"):
        fitted = vd.Temperature(combine=combine).fit(probs[:, ::2], labels[::2])
        losses[combine] = metrics.nll(labels[1::2], fitted.predict_proba(probs[:, 1::2]))
    assert losses["consensus"] < losses["mean"] - 0.03


@pytest.mark.parametrize("n_sources", [3, pytest.param(150, marks=pytest.mark.compiled)])
def test_saved_calibrators_keep_weights_and_dependence(rng, tmp_path, n_sources):
    probs, labels = mixed_ensemble(rng, noise=np.linspace(0.5, 2.0, n_sources))
    fitted = vd.Identity(combine="consensus").fit(probs, labels)
    fitted.save(tmp_path / "calibrator.json")
    loaded = vd.load_calibrator(tmp_path / "calibrator.json")
    np.testing.assert_array_equal(loaded.predict_proba(probs), fitted.predict_proba(probs))
    np.testing.assert_array_equal(loaded.combiner_.dependence, fitted.combiner_.dependence)


def test_files_of_other_combiners_say_nothing_of_dependence(rng, tmp_path):
    probs, labels = mixed_ensemble(rng)
    for combine in ("mean", "linear-pool"):
        vd.Identity(combine=combine).fit(probs, labels).save(tmp_path / "calibrator.json")
        stored = json.loads((tmp_path / "calibrator.json").read_text())
        assert set(stored["pooling"]) == {"name", "weights", "floor", "mean_weight"}


@pytest.mark.parametrize(
    "change",
    [
        {"dependence": None},
        {"weights": None},
        {"weights": {"shape": [3], "values": [1.0, -1.0, 1.0]}},
        {"dependence": {"shape": [2, 2], "values": [1.0, 0.0, 0.0, 1.0]}},
        {"dependence": {"shape": [3, 3], "values": [0.5] * 9}},
        {"dependence": {"shape": [3, 3], "values": [1.0, 2.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]}},
        {"floor": 0.1},
    ],
)
def test_impossible_states_are_refused(rng, tmp_path, change):
    from veridical.calibrate.saving import checksum_of

    probs, labels = mixed_ensemble(rng)
    path = tmp_path / "calibrator.json"
    vd.Identity(combine="consensus").fit(probs[:3], labels).save(path)
    document = json.loads(path.read_text())
    document["pooling"].update(change)
    document["sha256"] = checksum_of(document)
    path.write_text(json.dumps(document))
    with pytest.raises(SavedFileError):
        vd.load_calibrator(path)


def test_sources_are_matched_by_name(rng):
    probs, labels = mixed_ensemble(rng)
    fitted = vd.Identity(combine="consensus").fit(named(probs), labels)
    order = [3, 0, 4, 1, 2]
    moved = vd.Predictions(probs[order], source_names=["abcde"[s] for s in order])
    np.testing.assert_allclose(fitted.predict_proba(moved), fitted.predict_proba(probs), atol=1e-12)


def test_sources_may_come_and_go(rng):
    probs, labels = mixed_ensemble(rng)
    fitted = vd.Identity(combine="consensus").fit(named(probs[:4]), labels)
    with pytest.warns(ChangedSourcesWarning):
        fewer = fitted.predict_proba(vd.Predictions(probs[:3], source_names=["a", "b", "c"]))
    gone = probs[:4].copy()
    gone[3] = np.nan
    absent = vd.Identity(combine="consensus", missing="skip").fit(named(probs[:4]), labels).predict_proba(gone)
    np.testing.assert_allclose(fewer, absent, atol=1e-12)
    with pytest.warns(ChangedSourcesWarning):
        more = fitted.predict_proba(vd.Predictions(probs, source_names=["a", "b", "c", "d", "new"]))
    weights = fitted.combiner_.weights
    typical = -np.log1p(-(np.sqrt(-np.expm1(-weights)).mean() ** 2))
    shares = np.append(weights / fitted.combiner_.dependence.sum(axis=1), typical)
    np.testing.assert_allclose(more, np.tensordot(shares / shares.sum(), probs, 1), atol=1e-3)
    with pytest.raises(ShapeError, match="4 sources"):
        fitted.predict_proba(probs)


def test_new_sources_of_a_mean_count_like_the_others():
    combiner = ConsensusMean.of(np.ones(3), np.eye(3)).for_sources([0, 2], 2)
    np.testing.assert_allclose(combiner.weights, 1.0)
    np.testing.assert_array_equal(combiner.dependence, np.eye(4))
    unweighted = ConsensusMean.of(np.zeros(3), np.eye(3)).for_sources([1], 1)
    np.testing.assert_array_equal(unweighted.weights, 0.0)


def test_camps_are_named_when_a_calibrator_is_fitted(rng):
    probs, labels = mixed_ensemble(rng, n_samples=1000, noise=(0.5,) * 6)
    probs[3:] = np.roll(probs[3:], 1, axis=2)
    with pytest.warns(CampsWarning, match=r"a, b, c \| d, e, f|d, e, f \| a, b, c"):
        fitted = vd.Identity(combine="consensus").fit(named(probs), labels)
    np.testing.assert_array_equal(fitted.combiner_.weights, 1.0)
    np.testing.assert_allclose(fitted.predict_proba(probs), probs.mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("gaps", [False, True])
def test_aconsensus_keeps_the_labels_of_the_mean(rng, tmp_path, gaps):
    probs, labels = mixed_ensemble(rng)
    probs = with_gaps(probs, rng) if gaps else probs
    fitted = vd.LabelKeepingConsensus(missing="skip").fit(named(probs), labels)
    assert fitted.keeps_mean_labels
    mean = np.nanmean(probs, axis=0).argmax(axis=1)
    np.testing.assert_array_equal(fitted.predict(probs), mean)
    kept = vd.consensus(probs, accuracy_preserving=True)
    np.testing.assert_allclose(fitted.predict_proba(probs), kept.probs, atol=1e-9)
    fitted.save(tmp_path / "calibrator.json")
    loaded = vd.load_calibrator(tmp_path / "calibrator.json")
    np.testing.assert_array_equal(loaded.predict_proba(probs), fitted.predict_proba(probs))


@pytest.mark.compiled
def test_consensus_can_be_named_wherever_methods_are(rng):
    probs, labels = mixed_ensemble(rng, noise=(1.5, 2.0, 2.5, 4.0, 6.0))
    predictions = vd.Predictions(probs, labels)
    methods = ["mean", "consensus", "aconsensus", "consensus+temperature"]
    evaluation = vd.evaluate(predictions, methods=methods)
    assert [row.method for row in evaluation.methods] == methods
    compared = vd.compare_calibrators(predictions, methods=methods, n_splits=2)
    assert compared.mean("consensus", "nll") < compared.mean("mean", "nll")
    calibration = vd.fit_calibrator(predictions, method="consensus")
    np.testing.assert_array_equal(calibration.calibrator.combiner_.weights, vd.consensus(probs).weights)
    table = vd.Auto(random_state=0, keep_labels=False).fit(predictions).table_
    assert {("consensus", "temperature"), ("aconsensus", "truth-logit")} <= {
        (row["combine"], row["method"]) for row in table
    }


def partly_labelled(rng, n_samples=2000, n_labelled=30):
    """Three sources that know something and two that do not, with labels for a few samples."""
    labels = rng.integers(0, 3, n_samples)
    truth = 1.5 * np.eye(3)[labels]
    scores = np.stack(
        [*(truth + rng.standard_normal((3, n_samples, 3))), *(4 * rng.standard_normal((2, n_samples, 3)))]
    )
    probs = np.exp(scores - scores.max(axis=-1, keepdims=True))
    known = np.full(n_samples, -1)
    known[:n_labelled] = labels[:n_labelled]
    return vd.Predictions(probs / probs.sum(axis=-1, keepdims=True), known), labels


@pytest.mark.parametrize("combine", ["consensus", "aconsensus"])
def test_weights_without_labels_come_from_all_samples(rng, combine):
    predictions, _ = partly_labelled(rng)
    calibrator = vd.Temperature(combine=combine).fit(predictions)
    expected = vd.consensus(predictions)
    np.testing.assert_allclose(calibrator.combiner_.weights, expected.weights, atol=1e-12)
    only_labelled = vd.consensus(predictions.values[:, :30])
    assert np.abs(only_labelled.weights - expected.weights).max() > 0.05


@pytest.mark.compiled
def test_auto_uses_unlabelled_samples_for_weights(rng):
    predictions, _ = partly_labelled(rng)
    auto = vd.Auto(candidates=[("consensus", "consensus")], keep_labels=False, random_state=0).fit(predictions)
    assert (auto.best_.combine, auto.best_.name) == ("consensus", "consensus")
    np.testing.assert_allclose(auto.best_.combiner_.weights, vd.consensus(predictions).weights, atol=1e-12)


def test_prior_of_pools_comes_from_all_samples(rng):
    predictions, _ = partly_labelled(rng)
    prior = prior_shares(predictions.labelled())
    np.testing.assert_array_equal(prior, prior_shares(predictions))
    assert np.abs(prior - prior_shares(predictions.select(samples=slice(0, 30)))).max() > 0.02


def test_labelled_samples_remember_those_without_a_label(rng):
    predictions, _ = partly_labelled(rng, n_samples=50)
    labelled = predictions.labelled()
    assert labelled.n_samples == 30
    assert labelled.with_unlabelled() is predictions
    some = labelled.select(sources=[0, 2], samples=[1, 3]).with_unlabelled()
    np.testing.assert_array_equal(some.values, predictions.values[[0, 2]][:, [1, 3, *range(30, 50)]])
    assert predictions.with_unlabelled() is predictions
    complete = predictions.with_labels(np.zeros(50, int))
    assert complete.labelled().with_unlabelled() is complete
