"""Figures: their numbers, and the same bytes for the same numbers."""

import numpy as np
import pytest
from small_ensembles import small_ensemble, small_predictions

import veridical as vd
from veridical import paper
from veridical.errors import ParameterError, UnknownNameError
from veridical.paper.figures import figure_bytes
from veridical.plots.style import FIGURE_FORMATS

SIGNATURES = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}


@pytest.fixture(scope="module")
def drawings():
    ensembles = [small_ensemble(3, 300, "a"), small_ensemble(4, 300, "b")]
    one, two = paper.table1(ensembles[:1], sources=[2, 3], updates=6), paper.table1(ensembles, sources=[2, 3])
    bins = [panel for ensemble in ensembles for panel in paper.bins_before_after(ensemble)]
    grids = [panel for ensemble in ensembles for panel in paper.disagreement_by_score(ensemble)]
    return {
        "figure2": lambda: paper.draw_figure2(one),
        "figure2 of two": lambda: paper.draw_figure2(two),
        "figure3": lambda: paper.draw_figure3(bins),
        "figureA": lambda: paper.draw_figure_a(grids),
    }


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["figure2", "figure2 of two", "figure3", "figureA"])
def test_figures_have_the_same_bytes_each_time(drawings, name):
    first, second = drawings[name](), drawings[name]()
    for form in FIGURE_FORMATS:
        content = figure_bytes(first, form)
        assert content.startswith(SIGNATURES[form])
        assert content == figure_bytes(second, form)
        for dated in (b"CreationDate", b"<dc:date>", b"matplotlib version"):
            assert dated not in content


def test_figure2_marks_published_numbers_with_crosses():
    name = paper.EnsembleName("CIFAR100", "PreResNet164", "deep")
    ensemble = paper.Ensemble(name, small_predictions(10, 120))
    figure = paper.draw_figure2(paper.table1([ensemble], sources=[5, 10]))
    ece = figure.axes[1]
    crosses = [line for line in ece.lines if line.get_marker() == "x"]
    assert [(line.get_xdata()[0], round(line.get_ydata()[0], 6)) for line in crosses] == [
        (10, 1.86),
        (10, 3.27),
        (10, 3.18),
    ]
    assert "ECE" in ece.get_ylabel()


def test_figure2_draws_the_tables_numbers():
    table = paper.table1([small_ensemble(4, 200)])
    figure = paper.draw_figure2(table)
    for axes, metric in zip(figure.axes, table.metrics, strict=True):
        for line, method in zip(axes.lines, ("DE", "TDE", "aTDE"), strict=True):
            rows = [row for row in table.rows if row.method == method]
            np.testing.assert_array_equal(line.get_xdata(), [row.sources for row in rows])
            scaled = [vd.metrics.METRICS[metric].scaled(row.values[metric].mean) for row in rows]
            np.testing.assert_array_equal(line.get_ydata(), scaled)


@pytest.mark.compiled
def test_figure3_bins_hold_every_scored_sample():
    (panel,) = paper.bins_before_after(small_ensemble(4, 601))
    before, after = panel.counts
    assert sum(before) == sum(after) == 301
    assert max(before) - min(before) <= 15  # equal mass before; the last bin takes the remainder
    right = [np.nansum(np.multiply(c, a)) for c, a in zip(panel.counts, panel.accuracy, strict=True)]
    assert right[0] == pytest.approx(right[1])  # the calibrator changes no label
    for k in (0, 1):
        filled = np.asarray(panel.counts[k]) > 0
        confidence = np.asarray(panel.confidence[k])[filled]
        assert (confidence >= np.asarray(panel.edges)[:-1][filled]).all()
        assert (confidence <= np.asarray(panel.edges)[1:][filled]).all()


@pytest.mark.compiled
def test_figure3_shows_smaller_gaps_after_calibration():
    (panel,) = paper.bins_before_after(paper.open_ensembles()[0], method="ptde-kde")
    gaps = [
        np.nansum(np.multiply(panel.counts[k], np.abs(np.subtract(panel.confidence[k], panel.accuracy[k]))))
        for k in (0, 1)
    ]
    assert gaps[1] < gaps[0] / 2


def test_figure3_rejects_unknown_calibrator():
    with pytest.raises(UnknownNameError, match="opt-hist"):
        paper.bins_before_after(small_ensemble(2, 50), method="magic")


def test_figure_a_counts_every_sample():
    ensemble = small_ensemble(4, 500)
    (panel,) = paper.disagreement_by_score(ensemble)
    assert np.sum(panel.counts) == 500
    truth = vd.discover(ensemble.predictions)
    assert panel.hv_edges[-1] == pytest.approx(truth.hv.max())
    assert panel.spearman < -0.5  # sources that agree are confident
    assert len(panel.centres) == 15


def test_figure_a_draws_unanimous_sources():
    probs = np.tile(np.array([[0.75, 0.25], [0.625, 0.375], [0.125, 0.875]] * 10), (3, 1, 1))
    ensemble = paper.Ensemble(paper.EnsembleName("unanimous"), vd.Predictions(probs, [0, 1, 1] * 10))
    panels = paper.disagreement_by_score(ensemble)
    assert np.isnan(panels[0].spearman)
    assert figure_bytes(paper.draw_figure_a(panels), "png").startswith(b"\x89PNG")


def test_save_figure_follows_the_ending(tmp_path):
    figure = paper.draw_figure2(paper.table1([small_ensemble(2, 60)]))
    paper.save_figure(figure, tmp_path / "figure.PDF")
    assert (tmp_path / "figure.PDF").read_bytes().startswith(b"%PDF")
    with pytest.raises(ParameterError, match=r"\.svg, \.png or \.pdf"):
        paper.save_figure(figure, tmp_path / "figure.gif")
    assert [path.name for path in tmp_path.iterdir()] == ["figure.PDF"]


def test_figure3_accepts_short_names():
    (panel,) = paper.bins_before_after(small_ensemble(3, 200), method="ptde")
    (full,) = paper.bins_before_after(small_ensemble(3, 200), method="ptde-kde")
    assert panel.method == "ptde-kde"
    assert (panel.edges, panel.counts) == (full.edges, full.counts)
