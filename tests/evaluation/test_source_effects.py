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
def test_subset_of_one_source_is_as_accurate_as_that_source(rng):
    """Sums in another order must not decide ties between classes."""
    labels = rng.integers(0, 4, 800)
    votes = np.where(rng.random((800, 10)) < 0.6, labels[:, None], rng.integers(0, 4, (800, 10)))
    shares = np.stack([(votes == label).mean(axis=1) for label in range(4)], axis=1)
    flat = 0.22 + 0.12 * rng.dirichlet(np.ones(4), (4, 800))
    value = vd.inspect(vd.Predictions(np.concatenate((shares[None], flat)), labels)).value
    assert value.subset == (0,)
    assert value.accuracy + value.subset_accuracy.value == pytest.approx(value.sources[0].accuracy)


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
    many = values_of([source("a", effect(-0.012)), *[source(f"s{k}", effect(0.05)) for k in range(19)]])
    assert many.harmful == ()  # one interval of 20 may exclude zero by chance
    assert values_of(many.sources[:1]).harmful == (0,)


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
        "The mean is not better than its best source, b: accuracy 87.5% against 85.0%, NLL 0.432 against 0.500.",
    )


def test_sentence_on_the_best_source_says_where_the_mean_is_better():
    sources = [source("a", effect(0.05)), source("b", effect(0.05), accuracy=0.845, nll=0.4321)]
    value = values_of(sources, best=1, best_nll=effect(-0.068), best_accuracy=effect(-0.005))
    assert value.sentences == (
        "In NLL the mean is not better than its best source, b: 0.432 against 0.500. The mean is more accurate, but "
        "not by more than chance: accuracy 84.5% against 85.0%.",
    )
    value = values_of(sources, best=1, best_nll=effect(0.005), best_accuracy=effect(0.005))
    assert value.best_sentence.startswith("The mean cannot be told from its best source, b: accuracy")


def test_sentence_names_a_subset_that_is_better():
    sources = [source(f"s{k}", effect(0.05)) for k in range(4)]
    (sentence,) = values_of(sources, subset=(1, 2), subset_nll=effect(-0.14)).sentences
    assert sentence == (
        "The mean of 2 of the 4 sources (s1 and s2) is better than that of all: NLL 0.360 against 0.500 (difference "
        "-0.140, -0.150 to -0.130), accuracy 84.0% against 85.0% (difference -1.0, -2.0 to +0.0 points)."
    )
    (alone,) = values_of(sources, subset=(3,), subset_nll=effect(0.0)).sentences
    assert alone.startswith("s3 alone cannot be told from the mean of all 4 sources: NLL 0.500 against 0.500 (")


def test_sentence_names_harmful_sources():
    (one,) = values_of([source("a", effect(0.05)), source("b", effect(-0.05))]).sentences
    assert one == "b harms the others: without it the NLL of the mean falls (-0.050, -0.060 to -0.040)."
    (two,) = values_of([source("a", effect(-0.02)), source("b", effect(-0.05))]).sentences
    assert two == (
        "a and b harm the others: without any one of them the NLL of the mean falls (a -0.020, -0.030 to -0.010; "
        "b -0.050, -0.060 to -0.040)."
    )


def test_infinite_nll_is_marked():
    value = values_of([source("a", effect(0.05), zeros=3), source("b", effect(0.05))])
    assert [row[2] for row in value.rows()[1]] == ["0.600†", "0.600"]
    assert value.sentences == (
        "† In truth infinite: a gives some labels probability 0; to compare NLLs, a probability counts as at least "
        "1e-12.",
    )


@pytest.mark.compiled
def test_zeros_are_where_the_metric_is_infinite(predictions):
    probs = predictions.values.copy()
    probs[1, :40] = 1 - np.eye(3)[predictions.labels[:40]]
    probs[1] /= probs[1].sum(axis=1, keepdims=True)
    holed = vd.Predictions(probs, predictions.labels)
    scored = half_split(holed, 0).scored_on
    zeros = [facts.zeros for facts in vd.inspect(holed).value.sources]
    assert zeros == [0, int((scored < 40).sum()), 0, 0, 0]
    assert np.isinf(vd.metrics.nll(holed.labels[scored], probs[1, scored]))


@pytest.mark.compiled
def test_every_source_is_compared_with_the_mean():
    """The source with the lowest NLL is less accurate than the mean; another one beats the mean in both."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 1500)
    wrong, both = rng.random(1500) < 0.1, rng.random(1500) < 0.5

    def named(is_wrong, confidence):
        chosen = np.where(is_wrong, (labels + 1) % 4, labels)
        return np.where(np.eye(4)[chosen] > 0, confidence, (1 - confidence) / 3)

    certain = named(rng.random(1500) < 0.025, 1 - 1e-12)
    values = np.stack((named(wrong, 0.9), certain, *[named(wrong & both, 0.28)] * 8))
    value = vd.inspect(vd.Predictions(values, labels)).value
    assert value.sources[0].nll < value.sources[1].nll < value.nll
    assert value.sources[0].accuracy < value.accuracy < value.sources[1].accuracy
    assert value.best == 1
    assert value.best_sentence.startswith("The mean is not better than its best source, source 1: accuracy 9")


def test_sentence_names_at_most_five_sources_of_the_subset():
    sources = [source(f"s{k}", effect(0.05)) for k in range(9)]
    (few,) = values_of(sources, subset=(0, 2, 4, 6, 8)).sentences
    assert few == (
        "The mean of 5 of the 9 sources (s0, s2, s4, s6 and s8) cannot be told from that of all: NLL 0.504 against "
        "0.500 (difference +0.004, -0.006 to +0.014), accuracy 84.0% against 85.0% (difference -1.0, -2.0 to +0.0 "
        "points)."
    )
    (many,) = values_of(sources, subset=(0, 1, 2, 3, 4, 5)).sentences
    assert "(s0, s1, s2, s3 and 2 more)" in many


def test_table_of_values_has_a_star_at_the_subset():
    value = values_of([source("a", effect(0.05)), source("b", effect(-0.05))], subset=(1,))
    heading, rows = value.rows()
    assert heading[0] == "source"
    accuracy = "-0.20 (-1.20 to +0.80)"
    assert rows == [
        ["a", "80.00", "0.600", "+0.0500 (+0.0400 to +0.0600)", accuracy, "25.0", "70.0"],
        ["b *", "80.00", "0.600", "-0.0500 (-0.0600 to -0.0400)", accuracy, "25.0", "70.0"],
    ]
    assert str(value).startswith("What sources are worth, on the half of the samples (1,200) that nothing was chosen")


def test_values_go_to_json_and_to_a_data_frame():
    value = values_of([source("a", effect(0.05)), source("b", effect(-0.05))])
    document = json.loads(json.dumps(value.to_dict()))
    assert document["harmful"] == [1]
    assert document["mean_beats_best"] is True
    assert document["sentences"] == list(value.sentences)
    assert document["sources"][0]["nll_without"] == {"value": 0.05, "low": 0.05 - 0.01, "high": 0.05 + 0.01}
    frame = value.to_frame()
    assert frame["source"].tolist() == ["a", "b"]
    assert frame["nll_without_low"].tolist() == [0.05 - 0.01, -0.05 - 0.01]
    assert frame["accuracy_without"].tolist() == [-0.002, -0.002]


@pytest.mark.compiled
def test_values_do_not_depend_on_threads(rng):
    predictions = vd.Predictions(random_ensemble(rng, 3, 60, 3), rng.integers(0, 3, 60))
    assert vd.inspect(predictions, n_threads=1).value == vd.inspect(predictions, n_threads=2).value
