"""What inspect says about sources."""

import json
import math

import numpy as np
import pytest
from ensembles import random_ensemble

import veridical as vd
from veridical._json import to_json

pytestmark = pytest.mark.compiled


@pytest.fixture
def probs(rng):
    return random_ensemble(rng, 5, 300, 4)


def test_facts(probs, rng):
    labels = probs.mean(axis=0).argmax(axis=1)
    inspection = vd.inspect(vd.Predictions(probs, labels))
    for s, source in enumerate(inspection.sources):
        assert source.accuracy == (probs[s].argmax(axis=1) == labels).mean()
        assert source.accuracy == source.agreement
        assert source.mean_confidence == pytest.approx(probs[s].max(axis=1).mean())
        for t in range(5):
            assert inspection.agreement[s][t] == (probs[s].argmax(axis=1) == probs[t].argmax(axis=1)).mean()
    assert sum(source.mean_reliability for source in inspection.sources) == pytest.approx(1)
    assert inspection.warnings == ()
    assert "<table>" in inspection._repr_html_()


def test_outlier_is_named(probs, rng):
    probs[3] = rng.dirichlet(np.ones(4), 300)
    labels = probs[[0, 1, 2, 4]].mean(axis=0).argmax(axis=1)
    inspection = vd.inspect(vd.Predictions(probs, labels, source_names=["a", "b", "c", "noise", "e"]))
    assert inspection.outlier == 3
    assert any("noise is right on" in warning and "log-pool" in warning for warning in inspection.warnings)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p: p[:1], "one source"),
        (lambda p: p[:2], "two sources"),
        (lambda p: p[[0, 1, 2, 1]], "source 3 and source 1 are identical"),
    ],
)
def test_warnings(probs, change, words):
    assert any(words in warning for warning in vd.inspect(change(probs)).warnings)


def test_missing_rows_are_counted(probs):
    probs[1, :10] = np.nan
    inspection = vd.inspect(probs)
    assert inspection.sources[1].missing == 10
    assert any("10 of 1500 rows are absent" in warning for warning in inspection.warnings)


def test_source_without_predictions_is_not_an_outlier(probs):
    probs[1] = np.nan
    inspection = vd.inspect(probs)
    absent = inspection.sources[1]
    assert all(map(math.isnan, (absent.mean_confidence, absent.mean_reliability, absent.agreement)))
    assert inspection.outlier != 1
    assert inspection.n_present == 4
    others = [source.agreement for s, source in enumerate(inspection.sources) if s != 1]
    assert inspection.mean_agreement == pytest.approx(np.mean(others))
    assert inspection.rows()[1][1][1:] == ["", "", "", "", "300"]
    plain = json.loads(to_json(inspection.to_dict()))
    assert plain["sources"][1]["agreement"] is None
    assert plain["agreement"][0][1] is None


def test_reliability_is_about_the_samples_of_a_source(probs):
    """A source that is absent for half of the samples is not trusted half as much."""
    halved = probs.copy()
    halved[1, :150] = np.nan
    whole, half = vd.inspect(probs[:, 150:]), vd.inspect(halved)
    assert half.sources[1].mean_reliability == pytest.approx(whole.sources[1].mean_reliability)
    assert whole.equal_share == 1 / 5
    assert half.equal_share == pytest.approx(300 / (5 * 300 - 150))


def test_sources_without_common_samples_have_no_agreement(probs, rng):
    probs[0, :150] = np.nan
    probs[1, 150:] = np.nan
    inspection = vd.inspect(vd.Predictions(probs, rng.integers(0, 4, 300)))
    assert math.isnan(inspection.agreement[0][1])
    others = [share for t, share in enumerate(inspection.agreement[0]) if t not in (0, 1)]
    assert inspection.value.sources[0].agreement == pytest.approx(np.mean(others))


def test_inspect_calibrator_shows_what_the_calibrator_remembers(tmp_path):
    demo = vd.load_demo().select(sources=slice(3), samples=slice(300))
    logits = vd.Predictions(demo.values, demo.labels, kind="logits", source_names=["a", "b", "c"])
    vd.Temperature().fit(logits).save(tmp_path / "cal.json")
    facts = vd.inspect_calibrator(vd.load_calibrator(tmp_path / "cal.json"))
    shown = dict(facts.rows()[1])
    assert (facts.kind, facts.source_names, facts.class_names) == ("logits", ["a", "b", "c"], None)
    assert (shown["kind"], shown["source names"]) == ("logits", "a, b, c")
    assert facts.parameters["kind"] == "probs"
    assert facts.to_dict()["kind"] == "logits"


def test_inspect_calibrator_describes_auto(tmp_path):
    demo = vd.load_demo().select(samples=slice(0, 500))
    pooled = vd.inspect_calibrator(vd.VectorScaling(combine="log-pool").fit(demo))
    assert (pooled.method, pooled.n_sources, pooled.n_classes, pooled.keeps_labels) == ("vector", 20, 10, False)
    assert len(pooled.source_weights) == 20
    shown = dict(pooled.rows()[1])
    assert shown["weights of sources"].startswith("20 numbers from ")
    assert (shown["classes"], shown["keeps labels"]) == ("10", "no")
    fitted = vd.Temperature().fit(demo)
    alone = vd.inspect_calibrator(fitted)
    assert alone.fitted["temperature_"] == fitted.temperature_
    assert alone.source_weights is None
    assert json.loads(json.dumps(alone.to_dict()))["type"] == "calibrator"
    assert "temperature" in alone._repr_html_()
    auto = vd.Auto(candidates=["ts", "platt"], random_state=0).fit(demo)
    inspection = vd.inspect_calibrator(auto)
    assert inspection.chosen == f"{auto.best_.name} on mean"
    assert [row["method"] for row in inspection.candidates] == [row["method"] for row in auto.table_]
    assert sum(row[0].endswith("*") for row in inspection.candidate_table().texts()) == 1
    with pytest.raises(vd.errors.ParameterError, match="not fitted"):
        vd.inspect_calibrator(vd.Temperature())
