"""Thresholds of confidence with a guaranteed error rate of what is above them."""

import numpy as np
import pytest
from scipy.stats import binom

import veridical as vd
from veridical import errors, metrics
from veridical.metrics.selective import fewest_samples


@pytest.mark.parametrize(
    ("n_wrong", "risk", "delta"), [(0, 0.05, 0.1), (3, 0.05, 0.1), (2, 0.2, 0.01), (0, 0.999, 0.5)]
)
def test_fewest_samples_are_the_fewest(n_wrong, risk, delta):
    fewest = fewest_samples(n_wrong, risk, delta)
    assert binom.cdf(n_wrong, fewest, risk) <= delta
    assert fewest == n_wrong + 1 or binom.cdf(n_wrong, fewest - 1, risk) > delta


def exceeded(confidence, chance, n_samples, risk, *, level=0.9, n_draws=300, seed=0):
    """How often the true risk above the threshold is above ``risk``."""
    rng = np.random.default_rng(seed)
    count = 0
    for _ in range(n_draws):
        drawn = rng.integers(0, len(confidence), n_samples)
        right = rng.random(n_samples) < chance[drawn]
        result = metrics.abstention_threshold(right, confidence[drawn], max_risk=risk, confidence_level=level)
        if result.threshold is not None:
            count += 1 - chance[confidence >= result.threshold].mean() > risk
    return count / n_draws


POPULATION = 0.2 + 0.8 * np.random.default_rng(1).beta(6, 1.2, 20_000)
CASES = [
    ("calibrated", POPULATION, 0.05),
    ("calibrated", POPULATION, 0.1),
    ("overconfident", np.clip(POPULATION - 0.1, 0, 1), 0.2),
]


@pytest.mark.parametrize(("name", "chance", "risk"), CASES)
def test_risk_is_exceeded_in_at_most_a_tenth_of_the_draws(name, chance, risk):
    # Three standard errors of 300 draws above 10 %.
    assert exceeded(POPULATION, chance, 1000, risk) <= 0.1 + 3 * np.sqrt(0.09 / 300)


@pytest.mark.simulation
@pytest.mark.parametrize("n_samples", [300, 2000])
@pytest.mark.parametrize(("name", "chance", "risk"), CASES)
def test_risk_is_exceeded_in_at_most_a_tenth_of_many_draws(name, chance, risk, n_samples):
    assert exceeded(POPULATION, chance, n_samples, risk, n_draws=3000) <= 0.1 + 3 * np.sqrt(0.09 / 3000)


def test_threshold_by_the_curve_exceeds_its_risk_in_half_of_the_draws():
    """What the guarantee is for: the test above could fail."""
    rng = np.random.default_rng(0)
    count = 0
    for _ in range(200):
        drawn = rng.integers(0, len(POPULATION), 1000)
        right = rng.random(1000) < POPULATION[drawn]
        order = np.argsort(-POPULATION[drawn])
        risk = (~right[order]).cumsum() / np.arange(1, 1001)
        edge = POPULATION[drawn][order[np.flatnonzero(risk <= 0.1).max()]]
        count += 1 - POPULATION[edge <= POPULATION].mean() > 0.1
    assert count / 200 > 0.35


def test_threshold_answers_most_of_what_could_be_answered():
    rng = np.random.default_rng(0)
    confidence = rng.choice(POPULATION, 20_000)
    right = rng.random(20_000) < confidence
    ordered = np.sort(POPULATION)[::-1]
    best = np.searchsorted(np.cumsum(1 - ordered) / np.arange(1, len(ordered) + 1), 0.1) / len(ordered)
    result = metrics.abstention_threshold(right, confidence, max_risk=0.1)
    assert best - 0.05 < result.coverage < best
    assert result.n_answered == result.answers(confidence).sum()
    assert result.n_wrong == (~right[confidence >= result.threshold]).sum()
    assert result.n_wrong / result.n_answered < result.risk_bound <= 0.1


def test_risk_bound_is_that_of_clopper_and_pearson():
    result = metrics.abstention_threshold([True] * 99 + [False], [0.9] * 100, max_risk=0.2, confidence_level=0.95)
    assert binom.cdf(1, 100, result.risk_bound) == pytest.approx(0.05)


def test_equal_scores_are_answered_together():
    result = metrics.abstention_threshold([True] * 100 + [False] * 100, [0.9] * 200, max_risk=0.4)
    assert result.threshold is None
    assert result.reason.startswith("of the 200 surest samples 100 are wrong")


def test_threshold_of_doubt():
    right = np.array([True] * 100 + [False] * 100)
    doubt = np.arange(200) / 100
    result = metrics.abstention_threshold(right, np.full(200, 0.9), max_risk=0.1, doubt=doubt)
    assert result.by_doubt
    assert 0.9 < result.threshold < 1.1
    assert (result.answers(doubt) == (doubt <= result.threshold)).all()
    assert "doubt is at most" in result.sentence


def test_too_few_samples_have_no_threshold():
    result = metrics.abstention_threshold([True] * 44, [0.9] * 44, max_risk=0.05)
    assert (result.threshold, result.coverage, result.n_answered) == (None, 0.0, 0)
    assert result.reason == "45 independent samples are needed at least, and there are 44."
    assert not result.answers([0.5, 1.0]).any()
    assert metrics.abstention_threshold([True] * 45, [0.9] * 45, max_risk=0.05).threshold == 0.9
    assert result.to_dict()["risk_bound"] is None


@pytest.mark.parametrize("name", ["max_risk", "confidence_level"])
@pytest.mark.parametrize("value", [0, 1, -0.1, 2, "a", None, np.nan])
def test_risk_and_level_are_between_0_and_1(name, value):
    options = {"max_risk": 0.1, name: value}
    with pytest.raises(errors.VeridicalError, match=name):
        metrics.abstention_threshold([True] * 100, [0.9] * 100, **options)


def test_samples_of_one_group_are_refused():
    right, confidence = [True] * 100, [0.9] * 100
    assert metrics.abstention_threshold(right, confidence, max_risk=0.1, groups=range(100)).threshold == 0.9
    sentence = "4 of 100 samples share their group with another, and the bound holds for independent samples"
    with pytest.raises(errors.ParameterError, match=sentence):
        metrics.abstention_threshold(right, confidence, max_risk=0.1, groups=[0, 0, 1, 1, *range(2, 98)])


def test_threshold_of_a_calibrator_is_that_of_its_confidences():
    fit, fresh = vd.load_demo().select(sources=slice(3)).split(random_state=0)
    calibrator = vd.Platt(kind="logits").fit(fit)
    result = vd.choose_threshold(calibrator, fresh.values, fresh.labels, max_risk=0.1)
    right = calibrator.predict(fresh) == fresh.labels
    expected = metrics.abstention_threshold(right, calibrator.predict_confidence(fresh), max_risk=0.1)
    assert result.to_dict() == expected.to_dict()


def test_threshold_of_a_calibrator_refuses_groups_and_missing_labels():
    fit, fresh = vd.load_demo().select(sources=slice(3)).split(random_state=0)
    calibrator = vd.Platt(kind="logits").fit(fit)
    grouped = vd.Predictions(fresh.values, fresh.labels, kind="logits", groups=np.arange(fresh.n_samples) // 2)
    with pytest.raises(errors.ParameterError, match="share their group"):
        vd.choose_threshold(calibrator, grouped, max_risk=0.1)
    with pytest.raises(errors.LabelError):
        vd.choose_threshold(calibrator, fresh.values, max_risk=0.1)
