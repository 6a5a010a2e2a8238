"""Auto: what it tries, what it chooses, what it remembers."""

import numpy as np
import pytest
from calibration_cases import labelled_ensemble

import veridical as vd
from veridical.errors import ParameterError, UnknownNameError


def calibrated(rng, n_samples=2000):
    """Scores that need no calibration."""
    top = rng.uniform(0.5, 1, n_samples)
    return np.column_stack((top, 1 - top)), (rng.random(n_samples) > top).astype(int)


def over_confident(rng, n_samples=3000):
    """Scores of which a third of the way to 1/2 is right."""
    top = rng.uniform(0.7, 1, n_samples)
    return np.column_stack((top, 1 - top)), (rng.random(n_samples) > top - 0.2).astype(int)


@pytest.mark.parametrize("objective", ["confidence", "distribution"])
def test_leaves_calibrated_scores_alone(rng, objective):
    chosen = vd.Auto(objective=objective, random_state=0).fit(*calibrated(rng))
    assert chosen.best_.name == "identity"


@pytest.mark.parametrize("objective", ["confidence", "distribution"])
def test_calibrates_what_needs_it(rng, objective):
    probs, labels = over_confident(rng)
    chosen = vd.Auto(objective=objective, random_state=0).fit(probs, labels)
    assert chosen.best_.name != "identity"
    scores = {row["method"]: row["score"] for row in chosen.table_ if row["combine"] == "mean"}
    assert scores[chosen.best_.name] < scores["identity"]
    assert abs(chosen.predict_confidence(probs).mean() - (labels == 0).mean()) < 0.02


def test_takes_the_simplest_within_one_standard_error(rng):
    probs, labels = over_confident(rng)
    chosen = vd.Auto(random_state=0).fit(probs, labels)
    known = vd.calibrators()
    rows = {row["method"]: row for row in chosen.table_}
    mine = rows[chosen.best_.name]
    assert mine["behind"] <= mine["behind_spread"]
    for row in chosen.table_:
        if row["behind"] <= row["behind_spread"] and row["combine"] == "mean":
            assert known[row["method"]].complexity >= known[chosen.best_.name].complexity
    assert chosen.table_[0]["behind"] == 0.0
    assert [row["score"] for row in chosen.table_] == sorted(row["score"] for row in chosen.table_)


def test_keeps_labels_unless_told_otherwise(rng):
    probs, labels = labelled_ensemble(rng, n_samples=400)
    kept = vd.Auto(objective="distribution", random_state=0).fit(probs, labels)
    assert (kept.predict(probs) == probs.mean(axis=0).argmax(axis=1)).all()
    assert all(vd.calibrators()[row["method"]].keeps_labels for row in kept.table_)
    free = vd.Auto(objective="distribution", keep_labels=False, random_state=0).fit(probs, labels)
    assert {("log-pool", "vector"), ("mean", "matrix"), ("linear-pool", "linear-pool")} <= {
        (row["combine"], row["method"]) for row in free.table_
    }


def test_reports_progress(rng):
    calls = []
    probs, labels = labelled_ensemble(rng, n_samples=60)
    vd.Auto(candidates=["platt"], n_folds=3, random_state=0).fit(
        probs, labels, progress=lambda *call: calls.append(call)
    )
    assert [done for done, _, _ in calls] == list(range(7))
    assert {total for _, total, _ in calls} == {6}
    calls.clear()
    vd.Platt().fit(probs, labels, progress=lambda *call: calls.append(call))
    assert [done for done, _, _ in calls] == [0, 1, 2]


def test_candidates(rng):
    probs, labels = labelled_ensemble(rng, n_samples=100)
    chosen = vd.Auto(candidates=[("atde", "temperature"), "platt"], random_state=0).fit(probs, labels)
    assert {(row["combine"], row["method"]) for row in chosen.table_} == {
        ("mean", "identity"),
        ("atde", "temperature"),
        ("mean", "platt"),
    }
    with pytest.raises(ParameterError, match="keep_labels=False"):
        vd.Auto(candidates=["log-pool"]).fit(probs, labels)
    with pytest.raises(UnknownNameError, match="candidate 'magic' is unknown"):
        vd.Auto(candidates=["magic"]).fit(probs, labels)
    with pytest.raises(UnknownNameError, match="candidate 'auto'"):
        vd.Auto(candidates=["auto"]).fit(probs, labels)


def test_sources_are_used_where_there_are_some(rng):
    probs, labels = labelled_ensemble(rng, n_samples=100)
    with_sources = vd.Auto(random_state=0).fit(probs, labels)
    without = vd.Auto(random_state=0).fit(probs.mean(axis=0), labels)
    methods = [{row["method"] for row in chosen.table_} for chosen in (with_sources, without)]
    assert methods[0] - methods[1] == {"aconsensus", "ptde-hist", "ptde-kde", "truth-logit"}


def test_one_sample_gets_no_calibration(rng):
    probs, labels = labelled_ensemble(rng, n_samples=1)
    assert vd.Auto().fit(probs, labels).best_.name == "identity"


def test_folds_are_decided_by_random_state(rng):
    probs, labels = labelled_ensemble(rng, n_samples=200)
    tables = [
        vd.Auto(candidates=["platt", "spline"], random_state=seed).fit(probs, labels).table_ for seed in (0, 0, 1)
    ]
    assert tables[0] == tables[1]
    assert tables[0] != tables[2]


def test_candidates_by_their_short_names(rng):
    probs, labels = labelled_ensemble(rng, n_samples=100)
    chosen = vd.Auto(candidates=["TS", "ptde", ("DE", "opt")], random_state=0).fit(probs, labels)
    assert {(row["combine"], row["method"]) for row in chosen.table_} == {
        ("mean", name) for name in ("identity", "temperature", "ptde-kde", "opt-kde")
    }


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ([("a", "b", "c")], r"candidate \('a', 'b', 'c'\) is neither a method's name nor a \(combine, method\) pair"),
        ([7], "candidate 7 is neither"),
        ([("mean", 7)], "is neither"),
        ("temperature", "candidates is 'temperature'; give a list"),
        (7, "candidates is 7; give a list"),
        ([(None, "temperature")], "is neither"),
    ],
)
def test_unclear_candidates(rng, candidates, message):
    probs, labels = labelled_ensemble(rng, n_samples=20)
    with pytest.raises(ParameterError, match=message):
        vd.Auto(candidates=candidates).fit(probs, labels)


def test_says_whether_labels_are_kept(rng):
    assert vd.Auto().keeps_mean_labels is True
    assert vd.Auto(keep_labels=False).keeps_mean_labels is False
    probs, labels = labelled_ensemble(rng, n_samples=200)
    assert vd.Auto(candidates=["temperature"], random_state=0).fit(probs, labels).keeps_mean_labels is True
    # Free to change labels, and with nothing chosen that does.
    free = vd.Auto(candidates=["temperature"], keep_labels=False, random_state=0).fit(probs, labels)
    assert free.keeps_mean_labels is True
    # Two sources that know, and one that is sure of nonsense: only a pool is any good.
    noise = rng.dirichlet(np.full(4, 0.05), 200)
    noise = (noise + 1e-6) / (noise + 1e-6).sum(axis=1, keepdims=True)
    mixed = np.concatenate([probs[:2], noise[None], noise[None]])
    pool = vd.Auto(objective="distribution", candidates=["log-pool"], keep_labels=False, random_state=0).fit(
        mixed, labels
    )
    assert pool.best_.name == "log-pool"
    assert pool.keeps_mean_labels is False


def test_candidates_that_need_sources_are_not_left_out_in_silence(rng):
    probs, labels = labelled_ensemble(rng)
    with pytest.raises(vd.errors.ShapeError, match="candidate 'ptde-kde' needs every source's predictions"):
        vd.Auto(candidates=["ts", "ptde"]).fit(probs[0], labels)
