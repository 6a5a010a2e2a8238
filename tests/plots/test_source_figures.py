"""Figures on sources: what is drawn where, with arrays and with results, and what is rejected."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawn import artists, close_figures  # noqa: F401
from ensembles import random_ensemble
from matplotlib.colors import to_rgba

import veridical as vd
from veridical import errors, plots
from veridical.evaluation.source_value import Effect, SourceValue, SourceValues
from veridical.plots.sources import matrix_legend, round_limits
from veridical.plots.style import COLOURS


@pytest.fixture(scope="module")
def predictions():
    rng = np.random.default_rng(2)
    probs = random_ensemble(rng, 4, 60, 3)
    probs[2] = rng.dirichlet(np.ones(3), 60)  # the outlier
    return vd.Predictions(probs, probs.mean(axis=0).argmax(axis=1), source_names=["a", "b", "noise", "d"])


def cells(ax):
    """Colour -> corners of the cells that have it, as (column, row)."""
    return {
        patch.get_facecolor(): sorted(map(tuple, patch.get_path().vertices.reshape(-1, 5, 2)[:, 0].tolist()))
        for patch in ax.patches
    }


# --- reliability of sources


def test_source_reliability_draws_accuracy_against_reliability(predictions):
    inspection = vd.inspect(predictions)
    for ax in (plots.source_reliability(inspection), plots.source_reliability(predictions)):
        dots = artists(ax, "source-")
        for s, source in enumerate(inspection.sources):
            assert dots[f"source-{s}"].get_xydata()[0] == pytest.approx(
                [100 * source.accuracy, 100 * source.mean_reliability]
            )
        assert ax.get_xlabel() == "accuracy (%)"
        assert ax.lines[0].get_ydata()[0] == 25  # an equal share


def test_source_reliability_names_the_outlier(predictions):
    ax = plots.source_reliability(vd.Predictions(predictions.values, source_names=predictions.source_names))
    assert [text.get_text() for text in ax.texts] == ["noise"]
    colours = [artists(ax, "source-")[f"source-{s}"].get_color() for s in range(4)]
    assert [s for s in range(4) if colours[s] == COLOURS["wrong"][0]] == [2]


@pytest.mark.parametrize("sources", [slice(None), [0, 2]], ids=["labelled", "two sources"])
def test_source_reliability_blames_no_source_with_labels_or_of_two(predictions, sources):
    ax = plots.source_reliability(predictions.select(sources=sources))
    assert list(ax.texts) == []
    assert {dot.get_color() for dot in artists(ax, "source-").values()} == {COLOURS["series-3"][0]}


def test_source_reliability_without_labels_shows_agreement(predictions):
    ax = plots.source_reliability(predictions.values)
    assert ax.get_xlabel() == "agreement with the mean (%)"
    agreement = 100 * np.mean(predictions.values[0].argmax(axis=1) == predictions.labels)
    assert artists(ax, "source-")["source-0"].get_xdata()[0] == pytest.approx(agreement)


def test_source_reliability_where_one_source_is_always_absent(predictions):
    values = predictions.values.copy()
    values[1] = np.nan
    ax = plots.source_reliability(vd.Predictions(values, predictions.labels))
    assert ax.get_xlabel() == "accuracy (%)"
    assert len(artists(ax, "source-")) == 3


# --- matrices


def test_dependence_matrix_of_an_inspection_shows_agreement_and_names(predictions):
    inspection = vd.inspect(predictions)
    ax = plots.dependence_matrix(inspection)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b", "noise", "d"]
    agreement = np.array(inspection.agreement)
    assert cells(ax) == cells(plots.dependence_matrix(agreement, limits=round_limits(agreement)))
    renamed = plots.dependence_matrix(inspection, list("wxyz"))
    assert [label.get_text() for label in renamed.get_xticklabels()] == list("wxyz")


def test_dependence_matrix_has_one_level_per_sixth_of_the_range():
    matrix = np.zeros((3, 3))
    matrix[0, 1], matrix[0, 2], matrix[1, 0], matrix[1, 2], matrix[2, 0], matrix[2, 1] = (
        0.0,
        0.15,
        0.25,
        0.35,
        0.45,
        0.6,
    )
    expected = {(1, 0): 0, (2, 0): 1, (0, 1): 2, (2, 1): 3, (0, 2): 4, (1, 2): 5}
    drawn = cells(plots.dependence_matrix(matrix, limits=(0, 0.6)))
    assert drawn == {to_rgba(COLOURS[f"level-{level}"][0]): [cell] for cell, level in expected.items()}


def test_dependence_matrix_ignores_the_diagonal_and_unknown_pairs():
    matrix = np.array([[9.0, 0.2, np.nan], [0.2, -7.0, 0.4], [0.4, 0.4, np.nan]])
    ax = plots.dependence_matrix(matrix)
    assert sum(len(corners) for corners in cells(ax).values()) == 5
    assert ax.get_legend().get_texts()[0].get_text() == "0–17%"


def test_matrix_legend_of_equal_values_is_one_entry():
    assert matrix_legend(np.array([[1.0, 3.0], [3.0, 1.0]])) == [("level-0", "3")]


def test_dependence_matrix_of_shares_has_a_fixed_scale():
    noise = np.array([[1.0, 0.0, 0.001], [0.0, 1.0, 0.0], [0.001, 0.0, 1.0]])
    ax = plots.dependence_matrix(noise)
    assert set(cells(ax)) == {to_rgba(COLOURS["level-0"][0])}
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["0–17%", "17–33%", "33–50%", "50–67%", "67–83%", "83–100%"]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.873, 0.888, (0.87, 0.93)), (0.98, 1.0, (0.94, 1.0)), (0.42, 0.51, (0.42, 0.54)), (0.1, 0.95, (0.0, 1.0))],
)
def test_round_limits_hold_all_shares_in_steps_of_a_hundredth_at_least(low, high, expected):
    assert round_limits(np.array([[1.0, low], [high, 1.0]])) == expected


@pytest.mark.parametrize("limits", [(1, 0), (0, 0), (0,), (0, np.inf), "wide", 3])
def test_dependence_matrix_rejects_other_limits(limits):
    with pytest.raises(errors.VeridicalError, match="limits"):
        plots.dependence_matrix(np.eye(2), limits=limits)


def test_dependence_matrix_without_legend():
    ax = plots.dependence_matrix(np.eye(2), legend=False)
    assert ax.get_legend() is None
    assert [label.get_text() for label in ax.get_xticklabels()] == ["source 0", "source 1"]


def test_dependence_matrix_takes_numbers_as_names():
    ax = plots.dependence_matrix(np.eye(2), [7, 9])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["7", "9"]


def test_dependence_matrix_of_many_sources_has_no_names():
    ax = plots.dependence_matrix(np.random.default_rng(0).random((62, 62)))
    assert {label.get_text() for label in ax.get_xticklabels()} == {""}


@pytest.mark.parametrize(
    ("matrix", "sentence"),
    [
        (np.ones((2, 3)), "matrix has shape (2, 3); give one row and one column per source, two at least."),
        (np.ones(4), "matrix has shape (4,); give one row and one column per source, two at least."),
        ([[1.0]], "matrix has shape (1, 1); give one row and one column per source, two at least."),
        (
            [[1.0, np.inf], [0.5, 1.0]],
            "matrix is infinite somewhere or NaN everywhere; give numbers, and NaN for unknown pairs.",
        ),
        (
            [[1.0, np.nan], [np.nan, 1.0]],
            "matrix is infinite somewhere or NaN everywhere; give numbers, and NaN for unknown pairs.",
        ),
    ],
)
def test_dependence_matrix_rejects_what_it_cannot_draw(matrix, sentence):
    with pytest.raises(errors.InvalidInputError) as caught:
        plots.dependence_matrix(matrix)
    assert str(caught.value) == sentence
    assert plt.get_fignums() == []


def test_dependence_matrix_rejects_other_numbers_of_names():
    with pytest.raises(errors.ShapeError, match=r"^there are 3 source names for 2 sources; give one name each\.$"):
        plots.dependence_matrix(np.eye(2), ["a", "b", "c"])


# --- HV against confidence


@pytest.mark.parametrize(
    "draw",
    [
        lambda **axes: plots.hv_against_confidence([0.1, 0.2], [0.5, 0.6], **axes),
        lambda **axes: plots.source_value(values_of((0.1, 0.3)), **axes),
        lambda **axes: plots.dependence_matrix(np.eye(2), **axes),
    ],
)
def test_plots_of_sources_use_the_axes_they_are_given(draw):
    _, ax = plt.subplots()
    assert draw(ax=ax) is ax
    assert plt.get_fignums() == [ax.figure.number]


def test_hv_against_confidence_of_predictions_is_that_of_their_parts(predictions):
    mean, truth = vd.discover(predictions, max_iter=0), vd.discover(predictions)
    right = mean.prediction == predictions.labels
    whole = plots.hv_against_confidence(predictions)
    parts = plots.hv_against_confidence(truth.hv, mean.probs.max(axis=1), right)
    assert cells(whole) == cells(parts)
    assert (whole.get_xlabel(), whole.get_ylabel()) == ("confidence of the mean", "HV")


def test_hv_against_confidence_leaves_samples_without_label_out(predictions):
    labels = predictions.labels.copy()
    labels[::2] = -1
    some = plots.hv_against_confidence(vd.Predictions(predictions.values, labels))
    known = plots.hv_against_confidence(predictions.select(samples=slice(1, None, 2)))
    assert cells(some) == cells(known)


def test_hv_against_confidence_draws_the_median():
    hv, confidence = np.array([0.1, 0.3, 0.5]), np.array([0.5, 0.5, 1.0])
    ax = plots.hv_against_confidence(hv, confidence)
    heights = ax.lines[0].get_ydata()
    assert heights[0] == pytest.approx(0.2)
    assert heights[-1] == 0.5
    assert np.isnan(heights[1:-1]).all()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([0.1, np.nan], [0.5, 0.6]), "hv of sample 1 is nan; replace it by a finite number."),
        (([0.1, 0.2], [0.5, 1.6]), "confidence of sample 1 is 1.6; confidences are probabilities, from 0 to 1."),
        (([0.1, 0.2], [np.nan, 0.6]), "confidence of sample 0 is nan; replace it by a number from 0 to 1."),
        (([0.1],), "confidence is missing; give one number per sample, or predictions in place of hv."),
        (
            ([0.1, 0.2], [0.5, 0.6], [True]),
            "hv, confidence and correct differ in shape or are empty; give one number per sample.",
        ),
        (([0.1, 0.2], [0.5]), "hv, confidence and correct differ in shape or are empty; give one number per sample."),
        (([], []), "hv, confidence and correct differ in shape or are empty; give one number per sample."),
    ],
)
def test_hv_against_confidence_rejects_bad_numbers(arguments, sentence):
    with pytest.raises(errors.InvalidInputError) as caught:
        plots.hv_against_confidence(*arguments)
    assert str(caught.value) == sentence


def test_hv_against_confidence_rejects_labels_as_outcomes_and_unknown_sides():
    with pytest.raises(errors.LabelError, match="correct has dtype int64 beside one confidence per sample"):
        plots.hv_against_confidence([0.1, 0.2], [0.5, 0.6], [3, 0])
    with pytest.raises(errors.UnknownNameError, match=r"^side 'left' is unknown; choose one of: all, right, wrong\.$"):
        plots.hv_against_confidence([0.1, 0.2], [0.5, 0.6], side="left")


# --- value of sources


def values_of(*intervals):
    zero = Effect(0.0, 0.0, 0.0)
    sources = tuple(
        SourceValue(f"source {s}", 0.8, 0.5, Effect((low + high) / 2, low, high), zero, 0.3, 0.7)
        for s, (low, high) in enumerate(intervals)
    )
    return SourceValues(sources, 0.8, 0.5, 0, zero, zero, (0,), zero, zero, 100)


def test_source_value_draws_intervals_and_colours_clear_effects():
    ax = plots.source_value(values_of((0.1, 0.3), (-0.1, 0.1), (-0.3, -0.1)))
    lines, dots = artists(ax, "interval-"), artists(ax, "value-")
    assert [line.get_xdata().tolist() for line in lines.values()] == [[0.1, 0.3], [-0.1, 0.1], [-0.3, -0.1]]
    assert [line.get_ydata().tolist() for line in lines.values()] == [[0, 0], [1, 1], [2, 2]]
    expected = [COLOURS[role][0] for role in ("series-2", "series-0", "wrong")]
    assert [dot.get_color() for dot in dots.values()] == expected
    assert [label.get_text() for label in ax.get_yticklabels()] == ["source 0", "source 1", "source 2"]
    assert ax.get_ylim() == (2.5, -0.5)  # the first source is at the top


def test_source_value_needs_several_sources(predictions):
    assert len(artists(plots.source_value(predictions), "value-")) == 4
    for few in (predictions.select(sources=[0]), vd.Predictions(predictions.values)):
        with pytest.raises(errors.ParameterError) as caught:
            plots.source_value(few)
        assert str(caught.value) == "the value of sources needs labels and at least two sources; give both."
