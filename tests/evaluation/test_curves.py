"""Numbers behind figures: bins, histograms, risk curves, HV grids and sweeps, checked by hand on a few samples."""

import json

import naive
import numpy as np
import pytest
from ensembles import random_ensemble

import veridical as vd
from veridical.evaluation.curves import ConfidenceHistogram, Disagreement, ReliabilityPanel, RiskCurve, sweep_points
from veridical.evaluation.engine import Engine
from veridical.metrics.sample import Sample


def sample_of(confidence, correct):
    return Sample(np.array(confidence, float), np.array(correct, bool))


def test_reliability_panel_counts_and_averages_in_fixed_bins():
    sample = sample_of([0.55, 0.65, 0.9, 0.8, 0.85], [True, False, True, True, False])
    panel = ReliabilityPanel.of("mean", "width", sample, np.array([0.0, 0.25, 0.7, 1.0]))
    assert (panel.method, panel.binning, panel.edges) == ("mean", "width", (0.0, 0.25, 0.7, 1.0))
    assert panel.counts == (0, 2, 3)
    assert panel.confidence[1:] == pytest.approx((0.6, 0.85))
    assert panel.accuracy[1:] == pytest.approx((0.5, 2 / 3))
    assert np.isnan([panel.confidence[0], panel.accuracy[0], panel.low[0], panel.high[0]]).all()
    assert all(0 <= low <= high <= 1 for low, high in zip(panel.low[1:], panel.high[1:], strict=True))


def test_reliability_panel_band_holds_the_likely_numbers_of_right_predictions():
    """Ten samples with confidence 0.5: 2 to 8 are right with probability 0.978, 3 to 7 only with 0.891."""
    panel = ReliabilityPanel.of("mean", "width", sample_of([0.5] * 10, [True] * 10), np.array([0.0, 1.0]))
    assert panel.accuracy == (1.0,)
    assert (panel.low[0], panel.high[0]) == pytest.approx((0.2, 0.8))


def test_confidence_histogram_counts_both_sides():
    histogram = ConfidenceHistogram.of("mean", sample_of([0.05, 0.5, 0.99, 1.0], [False, True, True, False]), n_bins=2)
    assert histogram.edges == (0.0, 0.5, 1.0)
    assert (histogram.right, histogram.wrong) == ((0, 2), (1, 1))
    assert histogram.mean_confidence == pytest.approx(0.635)
    assert histogram.accuracy == 0.5


def test_risk_curve_is_the_error_rate_of_the_most_confident():
    confidence, correct = [0.9, 0.8, 0.7, 0.6], [True, True, False, True]
    curve = RiskCurve.of("mean", "DE", sample_of(confidence, correct))
    at = dict(zip(np.round(curve.coverage, 2), curve.risk, strict=True))
    assert len(at) == 100
    assert [at[share] for share in (0.25, 0.5, 0.75, 1.0)] == pytest.approx([0, 0, 1 / 3, 1 / 4])
    assert curve.aurc == pytest.approx(naive.aurc(correct, [-w for w in confidence]))


def test_risk_curve_follows_doubt_where_it_is_given():
    confidence, correct, doubt = [0.9, 0.8, 0.7, 0.6], [True, True, False, True], np.array([4.0, 3.0, 1.0, 2.0])
    curve = RiskCurve.of("hv", "HV", sample_of(confidence, correct), doubt)
    assert [curve.risk[k - 1] for k in (25, 50, 75, 100)] == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4])
    assert curve.aurc == pytest.approx(naive.aurc(correct, doubt))


def test_risk_curve_is_called_score_in_json():
    document = json.loads(json.dumps(RiskCurve.of("hv", "HV", sample_of([0.5], [True])).to_dict()))
    assert set(document) == {"score", "title", "coverage", "risk", "aurc"}
    assert (document["score"], document["title"], document["aurc"]) == ("hv", "HV", 0.0)


def test_disagreement_counts_every_sample_once(rng):
    hv, confidence, right = rng.uniform(0, 2, 500), rng.uniform(0.3, 1, 500), rng.random(500) < 0.7
    grid = Disagreement.of(hv, confidence, right)
    assert np.sum(grid.right) == right.sum()
    assert np.sum(grid.wrong) == (~right).sum()
    assert np.shape(grid.right) == (len(grid.hv_edges) - 1, len(grid.confidence_edges) - 1)
    assert grid.confidence_edges[0] == confidence.min()
    assert grid.confidence_edges[-1] == 1.0
    assert grid.hv_edges[0] == 0.0
    assert grid.hv_edges[-1] == np.quantile(hv, 0.995)
    assert np.sum(np.add(grid.right, grid.wrong)[-1]) >= (hv > grid.hv_edges[-1]).sum() > 0


def test_disagreement_equals_counting_cell_by_cell(rng):
    hv, confidence, right = rng.uniform(0, 1, 60), rng.uniform(0.5, 1, 60), rng.random(60) < 0.5
    grid = Disagreement.of(hv, confidence, right)
    n_rows, n_columns = np.shape(grid.right)
    counts = {True: np.zeros((n_rows, n_columns), int), False: np.zeros((n_rows, n_columns), int)}
    inside = [[] for _ in range(n_columns)]
    for h, w, c in zip(hv, confidence, right, strict=True):
        row = min(sum(h >= edge for edge in grid.hv_edges[1:]), n_rows - 1)
        column = min(sum(w >= edge for edge in grid.confidence_edges[1:]), n_columns - 1)
        counts[bool(c)][row, column] += 1
        inside[column].append(h)
    np.testing.assert_array_equal(grid.right, counts[True])
    np.testing.assert_array_equal(grid.wrong, counts[False])
    np.testing.assert_array_equal(grid.median, [np.median(values) if values else np.nan for values in inside])


def test_disagreement_correlates_ranks():
    confidence = np.array([0.9, 0.8, 0.7, 0.6])
    assert Disagreement.of(np.array([0.0, 1.0, 8.0, 9.0]), confidence, None).correlation == pytest.approx(-1)
    assert Disagreement.of(np.array([9.0, 8.0, 1.0, 0.0]), confidence, None).correlation == pytest.approx(1)
    assert np.isnan(Disagreement.of(np.zeros(4), confidence, None).correlation)
    assert np.isnan(Disagreement.of(np.array([0.5]), np.array([0.7]), None).correlation)


def test_disagreement_without_labels_is_on_the_right_side():
    grid = Disagreement.of(np.array([0.1, 0.2]), np.array([0.5, 1.0]), None)
    assert (np.sum(grid.right), np.sum(grid.wrong)) == (2, 0)


def test_disagreement_of_rounding_is_in_the_first_row():
    """Equal sources have HV 0 up to rounding: the axis does not zoom into it."""
    grid = Disagreement.of(np.array([0.0, 1e-16, 3e-15]), np.array([0.5, 0.9, 1.0]), None)
    assert grid.hv_edges[-1] == 1.0
    assert sum(grid.right[0]) == 3


def test_disagreement_of_certain_samples_has_a_range_of_confidence():
    edges = Disagreement.of(np.array([0.0, 0.0]), np.array([1.0, 1.0]), None).confidence_edges
    assert (edges[0], edges[-1]) == (0.99, 1.0)


def test_disagreement_is_in_json_by_its_old_name():
    content = Disagreement.of(np.array([0.1, 0.2]), np.array([0.5, 1.0]), None).to_dict()
    assert "score_edges" in content
    assert "confidence_edges" not in content


@pytest.mark.compiled
def test_sweep_points_cover_all_numbers_of_few_sources(rng):
    predictions = vd.Predictions(random_ensemble(rng, 4, 80, 3), rng.integers(0, 3, 80))
    points = {(point.n_sources, point.method): point.values for point in sweep_points(Engine(predictions))}
    assert set(points) == {(n, method) for n in (1, 2, 3, 4) for method in ("mean", "tde", "atde")}
    for n in (1, 3, 4):
        mean = predictions.values[:n].mean(axis=0)
        for metric in ("nll", "ece", "accuracy"):
            expected = getattr(vd.metrics, metric)(predictions.labels, mean)
            assert points[n, "mean"][metric] == pytest.approx(expected, abs=1e-9)
        assert points[n, "atde"]["accuracy"] == points[n, "mean"]["accuracy"]


@pytest.mark.compiled
def test_sweep_points_take_ten_steps_to_many_sources(rng):
    predictions = vd.Predictions(random_ensemble(rng, 23, 20, 3), rng.integers(0, 3, 20))
    sizes = sorted({point.n_sources for point in sweep_points(Engine(predictions))})
    assert len(sizes) == 10
    assert sizes[-1] == 23
    assert set(np.diff(sizes)) <= {2, 3}


def test_sweep_points_need_labels_and_two_sources(rng):
    probs = random_ensemble(rng, 3, 20, 3)
    assert sweep_points(Engine(vd.Predictions(probs))) == ()
    assert sweep_points(Engine(vd.Predictions(probs[:1], rng.integers(0, 3, 20)))) == ()
