"""Extended tables: floors, intervals, and which differences are real."""

import numpy as np
import pytest
from small_ensembles import small_ensemble

import veridical as vd
from veridical import paper
from veridical.metrics import SUMMARY_METRICS
from veridical.paper.extended import Extended
from veridical.paper.formats import verdict_table
from veridical.paper.posthoc import posthoc_tables, value_over_splits
from veridical.paper.tables import Value

EXTENDED = Extended(n_resamples=60, n_draws=30)


@pytest.mark.compiled
def test_floors_are_those_of_the_metrics():
    ensemble = small_ensemble(3, 300)
    table = paper.table1([ensemble], sources=[3], extended=Extended(n_resamples=10, n_draws=50, random_state=4))
    confidence = ensemble.engine(3).combined("mean").confidence
    values = table.row("DE").values
    assert {metric for metric, value in values.items() if value.floor is not None} == {"ece_kde", "ece", "ks_error"}
    for metric in ("ece", "ks_error"):
        floor = vd.metrics.noise_floor(metric, confidence, n_draws=50, random_state=4)
        assert values[metric].floor == pytest.approx(floor.mean)


@pytest.mark.compiled
def test_two_sources_have_no_real_differences():
    """Truth discovery of two sources is their mean."""
    table = paper.table1([small_ensemble(2, 400)], sources=[2], extended=EXTENDED)
    assert verdict_table(table).rows == ()
    assert "one in twenty" in paper.format_table(table).replace("\n", " ")


@pytest.mark.filterwarnings("error")
def test_infinite_values_have_no_deviation():
    assert value_over_splits([np.inf, np.inf], [None, None]) == Value(np.inf, None)
    assert value_over_splits([2.0, 2.0], [0.5, 0.7]) == Value(2.0, 0.0, floor=0.6)
    assert value_over_splits([2.0], [None]) == Value(2.0, None)


@pytest.mark.compiled
def test_extended_table1_keeps_its_values():
    ensembles = [small_ensemble(3, 300)]
    plain = paper.table1(ensembles, sources=[3])
    more = paper.table1(ensembles, sources=[3], extended=EXTENDED)
    for row in plain.rows:
        for metric, value in row.values.items():
            assert value.mean == more.row(row.method).values[metric].mean
    assert [row.method for row in more.rows] == [*(row.method for row in plain.rows), "consensus"]
    assert len(more.comparisons) == 6 * 6
    text = paper.format_table(more)
    assert "floor" in text
    assert "95%" in text
    assert "Real differences" in text
    for *_, method, beaten in verdict_table(more).texts():
        assert method not in beaten.split(", ")
    for row in more.rows:
        for value in row.values.values():
            assert value.low <= value.high


@pytest.mark.compiled
def test_extended_table2_has_every_calibrator():
    ensembles = [small_ensemble(3, 240)]
    table = paper.table2(ensembles, n_splits=2, extended=Extended(n_draws=5))
    labels = {row.method for row in table.rows}
    renamed = {"identity": "DE", "ets": "ETS", "irm": "IRM", "ptde-kde": "pTDE"}
    assert labels == {renamed.get(name, name) for name in vd.calibrators()} | {"TS"}
    assert table.metrics == SUMMARY_METRICS
    n_methods = len(table.rows)
    assert len(table.comparisons) == len(SUMMARY_METRICS) * n_methods * (n_methods - 1) // 2


@pytest.mark.compiled
def test_note_explains_two_temperature_scalings():
    ensembles, quick = [small_ensemble(2, 200)], Extended(n_draws=2)
    tables = posthoc_tables(["table2", "table3", "table4"], ensembles, n_splits=1, extended=quick)
    noted = [any("TS by squared error" in note for note in table.notes) for table in tables]
    assert noted == [True, False, True]
    for form in ("terminal", "markdown", "json"):
        assert "by likelihood" in paper.format_table(tables[0], form).replace("\n", " ")
    assert paper.table2(ensembles, n_splits=1).notes == ()
