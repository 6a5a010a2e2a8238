"""Tables 2 to 4: the paper's protocol, and shared work that does not change results."""

import numpy as np
import pytest
from small_ensembles import small_ensemble, small_predictions

import veridical as vd
from veridical import paper
from veridical.errors import ParameterError, ShapeError
from veridical.evaluation.comparison import run_halves
from veridical.evaluation.engine import Engine
from veridical.evaluation.methods import resolve_method
from veridical.paper.posthoc import paper_batch, posthoc_sources, posthoc_tables, table_methods

PAPER_METHODS = {
    "table2": ["DE", "TS", "ETS", "IRM", "pTDE"],
    "table3": ["opt-hist", "opt-kde", "ptde-hist", "ptde-kde"],
    "table4": ["DE", "TS", "ETS", "IRM", "Spline", "opt-hist", "opt-kde", "ptde-hist", "ptde-kde"],
}


@pytest.mark.parametrize("table", PAPER_METHODS)
def test_methods_follow_the_papers_order(table):
    assert [method.name for method in table_methods(table)] == PAPER_METHODS[table]
    extended = [method.name for method in table_methods(table, extended=True)]
    assert extended[: len(PAPER_METHODS[table])] == PAPER_METHODS[table]
    assert {"auto", "truth-logit", "log-pool"} <= set(extended)
    assert len(extended) == len(set(extended))


@pytest.mark.compiled
@pytest.mark.parametrize("method", [*table_methods("table4"), resolve_method("isotonic")], ids=lambda m: m.name)
def test_shared_work_equals_fitting_alone(method):
    """Combining all samples at once gives what fitting on a half alone gives."""
    predictions = small_predictions(5, 600)
    ((outcome,),) = run_halves(Engine(predictions), [method], 1, 3)
    fitted_on, rest = predictions.split(random_state=3)
    alone = method.make(3).fit(fitted_on)
    np.testing.assert_array_equal(outcome.stated.confidence, alone.predict_confidence(rest))
    np.testing.assert_array_equal(outcome.stated.correct, alone.predict(rest) == rest.labels)
    probs = alone.predict_proba(rest)
    assert outcome.stated.losses("nll").mean() == pytest.approx(vd.metrics.nll(rest.labels, probs), rel=1e-6)
    assert outcome.stated.losses("brier").mean() == pytest.approx(vd.metrics.brier(rest.labels, probs), rel=1e-6)


@pytest.mark.compiled
def test_engine_is_shared_by_tables_and_figures(monkeypatch):
    ensemble, combined = small_ensemble(3, 300), []
    combine = Engine.combined

    def count(engine, name):
        if name not in engine._combined:
            combined.append((engine.predictions.n_sources, name))
        return combine(engine, name)

    monkeypatch.setattr(Engine, "combined", count)
    posthoc_tables(["table2", "table3", "table4"], [ensemble], n_splits=2)
    paper.bins_before_after(ensemble)
    paper.disagreement_by_score(ensemble)
    paper.table1([ensemble], sources=[3])
    assert sorted(combined) == [(3, "atde"), (3, "mean"), (3, "tde")]


@pytest.mark.compiled
def test_tables_share_fits():
    ensembles = [small_ensemble(3, 500)]
    together = posthoc_tables(["table2", "table3", "table4"], ensembles, n_splits=2, random_state=1)
    alone = [make(ensembles, n_splits=2, random_state=1) for make in (paper.table2, paper.table3, paper.table4)]
    assert together == alone
    assert together[0].row("pTDE").values["ece"].mean == together[1].row("ptde-kde").values["ece"].mean


@pytest.mark.compiled
def test_table4_does_not_depend_on_threads():
    ensembles = [small_ensemble(3, 500)]
    tables = [paper.format_table(paper.table4(ensembles, n_threads=n), "json") for n in (1, 2, 4)]
    assert tables[0] == tables[1] == tables[2]


@pytest.mark.compiled
def test_random_state_decides_the_halves():
    ensembles = [small_ensemble(3, 500)]
    first, again, other = (paper.table2(ensembles, random_state=seed) for seed in (0, 0, 9))
    assert first == again
    assert first.rows != other.rows


@pytest.mark.compiled
def test_values_are_means_and_deviations_over_splits():
    ensemble = small_ensemble(3, 500)
    methods = table_methods("table2")
    splits = run_halves(Engine(ensemble.predictions), methods, 4, 0)
    drawn = [vd.metrics.ece(split[1].stated.correct, split[1].stated.confidence) for split in splits]
    value = paper.table2([ensemble], n_splits=4).row("TS").values["ece"]
    assert value.mean == pytest.approx(np.mean(drawn))
    assert value.std == pytest.approx(np.std(drawn, ddof=1))
    assert paper.table2([ensemble], n_splits=1).row("TS").values["ece"].std is None


@pytest.mark.compiled
def test_table2_agrees_with_compare_calibrators():
    predictions = small_predictions(4, 600)
    compared = vd.compare_calibrators(predictions, methods=["ets", "irm"], n_splits=3)
    table = paper.table2([small_ensemble(4, 600)], n_splits=3)
    for label, name in (("ETS", "ets"), ("IRM", "irm")):
        assert table.row(label).values["ece"].mean == pytest.approx(compared.mean(name, "ece"), abs=1e-5)


@pytest.mark.compiled
def test_calibration_helps_the_shipped_ensemble():
    table = paper.table2(paper.open_ensembles())
    before = table.row("DE").values["ece"].mean
    for method in ("TS", "ETS", "IRM", "pTDE"):
        assert table.row(method).values["ece"].mean < before / 3


def test_sources_follow_the_paper_where_it_has_the_ensemble():
    imagenet = paper.Ensemble(paper.EnsembleName("ImageNet", "ResNet50", "deep"), small_predictions(20, 50))
    assert posthoc_sources(imagenet, None) == [10]
    assert posthoc_sources(imagenet, [5, 3]) == [3, 5]
    assert posthoc_sources(small_ensemble(4, 50), None) == [4]
    few = paper.Ensemble(paper.EnsembleName("CIFAR100", "ResNet18", "snapshot"), small_predictions(6, 50))
    assert posthoc_sources(few, None) == [6]
    with pytest.raises(ParameterError, match="6 sources and sources= asks for 200"):
        posthoc_sources(few, [200])


@pytest.mark.compiled
def test_paper_setting_changes_optimised_methods():
    ensembles = [small_ensemble(4, 600)]
    ours, papers = (paper.table3(ensembles, n_splits=2, literal=literal) for literal in (False, True))
    assert ours.settings["setting"] == "library"
    assert papers.settings["setting"] == "paper"
    assert ours.row("ptde-kde").values != papers.row("ptde-kde").values
    assert paper.table2(ensembles, n_splits=2).row("ETS") == paper.table2(ensembles, n_splits=2, literal=True).row(
        "ETS"
    )


def test_paper_batch_depends_on_samples():
    assert [paper_batch(n) for n in (400, 10_000, 50_000)] == [1_000, 1_000, 10_000]
    for method in table_methods("table3", literal_batch=10_000):
        assert method.parameters["batch_size"] == 10_000
        assert method.parameters["hist_steps"] == 70
        assert method.make(0).get_params()["start"] == "zero"
    assert {method.parameters.get("hv_scale") for method in table_methods("table3", literal_batch=1_000)} == {
        None,
        "raw",
    }


def test_table2_rejects_bad_arguments():
    with pytest.raises(ShapeError, match="1 sample cannot be split"):
        paper.table2([small_ensemble(2, 1)])
    with pytest.raises(ParameterError, match="n_splits"):
        paper.table2([small_ensemble(2, 10)], n_splits=0)
    with pytest.raises(ParameterError, match="random_state"):
        paper.table2([small_ensemble(2, 10)], random_state=-1)
