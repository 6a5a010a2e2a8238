"""Walk-forward evaluation: what the past of a period is, and what is scored."""

import datetime
import re

import numpy as np
import pandas as pd
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
    np.testing.assert_array_equal(periods_of(predictions, True), predictions.groups - 1)
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


_FORMS = [
    ["2024-2", "2024-10", "2025-1"],
    ["week 9", "week 10", "week 11"],
    ["2", "10", "1e2"],
    [-1.5, 0.0, 2.0],
    [datetime.date(2023, 12, 31), datetime.date(2024, 1, 1), datetime.date(2024, 2, 1)],
    list(np.array(["2024-01-09", "2024-01-10", "2024-02-01"], "datetime64[ns]")),
    ["2024-1-9", "2024-1-10", "2024-2-1"],
    ["2024-01-09", "2024-01-09 10:00", "2024-01-10T09:00:00.5"],
    ["2024-03-31T00:30+01:00", "2024-03-31T00:15Z", "2024-03-31T00:00-01:00"],
    ["2024-W9", "2024-W10", "2025W01"],
    ["2024Q1", "2024-Q2", "2025 Q1"],
    ["Q2 2024", "Q3 2024", "Q1 2025"],
    list(pd.period_range("2024-01", periods=3, freq="M")),
    list(pd.period_range("2024Q4", periods=3, freq="Q")),
    list(pd.period_range("2024-01-29", periods=3, freq="W")),
    list(pd.to_datetime(["2024-01-09", "2024-01-10", "2024-02-01"]).tz_localize("Europe/Rome")),
]


@pytest.mark.parametrize("in_order", _FORMS, ids=lambda periods: str(periods[0]))
def test_periods_are_ordered_by_what_they_mean(in_order):
    periods = [in_order[k] for k in [2, 0, 1] for _ in range(30)]
    ranks = periods_of(vd.Predictions(np.full((1, 90, 2), 0.5)), pd.Series(periods))
    assert ranks.tolist() == [2] * 30 + [0] * 30 + [1] * 30
    first, second = period_splits(ranks)
    for indices, rank in ((first.fitted_on, 0), (first.scored_on, 1), (second.scored_on, 2)):
        assert set(ranks[indices]) == {rank}
    if isinstance(in_order[0], np.datetime64):
        groups = vd.Predictions(np.full((1, 90, 2), 0.5), groups=np.array(periods))
        assert periods_of(groups, True).tolist() == ranks.tolist()


@pytest.mark.parametrize(
    "periods",
    [
        ["Jan", "Feb", "Mar"],
        ["12/31/2023", "01/02/2024", "02/01/2024"],
        ["2024-02-28", "2024-02-30", "2024-03-01"],
        ["2024", "2024-02", "2024Q2"],
        ["week 9", "day 10", "week 11"],
        ["2024-01-09", "2024-01-09T10:00Z", "2024-01-10"],
    ],
    ids=lambda periods: periods[0],
)
def test_periods_without_an_order_need_to_be_told(periods):
    predictions = vd.Predictions(np.full((1, 3, 2), 0.5))
    by_text = ", ".join(sorted(periods))
    orders = rf"as texts: {re.escape(by_text)}; as they first appear: {', '.join(periods)}"
    with pytest.raises(errors.ParameterError, match=f'{orders}.*period_order="appearance"'):
        periods_of(predictions, periods)
    assert periods_of(predictions, periods, "appearance").tolist() == [0, 1, 2]


def test_ordered_categories_are_in_their_order(predictions):
    months = pd.Categorical(["Feb", "Jan", "Apr"] * 40, categories=["Jan", "Feb", "Mar", "Apr"], ordered=True)
    for periods in (months, pd.Series(months)):
        np.testing.assert_array_equal(periods_of(predictions, periods), [1, 0, 2] * 40)
    with pytest.raises(errors.ParameterError, match="has no period for sample 1"):
        periods_of(predictions, pd.Categorical(["Jan", None] * 60, ordered=True))


def test_period_order_needs_periods(predictions):
    with pytest.raises(errors.ParameterError, match="order of the periods of walk_forward, which is missing"):
        vd.evaluate(predictions, period_order="appearance")


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
