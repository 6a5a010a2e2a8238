"""Learned pools: optimal weights, poor and rarely present sources, sources matched by name."""

from functools import partial

import numpy as np
import pytest
import scipy.optimize
from calibration_cases import labelled_ensemble

import veridical as vd
from veridical import metrics
from veridical._minimisation import minimise
from veridical.calibrate import linear_scaling, logistic
from veridical.combine import pool_prior
from veridical.errors import ChangedSourcesWarning, NotConvergedWarning


def with_a_useless_source(rng, n_samples=1500):
    """Two sources that know something, and one that is random and sure of itself."""
    probs, labels = labelled_ensemble(rng, n_sources=2, n_samples=n_samples, n_classes=4)
    useless = rng.dirichlet(np.full(4, 0.2), n_samples) + 1e-9
    return np.concatenate([probs, useless[None] / useless.sum(axis=1)[None, :, None]]), labels


@pytest.mark.parametrize("strength", [1.0, 100.0])
def test_linear_pool_maximises_the_posterior(rng, monkeypatch, strength):
    monkeypatch.setattr(pool_prior, "STRENGTHS", (strength,))
    probs, labels = with_a_useless_source(rng)
    prior = pool_prior.prior_shares(vd.Predictions(probs))
    weights = vd.LinearPool().fit(probs, labels).combiner_.weights
    scores = probs[:, np.arange(len(labels)), labels]

    def loss(free):
        a = np.exp(free) / np.exp(free).sum()
        return -np.log(a @ scores).sum() - strength * prior @ np.log(a)

    best = scipy.optimize.minimize(loss, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10}).x
    np.testing.assert_allclose(weights, np.exp(best) / np.exp(best).sum(), atol=1e-3)
    assert weights[2] < 0.1


@pytest.mark.parametrize("strength", [1.0, 100.0])
def test_log_pool_is_at_the_minimum_of_its_penalised_loss(rng, monkeypatch, strength):
    monkeypatch.setattr(pool_prior, "STRENGTHS", (strength,))
    probs, labels = with_a_useless_source(rng)
    prior = pool_prior.prior_shares(vd.Predictions(probs))
    pool = vd.LogPool().fit(probs, labels)
    weights = np.append(pool.combiner_.weights, pool.combiner_.mean_weight)
    logs = np.log(np.maximum([*probs, probs.mean(axis=0)], pool.combiner_.floor))

    def loss(exponents):
        a, b = exponents[:-1], exponents[-1]
        scores = np.tensordot(exponents, logs, 1)
        scores = scores - scores.max(axis=1, keepdims=True)
        nll = np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(labels)), labels]
        pull = strength * np.square(3 * (a - prior * a.sum())).sum() + b**2 + 4.0 * (exponents.sum() - 1) ** 2
        return nll.sum() + 0.5 * pull

    gradient = scipy.optimize.approx_fprime(weights, loss, 1e-6)
    assert np.abs(gradient).max() / len(labels) < 1e-4
    assert weights[2] < weights[:2].min() - 0.1


def sources_of_mixed_quality(rng, n_samples):
    """Three sources that know something, and three that are sure and mostly wrong, (probs, labels)."""
    labels = rng.integers(0, 4, n_samples)
    quality = np.array([0.6, 0.5, 0.5, 0.05, 0.05, 0.05])[:, None, None]
    noise = rng.dirichlet(np.full(4, 0.3), (6, n_samples))
    return quality * np.eye(4)[labels] + (1 - quality) * noise, labels


@pytest.mark.parametrize("method", [vd.LinearPool, vd.LogPool])
def test_pools_of_few_labels_stay_near_the_consensus(rng, method, monkeypatch):
    probs, labels = sources_of_mixed_quality(rng, 3000)
    few, test = slice(0, 20), slice(1000, None)

    def loss():
        fitted = method().fit(probs[:, few], labels[few])
        return metrics.nll(labels[test], fitted.predict_proba(probs[:, test]))

    shrunk = loss()
    monkeypatch.setattr(pool_prior, "prior_shares", lambda predictions, n_threads=None: np.full(6, 1 / 6))
    towards_equal_weights = loss()
    assert shrunk < towards_equal_weights - 0.005
    assert shrunk < metrics.nll(labels[test], probs[:, test].mean(axis=0))


def test_prior_shares_are_those_of_the_consensus(rng):
    probs, _ = sources_of_mixed_quality(rng, 1000)
    shares = pool_prior.prior_shares(vd.Predictions(probs))
    np.testing.assert_allclose(shares, 0.9 * vd.consensus(probs).shares + 0.1 / 6, atol=1e-12)
    assert shares.sum() == pytest.approx(1.0)


def test_strength_of_the_pull_is_cross_validated():
    def losses(strength, fitted_on, held_out):
        assert not set(fitted_on) & set(held_out)
        return np.full(len(held_out), abs(strength - 100.0)) + 0.1 * (held_out % 7)

    assert pool_prior.choose_strength(500, losses) == 100.0
    assert pool_prior.choose_strength(500, lambda strength, *_: np.arange(5.0)) == 1000.0  # the strongest of equal ones
    assert pool_prior.choose_strength(3, losses) == 1000.0


def test_weak_pulls_are_not_tried_with_few_samples():
    tried = []

    def losses(strength, fitted_on, held_out):
        tried.append(strength)
        return np.full(len(held_out), strength)

    assert pool_prior.choose_strength(20, losses) == min(tried) == 10.0
    assert pool_prior.choose_strength(200, losses) == min(tried) == 1.0


def test_log_pool_of_few_labels_that_are_all_right_stays_moderate(rng):
    probs, labels = labelled_ensemble(rng, n_sources=3, n_samples=400)
    right = np.flatnonzero(probs.mean(axis=0).argmax(axis=1) == labels)[:20]
    exponents = vd.LogPool().fit(probs[:, right], labels[right]).combiner_.weights
    assert exponents.sum() < 3.0


def test_log_pool_predicts_its_formula(rng):
    probs, labels = with_a_useless_source(rng, 50)
    pool = vd.LogPool().fit(probs, labels)
    scores = np.tensordot(pool.combiner_.weights, np.log(np.maximum(probs, pool.combiner_.floor)), 1)
    scores += pool.combiner_.mean_weight * np.log(np.maximum(probs.mean(axis=0), pool.combiner_.floor))
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(pool.predict_proba(probs), expected, atol=1e-12)


def test_pools_beat_the_mean_where_a_source_is_useless(rng):
    probs, labels = with_a_useless_source(rng, 4000)
    train, test = slice(0, 2000), slice(2000, None)
    losses = {
        method: metrics.nll(
            labels[test], vd.calibrators()[method]().fit(probs[:, train], labels[train]).predict_proba(probs[:, test])
        )
        for method in ("identity", "temperature", "linear-pool", "log-pool")
    }
    assert losses["log-pool"] < losses["temperature"] < losses["identity"]
    assert losses["linear-pool"] < losses["identity"]


def test_log_pool_gives_like_sources_like_weights(rng):
    probs, labels = labelled_ensemble(rng, n_sources=1, n_samples=500)
    weights = vd.LogPool().fit(np.concatenate([probs] * 4), labels).combiner_.weights
    np.testing.assert_allclose(weights, weights[0], rtol=1e-3)


def test_log_pool_averages_sources_of_which_one_is_right_at_a_time(rng):
    probs = rng.dirichlet(np.full(4, 0.3), (3, 4000))
    true = probs.mean(axis=0)
    labels = (rng.random((4000, 1)) > true.cumsum(axis=1)).sum(axis=1).clip(max=3)
    pool = vd.LogPool().fit(probs[:, :2000], labels[:2000])
    assert pool.combiner_.mean_weight == pytest.approx(1.0, abs=0.15)
    np.testing.assert_allclose(pool.combiner_.weights, 0.0, atol=0.1)
    loss = metrics.nll(labels[2000:], pool.predict_proba(probs[:, 2000:]))
    assert loss < metrics.nll(labels[2000:], true[2000:]) + 0.005


def test_log_pool_of_one_source_has_no_weight_for_its_mean(rng):
    probs, labels = labelled_ensemble(rng, n_sources=1, n_samples=500)
    assert abs(vd.LogPool().fit(probs, labels).combiner_.mean_weight) < 1e-3


def test_vector_scaling_on_a_log_pool_equals_both_in_turn(rng):
    probs, labels = with_a_useless_source(rng)
    stacked = vd.VectorScaling(combine="log-pool").fit(probs, labels)
    combined = vd.LogPool().fit(probs, labels).predict_proba(probs)
    alone = vd.VectorScaling().fit(combined, labels)
    np.testing.assert_allclose(stacked.predict_proba(probs), alone.predict_proba(combined), atol=1e-9)


@pytest.mark.parametrize("method", [vd.LinearPool, vd.LogPool])
def test_pool_rejects_another_combiner_and_number_of_sources(method, rng):
    probs, labels = labelled_ensemble(rng)
    with pytest.raises(vd.errors.UnknownNameError, match=r"choose one of: .*-pool"):
        method(combine="mean").fit(probs, labels)
    with pytest.raises(vd.errors.ShapeError, match="fitted for 5 sources"):
        method().fit(probs, labels).predict(probs[:3])


def with_an_absent_source(rng, n_samples=4000, absent=0.7):
    """A poor source and a good one that is often absent, (probs, labels)."""
    labels = rng.integers(0, 4, n_samples)
    right = np.eye(4)[labels]
    good = 0.9 * right + 0.1 * rng.dirichlet(np.ones(4), n_samples)
    poor = 0.15 * right + 0.85 * rng.dirichlet(np.ones(4), n_samples)
    good[rng.random(n_samples) < absent] = np.nan
    return np.stack([good, poor]), labels


def largest_share(n_present, n_samples, n_sources):
    """The share that no number of correct predictions can exceed, if the source is present in so many samples."""
    absence = 0.1 * (n_samples - n_present)
    return (n_present + absence / n_sources) / (n_present + absence)


def test_linear_pool_trusts_a_good_source_as_far_as_it_was_seen(rng):
    probs, labels = with_an_absent_source(rng)
    complete = ~np.isnan(probs[0, :, 0])
    share = vd.LinearPool(missing="skip").fit(probs, labels).combiner_.weights[0]
    limit = largest_share(complete.sum(), len(labels), 2)
    assert 0.85 < share < limit + 1e-3
    assert vd.LinearPool().fit(probs[:, complete], labels[complete]).combiner_.weights[0] > 0.99


def with_a_lucky_newcomer(rng, n_samples=4000, n_seen=160):
    """Nine sources that know something, and one that was right on its few samples and is wrong later."""
    probs, labels = labelled_ensemble(rng, n_sources=9, n_samples=n_samples, n_classes=4)
    half = n_samples // 2
    lucky = 0.96 * np.eye(4)[labels] + 0.01
    lucky[half:] = 0.96 * np.eye(4)[rng.integers(0, 4, half)] + 0.01
    lucky[: half - n_seen] = np.nan
    return np.concatenate([probs, lucky[None]]), labels, half


@pytest.mark.parametrize("method", [vd.LinearPool, vd.LogPool])
def test_pool_limits_a_source_that_was_rarely_seen(method, rng, monkeypatch):
    probs, labels, half = with_a_lucky_newcomer(rng)

    def fitted_pool():
        return method(missing="skip").fit(probs[:, :half], labels[:half])

    def later_loss(pool):
        return metrics.nll(labels[half:], pool.predict_proba(probs[:, half:]))

    limited = fitted_pool()
    monkeypatch.setattr(pool_prior, "_ABSENCE_WEIGHT", 0.0)
    free = fitted_pool()
    assert later_loss(free) > later_loss(limited) + 0.2  # the failure, and what the limit is worth
    if method is vd.LinearPool:
        assert free.combiner_.weights[-1] > 0.8
        assert limited.combiner_.weights[-1] < largest_share(160, half, 10) + 1e-3


@pytest.mark.parametrize("method", [vd.LinearPool, vd.LogPool])
def test_absence_weight_changes_nothing_where_all_sources_are_present(method, rng, monkeypatch):
    probs, labels = with_a_useless_source(rng, 300)
    expected = method().fit(probs, labels).combiner_.weights
    monkeypatch.setattr(pool_prior, "_ABSENCE_WEIGHT", 7.0)
    np.testing.assert_array_equal(method().fit(probs, labels).combiner_.weights, expected)


def test_linear_pool_with_absent_sources_maximises_the_posterior(rng, monkeypatch):
    monkeypatch.setattr(pool_prior, "STRENGTHS", (1.0,))
    probs, labels = with_a_useless_source(rng)
    for s in range(3):
        probs[s, (np.arange(len(labels)) % 5 == s) & (rng.random(len(labels)) < 0.8)] = np.nan
    weights = vd.LinearPool(missing="skip").fit(probs, labels).combiner_.weights
    scores = probs[:, np.arange(len(labels)), labels]
    present = ~np.isnan(scores)

    def loss(free):
        a = np.exp(free) / np.exp(free).sum()
        nll = -np.log((a @ np.nan_to_num(scores)) / (a @ present)).sum()
        absence = 0.1 * (~present).sum(axis=1)
        return nll - prior @ np.log(a) - absence @ (np.log(a) / 3 + np.log(1 - a) * 2 / 3)

    prior = pool_prior.prior_shares(vd.Predictions(probs))
    best = scipy.optimize.minimize(loss, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10}).x
    np.testing.assert_allclose(weights, np.exp(best) / np.exp(best).sum(), atol=1e-3)


def test_log_pool_predicts_by_the_rule_it_was_fitted_with(rng):
    probs, labels = with_an_absent_source(rng)
    train, test = slice(0, 2000), slice(2000, None)
    pool = vd.LogPool(missing="skip").fit(probs[:, train], labels[train])
    alone = np.isnan(probs[0, test, 0])
    combined = pool.predict_proba(probs[:, test])[alone]
    exponent = pool.combiner_.weights[1] + pool.combiner_.mean_weight  # the mean of one source is that source
    scores = exponent * np.log(np.maximum(probs[1, test][alone], pool.combiner_.floor))
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(combined, expected, atol=1e-12)
    loss = metrics.nll(labels[test][alone], combined)
    assert loss < metrics.nll(labels[test][alone], probs[1, test][alone])
    # Scaled up to the sum of both exponents, the poor source would be believed far too much.
    sharp = scores * (pool.combiner_.weights.sum() + pool.combiner_.mean_weight) / exponent
    rescaled = np.exp(sharp) / np.exp(sharp).sum(axis=1, keepdims=True)
    assert loss < metrics.nll(labels[test][alone], rescaled) - 0.1


def test_fits_warn_when_they_run_out_of_steps(rng, monkeypatch):
    probs, labels = with_a_useless_source(rng)
    monkeypatch.setattr(linear_scaling, "_MOST_ITERATIONS", 1)
    with pytest.warns(NotConvergedWarning, match="vector scaling"):
        vd.VectorScaling().fit(probs, labels)
    monkeypatch.setattr(logistic, "_MOST_STEPS", 1)
    with pytest.warns(NotConvergedWarning, match="a logistic curve"):
        vd.Platt().fit(probs, labels)


def test_minimise_warns_only_away_from_the_optimum():
    def bowl(x):
        return float(x @ x), 2 * x

    value, point = minimise(bowl, np.ones(2), [(0.5, 3.0), (-1.0, 1.0)], "a bowl")  # at a bound, and converged
    np.testing.assert_allclose(point, [0.5, 0.0], atol=1e-6)
    assert value == pytest.approx(0.25)

    def wrong_gradient(x):
        return float(x @ x), -2 * x

    with pytest.warns(NotConvergedWarning, match="a trap was not at its optimum"):
        minimise(wrong_gradient, np.ones(2), [(-9.0, 9.0)] * 2, "a trap")


@pytest.mark.parametrize("method", [vd.LogPool, vd.LinearPool, partial(vd.VectorScaling, combine="log-pool")])
def test_pool_weights_follow_source_names(method, rng, tmp_path):
    probs, labels = with_a_useless_source(rng, 400)
    named = vd.Predictions(probs, labels, source_names=["a", "b", "c"])
    pool = method().fit(named)
    pool.save(tmp_path / "pool.json")
    for fitted in (pool, vd.load_calibrator(tmp_path / "pool.json")):
        expected = fitted.predict_proba(named)
        turned = named.select(sources=["c", "a", "b"])
        np.testing.assert_array_equal(fitted.predict_proba(turned), expected)
        np.testing.assert_array_equal(fitted.predict_proba(probs), expected)  # without names the order counts
        others = vd.Predictions(probs, source_names=["d", "e", "f"])
        with pytest.raises(vd.errors.ParameterError, match=r"none of the sources \(d, e, f\) is one that"):
            fitted.predict_proba(others)


@pytest.mark.parametrize("method", [vd.LinearPool, vd.LogPool])
def test_pools_take_sources_that_are_new_or_gone(method, rng, tmp_path):
    probs, labels = with_a_useless_source(rng, 400)
    pool = method(missing="skip").fit(vd.Predictions(probs, labels, source_names=["a", "b", "c"]))
    pool.save(tmp_path / "pool.json")
    absent = probs.copy()
    absent[1] = np.nan
    expected = pool.predict_proba(absent)
    for fitted in (pool, vd.load_calibrator(tmp_path / "pool.json")):
        with pytest.warns(ChangedSourcesWarning, match=r"\(fitted on, left out: b\)"):
            without = fitted.predict_proba(vd.Predictions(probs[[2, 0]], source_names=["c", "a"]))
        np.testing.assert_allclose(without, expected, atol=1e-12)  # as if it were absent in every sample
        with pytest.warns(ChangedSourcesWarning, match=r"with the mean weight: d; fitted on, left out: b"):
            changed = fitted.predict_proba(vd.Predictions(probs, source_names=["a", "d", "c"]))
        weights = pool.combiner_.weights
        by_hand = pool.combiner_.with_state(weights=np.array([weights[0], weights[2], weights.mean()]))
        np.testing.assert_allclose(changed, by_hand.apply(vd.Predictions(probs[[0, 2, 1]]), pool).probs, atol=1e-12)


def test_methods_that_need_the_number_of_sources_refuse_another(rng):
    probs, labels = labelled_ensemble(rng)
    fitted = vd.TruthLogit(combine="log-pool").fit(vd.Predictions(probs, labels, source_names=list("abcde")))
    with pytest.raises(vd.errors.ShapeError, match="fitted for 5 sources and the predictions have 4"):
        fitted.predict(vd.Predictions(probs[:4], source_names=list("abcd")))


def test_source_names_do_not_matter_without_weights(rng):
    probs, labels = labelled_ensemble(rng)
    fitted = vd.PTDE(random_state=0).fit(vd.Predictions(probs, labels, source_names=list("abcde")))
    renamed = vd.Predictions(probs, source_names=list("vwxyz"))
    np.testing.assert_array_equal(fitted.predict_proba(renamed), fitted.predict_proba(probs))
