"""Table 1: golden values, one reading of the data, the same bytes for any number of threads."""

import numpy as np
import pytest
from conftest import load_golden, load_logits, softmax
from hypothesis import given
from hypothesis import strategies as st
from small_ensembles import small_ensemble, small_predictions

import veridical as vd
from veridical import paper
from veridical.errors import NotNormalisedError, ParameterError
from veridical.paper.sweep import default_sources, rules, sweep

#: What the authors' program gave on the shipped ensemble: the mean, and truth discovery with six updates.
GOLDEN = {
    "DE": {
        "ece_kde": 0.059032670185439624,
        "ece": 0.054533347487449646,
        "ks_error": 0.05453333525286525,
        "nll": 0.4337930603627651,
        "brier": 0.21039052319020493,
        "accuracy": 0.8593,
    },
    "TDE, 6 updates": {
        "ece_kde": 0.047929067998929674,
        "ece": 0.04285071790218353,
        "ks_error": 0.04287920261083201,
        "nll": 0.42772824329162956,
        "brier": 0.20818071046692566,
        "accuracy": 0.8595,
    },
}
IN_PERCENT = ("ece_kde", "ece", "ks_error", "accuracy")


def assert_golden(row, golden):
    for metric, expected in golden.items():
        scale = 100 if metric in IN_PERCENT else 1
        tolerance = 1e-4 if metric == "ece_kde" else 1e-6
        assert row.values[metric].mean / scale == pytest.approx(expected, abs=tolerance), metric


@pytest.mark.compiled
def test_golden_values_stand_in_the_table():
    table = paper.table1(paper.open_ensembles(), sources=[20], updates=6)
    for method, golden in GOLDEN.items():
        assert_golden(table.row(method), golden)
    # aTDE keeps the mean's accuracy, whatever its stopping rule.
    for method in ("aTDE", "aTDE, 6 updates"):
        assert table.row(method).values["accuracy"].mean == pytest.approx(85.93)
    text = paper.format_table(table)
    assert "TDE, 6 updates" in text
    assert "4.29" in text  # the golden ECE as printed


@pytest.mark.compiled
def test_golden_values_of_a_mixed_ensemble():
    logits, labels = load_logits("cifar100-mixed-3")
    golden = load_golden("cifar100-mixed-3")
    ensemble = paper.Ensemble(paper.EnsembleName("mixed"), vd.Predictions(logits, labels, kind="logits"))
    table = paper.table1([ensemble], sources=[3], updates=6)
    names = {"ece": "ece_mass15", "ks_error": "ks", "brier": "mse", "accuracy": "acc"}
    for method, stored in (("DE", golden["mean"]), ("TDE, 6 updates", golden["tde_6_updates"])):
        figures = {metric: stored[names.get(metric, metric)] for metric in GOLDEN["DE"]}
        assert_golden(table.row(method, 3), figures)
    assert table.row("aTDE", 3).values["accuracy"].mean == pytest.approx(100 * golden["mean"]["acc"])


def test_ten_steps_up_to_all_sources():
    assert default_sources(100) == list(range(10, 101, 10))
    assert default_sources(50) == list(range(5, 51, 5))
    assert default_sources(20) == list(range(2, 21, 2))
    assert default_sources(1) == [1]


@given(st.integers(1, 500))
def test_default_sources_are_sane(n_sources):
    steps = default_sources(n_sources)
    assert steps == sorted(set(steps))
    assert steps[0] >= 1
    assert steps[-1] == n_sources
    assert len(steps) == min(10, n_sources)


def test_every_number_of_sources_is_as_if_alone():
    predictions = small_predictions(5, 150)
    together = sweep(predictions, [2, 3, 5], rules(4))
    for n in (2, 3, 5):
        probs = softmax(predictions.select(sources=slice(n)).values.astype(np.float64))
        expected = {
            "DE": probs.mean(axis=0),
            "TDE": vd.discover(probs, accuracy_preserving=False).probs,
            "aTDE": vd.discover(probs).probs,
            "TDE, 4 updates": vd.discover(probs, accuracy_preserving=False, tol=0, max_iter=4).probs,
            "aTDE, 4 updates": vd.discover(probs, tol=0, max_iter=4).probs,
        }
        for method, vectors in expected.items():
            scores = together[n, method]
            np.testing.assert_allclose(scores.confidence, vectors.max(axis=1), atol=1e-9)
            assert scores.metric("nll") == pytest.approx(vd.metrics.nll(predictions.labels, vectors), abs=1e-9)
            assert scores.metric("brier") == pytest.approx(vd.metrics.brier(predictions.labels, vectors), abs=1e-9)
            assert scores.metric("ece") == pytest.approx(vd.metrics.ece(predictions.labels, vectors), abs=1e-9)


def test_same_bytes_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr("veridical.paper.sweep._BLOCK_BYTES", 8 * 4 * 10 * 37)  # many blocks, the last one short
    tables = [
        paper.format_table(paper.table1([small_ensemble()], sources=[1, 4], n_threads=n), "json") for n in (1, 2, 3)
    ]
    assert tables[0] == tables[1] == tables[2]


def test_blocks_are_one_reading(monkeypatch):
    whole = sweep(small_predictions(), [3], rules())
    monkeypatch.setattr("veridical.paper.sweep._BLOCK_BYTES", 8 * 3 * 10 * 29)
    blocks = sweep(small_predictions(), [3], rules())
    for key, scores in whole.items():
        np.testing.assert_array_equal(scores.confidence, blocks[key].confidence)
        np.testing.assert_array_equal(scores.nll, blocks[key].nll)


def test_a_bad_row_is_named_by_its_place_in_the_whole(monkeypatch):
    monkeypatch.setattr("veridical.paper.sweep._BLOCK_BYTES", 8 * 2 * 3 * 10)
    probs = np.full((2, 100, 3), 1 / 3)
    probs[1, 77] = 0.2
    ensemble = paper.Ensemble(paper.EnsembleName("bad"), vd.Predictions(probs, np.zeros(100, dtype=int)))
    with pytest.raises(NotNormalisedError, match="sample 77"):
        paper.table1([ensemble])


def test_more_sources_than_there_are():
    with pytest.raises(ParameterError, match="small has 4 sources and 10 were asked for"):
        paper.table1([small_ensemble()], sources=[2, 10])
    with pytest.raises(ParameterError, match="at least 1"):
        paper.table1([small_ensemble()], sources=[0])


def test_several_ensembles_are_several_groups():
    table = paper.table1([small_ensemble(name="a"), small_ensemble(3, name="b")], sources=[1, 3])
    assert [(str(group[0].name), group[0].sources) for group in table.groups()] == [
        ("a", 1),
        ("a", 3),
        ("b", 1),
        ("b", 3),
    ]
    for group in table.groups():
        for metric in table.metrics:
            assert any(row.values[metric].best for row in group)


def test_published_numbers_stand_beside_ours():
    name = paper.recognise("CIFAR100-PreResNet110-deepens-100-1.npy")
    ensemble = paper.Ensemble(name, small_predictions(10, 200))
    table = paper.table1([ensemble], sources=[5, 10], updates=6)
    assert all(value.published is None for value in table.row("DE", 5).values.values())
    value = table.row("TDE", 10).values["ece"]
    assert value.published.mean == 3.06
    assert value.published.table == "A1"
    assert value.difference == pytest.approx(value.mean - 3.06)
    # A fixed number of updates is how the authors' program ran, so the same figures belong beside it.
    assert table.row("TDE, 6 updates", 10).values["ece"].published.mean == 3.06
