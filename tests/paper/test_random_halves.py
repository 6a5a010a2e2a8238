"""Tables 2 to 4: the paper's protocol, work that is shared without changing anything."""

import numpy as np
import pytest
from small_ensembles import small_ensemble, small_predictions

import veridical as vd
from veridical import paper
from veridical.errors import ParameterError, ShapeError
from veridical.paper.halves import Halves
from veridical.paper.methods import Method, paper_batch, table_methods
from veridical.paper.posthoc import posthoc_sources, posthoc_tables

PAPER_METHODS = {
    "table2": ["DE", "TS", "ETS", "IRM", "pTDE"],
    "table3": ["opt-hist", "opt-kde", "ptde-hist", "ptde-kde"],
    "table4": ["DE", "TS", "ETS", "IRM", "Spline", "opt-hist", "opt-kde", "ptde-hist", "ptde-kde"],
}


@pytest.mark.parametrize("table", PAPER_METHODS)
def test_the_papers_methods_in_its_order(table):
    assert [method.label for method in table_methods(table)] == PAPER_METHODS[table]
    extended = [method.label for method in table_methods(table, extended=True)]
    assert extended[: len(PAPER_METHODS[table])] == PAPER_METHODS[table]
    assert {"auto", "truth-logit", "log-pool"} <= set(extended)
    assert len(extended) == len(set(extended))


def test_halves_are_those_of_split():
    predictions = small_predictions(2, 101)
    halves = Halves(predictions, 3, seed=5)
    for k, (calibration, evaluation) in enumerate(halves.splits):
        first, second = predictions.split(random_state=5 + k)
        np.testing.assert_array_equal(halves.labels[calibration], first.labels)
        np.testing.assert_array_equal(halves.labels[evaluation], second.labels)
        assert len(calibration) == 50
        assert not set(calibration) & set(evaluation)
        assert len(calibration) + len(evaluation) == 101


@pytest.mark.compiled
@pytest.mark.parametrize("method", [*table_methods("table4"), Method("isotonic", "isotonic")], ids=lambda m: m.label)
def test_shared_work_changes_nothing(method):
    """Combiner and truth discovery on all samples at once give what fitting on a half alone gives."""
    predictions = small_predictions(5, 600)
    (scores,) = Halves(predictions, 1, seed=3).run([method])[0]
    fitted_on, rest = predictions.split(random_state=3)
    alone = method.make(3).fit(fitted_on)
    np.testing.assert_array_equal(scores.confidence, alone.predict_confidence(rest))
    np.testing.assert_array_equal(scores.correct, alone.predict(rest) == rest.labels)
    probs = alone.predict_proba(rest)
    assert scores.metric("nll") == pytest.approx(vd.metrics.nll(rest.labels, probs), rel=1e-6)
    assert scores.metric("brier") == pytest.approx(vd.metrics.brier(rest.labels, probs), rel=1e-6)


@pytest.mark.compiled
def test_tables_from_the_same_fits_are_those_made_alone():
    ensembles = [small_ensemble(3, 500)]
    together = posthoc_tables(["table2", "table3", "table4"], ensembles, n_splits=2, seed=1)
    alone = [make(ensembles, n_splits=2, seed=1) for make in (paper.table2, paper.table3, paper.table4)]
    assert together == alone
    assert together[0].row("pTDE").values["ece"].mean == together[1].row("ptde-kde").values["ece"].mean


@pytest.mark.compiled
def test_same_bytes_for_any_number_of_threads():
    ensembles = [small_ensemble(3, 500)]
    tables = [paper.format_table(paper.table4(ensembles, n_threads=n), "json") for n in (1, 2, 4)]
    assert tables[0] == tables[1] == tables[2]


@pytest.mark.compiled
def test_the_seed_decides():
    ensembles = [small_ensemble(3, 500)]
    first, again, other = (paper.table2(ensembles, seed=seed) for seed in (0, 0, 9))
    assert first == again
    assert first.rows != other.rows


@pytest.mark.compiled
def test_means_and_spreads_are_over_the_splits():
    ensemble = small_ensemble(3, 500)
    methods = table_methods("table2")
    results = Halves(ensemble.predictions, 4, 0).run(methods)
    drawn = [100 * split[1].metric("ece") for split in results]
    value = paper.table2([ensemble], n_splits=4).row("TS").values["ece"]
    assert value.mean == pytest.approx(np.mean(drawn))
    assert value.std == pytest.approx(np.std(drawn, ddof=1))
    assert paper.table2([ensemble], n_splits=1).row("TS").values["ece"].std is None


@pytest.mark.compiled
def test_agrees_with_the_librarys_own_comparison():
    predictions = small_predictions(4, 600)
    compared = vd.compare_calibrators(predictions, methods=["ets", "irm"], n_splits=3)
    table = paper.table2([small_ensemble(4, 600)], n_splits=3)
    for label, name in (("ETS", "ets"), ("IRM", "irm")):
        assert table.row(label).values["ece"].mean == pytest.approx(100 * compared.mean(name, "ece"), abs=1e-3)


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
    with pytest.raises(ParameterError, match="6 sources and 200 were asked for"):
        posthoc_sources(few, [200])


@pytest.mark.compiled
def test_the_papers_setting_is_another():
    ensembles = [small_ensemble(4, 600)]
    ours, papers = (paper.table3(ensembles, n_splits=2, literal=literal) for literal in (False, True))
    assert ours.settings["setting"] == "library"
    assert papers.settings["setting"] == "paper"
    assert ours.row("ptde-kde").values != papers.row("ptde-kde").values
    assert paper.table2(ensembles, n_splits=2).row("ETS") == paper.table2(ensembles, n_splits=2, literal=True).row(
        "ETS"
    )


def test_the_papers_batches():
    assert [paper_batch(n) for n in (400, 10_000, 50_000)] == [1_000, 1_000, 10_000]
    for method in table_methods("table3", literal_batch=10_000):
        assert method.parameters["batch_size"] == 10_000
        assert method.parameters["hist_steps"] == 70
        assert method.make(0).get_params()["start"] == "zero"
    assert {method.parameters.get("hv_scale") for method in table_methods("table3", literal_batch=1_000)} == {
        None,
        "raw",
    }


def test_bad_arguments():
    with pytest.raises(ShapeError, match="1 sample cannot be split"):
        paper.table2([small_ensemble(2, 1)])
    with pytest.raises(ParameterError, match="splits"):
        paper.table2([small_ensemble(2, 10)], n_splits=0)
    with pytest.raises(ParameterError, match="seed"):
        paper.table2([small_ensemble(2, 10)], seed=-1)
