"""Beyond the paper: floors, intervals, and which differences are real."""

import numpy as np
import pytest
from small_ensembles import small_ensemble

import veridical as vd
from veridical import paper
from veridical.metrics.sample import Sample
from veridical.paper.extended import Extended, bootstrap_draws, floors, judge_by_bootstrap, judge_by_halves
from veridical.paper.layout import verdicts
from veridical.paper.methods import Method
from veridical.paper.posthoc import posthoc_rows, posthoc_tables
from veridical.paper.scores import COLUMNS, Scores
from veridical.paper.tables import Row, Value

HOW = Extended(n_resamples=60, n_draws=30)
NAME = paper.EnsembleName("made")


def calibrated_scores(rng, n_samples=2000, shift=0.0):
    """Outcomes drawn from the confidences themselves, which then are said with a shift."""
    truth = rng.uniform(0.5, 0.9, n_samples)
    correct = rng.random(n_samples) < truth
    confidence = np.clip(truth + shift, 0, 1)
    nll = -np.log(np.where(correct, confidence, 1 - confidence))
    return Scores(confidence, correct, nll, 2 * np.square(confidence - correct))


def rows_of(scores):
    return [
        Row(NAME, 2, method, {m: Value(v) for m, v in one.metrics(COLUMNS).items()}) for method, one in scores.items()
    ]


def test_floors_are_those_of_the_metrics(rng):
    scores = calibrated_scores(rng)
    ours = floors(scores, COLUMNS, Extended(n_draws=100, seed=4))
    assert set(ours) == {"ece_kde", "ece", "ks_error"}
    theirs = vd.metrics.noise_floor("ece", scores.confidence, n_draws=100, random_state=4)
    assert ours["ece"] == pytest.approx(100 * theirs.mean)


def test_bootstrap_of_losses_is_the_bootstrap_of_their_mean(rng):
    scores = calibrated_scores(rng, 300)
    draws = bootstrap_draws([scores, scores], COLUMNS, HOW)
    assert {metric: found.shape for metric, found in draws.items()} == dict.fromkeys(COLUMNS, (60, 2))
    for found in draws.values():
        np.testing.assert_array_equal(found[:, 0], found[:, 1])  # every method sees the same resamples
    spread = scores.nll.std() / np.sqrt(300)
    assert draws["nll"].std() == pytest.approx(spread, rel=0.35)
    reference = vd.metrics.bootstrap("ece", scores.correct, scores.confidence, n_resamples=60, random_state=HOW.seed)
    np.testing.assert_allclose(draws["ece"][:, 0], 100 * reference.draws)


def test_a_real_difference_is_found_and_a_null_one_is_not(rng):
    good = calibrated_scores(rng)
    bad = Scores(np.clip(good.confidence + 0.1, 0, 1), good.correct, good.nll + 0.05, good.brier + 0.02)
    scores = {"good": good, "bad": bad, "same": good}
    judged, pairs = judge_by_bootstrap(rows_of(scores), scores, HOW)
    found = {(pair.metric, pair.a, pair.b): pair.better for pair in pairs}
    for metric in ("ece_kde", "ece", "ks_error", "nll", "brier"):
        assert found[metric, "good", "bad"] == "good"
        assert found[metric, "good", "same"] is None
    assert found["accuracy", "good", "bad"] is None
    assert len(pairs) == len(COLUMNS) * 3
    for row in judged:
        for metric, value in row.values.items():
            assert value.low <= value.high
            assert (value.floor is not None) == (metric in ("ece_kde", "ece", "ks_error"))


def test_rounding_is_no_difference(rng):
    scores = calibrated_scores(rng)
    shaken = Scores(scores.confidence, scores.correct, scores.nll + 1e-14, scores.brier - 1e-14)
    both = {"one": scores, "other": shaken}
    _, pairs = judge_by_bootstrap(rows_of(both), both, HOW)
    assert {pair.difference != 0 for pair in pairs if pair.metric in ("nll", "brier")} == {True}
    assert {pair.better for pair in pairs} == {None}


@pytest.mark.compiled
def test_two_sources_give_no_real_differences():
    """Truth discovery of two sources is their mean."""
    table = paper.table1([small_ensemble(2, 400)], sources=[2], extended=HOW)
    assert verdicts(table) == []
    assert "one in twenty" in paper.format_table(table).replace("\n", " ")


@pytest.mark.filterwarnings("error")
def test_infinite_losses_are_equal_to_each_other_and_worse_than_finite_ones(rng):
    finite = calibrated_scores(rng, 300)
    infinite = Scores(finite.confidence, finite.correct, np.full(300, np.inf), finite.brier)
    scores = {"finite": finite, "one": infinite, "other": infinite}
    rows = [Row(NAME, 2, m, {"nll": Value(one.metrics(["nll"])["nll"])}) for m, one in scores.items()]
    for _, pairs in (judge_by_bootstrap(rows, scores, HOW), judge_by_halves(rows, [list(scores.values())] * 3, HOW)):
        found = {(pair.a, pair.b): pair.better for pair in pairs}
        assert found == {("finite", "one"): "finite", ("finite", "other"): "finite", ("one", "other"): None}


@pytest.mark.filterwarnings("error")
def test_infinite_figures_have_no_spread(rng):
    infinite = Scores(np.ones(9), np.zeros(9, bool), np.full(9, np.inf), np.full(9, 2.0))
    rows = posthoc_rows(small_ensemble(2, 20), 2, [Method("DE", "identity")], [[infinite]] * 2, ["nll", "brier"])
    assert rows[0].values["nll"] == Value(np.inf, None)
    assert rows[0].values["brier"] == Value(2.0, 0.0)


def test_halves_know_real_from_chance(rng):
    def split(shift):
        return [calibrated_scores(rng, 3000), calibrated_scores(rng, 3000), calibrated_scores(rng, 3000, shift)]

    results = [split(0.1) for _ in range(5)]
    rows = [
        Row(NAME, 2, name, {"ece": Value(float(np.mean([s[j].metrics(["ece"])["ece"] for s in results])))})
        for j, name in enumerate(("a", "b", "shifted"))
    ]
    judged, pairs = judge_by_halves(rows, results, HOW)
    found = {(pair.a, pair.b): pair.better for pair in pairs}
    assert found == {("a", "b"): None, ("a", "shifted"): "a", ("b", "shifted"): "b"}
    for row in judged:
        assert row.values["ece"].low <= row.values["ece"].mean <= row.values["ece"].high
    one_split, no_pairs = judge_by_halves(rows, results[:1], HOW)
    assert no_pairs == []
    assert one_split[0].values["ece"].low is None


def test_intervals_over_halves_are_wider_than_naive_ones(rng):
    """The correction for overlap: sqrt(1/5 + 1) instead of sqrt(1/5) of one split's spread."""
    results = [[calibrated_scores(rng, 500)] for _ in range(5)]
    drawn = np.array([s[0].metrics(["ece"])["ece"] for s in results])
    rows = [Row(NAME, 2, "a", {"ece": Value(float(drawn.mean()))})]
    value = judge_by_halves(rows, results, HOW)[0][0].values["ece"]
    assert value.high - drawn.mean() == pytest.approx(2.7764 * drawn.std(ddof=1) * np.sqrt(1.2), rel=1e-4)


@pytest.mark.compiled
def test_the_same_tables_with_more_in_them():
    ensembles = [small_ensemble(3, 400)]
    plain = paper.table1(ensembles, sources=[3])
    more = paper.table1(ensembles, sources=[3], extended=HOW)
    for row, same in zip(plain.rows, more.rows, strict=True):
        for metric, value in row.values.items():
            assert value.mean == same.values[metric].mean
    assert len(more.comparisons) == 6 * 3
    text = paper.format_table(more)
    assert "floor" in text
    assert "95%" in text
    assert "Real differences" in text
    for verdict in verdicts(more):
        assert verdict.method not in verdict.beats
    assert paper.Table.from_dict(more.to_dict()) == more


@pytest.mark.compiled
def test_every_registered_calibrator_has_a_row():
    ensembles = [small_ensemble(3, 240)]
    table = paper.table2(ensembles, n_splits=2, extended=Extended(n_draws=5))
    labels = {row.method for row in table.rows}
    renamed = {"identity": "DE", "ets": "ETS", "irm": "IRM", "ptde-kde": "pTDE"}
    assert labels == {renamed.get(name, name) for name in vd.calibrators()} | {"TS"}
    assert table.metrics == COLUMNS
    n_methods = len(table.rows)
    assert len(table.comparisons) == len(COLUMNS) * n_methods * (n_methods - 1) // 2


@pytest.mark.compiled
def test_two_temperature_scalings_are_told_apart():
    ensembles, less = [small_ensemble(2, 200)], Extended(n_draws=2)
    tables = posthoc_tables(["table2", "table3", "table4"], ensembles, n_splits=1, extended=less)
    told = [any("TS by squared error" in note for note in table.notes) for table in tables]
    assert told == [True, False, True]
    for form in ("terminal", "markdown", "json"):
        assert "by likelihood" in paper.format_table(tables[0], form).replace("\n", " ")
    assert paper.table2(ensembles, n_splits=1).notes == ()


def test_samples_keep_their_losses_when_sorted(rng):
    """A loss per sample goes where its sample goes."""
    scores = calibrated_scores(rng, 50)
    sample = Sample(scores.confidence, scores.correct, doubt=scores.nll)
    order = sample.order()
    np.testing.assert_array_equal(sample.taken(order).doubt, scores.nll[order])
