"""One file, read whole and in blocks: the same samples, groups, halves, ids, images and warnings."""

import warnings
from dataclasses import replace

import dask.array as da
import numpy as np
import pytest
from blocked_ensembles import BLOCK_MEMORY, labelled_ensemble

import veridical as vd
from veridical import errors, scale

pytestmark = pytest.mark.compiled

#: Images: 10 of 12 x 25 pixels.
SHAPE = (10, 12, 25)


def correlated(n_groups=100):
    """(probabilities, labels, groups): samples of a group are alike, and right or wrong together."""
    probs, labels = labelled_ensemble()
    groups = np.arange(3000) % n_groups  # which is also the first sample of the group
    alike = probs[:, groups] * np.random.default_rng(0).uniform(0.9, 1.1, (5, 3000, 4))
    return (alike / alike.sum(axis=-1, keepdims=True)).astype(np.float32), labels[groups], groups


def predictions_of(case):
    probs, labels, groups = correlated()
    facts = {"source_names": list("abcde"), "class_names": list("wxyz")}
    labels = np.where(np.arange(3000) % 7 == 0, -1, labels)
    if case == "images":
        return vd.Predictions(probs.reshape(5, *SHAPE, 4), labels.reshape(SHAPE), **facts)
    ids = [f"sample-{n}" for n in range(3000)]
    return vd.Predictions(probs, labels, sample_ids=ids, groups=[f"g{k}" for k in groups], **facts)


@pytest.fixture(scope="module", params=["groups", "images"])
def store(request, tmp_path_factory):
    """Predictions with names, ids and groups, or of images, in a store."""
    path = tmp_path_factory.mktemp("store") / "probs.zarr"
    vd.save(predictions_of(request.param), path)
    return path


@pytest.fixture
def pair(store):
    """(in memory, in blocks)."""
    whole, opened = vd.load(store), scale.open(store, block_memory=BLOCK_MEMORY)
    assert opened.n_blocks > 5
    return whole, opened


def both(pair, use):
    """What a function gives in memory and in blocks, and the same warnings."""
    results, texts = [], []
    for predictions in pair:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            results.append(use(predictions))
        texts.append([(each.category, str(each.message)) for each in caught])
    assert texts[0] == texts[1]
    return results


def test_facts_are_those_in_memory(pair):
    whole, opened = pair
    for name in ("labels", "sample_ids", "groups"):
        np.testing.assert_array_equal(getattr(opened, name), getattr(whole, name))
        parts = [getattr(block.predictions, name) for block in opened.blocks()]
        if getattr(whole, name) is not None:
            np.testing.assert_array_equal(np.concatenate(parts), getattr(whole, name))
    assert (opened.sample_shape, opened.class_names) == (whole.sample_shape, whole.class_names)
    samples = np.array([0, 5, 700, 2999])
    np.testing.assert_array_equal(opened.take(samples).groups, whole.groups[samples])
    assert opened.take(np.arange(3000)).sample_shape == whole.sample_shape


def test_halves_and_floors_keep_groups_together(pair):
    whole, blocked = both(pair, lambda p: vd.evaluate(p, methods=["members", "mean", "atde", "temperature"]))
    for first, second in zip(whole.methods, blocked.methods, strict=True):
        assert (second.method, second.summary.n_samples) == (first.method, first.summary.n_samples)
        for row in first.summary:
            other = second.summary[row.metric]
            assert other.value == pytest.approx(row.value, abs=other.bound + 1e-6)
            if row.floor is not None:
                assert (other.floor, other.floor_high) == pytest.approx((row.floor, row.floor_high), rel=1e-3)
    if pair[0].sample_ids is None:
        return  # what is correlated are not the images
    alone = vd.evaluate(pair[0].values, pair[0].labels.ravel(), methods=["mean", "temperature"])
    assert whole["mean"].summary["ece"].floor > 2 * alone["mean"].summary["ece"].floor  # groups do matter


@pytest.mark.parametrize("method", ["temperature", "platt", "matrix"])
def test_fit_is_that_in_memory(pair, method):
    whole, blocked = pair[0], scale.open(pair[0], block_memory=1 << 22)  # one block, which is the subsample
    fitted = [vd.fit_calibrator(each, method=method).calibrator for each in (whole, blocked)]
    first, second = (each.predict_confidence(whole) for each in fitted)
    np.testing.assert_allclose(second, first, atol=1e-3 if method == "platt" else 1e-6)
    data = [vars(each.fitting_data_) for each in fitted]
    assert data[1] == pytest.approx(data[0], rel=1e-6)


def test_applied_calibrators_give_the_same_in_the_same_shape(pair, tmp_path):
    calibrator = vd.Temperature().fit(pair[0])
    calibrator.fitting_data_ = replace(calibrator.fitting_data_, confidence=0.3)
    with pytest.warns(errors.ShiftedDataWarning) as caught:
        whole, blocked, written = (
            vd.apply_calibrator(calibrator, pair[0]),
            vd.apply_calibrator(calibrator, pair[1]),
            scale.apply_calibrator(calibrator, pair[1], out=tmp_path / "result"),
        )
    assert len({str(each.message) for each in caught}) == 1
    assert len(caught) == 3
    for other in (blocked, written):
        assert other.probs.shape == whole.probs.shape
        np.testing.assert_allclose(other.probs, whole.probs, atol=1e-6)
        np.testing.assert_array_equal(other.prediction, whole.prediction)
        for name in ("labels", "sample_ids", "groups"):
            np.testing.assert_array_equal(getattr(other, name), getattr(whole, name))
    assert vd.discover(pair[1]).hv.shape == vd.discover(pair[0]).hv.shape


def test_classes_are_matched_by_name(pair):
    calibrator = vd.VectorScaling().fit(pair[0].in_class_order(list("zxwy")))
    whole, blocked = both(pair, lambda p: vd.apply_calibrator(calibrator, p))
    np.testing.assert_allclose(blocked.probs, whole.probs, atol=1e-6)


@pytest.mark.parametrize("suffix", [".zarr", ".npz"])
def test_written_result_has_ids_groups_and_images(pair, tmp_path, suffix):
    calibrator = vd.Temperature().fit(pair[0])
    scale.apply_calibrator(calibrator, pair[1], out=tmp_path / f"result{suffix}")
    loaded = vd.load(tmp_path / f"result{suffix}")
    assert loaded.sample_shape == pair[0].sample_shape
    for name in ("labels", "sample_ids", "groups"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(pair[0], name))


def test_report_is_about_the_same_samples():
    whole = predictions_of("groups").select(samples=slice(600))
    pair = whole, scale.open(whole)
    first, second = (vd.build_report(each, method="temperature", intervals=False).data for each in pair)
    assert second.verdict == first.verdict
    assert second.evaluation.to_dict()["methods"] == first.evaluation.to_dict()["methods"]


@pytest.mark.parametrize("suffix", [".npy", ".zarr"])
def test_wrong_sample_is_named_by_its_number(tmp_path, suffix):
    probs, labels = labelled_ensemble()
    labels[::3] = -1
    probs[2, 2221] = [0.5, 0.7, 0.1, 0.1]
    path = tmp_path / f"probs{suffix}"
    if suffix == ".npy":
        np.save(path, probs)
    else:
        vd.save(vd.Predictions(probs), path)
    for predictions in (vd.load(path, labels), scale.open(path, labels, block_memory=BLOCK_MEMORY)):
        for use in (vd.discover, lambda p: vd.evaluate(p, methods=["mean", "temperature"], floors=False)):
            with pytest.raises(errors.VeridicalError, match="source 2, sample 2221"):
                use(predictions)


def test_labels_in_another_order_are_noticed(blocked_ensemble):
    probs, _ = blocked_ensemble
    labels = probs[0].argmax(axis=1)[::-1].copy()
    sharp = np.repeat(np.eye(4, dtype=np.float32)[probs[0].argmax(axis=1)][None], 5, axis=0)
    pair = vd.Predictions(sharp, labels), scale.open(sharp, labels, block_memory=BLOCK_MEMORY)
    whole, blocked = both(pair, lambda p: vd.evaluate(p, methods=["mean"], floors=False))
    assert blocked.notes == whole.notes
    assert "are the labels in the order of the predictions" in whole.notes[0]


def test_fitted_calibrators_are_scored_as_they_are(pair):
    fitted = vd.Temperature().fit(pair[0])
    fitted.temperature_ = 3.0
    whole, blocked = both(pair, lambda p: vd.evaluate(p, methods=[fitted], floors=False))
    assert blocked.methods[0].summary["nll"].value == pytest.approx(whole.methods[0].summary["nll"].value, abs=1e-9)
    assert blocked.notes == whole.notes
    assert "was fitted on these very samples" in whole.notes[0]


class TestDaskArrays:
    """A Dask array goes the same way; nothing of it is in files."""

    def test_everything_is_that_of_blocks(self, blocked_ensemble):
        probs, labels = blocked_ensemble
        array, opened = da.from_array(probs, chunks=(5, 409, 4)), scale.open(probs, labels, block_memory=BLOCK_MEMORY)
        methods = ["mean", "temperature", "isotonic"]
        scores = [vd.evaluate(each, y, methods=methods).to_dict() for each, y in ((array, labels), (opened, None))]
        assert scores[0]["methods"] == scores[1]["methods"]
        fitted = vd.Temperature().fit(array, labels)
        assert fitted.temperature_ == vd.Temperature().fit(opened).temperature_
        lazy = vd.consensus(array)
        assert isinstance(lazy.probs, da.Array)
        np.testing.assert_allclose(lazy.probs.compute(), vd.consensus(opened).probs, atol=1e-7)

    def test_arrays_are_of_the_kind_of_the_fit(self, blocked_ensemble):
        logits, labels = np.log(blocked_ensemble[0]), blocked_ensemble[1]
        array = da.from_array(logits, chunks=(5, 1000, 4))
        for calibrator in (vd.Temperature(kind="logits"), vd.Temperature()):
            calibrator.fit(vd.Predictions(logits, labels, kind="logits"))
            lazy = calibrator.predict_proba(array).compute(scheduler="threads")
            np.testing.assert_allclose(lazy, calibrator.predict_proba(logits), atol=1e-6)
