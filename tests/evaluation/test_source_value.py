"""What sources are worth."""

import numpy as np
import pytest

import veridical as vd
from veridical import metrics
from veridical.evaluation.engine import half_split

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def predictions():
    """Three independent sources of use, a copy of the first, and one that knows nothing."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 800)
    signal = 2.0 * np.eye(4)[labels]
    logits = np.stack([signal + 1.2 * rng.normal(size=(800, 4)) for _ in range(3)])
    useless = 2.5 * rng.normal(size=(1, 800, 4))
    values = np.concatenate((logits, logits[:1], useless))
    names = ["a", "b", "c", "copy of a", "useless"]
    return vd.Predictions(values, labels, kind="logits", source_names=names)


@pytest.fixture(scope="module")
def value(predictions):
    return vd.inspect(predictions).value


def probabilities(predictions):
    exp = np.exp(predictions.values - predictions.values.max(axis=2, keepdims=True))
    return exp / exp.sum(axis=2, keepdims=True)


def test_values_are_those_of_the_mean_without_the_source(predictions, value):
    scored = half_split(predictions, 0).scored_on
    probs, labels = probabilities(predictions)[:, scored], predictions.labels[scored]
    nll, accuracy = metrics.nll(labels, probs.mean(axis=0)), metrics.accuracy(labels, probs.mean(axis=0))
    assert (value.nll, value.accuracy) == (pytest.approx(nll), accuracy)
    for s, source in enumerate(value.sources):
        rest = np.delete(probs, s, axis=0).mean(axis=0)
        assert source.nll_without.value == pytest.approx(metrics.nll(labels, rest) - nll)
        assert source.accuracy_without.value == pytest.approx(metrics.accuracy(labels, rest) - accuracy)
        assert source.nll_without.low < source.nll_without.value < source.nll_without.high
        assert (source.nll, source.accuracy) == pytest.approx(
            (metrics.nll(labels, probs[s]), metrics.accuracy(labels, probs[s]))
        )


def test_useless_source_is_harmful_and_left_out(value):
    assert [value.sources[s].name for s in value.harmful] == ["useless"]
    assert value.sources[4].weight == min(source.weight for source in value.sources)
    kept = {value.sources[s].name for s in value.subset}
    assert "useless" not in kept
    assert not {"a", "copy of a"} <= kept
    assert value.mean_beats_best


def test_sentences_name_the_subset(value):
    assert value.sentences[0].startswith(f"The mean of {len(value.subset)} of the 5 sources (")


def test_mean_that_is_not_better_than_its_best_source():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, 300)
    good = 0.97 * np.eye(3)[labels] + 0.01
    bad = rng.dirichlet(np.ones(3), (3, 300))
    value = vd.inspect(vd.Predictions(np.concatenate((good[None], bad)), labels)).value
    assert value.best == 0
    assert not value.mean_beats_best
    assert value.sentences[0].startswith("The mean is not better than its best source, source 0: accuracy 100.0%")


def test_value_needs_labels_and_several_sources(predictions):
    assert vd.inspect(vd.Predictions(predictions.values, kind="logits")).value is None
    assert vd.inspect(vd.Predictions(predictions.values[:1], predictions.labels, kind="logits")).value is None


def test_value_with_absent_predictions(predictions):
    values = predictions.values.copy()
    values[0, :100] = np.nan
    value = vd.inspect(vd.Predictions(values, predictions.labels, kind="logits")).value
    assert np.isfinite([effect.value for source in value.sources for effect in (source.nll_without,)]).all()
    assert "useless" not in {value.sources[s].name for s in value.subset}
