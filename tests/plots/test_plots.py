"""Figures: they draw the numbers of their arguments, on the axes of the caller."""

import matplotlib
import numpy as np
import pytest
from drawn import artists, close_figures  # noqa: F401
from ensembles import random_ensemble

import veridical as vd
from veridical import errors, metrics, plots
from veridical.plots.style import COLOURS


@pytest.fixture
def outcomes():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.4, 1.0, 500)
    return rng.random(500) < confidence, confidence


def test_reliability_diagram_draws_the_curve(outcomes):
    curve = metrics.reliability_curve(*outcomes, n_bins=10)
    for ax in (plots.reliability_diagram(*outcomes, n_bins=10), plots.reliability_diagram(curve)):
        bars, dots, bands = (artists(ax, prefix) for prefix in ("bin-", "dot-", "band-"))
        assert len(bars) == len(dots) == len(bands) == 10
        for b in range(10):
            assert bars[f"bin-{b}"].get_height() == curve.accuracy[b]
            assert dots[f"dot-{b}"].get_xydata().tolist() == [[curve.confidence[b], curve.accuracy[b]]]
            assert bands[f"band-{b}"].get_ydata().tolist() == [curve.low[b], curve.high[b]]


def test_reliability_diagram_takes_labels_with_distributions_or_results():
    probs = np.array([[0.9, 0.1], [0.4, 0.6], [0.7, 0.3]])
    labels = np.array([0, 0, 0])
    truth = vd.discover(probs[None], max_iter=0)
    heights = [
        [bar.get_height() for bar in artists(plots.reliability_diagram(labels, values, n_bins=3), "bin-").values()]
        for values in (probs, truth)
    ]
    assert heights[0] == heights[1]
    assert sorted(heights[0]) == [0.0, 1.0, 1.0]


def test_risk_coverage_draws_one_line_per_name(outcomes):
    right, confidence = outcomes
    ax = plots.risk_coverage(right, {"a": confidence, "b": confidence}, doubt={"b": confidence})
    first, second = ax.lines
    assert first.get_ydata()[-1] == second.get_ydata()[-1] == pytest.approx(100 * (~right).mean())
    assert first.get_ydata()[9] < second.get_ydata()[9]
    assert f"a (AURC {100 * metrics.aurc(right, confidence):.2f}%)" in ax.get_legend().get_texts()[0].get_text()


@pytest.mark.compiled
def test_metric_sweep_ends_at_the_metric_of_all_sources():
    rng = np.random.default_rng(0)
    ensemble = vd.Predictions(random_ensemble(rng, 3, 60, 4), rng.integers(0, 4, 60))
    ax = plots.metric_sweep(ensemble, "nll")
    mean = vd.discover(ensemble, max_iter=0).probs
    assert artists(ax, "line-mean")["line-mean"].get_xydata()[-1].tolist() == [
        3.0,
        pytest.approx(metrics.nll(ensemble.labels, mean)),
    ]


def test_dependence_matrix_takes_values_beyond_shares():
    ax = plots.dependence_matrix(np.array([[0, -2.0], [3.0, 0]]))
    assert "%" not in ax.get_legend().get_texts()[0].get_text()


def test_hv_against_confidence_shows_sides():
    hv, confidence = np.array([0.1, 0.2, 0.9]), np.array([0.9, 0.8, 0.5])
    right = np.array([True, True, False])
    cells = {}
    for side in ("all", "right", "wrong"):
        ax = plots.hv_against_confidence(hv, confidence, right, side=side)
        cells[side] = sum(len(patch.get_path().vertices) // 5 for patch in ax.patches)
    assert cells == {"all": 3, "right": 2, "wrong": 1}


def test_plots_leave_settings_as_they_were(outcomes):
    before = dict(matplotlib.rcParams)
    plots.reliability_diagram(*outcomes)
    with plots.theme("dark"):
        plots.risk_coverage(*outcomes)
    assert dict(matplotlib.rcParams) == before


def test_dark_theme_has_colours_of_its_own(outcomes):
    with plots.theme("dark"):
        dark = plots.risk_coverage(*outcomes)
    light = plots.risk_coverage(*outcomes)
    assert dark.lines[0].get_color() != light.lines[0].get_color()
    assert dark.lines[0].get_color() in {pair[1] for pair in COLOURS.values()}
    with pytest.raises(errors.UnknownNameError, match="light, dark"), plots.theme("sepia"):
        pass
