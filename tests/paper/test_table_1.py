"""Table 1: golden values, and the same bytes for any number of threads."""

import numpy as np
import pytest
from conftest import load_golden, load_logits, softmax
from hypothesis import given
from hypothesis import strategies as st
from small_ensembles import small_ensemble, small_predictions

import veridical as vd
from veridical import paper
from veridical.errors import NotNormalisedError, ParameterError
from veridical.paper.by_sources import default_sources, rules_of

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


def assert_golden(row, golden):
    for metric, expected in golden.items():
        tolerance = 1e-4 if metric == "ece_kde" else 1e-6
        assert row.values[metric].mean == pytest.approx(expected, abs=tolerance), metric


@pytest.mark.compiled
def test_table1_has_golden_values():
    table = paper.table1(paper.open_ensembles(), sources=[20], updates=6)
    for method, golden in GOLDEN.items():
        assert_golden(table.row(method), golden)
    # aTDE keeps the mean's accuracy, whatever its stopping rule.
    for method in ("aTDE", "aTDE, 6 updates"):
        assert table.row(method).values["accuracy"].mean == pytest.approx(0.8593)
    text = paper.format_table(table)
    assert "TDE, 6 updates" in text
    assert "4.29" in text  # the golden ECE as printed


@pytest.mark.compiled
def test_table1_has_golden_values_of_a_mixed_ensemble():
    logits, labels = load_logits("cifar100-mixed-3")
    golden = load_golden("cifar100-mixed-3")
    ensemble = paper.Ensemble(paper.EnsembleName("mixed"), vd.Predictions(logits, labels, kind="logits"))
    table = paper.table1([ensemble], sources=[3], updates=6)
    names = {"ece": "ece_mass15", "ks_error": "ks", "brier": "mse", "accuracy": "acc"}
    for method, stored in (("DE", golden["mean"]), ("TDE, 6 updates", golden["tde_6_updates"])):
        figures = {metric: stored[names.get(metric, metric)] for metric in GOLDEN["DE"]}
        assert_golden(table.row(method, 3), figures)
    assert table.row("aTDE", 3).values["accuracy"].mean == pytest.approx(golden["mean"]["acc"])


def test_default_sources_are_ten_steps():
    assert default_sources(100) == list(range(10, 101, 10))
    assert default_sources(50) == list(range(5, 51, 5))
    assert default_sources(20) == list(range(2, 21, 2))
    assert default_sources(1) == [1]


@given(st.integers(1, 500))
def test_default_sources_end_with_all(n_sources):
    steps = default_sources(n_sources)
    assert steps == sorted(set(steps))
    assert steps[0] >= 1
    assert steps[-1] == n_sources
    assert len(steps) == min(10, n_sources)


def test_sweep_equals_each_number_of_sources_alone():
    predictions = small_predictions(5, 150)
    table = paper.table1([small_ensemble(5, 150)], sources=[2, 3, 5], updates=4)
    for n in (2, 3, 5):
        probs = softmax(predictions.select(sources=slice(n)).values.astype(np.float64))
        expected = {
            "DE": probs.mean(axis=0),
            "TDE": vd.discover(probs, accuracy_preserving=False).probs,
            "aTDE": vd.discover(probs).probs,
            "TDE, 4 updates": vd.discover(probs, accuracy_preserving=False, tol=0, max_iter=4).probs,
            "aTDE, 4 updates": vd.discover(probs, tol=0, max_iter=4).probs,
        }
        # All sources are combined in the precision of the data, fewer in float64.
        tolerance = 1e-9 if n < 5 else 1e-6
        for method, vectors in expected.items():
            values = table.row(method, n).values
            for metric in ("nll", "brier", "ece", "ks_error", "accuracy"):
                reference = getattr(vd.metrics, metric)(predictions.labels, vectors)
                assert values[metric].mean == pytest.approx(reference, abs=tolerance), (n, method, metric)


def test_rules_have_the_names_of_rows():
    assert list(rules_of()) == ["TDE", "aTDE"]
    assert list(rules_of(1)) == ["TDE", "aTDE", "TDE, 1 update", "aTDE, 1 update"]
    assert rules_of(6)["aTDE, 6 updates"].max_iter == 6
    with pytest.raises(ParameterError, match="updates is 0"):
        rules_of(0)


def test_table1_does_not_depend_on_threads(monkeypatch):
    monkeypatch.setattr(
        "veridical.evaluation.source_sweep._BLOCK_BYTES", 8 * 4 * 10 * 37
    )  # many blocks, the last one short
    tables = [
        paper.format_table(paper.table1([small_ensemble()], sources=[1, 4], n_threads=n), "json") for n in (1, 2, 3)
    ]
    assert tables[0] == tables[1] == tables[2]


def test_sweep_does_not_depend_on_blocks(monkeypatch):
    whole = paper.table1([small_ensemble()], sources=[3, 4])
    monkeypatch.setattr("veridical.evaluation.source_sweep._BLOCK_BYTES", 8 * 3 * 10 * 29)
    assert paper.table1([small_ensemble()], sources=[3, 4]) == whole


def test_bad_row_is_named_by_its_index(monkeypatch):
    monkeypatch.setattr("veridical.evaluation.source_sweep._BLOCK_BYTES", 8 * 2 * 3 * 10)
    probs = np.full((2, 100, 3), 1 / 3)
    probs[1, 77] = 0.2
    ensemble = paper.Ensemble(paper.EnsembleName("bad"), vd.Predictions(probs, np.zeros(100, dtype=int)))
    with pytest.raises(NotNormalisedError, match="sample 77"):
        paper.table1([ensemble])


def test_table1_rejects_more_sources_than_exist():
    with pytest.raises(ParameterError, match="small has 4 sources and sources= asks for 10"):
        paper.table1([small_ensemble()], sources=[2, 10])
    with pytest.raises(ParameterError, match="at least 1"):
        paper.table1([small_ensemble()], sources=[0])


def test_table1_groups_rows_by_ensemble():
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


def test_table1_has_published_numbers():
    name = paper.recognise("CIFAR100-PreResNet110-deepens-100-1.npy")
    ensemble = paper.Ensemble(name, small_predictions(10, 200))
    table = paper.table1([ensemble], sources=[5, 10], updates=6)
    assert all(value.published is None for value in table.row("DE", 5).values.values())
    value = table.row("TDE", 10).values["ece"]
    assert value.published.mean == pytest.approx(0.0306)
    assert value.published.table == "A1"
    assert value.difference == pytest.approx(value.mean - 0.0306)
    # A fixed number of updates is how the authors' program ran, so the same figures belong beside it.
    assert table.row("TDE, 6 updates", 10).values["ece"].published.mean == pytest.approx(0.0306)
