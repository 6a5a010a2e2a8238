"""Noise floors, intervals, comparisons, curves, summaries."""

import json

import naive
import numpy as np
import pytest
from conftest import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from veridical import errors, metrics


@pytest.fixture
def outcomes(rng):
    """(correct, confidence) of 400 over-confident predictions."""
    confidence = rng.beta(5, 1, 400)
    return rng.random(400) < confidence**1.5, confidence


@pytest.fixture
def predictions(rng):
    probs = rng.dirichlet(np.full(4, 0.4), 150)
    return (probs.cumsum(axis=1) < rng.random((150, 1))).sum(axis=1), probs


class TestBootstrap:
    @pytest.mark.parametrize("name", metrics.METRICS)
    def test_draws_are_the_metric_on_repeated_samples(self, name, predictions):
        """The first draw, repeated with samples instead of weights."""
        labels, probs = predictions
        metric = metrics.METRICS[name].function
        interval = metrics.bootstrap(name, labels, probs, n_resamples=3, random_state=5)
        chosen = np.random.default_rng(5).spawn(3)[0].integers(0, len(labels), len(labels))
        if name == "calibrated_nll":  # its halves are made of samples, not of their repetitions
            expected = metric(labels, probs, sample_weight=np.bincount(chosen, minlength=len(labels)))
        else:
            expected = metric(labels[chosen], probs[chosen])
        assert interval.draws[0] == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert interval.value == pytest.approx(metric(labels, probs))

    def test_same_draws_for_any_number_of_threads(self, outcomes):
        one = metrics.bootstrap("ece_kde", *outcomes, n_resamples=50, n_threads=1)
        four = metrics.bootstrap("ece_kde", *outcomes, n_resamples=50, n_threads=4)
        np.testing.assert_array_equal(one.draws, four.draws)

    def test_seed(self, outcomes):
        draws = [metrics.bootstrap("ece", *outcomes, n_resamples=5, random_state=s).draws for s in (1, 1, 2)]
        np.testing.assert_array_equal(draws[0], draws[1])
        assert (draws[0] != draws[2]).all()
        generator = np.random.default_rng(1)
        np.testing.assert_array_equal(
            metrics.bootstrap("ece", *outcomes, n_resamples=5, random_state=generator).draws, draws[0]
        )

    def test_interval_is_made_of_the_draws(self, outcomes):
        """Also with a generator, whose next draws would be others."""
        result = metrics.bootstrap("accuracy", *outcomes, n_resamples=40, random_state=np.random.default_rng(3))
        assert result.high == pytest.approx(2 * result.value - np.quantile(result.draws, 0.025))

    def test_standard_error_of_a_mean(self, outcomes):
        """For accuracy the standard error is known."""
        interval = metrics.bootstrap("accuracy", *outcomes, n_resamples=2000)
        accuracy = outcomes[0].mean()
        assert interval.standard_error == pytest.approx(np.sqrt(accuracy * (1 - accuracy) / 400), rel=0.06)
        assert interval.low < accuracy < interval.high
        assert abs(interval.bias) < 0.003

    def test_methods_mirror_each_other(self, outcomes):
        basic = metrics.bootstrap("ece", *outcomes, n_resamples=100, method="basic")
        percentile = metrics.bootstrap("ece", *outcomes, n_resamples=100, method="percentile")
        assert basic.low == pytest.approx(max(2 * basic.value - percentile.high, 0))
        assert basic.high == pytest.approx(2 * basic.value - percentile.low)
        assert percentile.low == pytest.approx(np.quantile(percentile.draws, 0.025))

    @pytest.mark.parametrize("name", ["ece", "ks_error", "ece_kde"])
    def test_basic_interval_of_calibrated_confidences_contains_its_value(self, name):
        """Every resample has a larger error than the sample, so that the mirrored interval would lie below it."""
        confidence = np.repeat([0.55, 0.65, 0.75, 0.85, 0.95], 40)
        correct = np.concatenate([np.arange(40) < 40 * level for level in (0.55, 0.65, 0.75, 0.85, 0.95)])
        basic = metrics.bootstrap(name, correct, confidence, n_resamples=200)
        assert 0 <= basic.low <= basic.value <= basic.high
        row = metrics.summary(correct, confidence, intervals=True, n_resamples=200)[name]
        assert row.low <= row.value <= row.high

    @pytest.mark.compiled
    def test_basic_interval_covers_the_true_error_where_percentiles_miss_it(self):
        """Mildly over-confident: the true ECE is the mean gap, 4 %."""
        rng, hits = np.random.default_rng(3), {"basic": 0, "percentile": 0}
        for trial in range(60):
            confidence = rng.beta(5, 1.2, 1000)
            correct = rng.random(1000) < 0.95 * confidence
            for method in hits:
                interval = metrics.bootstrap(
                    "ece", correct, confidence, n_resamples=100, method=method, random_state=trial
                )
                hits[method] += interval.low <= 0.05 * 5 / 6.2 <= interval.high
        assert hits["basic"] > 45
        assert hits["percentile"] < 30

    def test_weights_are_resampled_with_their_samples(self, outcomes, rng):
        correct, confidence = outcomes
        weight = rng.random(400)
        interval = metrics.bootstrap(
            "ks_error", correct, confidence, sample_weight=weight, n_resamples=2, random_state=0
        )
        chosen = np.random.default_rng(0).spawn(2)[1].integers(0, 400, 400)
        expected = metrics.ks_error(correct[chosen], confidence[chosen], sample_weight=weight[chosen])
        assert interval.draws[1] == pytest.approx(expected)

    @pytest.mark.parametrize("name", metrics.METRICS)
    def test_samples_without_weight_are_not_drawn(self, name, predictions, rng):
        """Even if nearly all weights are zero, every resample has samples that count."""
        labels, probs = predictions
        weight = np.zeros(len(labels))
        weight[7] = 1.0
        interval = metrics.bootstrap(name, labels, probs, sample_weight=weight, n_resamples=20)
        np.testing.assert_array_equal(interval.draws, interval.draws[0])
        against = metrics.compare(name, labels, probs, probs[:, ::-1], sample_weight=weight, n_resamples=20)
        np.testing.assert_array_equal(against.draws, against.draws[0])

    def test_resamples_are_as_large_as_the_samples_that_count(self, outcomes):
        correct, confidence = outcomes
        weight = np.zeros(400)
        weight[100:300] = 1.0
        interval = metrics.bootstrap("ece", correct, confidence, sample_weight=weight, n_resamples=4)
        alone = metrics.bootstrap("ece", correct[100:300], confidence[100:300], n_resamples=4)
        np.testing.assert_allclose(interval.draws, alone.draws)

    def test_doubt_is_resampled_with_its_samples(self, outcomes, rng):
        correct, confidence = outcomes
        doubt = rng.random(400)
        interval = metrics.bootstrap("aurc", correct, confidence, doubt=doubt, n_resamples=1, random_state=0)
        chosen = np.random.default_rng(0).spawn(1)[0].integers(0, 400, 400)
        assert interval.draws[0] == pytest.approx(naive.aurc(correct[chosen], doubt[chosen]))
        assert interval.value == pytest.approx(metrics.aurc(correct, confidence, doubt=doubt))

    def test_undefined_draws_are_left_out(self):
        """With one wrong prediction, a third of the resamples have none, and their AUROC is undefined."""
        interval = metrics.bootstrap("error_auroc", [True] * 9 + [False], np.linspace(0.9, 0.5, 10), n_resamples=50)
        assert np.isnan(interval.draws).any()
        assert interval.low == interval.high == interval.value == 1.0
        never = metrics.bootstrap("error_auroc", [True] * 3, [0.5, 0.6, 0.7], n_resamples=5)
        assert np.isnan([never.value, never.low, never.high]).all()

    def test_intervals_stay_within_what_is_possible(self):
        right = metrics.bootstrap("accuracy", [True] * 19 + [False], [0.9] * 20)
        assert right.high == 1.0
        assert right.low < 0.95
        certain = np.eye(2)[[0] * 10]
        wrong = metrics.bootstrap("brier", [1] * 9 + [0], certain)
        assert 1.0 < wrong.low < wrong.high == 2.0
        apart = metrics.compare("accuracy", [1] * 19 + [0], np.eye(2)[[1] * 20], np.eye(2)[[0] * 20])
        assert apart.low < apart.difference < apart.high == 1.0

    def test_infinite_value(self):
        """An impossible label in every resample, or in most of them."""
        always = metrics.bootstrap("nll", [1] * 10, [[1.0, 0.0]] * 10, n_resamples=20)
        assert (always.value, always.low, always.high) == (np.inf, np.inf, np.inf)
        assert np.isnan([always.standard_error, always.bias]).all()
        mostly = metrics.bootstrap("nll", [0] * 9 + [1], [[1.0, 0.0]] * 10, n_resamples=50)
        assert (mostly.value, mostly.low, mostly.high) == (np.inf, 0.0, np.inf)
        assert 0 < np.isinf(mostly.draws).sum() < 50


class TestCompare:
    def test_each_side_has_its_own_doubt(self, outcomes, rng):
        correct, confidence = outcomes
        doubt = rng.random(len(correct))
        comparison = metrics.compare("error_auroc", correct, confidence, confidence, doubt_b=doubt, n_resamples=20)
        assert comparison.value_a == metrics.error_auroc(correct, confidence)
        assert comparison.value_b == metrics.error_auroc(correct, confidence, doubt=doubt)
        same = metrics.compare("aurc", correct, confidence, confidence, doubt=doubt, n_resamples=20)
        assert same.value_a == same.value_b == metrics.aurc(correct, confidence, doubt=doubt)
        with pytest.raises(errors.ParameterError, match="do not give both"):
            metrics.compare("aurc", correct, confidence, confidence, doubt=doubt, doubt_a=doubt)
        with pytest.raises(errors.ParameterError, match="ece has no option 'doubt'"):
            metrics.compare("ece", correct, confidence, confidence, doubt_a=doubt)

    def test_infinite_values(self):
        """The difference is infinite if one side gives a label probability zero, and undefined if both do."""
        labels, impossible, fair = [0] * 9 + [1], [[1.0, 0.0]] * 10, [[0.5, 0.5]] * 10
        comparison = metrics.compare("nll", labels, impossible, fair, n_resamples=50)
        assert (comparison.difference, comparison.high) == (np.inf, np.inf)
        assert comparison.low == pytest.approx(-np.log(2))
        assert comparison.losses == np.isinf(comparison.draws).sum()
        assert comparison.wins == 50 - comparison.losses > 0
        mirrored = metrics.compare("nll", labels, fair, impossible, n_resamples=50)
        assert (mirrored.low, mirrored.high) == (-np.inf, -comparison.low)
        neither = metrics.compare("nll", labels, impossible, impossible, n_resamples=50)
        assert np.isnan([neither.difference, neither.low, neither.high]).all()
        assert (neither.wins, neither.losses) == (0, 0)

    def test_difference_from_itself_is_zero(self, predictions):
        labels, probs = predictions
        comparison = metrics.compare("brier", labels, probs, probs, n_resamples=20)
        assert (comparison.difference, comparison.wins, comparison.losses) == (0.0, 0, 0)
        assert comparison.low == comparison.high == 0.0

    @pytest.mark.parametrize("name", ["ece", "accuracy", "nll", "error_auroc"])
    def test_difference_is_paired(self, name, predictions, rng):
        labels, a = predictions
        b = 0.6 * a + 0.4 * rng.dirichlet(np.ones(4), len(a))
        comparison = metrics.compare(name, labels, a, b, n_resamples=3, random_state=2)
        chosen = np.random.default_rng(2).spawn(3)[2].integers(0, len(labels), len(labels))
        metric = metrics.METRICS[name].function
        expected = metric(labels[chosen], a[chosen]) - metric(labels[chosen], b[chosen])
        assert comparison.draws[2] == pytest.approx(expected, abs=1e-12)
        assert comparison.difference == pytest.approx(metric(labels, a) - metric(labels, b))

    def test_wins_follow_the_direction_of_the_metric(self, predictions):
        labels, probs = predictions
        worse = 0.5 * probs + 0.5 * np.roll(probs, 1, axis=1)
        for name in ("accuracy", "nll"):
            comparison = metrics.compare(name, labels, probs, worse, n_resamples=50)
            assert (comparison.wins, comparison.losses, comparison.n_resamples) == (50, 0, 50)
            assert (comparison.high < 0) if name == "nll" else (comparison.low > 0)


class TestNoiseFloor:
    def test_draws(self, outcomes):
        _, confidence = outcomes
        floor = metrics.noise_floor("ece", confidence, n_draws=4, random_state=7, n_bins=10)
        ordered = np.sort(confidence)
        drawn = np.random.default_rng(7).spawn(4)[3].random(400) < ordered
        assert floor.draws[3] == pytest.approx(metrics.ece(drawn, ordered, n_bins=10))
        assert floor.mean == pytest.approx(floor.draws.mean())

    def test_noise_of_certain_predictions_is_zero(self):
        for name in ("ece", "ece_kde", "ks_error", "smooth_ece", "debiased_ece"):
            assert metrics.noise_floor(name, [1.0] * 20, n_draws=5).mean == 0.0

    def test_distributions(self, predictions):
        """Labels are drawn from the distributions; top-label metrics only see their maximum."""
        _, probs = predictions
        floor = metrics.noise_floor("classwise_ece", probs, n_draws=100)
        labels = (probs.cumsum(axis=1) < np.random.default_rng(1).random((150, 1))).sum(axis=1)
        assert floor.draws.min() < metrics.classwise_ece(labels, probs) < floor.draws.max()
        alone = metrics.noise_floor("ece", probs.max(axis=1), n_draws=10)
        np.testing.assert_array_equal(metrics.noise_floor("ece", probs, n_draws=10).draws, alone.draws)

    def test_drawn_labels_have_the_predicted_frequencies(self):
        probs = np.tile([0.5, 0.0, 0.3, 0.2], (4000, 1))
        floor = metrics.noise_floor("brier", probs, n_draws=50)
        assert floor.mean == pytest.approx(1 - 0.38, abs=0.01)  # 1 - sum of squares

    def test_noise_falls_with_more_samples(self, rng):
        confidence = rng.random(4000)
        few, many = (metrics.noise_floor("ece_kde", confidence[:n], n_draws=40).mean for n in (250, 4000))
        assert many < few / 2


class TestReliabilityCurve:
    def test_bins_are_those_of_ece(self, outcomes):
        curve = metrics.reliability_curve(*outcomes, n_bins=8)
        gaps = np.abs(curve.confidence - curve.accuracy) @ curve.counts / curve.counts.sum()
        assert gaps == pytest.approx(metrics.ece(*outcomes, n_bins=8))
        assert len(curve.edges) == 9
        assert curve.counts.sum() == 400

    def test_empty_bins(self):
        curve = metrics.reliability_curve([True, False], [0.9, 0.95], n_bins=4, binning="width")
        np.testing.assert_array_equal(curve.counts, [0, 0, 0, 2])
        for values in (curve.confidence, curve.accuracy, curve.low, curve.high):
            assert np.isnan(values[:3]).all()
            assert not np.isnan(values[3])

    @settings(max_examples=examples(40))
    @given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.sampled_from([0.5, 0.8, 0.95]))
    def test_band_covers_with_its_level(self, confidence, level):
        """At most half of the rest falls below the band, at most half above; and no narrower band will do."""
        curve = metrics.reliability_curve([True] * len(confidence), confidence, n_bins=1, confidence_level=level)
        chances, n = np.array(naive.count_distribution(confidence)), len(confidence)
        shares = np.arange(n + 1) / n
        tail = (1 - level) / 2 + 1e-12
        assert chances[shares < curve.low[0] - 1e-9].sum() <= tail
        assert chances[shares > curve.high[0] + 1e-9].sum() <= tail
        assert chances[shares <= curve.low[0] + 1e-9].sum() >= tail - 2e-12
        assert chances[shares >= curve.high[0] - 1e-9].sum() >= tail - 2e-12

    def test_approximate_band_agrees_with_the_exact_one(self, rng):
        """Unequal weights force the approximation; it is within two samples of 500."""
        confidence = rng.beta(6, 1, 500)
        nearly_equal = np.linspace(1, 1 + 1e-9, 500)
        exact = metrics.reliability_curve([True] * 500, confidence, n_bins=1)
        approximate = metrics.reliability_curve([True] * 500, confidence, n_bins=1, sample_weight=nearly_equal)
        assert approximate.low[0] == pytest.approx(exact.low[0], abs=2 / 500)
        assert approximate.high[0] == pytest.approx(exact.high[0], abs=2 / 500)

    @settings(max_examples=examples(40))
    @given(
        st.lists(st.tuples(st.floats(0, 1), st.floats(0, 5)), min_size=1, max_size=6).filter(
            lambda pairs: any(weight > 1e-3 for _, weight in pairs)
        ),
        st.sampled_from([0.5, 0.95, 1.0]),
    )
    @example(pairs=[(0.0, 0.5), (1.5e-305, 1.0)], level=0.5)
    def test_weighted_band_contains_the_mean(self, pairs, level):
        confidence, weight = np.array(pairs).T
        curve = metrics.reliability_curve(
            [True] * len(pairs), confidence, n_bins=1, confidence_level=level, sample_weight=weight
        )
        if np.unique(weight[weight > 0]).size > 1:  # equal weights take the exact band, which may lie beside the mean
            assert 0 <= curve.low[0] <= curve.confidence[0] + 1e-12
            assert curve.confidence[0] - 1e-12 <= curve.high[0] <= 1
        if level == 1.0:
            assert (curve.low[0], curve.high[0]) == (0.0, 1.0)

    def test_skewed_bin(self):
        """The expansion alone would end below the mean."""
        curve = metrics.reliability_curve([True] * 3, [0.99] * 3, n_bins=1, sample_weight=[1.0, 1.0, 1.1])
        assert curve.low[0] < 0.99 <= curve.high[0]

    @pytest.mark.parametrize("weight", [1.0, 3.0, 0.2])
    def test_equal_weights_are_counted(self, weight):
        for confidence in ([0.99] * 3, [0.5, 0.6, 0.7, 0.8]):
            n = len(confidence)
            plain = metrics.reliability_curve([True] * n, confidence, n_bins=1)
            weighted = metrics.reliability_curve(
                [True] * n + [False], [*confidence, 0.1], n_bins=1, sample_weight=[weight] * n + [0.0]
            )
            assert (weighted.low[0], weighted.high[0]) == (plain.low[0], plain.high[0])

    def test_calibrated_bins_fall_inside(self, rng):
        confidence = rng.random(3000)
        curve = metrics.reliability_curve(rng.random(3000) < confidence, confidence, n_bins=30, confidence_level=0.9)
        inside = (curve.low <= curve.accuracy) & (curve.accuracy <= curve.high)
        assert 22 <= inside.sum() <= 30

    def test_band_is_wider_where_outcomes_of_a_group_depend_on_each_other(self, rng):
        group = np.repeat(np.arange(40), 10)
        confidence = np.full(400, 0.7)
        correct = np.repeat(rng.random(40) < 0.7, 10)
        alone = metrics.reliability_curve(correct, confidence, n_bins=1)
        together = metrics.reliability_curve(correct, confidence, n_bins=1, groups=group)
        independent = metrics.reliability_curve(rng.permutation(correct), confidence, n_bins=1, groups=group)
        assert together.high[0] - together.low[0] > 2 * (alone.high[0] - alone.low[0])
        assert independent.high[0] - independent.low[0] < 1.5 * (alone.high[0] - alone.low[0])
        np.testing.assert_array_equal(together.accuracy, alone.accuracy)

    def test_certain_bin(self):
        curve = metrics.reliability_curve([True] * 5, [1.0] * 5, n_bins=1, sample_weight=[0.5] * 5)
        assert (curve.low[0], curve.high[0]) == (1.0, 1.0)


class TestSummary:
    def test_figures(self, predictions):
        table = metrics.summary(*predictions, intervals=True, n_draws=20, n_resamples=30)
        for row in table:
            assert row.value == pytest.approx(metrics.METRICS[row.metric].function(*predictions))
            alone = metrics.bootstrap(row.metric, *predictions, n_resamples=30)
            assert (row.low, row.high) == pytest.approx((alone.low, alone.high))
            if metrics.METRICS[row.metric].is_calibration_error:
                floor = metrics.noise_floor(row.metric, predictions[1], n_draws=20)
                assert (row.floor, row.floor_high) == pytest.approx((floor.mean, floor.quantiles[0.95]))
            else:
                assert row.floor is None

    def test_summary_without_distributions(self, outcomes):
        table = metrics.summary(*outcomes, floors=False)
        assert [row.metric for row in table] == ["ece_kde", "ece", "ks_error", "accuracy"]
        assert "noise floor" not in str(table)
        assert "interval" not in str(table)

    def test_rendering(self, predictions):
        table = metrics.summary(*predictions, n_draws=5)
        lines = str(table).splitlines()
        assert len(lines) == 7
        assert lines[0].split() == ["metric", "value", "noise", "floor"]
        assert f"{100 * table['ece'].value:.2f} %" in lines[2]
        assert table._repr_html_().count("<tr>") == 7
        assert json.loads(json.dumps(table.to_dict()))["nll"]["value"] == table["nll"].value

    def test_infinite_loss(self):
        table = metrics.summary([0, 1] * 5, [[1.0, 0.0]] * 10, intervals=True, n_draws=5, n_resamples=20)
        (line,) = (line for line in str(table).splitlines() if line.startswith("NLL"))
        assert line.split() == ["NLL", "infinite", "infinite"]
        written = json.loads(json.dumps(table.to_dict(), allow_nan=False))["nll"]
        assert (written["value"], written["low"], written["high"]) == ("infinity",) * 3
        rare = metrics.summary([0] * 9 + [1], [[1.0, 0.0]] * 10, intervals=True, n_draws=5, n_resamples=50)
        assert "0.0000 to infinite" in str(rare)

    def test_undefined_figures(self):
        row = metrics.SummaryRow("error_auroc", np.nan, low=np.nan, high=np.nan)
        assert row.cells() == ["error AUROC", "–", "", "–"]
        written = metrics.Summary((row,), 3).to_dict()["error_auroc"]
        assert set(written.values()) == {None}

    def test_unknown_row_is_an_error_with_the_known_ones(self, outcomes):
        from veridical.errors import UnknownNameError

        with pytest.raises(UnknownNameError, match="ece_kde, ece, ks_error, accuracy"):
            metrics.summary(*outcomes, floors=False)["nll"]


class TestUncertainty:
    def test_parts(self, rng):
        probs = rng.dirichlet(np.ones(3), (4, 20))
        uncertainty = metrics.predictive_uncertainty(probs)
        mean = probs.mean(axis=0)
        np.testing.assert_allclose(uncertainty.total_entropy, -(mean * np.log(mean)).sum(axis=1))
        np.testing.assert_allclose(uncertainty.member_entropy, -(probs * np.log(probs)).sum(axis=2).mean(axis=0))
        assert (uncertainty.mutual_information > 0).all()

    def test_no_samples(self):
        uncertainty = metrics.predictive_uncertainty(np.ones((2, 0, 2)))
        for values in (
            uncertainty.total_entropy,
            uncertainty.member_entropy,
            uncertainty.mutual_information,
            uncertainty.hv,
        ):
            assert values.shape == (0,)

    def test_unanimous(self):
        uncertainty = metrics.predictive_uncertainty(np.tile([[0.2, 0.8]], (3, 5, 1)))
        np.testing.assert_allclose(uncertainty.mutual_information, 0.0, atol=1e-15)
        np.testing.assert_allclose(uncertainty.hv, 0.0, atol=1e-15)

    @pytest.mark.parametrize("kind", ["logits", "log_probs"])
    def test_kinds_and_axes(self, rng, kind):
        logits = rng.standard_normal((4, 20, 3))
        probs = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
        values = logits if kind == "logits" else np.log(probs)
        expected = metrics.predictive_uncertainty(probs)
        uncertainty = metrics.predictive_uncertainty(values.swapaxes(0, 1), kind=kind, sources_axis=1)
        for name in ("total_entropy", "member_entropy", "mutual_information", "hv"):
            np.testing.assert_allclose(getattr(uncertainty, name), getattr(expected, name), atol=1e-12)

    def test_absent_sources_do_not_count(self, rng):
        probs = rng.dirichlet(np.ones(3), (4, 6))
        holes = probs.copy()
        holes[2, :] = np.nan
        expected = metrics.predictive_uncertainty(probs[[0, 1, 3]])
        uncertainty = metrics.predictive_uncertainty(holes, missing="skip")
        for name in ("total_entropy", "member_entropy", "mutual_information", "hv"):
            np.testing.assert_allclose(getattr(uncertainty, name), getattr(expected, name), atol=1e-12)

    def test_bad_input_is_rejected_as_in_truth_discovery(self):
        from veridical.errors import NotNormalisedError

        with pytest.raises(NotNormalisedError, match="source 1, sample 0"):
            metrics.predictive_uncertainty([[[0.5, 0.5]], [[0.5, 0.9]]])
