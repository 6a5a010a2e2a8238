"""Walk-forward evaluation: what the past of a period is, and what is scored."""

import datetime

import numpy as np
import pytest
from ensembles import random_ensemble
from hypothesis import given
from hypothesis import strategies as st

import veridical as vd
from veridical import errors
from veridical.evaluation.walk_forward import period_splits, periods_of, scored_samples

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def predictions():
    rng = np.random.default_rng(0)
    probs = random_ensemble(rng, 3, 120, 3)
    return vd.Predictions(probs, [rng.choice(3, p=row) for row in probs.mean(axis=0)], groups=np.repeat([1, 2, 3], 40))


@pytest.mark.parametrize("walk_forward", [None, False])
def test_evaluation_is_not_walk_forward_by_default(predictions, walk_forward):
    assert periods_of(predictions, walk_forward) is None


def test_groups_are_periods(predictions):
    np.testing.assert_array_equal(periods_of(predictions, True), predictions.groups)
    with pytest.raises(errors.ParameterError, match="the predictions have no groups; give one period per sample"):
        periods_of(vd.Predictions(predictions.values), True)


@pytest.mark.parametrize("periods", [[1, 2], "month", np.zeros((120, 1))])
def test_one_period_per_sample_is_needed(predictions, periods):
    with pytest.raises(
        errors.ShapeError, match=r"walk_forward has shape .*; give one period per sample, shape \(120,\)"
    ):
        vd.evaluate(predictions, walk_forward=periods)


@given(st.lists(st.integers(-3, 6), min_size=1, max_size=90))
def test_past_is_everything_before(periods):
    periods = np.array(periods)
    later = [p for p in np.unique(periods)[1:] if (periods < p).sum() >= 30]
    if not later:
        with pytest.raises(errors.ShapeError, match=f"at least 30 labelled .* there are {len(periods)} in"):
            period_splits(periods)
        return
    splits = period_splits(periods)
    assert len(splits) == len(later)
    for split, period in zip(splits, later, strict=True):
        np.testing.assert_array_equal(split.fitted_on, np.flatnonzero(periods < period))
        np.testing.assert_array_equal(split.scored_on, np.flatnonzero(periods == period))
    np.testing.assert_array_equal(np.sort(scored_samples(splits)), np.flatnonzero(np.isin(periods, later)))


@pytest.mark.parametrize(
    "in_order",
    [
        ["2024-2", "2024-10", "2025-1"],
        ["week 9", "week 10", "week 11"],
        [-1.5, 0.0, 2.0],
        [datetime.date(2023, 12, 31), datetime.date(2024, 1, 1), datetime.date(2024, 2, 1)],
    ],
)
def test_periods_are_ordered_by_what_they_mean(in_order):
    periods = np.array([in_order[k] for k in [2, 0, 1] for _ in range(30)])
    first, second = period_splits(periods)
    assert set(periods[first.fitted_on]) == {in_order[0]}
    assert set(periods[first.scored_on]) == {in_order[1]}
    assert set(periods[second.scored_on]) == {in_order[2]}


def test_one_period_is_too_few():
    with pytest.raises(errors.ShapeError, match="there are 50 in 1 period; give more, or evaluate without it"):
        period_splits(np.zeros(50, int))


def test_scores_are_those_of_fits_on_the_past(predictions):
    evaluation = vd.evaluate(
        predictions, methods=["mean", "temperature"], walk_forward=True, floors=False, intervals=False
    )
    right, nll = [], []
    for period in (2, 3):
        past, now = (predictions.select(samples=test(predictions.groups, period)) for test in (np.less, np.equal))
        fitted = vd.Temperature().fit(past)
        probs = fitted.predict_proba(now)
        right += (probs.argmax(axis=1) == now.labels).tolist()
        nll += (-np.log(probs[np.arange(40), now.labels])).tolist()
    summary = evaluation["temperature"].summary
    assert summary.n_samples == 80
    assert summary["accuracy"].value == pytest.approx(np.mean(right))
    assert summary["nll"].value == pytest.approx(np.mean(nll), rel=1e-5)
    mean = predictions.values[:, 40:].mean(axis=0)
    accuracy = (mean.argmax(axis=1) == predictions.labels[40:]).mean()
    assert evaluation["mean"].summary["accuracy"].value == pytest.approx(accuracy)
    assert "period" in evaluation.protocol


def test_order_of_samples_does_not_matter(predictions):
    order = np.random.default_rng(5).permutation(120)
    options = {"methods": ["temperature"], "walk_forward": True, "floors": False, "intervals": False}
    first, second = (
        vd.evaluate(each, **options)["temperature"].summary for each in (predictions, predictions.select(samples=order))
    )
    for metric in ("ece", "nll", "brier", "accuracy"):
        assert first[metric].value == pytest.approx(second[metric].value, abs=1e-6)
