"""What sources are worth: the search for a subset against plain loops, absent predictions, tables and sentences."""

import json
import math

import numpy as np
import pytest
from ensembles import random_ensemble

import veridical as vd
from veridical.evaluation.engine import half_split
from veridical.evaluation.source_value import Effect, SourceValue, SourceValues


def effect(value, reach=0.01):
    return Effect(value, value - reach, value + reach)


def source(name, nll_without, **changes):
    facts = {"accuracy": 0.8, "nll": 0.6, "accuracy_without": effect(-0.002), "weight": 0.25, "agreement": 0.7}
    return SourceValue(name=name, nll_without=nll_without, **{**facts, **changes})


def values_of(sources, **changes):
    facts = {"accuracy": 0.85, "nll": 0.5, "best": 0, "best_accuracy": effect(-0.05), "best_nll": effect(0.1)}
    facts |= {"subset": tuple(range(len(sources))), "subset_nll": effect(0.004), "subset_accuracy": effect(-0.01)}
    return SourceValues(sources=tuple(sources), n_samples=1200, **{**facts, **changes})


def naive_mean(rows):
    """Mean of the rows without NaN."""
    known = [row for row in rows if not math.isnan(row[0])]
    return [sum(column) / len(known) for column in zip(*known, strict=True)]


def naive_loss(rows, label):
    return -math.log(max(naive_mean(rows)[label], 1e-12))


def naive_path(probs, labels):
    """All sources, then without the one whose removal leaves the lowest mean loss, and so on."""
    kept = list(range(len(probs)))
    path = [kept]
    while len(kept) > 1:
        losses = {
            s: sum(naive_loss([probs[t][n] for t in kept if t != s], label) for n, label in enumerate(labels))
            for s in kept
        }
        worst = min(losses, key=losses.get)
        kept = [s for s in kept if s != worst]
        path.append(kept)
    return path


@pytest.fixture(scope="module")
def predictions():
    """Five sources of different quality."""
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 3, 300)
    logits = np.stack([k * np.eye(3)[labels] + 1.3 * rng.normal(size=(300, 3)) for k in (2.5, 2.0, 1.5, 0.6, 0.0)])
    exp = np.exp(logits)
    return vd.Predictions(exp / exp.sum(axis=2, keepdims=True), labels)


@pytest.mark.parametrize("share_absent", [0.0, 0.1])
@pytest.mark.compiled
def test_subset_is_on_the_path_of_removing_the_least_useful(predictions, share_absent):
    probs = predictions.values.copy()
    absent = np.random.default_rng(1).random(probs.shape[:2]) < share_absent
    absent[:3] = False  # three sources are always there
    probs[absent] = np.nan
    holed = vd.Predictions(probs, predictions.labels)
    value = vd.inspect(holed).value
    split = half_split(holed, 0)
    path = naive_path(probs[:, split.fitted_on].tolist(), holed.labels[split.fitted_on].tolist())
    assert list(value.subset) in path
    scored, labels = probs[:, split.scored_on], holed.labels[split.scored_on]
    whole = [naive_loss(scored[:, n], label) for n, label in enumerate(labels)]
    part = [naive_loss(scored[list(value.subset)][:, n], label) for n, label in enumerate(labels)]
    assert value.nll == pytest.approx(np.mean(whole))
    assert value.subset_nll.value == pytest.approx(np.mean(part) - np.mean(whole))
    right = [int(np.argmax(naive_mean(scored[:, n])) == label) for n, label in enumerate(labels)]
    kept = [int(np.argmax(naive_mean(scored[list(value.subset)][:, n])) == label) for n, label in enumerate(labels)]
    assert value.accuracy == pytest.approx(np.mean(right))
    assert value.subset_accuracy.value == pytest.approx(np.mean(kept) - np.mean(right))
    for s, facts in enumerate(value.sources):
        rest = [naive_loss(np.delete(scored[:, n], s, axis=0), label) for n, label in enumerate(labels)]
        assert facts.nll_without.value == pytest.approx(np.mean(rest) - np.mean(whole))
        alone = [-math.log(p[label]) for p, label in zip(scored[s], labels, strict=True) if not math.isnan(p[0])]
        assert facts.nll == pytest.approx(np.mean(alone))


@pytest.mark.compiled
def test_smaller_sets_on_the_path_are_worse_by_more_than_chance(predictions):
    value = vd.inspect(predictions).value
    assert not value.subset_nll.low > 0
    assert not value.subset_accuracy.high < 0
    assert 0 in value.subset
    assert 4 not in value.subset


@pytest.mark.compiled
def test_best_source_is_chosen_on_one_half_and_scored_on_the_other(predictions):
    value = vd.inspect(predictions).value
    split = half_split(predictions, 0)
    fitted, scored = (
        [vd.metrics.nll(predictions.labels[part], source[part]) for source in predictions]
        for part in (split.fitted_on, split.scored_on)
    )
    assert value.best == np.argmin(fitted)
    assert value.best_nll.value == pytest.approx(scored[value.best] - value.nll)
    assert value.best_accuracy.value == pytest.approx(value.sources[value.best].accuracy - value.accuracy)
    assert value.n_samples == len(split.scored_on)


@pytest.mark.compiled
def test_weights_are_those_of_a_linear_pool_on_one_half(predictions):
    value = vd.inspect(predictions).value
    half = predictions.select(samples=half_split(predictions, 0).fitted_on)
    pool = vd.inspect_calibrator(vd.LinearPool().fit(half))
    assert [facts.weight for facts in value.sources] == pytest.approx(pool.source_weights)


@pytest.mark.compiled
def test_values_follow_a_permutation_of_the_sources(predictions):
    order = [3, 0, 4, 2, 1]
    first, second = vd.inspect(predictions).value, vd.inspect(predictions.select(sources=order)).value
    assert {order[s] for s in second.subset} == set(first.subset)
    for s, t in enumerate(order):
        assert second.sources[s].nll_without.value == pytest.approx(first.sources[t].nll_without.value)
        assert second.sources[s].agreement == pytest.approx(first.sources[t].agreement)


@pytest.mark.compiled
def test_source_that_is_never_there_has_no_figures(predictions):
    probs = predictions.values.copy()
    probs[1] = np.nan
    inspection = vd.inspect(vd.Predictions(probs, predictions.labels))
    never = inspection.value.sources[1]
    assert np.isnan([never.nll, never.accuracy]).all()
    assert never.nll_without == Effect(0.0, 0.0, 0.0)
    assert inspection.value.best != 1
    assert inspection.to_dict()["value"]["sources"][1]["nll"] is None


@pytest.mark.compiled
def test_value_is_about_samples_whose_label_is_known(predictions):
    labels = predictions.labels.copy()
    labels[::3] = -1
    some = vd.Predictions(predictions.values, labels)
    known = predictions.select(samples=np.flatnonzero(labels >= 0))
    partly, whole = vd.inspect(some).value, vd.inspect(known).value
    assert partly.n_samples == whole.n_samples == 100
    assert partly.nll == pytest.approx(whole.nll)
    assert partly.subset == whole.subset


@pytest.mark.parametrize("n_samples", [0, 1, 3])
def test_value_needs_four_samples(predictions, n_samples):
    few = predictions.select(samples=slice(n_samples))
    assert vd.inspect(few).value is None


def test_value_needs_another_source_for_every_sample(predictions):
    probs = predictions.values[:3, :20].copy()
    probs[1:, 4] = np.nan
    assert vd.inspect(vd.Predictions(probs, predictions.labels[:20])).value is None


@pytest.mark.parametrize(("low", "high", "is_clear"), [(-1, 1, False), (0.1, 1, True), (-1, -0.1, True), (0, 1, False)])
def test_effect_is_clear_where_its_interval_excludes_zero(low, high, is_clear):
    assert Effect(0.5, low, high).is_clear == is_clear


def test_harmful_sources_are_those_whose_removal_helps_clearly():
    value = values_of([source("a", effect(0.05)), source("b", effect(-0.05)), source("c", effect(-0.005))])
    assert value.harmful == (1,)


def test_mean_beats_its_best_source_by_nll_or_accuracy():
    even = effect(0.0)
    sources = [source("a", effect(0.05)), source("b", effect(0.05))]
    assert values_of(sources, best_nll=effect(0.1), best_accuracy=even).mean_beats_best
    assert values_of(sources, best_nll=even, best_accuracy=effect(-0.1)).mean_beats_best
    assert not values_of(sources, best_nll=even, best_accuracy=even).mean_beats_best
    assert values_of(sources).sentences == ()


def test_sentence_compares_the_best_source_with_the_mean():
    sources = [source("a", effect(0.05)), source("b", effect(0.05), accuracy=0.875, nll=0.4321)]
    value = values_of(sources, best=1, best_nll=effect(0.0), best_accuracy=effect(0.0))
    assert value.sentences == (
        "The mean is not better than its best source, b: accuracy 87.5% and NLL 0.432 against 85.0% and 0.500.",
    )


def test_sentence_names_at_most_five_sources_of_the_subset():
    sources = [source(f"s{k}", effect(0.05)) for k in range(9)]
    (few,) = values_of(sources, subset=(0, 2, 4, 6, 8)).sentences
    assert few == (
        "The mean of 5 of the 9 sources (s0, s2, s4, s6, s8) cannot be told from that of all: NLL 0.504 against "
        "0.500, accuracy 84.0% against 85.0%."
    )
    (many,) = values_of(sources, subset=(0, 1, 2, 3, 4, 5)).sentences
    assert "(s0, s1, s2, s3 and 2 more)" in many


def test_table_of_values_has_a_star_at_the_subset():
    value = values_of([source("a", effect(0.05)), source("b", effect(-0.05))], subset=(1,))
    heading, rows = value.rows()
    assert heading[0] == "source"
    assert rows == [
        ["a", "80.00", "0.600", "+0.0500 (+0.0400 to +0.0600)", "-0.20", "25.0", "70.0"],
        ["b *", "80.00", "0.600", "-0.0500 (-0.0600 to -0.0400)", "-0.20", "25.0", "70.0"],
    ]
    assert str(value).startswith("What sources are worth, on 1,200 samples; *")


def test_values_go_to_json_and_to_a_data_frame():
    value = values_of([source("a", effect(0.05)), source("b", effect(-0.05))])
    document = json.loads(json.dumps(value.to_dict()))
    assert document["harmful"] == [1]
    assert document["mean_beats_best"] is True
    assert document["sources"][0]["nll_without"] == {"value": 0.05, "low": 0.05 - 0.01, "high": 0.05 + 0.01}
    frame = value.to_frame()
    assert frame["source"].tolist() == ["a", "b"]
    assert frame["nll_without_low"].tolist() == [0.05 - 0.01, -0.05 - 0.01]
    assert frame["accuracy_without"].tolist() == [-0.002, -0.002]


@pytest.mark.compiled
def test_values_do_not_depend_on_threads(rng):
    predictions = vd.Predictions(random_ensemble(rng, 3, 60, 3), rng.integers(0, 3, 60))
    assert vd.inspect(predictions, n_threads=1).value == vd.inspect(predictions, n_threads=2).value
