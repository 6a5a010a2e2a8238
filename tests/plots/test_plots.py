"""Figures: they draw the numbers of their arguments, on the axes of the caller."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from ensembles import random_ensemble

import veridical as vd
from veridical import errors, metrics, plots
from veridical.plots.style import COLOURS


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture
def outcomes():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.4, 1.0, 500)
    return rng.random(500) < confidence, confidence


def artists(ax, prefix):
    """The artists of an axes whose id begins so."""
    return {child.get_gid(): child for child in ax.get_children() if (child.get_gid() or "").startswith(prefix)}


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


def test_confidence_histogram_counts_right_and_wrong(outcomes):
    ax = plots.confidence_histogram(*outcomes, n_bins=10)
    right, wrong = (sum(bar.get_height() for bar in artists(ax, side).values()) for side in ("right-", "wrong-"))
    assert (right, wrong) == (outcomes[0].sum(), (~outcomes[0]).sum())
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == [
        "right",
        "wrong",
        "mean confidence",
        "accuracy",
    ]


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


def test_dependence_matrix_colours_by_value():
    matrix = np.array([[1.0, 0.9, 0.1], [0.9, 1.0, 0.5], [0.1, 0.5, 1.0]])
    ax = plots.dependence_matrix(matrix, ["a", "b", "c"])
    strongest = matplotlib.colors.to_rgba(COLOURS["level-5"][0])
    (patch,) = [patch for patch in ax.patches if patch.get_facecolor() == strongest]
    corners = patch.get_path().vertices.reshape(-1, 5, 2)[:, 0]
    assert sorted(map(tuple, corners.tolist())) == [(0.0, 1.0), (1.0, 0.0)]
    assert ax.get_ylim() == (3.0, 0.0)


def test_dependence_matrix_takes_values_beyond_shares():
    ax = plots.dependence_matrix(np.array([[0, -2.0], [3.0, 0]]))
    assert "%" not in ax.get_legend().get_texts()[0].get_text()


@pytest.mark.parametrize(("matrix", "names"), [(np.ones((2, 3)), None), (np.ones(4), None), (np.eye(2), ["a"])])
def test_dependence_matrix_rejects_other_shapes(matrix, names):
    with pytest.raises((errors.ShapeError, errors.ParameterError), match="source"):
        plots.dependence_matrix(matrix, names)


def test_hv_against_confidence_shows_sides():
    hv, confidence = np.array([0.1, 0.2, 0.9]), np.array([0.9, 0.8, 0.5])
    right = np.array([True, True, False])
    cells = {}
    for side in ("all", "right", "wrong"):
        ax = plots.hv_against_confidence(hv, confidence, right, side=side)
        cells[side] = sum(len(patch.get_path().vertices) // 5 for patch in ax.patches)
    assert cells == {"all": 3, "right": 2, "wrong": 1}


def test_hv_against_confidence_rejects_other_lengths():
    with pytest.raises(errors.ShapeError, match="one number per sample"):
        plots.hv_against_confidence([0.1, 0.2], [0.5])
    with pytest.raises(errors.ParameterError, match="confidence is missing"):
        plots.hv_against_confidence([0.1, 0.2])


def test_plots_draw_on_the_axes_of_the_caller(outcomes):
    figure, axes = plt.subplots(1, 2)
    assert plots.reliability_diagram(*outcomes, ax=axes[0]) is axes[0]
    assert plots.confidence_histogram(*outcomes, ax=axes[1]) is axes[1]
    assert len(figure.axes) == 2


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


def test_plots_need_labels():
    with pytest.raises(errors.ParameterError, match="give labels and probabilities"):
        plots.reliability_diagram([0.5, 0.7])


@pytest.mark.compiled
def test_source_value_draws_effects_and_needs_labels():
    rng = np.random.default_rng(0)
    ensemble = vd.Predictions(random_ensemble(rng, 3, 60, 4), rng.integers(0, 4, 60))
    inspection = vd.inspect(ensemble)
    ax = plots.source_value(inspection)
    dots = artists(ax, "value-")
    for s, source in enumerate(inspection.value.sources):
        assert dots[f"value-{s}"].get_xydata().tolist() == [[source.nll_without.value, s]]
    with pytest.raises(errors.ParameterError, match="needs labels"):
        plots.source_value(vd.Predictions(ensemble.values))
