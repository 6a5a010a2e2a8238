"""Reliability diagrams, histograms, risk curves and sweeps: what is drawn where, and what is rejected."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawn import artists, close_figures  # noqa: F401
from ensembles import random_ensemble
from matplotlib.colors import to_rgba

import veridical as vd
from veridical import errors, plots
from veridical.evaluation.curves import ConfidenceHistogram, RiskCurve, SweepPoint
from veridical.metrics.sample import Sample
from veridical.plots.calibration import count_legend, lowest_confidence
from veridical.plots.style import COLOURS, THEMES, level_role, series_roles, shortened

RIGHT = np.array([True, True, False, True, False, True])
CONFIDENCE = np.array([0.95, 0.9, 0.85, 0.6, 0.55, 0.3])


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def calibrated(rng, labels):
    """Calibrated predictions of four samples; probabilities are those of the one source."""
    probs = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]])
    calibrator = vd.Identity().fit(probs[None], [0, 1, 0, 1])
    return vd.apply_calibrator(calibrator, vd.Predictions(probs[None], labels))


# --- reliability diagrams


def test_reliability_diagram_in_given_edges_draws_bars_between_them():
    ax = plots.reliability_diagram(RIGHT, CONFIDENCE, edges=[0.0, 0.5, 0.8, 1.0], lowest=0.0)
    bars = artists(ax, "bin-")
    assert [(bar.get_x(), bar.get_width()) for bar in bars.values()] == [
        pytest.approx((0.0, 0.5)),
        pytest.approx((0.5, 0.3)),
        pytest.approx((0.8, 0.2)),
    ]
    assert [bar.get_height() for bar in bars.values()] == pytest.approx([1.0, 0.5, 2 / 3])


def test_reliability_diagram_leaves_empty_bins_out():
    ax = plots.reliability_diagram(RIGHT, CONFIDENCE, edges=[0.0, 0.1, 0.2, 1.0])
    assert list(artists(ax, "bin-")) == ["bin-2"]
    assert list(artists(ax, "dot-")) == ["dot-2"]


def test_reliability_diagram_begins_where_it_is_told_to():
    ax = plots.reliability_diagram(RIGHT, CONFIDENCE, edges=[0.0, 0.5, 0.8, 1.0], lowest=0.7)
    assert ax.get_xlim()[0] == 0.7
    bars = artists(ax, "bin-")
    assert set(bars) == {"bin-1", "bin-2"}  # the first one ends before the axis begins
    assert bars["bin-1"].get_x() == 0.7
    assert ax.lines[0].get_xydata().tolist() == [[0.7, 0.7], [1, 1]]


@pytest.mark.parametrize(
    ("confidence", "lowest"), [([0.35, 0.9], 0.3), ([0.3, 0.9], 0.2), ([0.97], 0.8), ([0.02], 0.0), ([0.0], 0.0)]
)
def test_axis_of_confidence_begins_a_tenth_below(confidence, lowest):
    panel = vd.metrics.reliability_curve(
        np.ones(len(confidence), bool), np.array(confidence), edges=np.linspace(0, 1, 101)
    )
    assert lowest_confidence([panel]) == lowest
    assert plots.reliability_diagram(panel).get_xlim()[0] == lowest


def test_reliability_diagram_colours_bars_by_count():
    edges = [0.0, 0.5, 0.8, 1.0]
    for most, roles in ((None, ["level-3", "level-4", "level-5"]), (100, ["level-0", "level-0", "level-0"])):
        ax = plots.reliability_diagram(RIGHT, CONFIDENCE, edges=edges, lowest=0.0, most=most)
        shown = [bar.get_facecolor() for bar in artists(ax, "bin-").values()]
        assert shown == [to_rgba(COLOURS[role][0]) for role in roles]


def test_reliability_diagram_legend_has_the_colours_that_are_drawn():
    ax = plots.reliability_diagram(RIGHT, CONFIDENCE, edges=[0.0, 0.5, 1.0], lowest=0.0, most=100)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["1–5"]


@pytest.mark.parametrize("options", [{"lowest": 2.0}, {"most": 0}, {"lowest": "left"}])
def test_reliability_diagram_opens_no_figure_for_bad_options(options):
    with pytest.raises(errors.ParameterError):
        plots.reliability_diagram(RIGHT, CONFIDENCE, **options)
    assert plt.get_fignums() == []


def test_count_legend_covers_every_count_once():
    entries = count_legend(100)
    assert entries[0] == ("level-0", "1–5")
    assert entries[-1] == ("level-5", "71–100")
    ends = [tuple(map(int, text.split("–"))) for _, text in entries]
    assert [low for low, _ in ends[1:]] == [high + 1 for _, high in ends[:-1]]
    for role, (low, high) in zip([role for role, _ in entries], ends, strict=True):
        assert level_role(low / 100) == level_role(high / 100) == role


def test_count_legend_of_few_samples_has_no_empty_ranges():
    assert count_legend(1) == [("level-5", "1–1")]
    assert [text for _, text in count_legend(3)] == ["1–1", "2–2", "3–3"]


def test_reliability_diagram_takes_calibrated_predictions_with_labels(rng):
    result = calibrated(rng, [0, 1, 1, 1])
    ax = plots.reliability_diagram(result, edges=[0.0, 0.75, 1.0])
    assert [bar.get_height() for bar in artists(ax, "bin-").values()] == [0.5, 1.0]
    assert len(artists(plots.confidence_histogram(result, n_bins=10), "right-")) == 3


def test_plots_leave_samples_without_label_out(rng):
    """The third and the fourth sample have no label."""
    result = calibrated(rng, [0, 0, -1, -1])
    ax = plots.confidence_histogram(result, n_bins=1)
    heights = [sum(bar.get_height() for bar in artists(ax, side).values()) for side in ("right-", "wrong-")]
    assert heights == [1, 1]


def test_plots_reject_results_without_labels(rng):
    result = calibrated(rng, None)
    for draw in (plots.reliability_diagram, plots.confidence_histogram, plots.risk_coverage):
        with pytest.raises(errors.ParameterError) as caught:
            draw(result)
        assert str(caught.value) == (
            "probs is missing and Calibrated does not hold labels and distributions; give labels and probabilities of "
            "shape (samples, classes)."
        )


@pytest.mark.parametrize("draw", [plots.reliability_diagram, plots.confidence_histogram, plots.risk_coverage])
@pytest.mark.parametrize(
    ("y_true", "probs", "sentence"),
    [
        ([True, False], [0.5, 1.2], "confidence of sample 1 is 1.2; confidences are probabilities, from 0 to 1."),
        ([True], [0.5, 0.7], "lengths differ: y_true has 1, confidence has 2; give one entry per sample in each."),
        ([], [], "confidence is empty; at least one sample is needed."),
        ([0, 5], [[0.5, 0.5], [0.1, 0.9]], "the label of sample 1 is 5; with 2 classes labels go from 0 to 1."),
    ],
)
def test_plots_reject_bad_samples(draw, y_true, probs, sentence):
    with pytest.raises(errors.InvalidInputError) as caught:
        draw(y_true, probs)
    assert str(caught.value) == sentence
    assert plt.get_fignums() == []


@pytest.mark.parametrize("draw", [plots.reliability_diagram, plots.confidence_histogram])
@pytest.mark.parametrize("n_bins", [0, -1, 2.5, "3"])
def test_plots_reject_bad_numbers_of_bins(draw, n_bins):
    with pytest.raises(
        errors.ParameterError, match=r"^n_bins is .*; give a whole number (of at least 1|from 1 to 1,000,000)\.$"
    ):
        draw(RIGHT, CONFIDENCE, n_bins=n_bins)


@pytest.mark.parametrize("draw", [plots.reliability_diagram, plots.confidence_histogram, plots.risk_coverage])
def test_plots_use_the_axes_they_are_given(draw):
    _, ax = plt.subplots()
    assert draw(RIGHT, CONFIDENCE, legend=False, ax=ax) is ax
    assert ax.get_legend() is None
    assert plt.get_fignums() == [ax.figure.number]


# --- histograms


def test_confidence_histogram_stacks_wrong_on_right():
    ax = plots.confidence_histogram(RIGHT, CONFIDENCE, n_bins=2)
    right, wrong = artists(ax, "right-"), artists(ax, "wrong-")
    assert {name: bar.get_height() for name, bar in right.items()} == {"right-0": 1, "right-1": 3}
    assert {name: (bar.get_y(), bar.get_height()) for name, bar in wrong.items()} == {"wrong-1": (3, 2)}
    assert legend_texts(ax) == ["right", "wrong", "mean confidence", "accuracy"]
    mean, accuracy = (line.get_xdata()[0] for line in ax.lines)
    assert (mean, accuracy) == pytest.approx((CONFIDENCE.mean(), RIGHT.mean()))


def test_confidence_histogram_draws_the_histogram_of_a_report():
    histogram = ConfidenceHistogram.of("mean", Sample(CONFIDENCE, RIGHT), 4)
    ax = plots.confidence_histogram(histogram)
    assert {name: bar.get_height() for name, bar in artists(ax, "right-").items()} == {
        f"right-{b}": count for b, count in enumerate(histogram.right) if count
    }


# --- risk and coverage


def test_risk_coverage_draws_percentages():
    ax = plots.risk_coverage(RIGHT, CONFIDENCE)
    (line,) = ax.lines
    at = dict(line.get_xydata().tolist())
    assert at[50.0] == pytest.approx(100 / 3)
    assert at[100.0] == pytest.approx(100 / 3)
    assert ax.get_xlim() == (0, 100)
    assert ax.get_ylim()[0] == 0


def test_risk_coverage_draws_one_line_per_doubt():
    ax = plots.risk_coverage(RIGHT, CONFIDENCE, doubt={"wrong last": ~RIGHT, "wrong first": RIGHT})
    last, first = ax.lines
    assert [line.get_gid() for line in ax.lines] == ["line-wrong last", "line-wrong first"]
    assert last.get_ydata()[:66].max() == pytest.approx(0, abs=1e-9)
    assert first.get_ydata()[:33].min() == pytest.approx(100)


def test_risk_coverage_by_one_doubt_is_called_doubt():
    ax = plots.risk_coverage(RIGHT, CONFIDENCE, doubt=~RIGHT)
    assert [line.get_gid() for line in ax.lines] == ["line-doubt"]
    assert legend_texts(ax)[0].startswith("doubt (AURC ")


def test_risk_coverage_draws_curves_of_a_report():
    curves = [RiskCurve("mean", "DE", (0.5, 1.0), (0.1, 0.2), 0.15), RiskCurve("hv", "HV", (0.5, 1.0), (0.0, 0.2), 0.1)]
    ax = plots.risk_coverage(curves)
    assert [line.get_ydata().tolist() for line in ax.lines] == [[10.0, 20.0], [0.0, 20.0]]
    assert legend_texts(ax) == ["DE (AURC 15.00%)", "HV (AURC 10.00%)"]
    assert len(plots.risk_coverage(curves[0]).lines) == 1


def test_risk_coverage_emphasises_the_chosen_line():
    ax = plots.risk_coverage(RIGHT, {"a": CONFIDENCE, "b": CONFIDENCE}, chosen="b")
    assert ax.lines[1].get_color() == COLOURS["series-3"][0]
    assert ax.lines[0].get_color() != ax.lines[1].get_color()


@pytest.mark.parametrize(
    ("probs", "doubt", "sentence"),
    [
        ({}, None, "there is nothing to draw; give at least one name with its array."),
        (CONFIDENCE, {}, "there is nothing to draw; give at least one name with its array."),
        ({"a": CONFIDENCE}, {"b": CONFIDENCE}, "name in doubt 'b' is unknown; choose one of: a."),
        (CONFIDENCE, [0.1, 0.2], "doubt has shape (2,); give one number per sample, shape (6,)."),
        (CONFIDENCE, [np.nan] * 6, "doubt of sample 0 is nan; replace it by a finite number."),
    ],
)
def test_risk_coverage_rejects_names_and_doubts_that_do_not_fit(probs, doubt, sentence):
    with pytest.raises(errors.InvalidInputError) as caught:
        plots.risk_coverage(RIGHT, probs, doubt=doubt)
    assert str(caught.value) == sentence


# --- sweeps

POINTS = [
    SweepPoint("mean", 1, {"ece": 0.05, "nll": np.inf}),
    SweepPoint("atde", 1, {"ece": 0.04, "nll": 0.9}),
    SweepPoint("mean", 2, {"ece": 0.02, "nll": 0.5}),
]


def test_metric_sweep_draws_points_of_a_report_in_percent():
    ax = plots.metric_sweep(POINTS)
    lines = artists(ax, "line-")
    assert lines["line-mean"].get_xydata().tolist() == [[1.0, 5.0], [2.0, 2.0]]
    assert lines["line-atde"].get_xydata().tolist() == [[1.0, 4.0]]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("sources", "ECE (%)")
    assert legend_texts(ax) == ["DE", "aTDE"]
    assert plots.metric_sweep(tuple(POINTS), legend=False).get_legend() is None


def test_metric_sweep_leaves_a_gap_where_a_loss_is_infinite():
    ax = plots.metric_sweep(POINTS, "nll")
    heights = artists(ax, "line-mean")["line-mean"].get_ydata()
    assert np.isnan(heights[0])
    assert heights[1] == 0.5
    assert ax.get_ylabel() == "NLL"


@pytest.mark.compiled
def test_metric_sweep_of_an_array_needs_labels_and_takes_its_kind(rng):
    logits = np.log(random_ensemble(rng, 2, 30, 3))
    labels = rng.integers(0, 3, 30)
    ax = plots.metric_sweep(logits.swapaxes(0, 1), "accuracy", labels=labels, kind="logits", sources_axis=1)
    expected = 100 * np.mean(logits[0].argmax(axis=1) == labels)
    assert artists(ax, "line-mean")["line-mean"].get_ydata()[0] == pytest.approx(expected)
    with pytest.raises(errors.LabelError, match="this needs labels and the predictions have none"):
        plots.metric_sweep(logits, kind="logits")
    with pytest.raises(errors.ParameterError, match="there is one source"):
        plots.metric_sweep(logits[:1], labels=labels, kind="logits")


def test_metric_sweep_rejects_metrics_that_were_not_swept():
    with pytest.raises(errors.UnknownNameError, match=r"^metric 'aurc' is unknown; choose one of: ece, nll\.$"):
        plots.metric_sweep(POINTS, "aurc")


# --- style


def test_every_role_has_its_own_colour_in_both_themes():
    for theme in range(len(THEMES)):
        shades = [pair[theme] for pair in COLOURS.values()]
        assert len(set(shades)) == len(shades)


def test_usual_methods_keep_their_colours():
    roles = series_roles(["spline", "mean", "irm", "atde"], chosen="ptde-kde")
    assert (roles["mean"], roles["atde"], roles["ptde-kde"]) == ("series-0", "series-2", "series-3")
    assert len({roles[name] for name in ("spline", "mean", "irm", "atde", "ptde-kde")}) == 5
    assert series_roles(["mean"], chosen="mean")["mean"] == "series-0"


@pytest.mark.parametrize(
    ("name", "length", "expected"), [("abcdef", 6, "abcdef"), ("abcdef", 5, "abcd…"), ("a\nb", 9, r"a\nb")]
)
def test_long_names_are_shortened(name, length, expected):
    assert shortened(name, length) == expected


def test_theme_ends_with_an_error():
    with pytest.raises(ZeroDivisionError), plots.theme("dark"):
        raise ZeroDivisionError
    assert plots.risk_coverage(RIGHT, CONFIDENCE).lines[0].get_color() in {pair[0] for pair in COLOURS.values()}


def test_themes_can_be_nested():
    with plots.theme("dark"):
        with plots.theme("light"):
            inner = plots.risk_coverage(RIGHT, CONFIDENCE, chosen="confidence")
        outer = plots.risk_coverage(RIGHT, CONFIDENCE, chosen="confidence")
    assert (inner.lines[0].get_color(), outer.lines[0].get_color()) == COLOURS["series-3"]


def test_dollars_in_names_are_not_formulas():
    ax = plots.risk_coverage(RIGHT, {"a$b$": CONFIDENCE})
    ax.figure.canvas.draw()
    assert legend_texts(ax)[0].startswith("a$b$ (AURC")
