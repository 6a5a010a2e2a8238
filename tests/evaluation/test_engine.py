"""The engine combines every set of samples once per way of combining, and its outcomes are those of the public API."""

from collections import Counter

import numpy as np
import pytest
from ensembles import random_ensemble
from programs import veridical_in_process

import veridical as vd
from veridical._kernels import discovery, few_classes
from veridical.evaluation.engine import Engine, Split, half_split
from veridical.evaluation.methods import resolve_method
from veridical.evaluation.source_sweep import sweep_sources

pytestmark = pytest.mark.compiled

N_SAMPLES, N_SOURCES = 300, 4


@pytest.fixture
def predictions(rng):
    probs = random_ensemble(rng, N_SOURCES, N_SAMPLES, 3)
    labels = np.array([rng.choice(3, p=row) for row in probs.mean(axis=0)])
    return vd.Predictions(probs, labels)


@pytest.fixture
def discovered(monkeypatch):
    """Counts samples that truth discovery worked on, by (number of sources, updates allowed, label kept, weighted)."""
    counts = Counter()

    def count_calls(module, name):
        original = getattr(module, name)

        def counting(values, layout, options, source_weights, *rest):
            weighted = not np.all(source_weights == 1)
            counts[layout.n_sources, options.max_iter, options.keep_label, weighted] += layout.n_samples
            return original(values, layout, options, source_weights, *rest)

        monkeypatch.setattr(module, name, counting)

    count_calls(discovery, "discover_block")
    count_calls(few_classes, "discover_few_classes")
    return counts


def most_per_way(counts):
    """The largest count over the ways of combining several sources."""
    return max(count for (n_sources, *_), count in counts.items() if n_sources > 1)


def test_report_combines_every_set_of_samples_once(predictions, discovered, tmp_path):
    vd.save(predictions, tmp_path / "p.npz")
    done = veridical_in_process("report", tmp_path / "p.npz", "--out", tmp_path / "r.html", "-q")
    assert done.returncode == 0, done.stderr
    assert most_per_way(discovered) <= N_SAMPLES
    # Every source alone, and the first one as the smallest ensemble of the sweep.
    assert discovered[1, 0, False, False] <= N_SOURCES * N_SAMPLES


def test_calibrate_with_report_combines_once_and_fits_once_per_set(predictions, discovered, tmp_path, monkeypatch):
    fitted = Counter()
    original = vd.PTDE.fit_combined

    def counting(self, combiner, combined, labels):
        fitted[len(labels)] += 1
        return original(self, combiner, combined, labels)

    monkeypatch.setattr(vd.PTDE, "fit_combined", counting)
    vd.save(predictions, tmp_path / "p.npz")
    paths = ["--out", tmp_path / "c.json", "--report", tmp_path / "r.html"]
    done = veridical_in_process("calibrate", tmp_path / "p.npz", "--method", "ptde", "-q", *paths)
    assert done.returncode == 0, done.stderr
    assert most_per_way(discovered) <= N_SAMPLES
    assert fitted == {N_SAMPLES: 1, N_SAMPLES // 2: 2}  # each half, and all


def test_report_hashes_the_data_once(predictions, monkeypatch):
    from veridical.evaluation import facts

    hashed = []
    original = facts._hash
    monkeypatch.setattr(facts, "_hash", lambda values: hashed.append(1) or original(values))
    vd.build_report(predictions, intervals=False)
    assert len(hashed) == 1


@pytest.mark.parametrize("run", [vd.compare_calibrators, vd.Auto(random_state=0).fit])
def test_methods_on_many_splits_share_what_needs_no_labels(run, predictions, discovered):
    run(predictions)
    assert discovered[N_SOURCES, 20, True, False] <= N_SAMPLES  # aTDE
    assert discovered[N_SOURCES, 20, True, True] <= N_SAMPLES  # aTDE with the weights of the consensus
    assert discovered[N_SOURCES, 20, False, False] <= N_SAMPLES  # TDE


@pytest.mark.parametrize("method", [vd.PTDE(random_state=0), vd.TruthLogit()], ids=["ptde", "truth-logit"])
def test_calibrators_that_look_at_sources_discover_once(predictions, discovered, method):
    """The mean and the truth are from one pass over the sources, at the fit and at each prediction."""
    once = {(N_SOURCES, 20, True, False): N_SAMPLES}
    method.fit(predictions)
    assert discovered == once
    discovered.clear()
    method.predict_all(predictions)
    assert discovered == once


def test_mean_and_truth_come_from_one_pass(predictions, discovered):
    vd.evaluate(predictions, methods=["mean", "atde"])
    assert discovered == {(N_SOURCES, 20, True, False): N_SAMPLES}


@pytest.mark.parametrize("name", ["temperature", "ptde", "truth-logit", "log-pool+vector", "irova"])
def test_outcomes_equal_fitting_and_predicting_by_hand(name, predictions):
    split = half_split(predictions, 3)
    (outcome,) = Engine(predictions).run([resolve_method(name)], split, random_state=3, keep_probs=True)
    fitted_on, scored_on = predictions.split(random_state=3)
    calibrator = resolve_method(name).make(3, missing="skip").fit(fitted_on)
    probs, confidence, label = calibrator.predict_all(scored_on)
    np.testing.assert_array_equal(outcome.probs, probs)
    np.testing.assert_array_equal(outcome.stated.confidence, confidence)
    np.testing.assert_array_equal(outcome.prediction, label)
    np.testing.assert_array_equal(outcome.stated.correct, label == scored_on.labels)
    assert np.mean(outcome.vectors.losses("nll")) == vd.metrics.nll(scored_on.labels, probs)


def test_part_of_an_engine_equals_an_engine_of_the_part(predictions):
    samples = np.arange(0, N_SAMPLES, 3)
    for name in ("mean", "tde", "atde"):
        part = Engine(predictions).part(samples).combined(name)
        alone = Engine(predictions.select(samples=samples)).combined(name)
        np.testing.assert_array_equal(part.probs, alone.probs)
        np.testing.assert_array_equal(part.hv, alone.hv)
        np.testing.assert_array_equal(part.prediction, alone.prediction)


def test_saved_calibrator_is_scored_without_a_fit(predictions):
    fitted_on, scored_on = predictions.split(random_state=0)
    calibrator = vd.LogPool().fit(fitted_on)
    outcome = Engine(scored_on).apply(calibrator, Split())
    np.testing.assert_array_equal(outcome.prediction, calibrator.predict(scored_on))


def test_sweep_equals_discovery_on_each_number_of_sources(predictions):
    sweep = sweep_sources(Engine(predictions), [1, 2, 4])
    for n in (1, 2, 4):
        first = predictions.select(sources=slice(n))
        for name, options in {"mean": {"max_iter": 0}, "tde": {"accuracy_preserving": False}, "atde": {}}.items():
            truth = vd.discover(first, **options)
            np.testing.assert_allclose(sweep[n, name].confidence, truth.probs.max(axis=1), atol=2e-6)
            expected = vd.metrics.nll(predictions.labels, truth.probs)
            assert np.mean(sweep[n, name].losses("nll")) == pytest.approx(expected, abs=1e-5)


def test_sweep_leaves_out_sizes_that_leave_a_sample_without_sources(predictions):
    values = predictions.values.copy()
    values[0, 5] = np.nan
    partly = vd.Predictions(values, predictions.labels)
    assert {n for n, _ in sweep_sources(Engine(partly), [1, 2, 4])} == {2, 4}
