"""The numbers of a report are those that the rest of the library computes."""

import dataclasses
import json

import numpy as np
import pytest
from page_checks import labelled_ensemble

import veridical as vd
from veridical import errors, metrics
from veridical.report.prepare import prepare_report

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def ensemble():
    return labelled_ensemble(sharpness=0.6)


@pytest.fixture(scope="module")
def data(ensemble):
    return prepare_report(ensemble, intervals=False, methods=["tde", "atde"])


def test_scores_are_those_of_evaluate(ensemble, data):
    expected = vd.evaluate(ensemble, methods=["mean", "tde", "atde", "ptde"])
    assert dataclasses.replace(data.evaluation, other_half=()) == expected
    assert [scores.method for scores in data.evaluation.other_half] == ["mean", "tde", "atde", "ptde-kde"]
    without = {key: value for key, value in data.to_dict()["evaluation"].items() if key != "other_half"}
    assert {**without, "other_half": []} == json.loads(json.dumps(expected.to_dict()))
    assert data.inspection == vd.inspect(ensemble)


def test_data_are_frozen_and_go_to_json(data):
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.verdict = "all is well"
    stored = json.loads(json.dumps(data.to_dict(), allow_nan=False))
    assert stored["schema"] == 1
    assert stored["type"] == "report"
    assert stored["verdict"] == data.verdict


def test_diagrams_hold_every_scored_sample_and_give_the_ece(data):
    for panel in data.reliability:
        assert sum(panel.counts) == 200
        assert panel.edges[0] == 0
        assert panel.edges[-1] == 1
    (before,) = (panel for panel in data.reliability if (panel.method, panel.binning) == ("mean", "mass"))
    gaps = [n * abs(c - a) for n, c, a in zip(before.counts, before.confidence, before.accuracy, strict=True) if n]
    assert sum(gaps) / 200 == pytest.approx(data.evaluation["mean"].summary["ece"].value, abs=1e-12)


def test_bins_stay_where_they_were_before_calibration(data):
    edges = {panel.edges for panel in data.reliability if panel.binning == "mass"}
    assert len(edges) == 1


def test_histograms_hold_every_scored_sample(data):
    for histogram in data.histograms:
        assert sum(histogram.right) + sum(histogram.wrong) == 200
        assert sum(histogram.right) / 200 == pytest.approx(histogram.accuracy)


def test_sweep_ends_with_all_sources_on_all_samples(ensemble, data):
    last = {point.method: point.values for point in data.sweep if point.n_sources == 4}
    whole = vd.evaluate(ensemble, methods=["mean", "tde", "atde"], floors=False)
    for scores in whole.methods:
        assert last[scores.method] == {row.metric: row.value for row in scores.summary}
    assert sorted({point.n_sources for point in data.sweep}) == [1, 2, 3, 4]


def test_sweep_takes_about_ten_steps():
    data = prepare_report(labelled_ensemble(23, 60), intervals=False, methods=[], method="mean")
    steps = sorted({point.n_sources for point in data.sweep})
    assert len(steps) == 10
    assert steps[-1] == 23


def test_risk_curves_average_to_their_area(data):
    assert [curve.ranking for curve in data.risk] == ["mean", "atde", "ptde-kde", "hv"]
    for curve in data.risk:
        assert curve.risk[-1] == pytest.approx(1 - data.evaluation["mean"].summary["accuracy"].value)
        # 200 samples at 100 points: the area is a finer mean of the same curve
        assert np.mean(curve.risk) == pytest.approx(curve.aurc, abs=0.01)


def test_risk_at_coverage_counts_ties_in_proportion():
    sample = metrics.sample.check_sample([True, False, False, True], [0.9, 0.5, 0.5, 0.5])
    risk = metrics.selective.risk_at_coverage(sample, np.array([0.25, 0.5, 1.0]))
    assert risk.tolist() == pytest.approx([0.0, (2 / 3) / 2, 0.5])


def test_reliability_curve_takes_fixed_bins():
    right, confidence = [True, False, True], [0.2, 0.6, 0.9]
    curve = metrics.reliability_curve(right, confidence, edges=[0, 0.5, 1])
    assert curve.counts.tolist() == [1, 2]
    assert curve.accuracy.tolist() == [1.0, 0.5]
    own = metrics.reliability_curve(right, confidence, n_bins=2)
    same = metrics.reliability_curve(right, confidence, edges=own.edges)
    np.testing.assert_array_equal(own.low, same.low)
    for bad in ([0.1, 1], [0, 0.7, 0.6, 1], [0], [0, float("nan"), 1]):
        with pytest.raises(errors.ParameterError, match="edges"):
            metrics.reliability_curve(right, confidence, edges=bad)


def test_disagreement_grid_holds_every_sample(ensemble, data):
    grid = data.disagreement
    assert np.sum(grid.right) + np.sum(grid.wrong) == ensemble.n_samples
    mean = vd.discover(ensemble, max_iter=0)
    assert np.sum(grid.right) == (mean.prediction == ensemble.labels).sum()


def test_disputed_samples_are_those_of_largest_hv(ensemble, data):
    hv = vd.discover(ensemble).hv
    listed = [sample.sample for sample in data.disputed]
    assert listed[:100] == np.argsort(-hv, kind="stable")[:100].tolist()
    assert [sample.hv for sample in data.disputed] == sorted((s.hv for s in data.disputed), reverse=True)
    predicted = vd.discover(ensemble).prediction
    for label in range(5):
        of_class = np.flatnonzero(predicted == label)
        most = of_class[np.argsort(-hv[of_class], kind="stable")][:10]
        assert set(most.tolist()) <= set(listed)


def test_votes_are_the_sources_labels(ensemble, data):
    for sample in data.disputed[:20]:
        named = [int(source[sample.sample].argmax()) for source in ensemble]
        assert dict(sample.votes) == {label: named.count(label) for label in named}
        counts = [count for _, count in sample.votes]
        assert counts == sorted(counts, reverse=True)


def test_numbers_repeat_with_the_same_seed(ensemble, data):
    again = prepare_report(ensemble, intervals=False, methods=["tde", "atde"])
    assert again.to_dict() == data.to_dict()


def test_absent_sources_have_no_vote_and_shorten_the_sweep():
    values = labelled_ensemble(3, 80).values.copy()
    values[0, :5] = np.nan
    predictions = vd.Predictions(values, labelled_ensemble(3, 80).labels)
    data = prepare_report(predictions, intervals=False, methods=[], method="mean")
    assert sorted({point.n_sources for point in data.sweep}) == [2, 3]
    for sample in data.disputed:
        assert sum(count for _, count in sample.votes) == (2 if sample.sample < 5 else 3)


def test_progress_counts_up_to_the_end(ensemble):
    calls = []
    vd.build_report(ensemble, method="mean", methods=[], progress=lambda *call: calls.append(call))
    shares = [done / total for done, total, _ in calls]
    assert shares == sorted(shares)
    assert shares[-1] == 1


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"method": "nonsense"}, errors.UnknownNameError, "nonsense"),
        ({"method": "members"}, errors.ParameterError, "members"),
        ({"random_state": -1}, errors.ParameterError, "random_state"),
        ({"labels": [0, 1]}, errors.LabelError, "labels"),
    ],
)
def test_build_report_rejects_bad_parameters(ensemble, options, error, message):
    with pytest.raises(error, match=message):
        vd.build_report(ensemble, **options)


def test_build_report_rejects_no_samples():
    with pytest.raises(errors.ShapeError, match="no samples"):
        vd.build_report(np.empty((2, 0, 3)))
