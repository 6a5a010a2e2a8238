"""Groups in splits, folds, resamples and floors; walk-forward evaluation; saved calibrators as methods."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from ensembles import random_ensemble

import veridical as vd
from veridical import errors, metrics
from veridical.cli.commands import program
from veridical.evaluation.engine import Engine, half_split
from veridical.metrics.groups import GroupCorrelation
from veridical.metrics.sample import Sample
from veridical.predictions.splitting import fold_indices

N_GROUPS, SIZE = 40, 10


@pytest.fixture
def groups():
    return np.repeat(np.arange(N_GROUPS), SIZE)


@pytest.fixture
def predictions(rng, groups):
    probs = random_ensemble(rng, 3, len(groups), 3)
    labels = (np.log(probs[0]) + rng.gumbel(size=probs[0].shape)).argmax(axis=1)
    return vd.Predictions(probs, labels, groups=groups)


def test_halves_and_folds_keep_groups_together(predictions, groups, rng):
    split = half_split(predictions, 3)
    assert not set(groups[split.fitted_on]) & set(groups[split.scored_on])
    assert abs(len(split.fitted_on) - len(groups) / 2) <= SIZE
    folds = fold_indices(len(groups), groups, 5, rng)
    assert sorted(np.concatenate(folds).tolist()) == list(range(len(groups)))
    assert [len(fold) for fold in folds] == [80] * 5
    assert all(len(np.unique(groups[fold])) * SIZE == len(fold) for fold in folds)
    uneven = np.repeat(np.arange(7), [50, 10, 10, 10, 10, 10, 10])
    assert sorted(len(fold) for fold in fold_indices(110, uneven, 2, rng)) in ([50, 60], [40, 70])


def test_auto_cross_validates_on_groups(predictions, groups):
    folds = []
    original = Engine.run

    def run(self, methods, split=None, **options):
        if split is not None:
            folds.append(split)
        return original(self, methods, split, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "run", run)
        vd.Auto(candidates=["temperature"], random_state=0).fit(predictions)
    assert len(folds) == 5
    for split in folds:
        assert not set(groups[split.fitted_on]) & set(groups[split.scored_on])


def test_auto_standard_error_grows_with_groups(predictions):
    def spread(given):
        rows = vd.Auto(candidates=["temperature"], random_state=0).fit(given).table_
        return {row["method"]: row["spread"] for row in rows}["identity"]

    copies = np.repeat(np.arange(len(predictions.labels)), 4)  # every sample four times: a group of its own
    copied = predictions.select(samples=copies)
    copied.groups = copies
    plain = vd.Predictions(copied.values, copied.labels)
    assert spread(copied) == pytest.approx(2 * spread(plain), rel=0.02)


def test_intervals_resample_whole_groups(rng):
    group_effect = np.repeat(rng.random(N_GROUPS) < 0.7, SIZE)  # all samples of a group have one outcome
    confidence = np.full(N_GROUPS * SIZE, 0.7)
    groups = np.repeat([f"g{k}" for k in range(N_GROUPS)], SIZE)
    width = {}
    for name, given in {"plain": None, "grouped": groups, "single": np.arange(N_GROUPS * SIZE)}.items():
        result = metrics.bootstrap("accuracy", group_effect, confidence, groups=given)
        width[name] = result.high - result.low
    assert width["grouped"] == pytest.approx(np.sqrt(SIZE) * width["plain"], rel=0.15)
    assert width["single"] == pytest.approx(width["plain"], rel=0.15)
    row = metrics.summary(group_effect, confidence, intervals=True, groups=groups)["accuracy"]
    assert row.high - row.low == pytest.approx(width["grouped"], rel=1e-9)
    with pytest.raises(errors.ShapeError, match=r"groups have shape \(3,\); give one group per sample"):
        metrics.bootstrap("accuracy", group_effect, confidence, groups=[1, 2, 3])


def test_floors_keep_correlation_within_groups(rng):
    n_groups, size = 200, 10
    groups = np.repeat(np.arange(n_groups), size)
    confidence = np.repeat(rng.uniform(0.5, 0.9, n_groups), size)
    together = np.repeat(rng.random(n_groups), size) < confidence  # one uniform number for a whole group
    apart = rng.random(n_groups * size) < confidence
    correlated, independent = (
        GroupCorrelation.of(Sample(confidence, outcomes, group=groups)).correlation for outcomes in (together, apart)
    )
    assert correlated > 0.7
    assert independent < 0.05
    floors = [metrics.summary(together, confidence, groups=given)["ece"].floor for given in (None, groups)]
    drawn = [
        metrics.ece(np.repeat(rng.random(n_groups), size) < confidence, confidence) for _ in range(200)
    ]  # what the error is under perfect calibration
    assert floors[0] < 0.6 * np.mean(drawn)
    assert floors[1] == pytest.approx(np.mean(drawn), rel=0.15)


def test_evaluation_uses_groups(predictions, groups):
    copies = np.repeat(np.arange(len(groups)), 4)
    copied = predictions.select(samples=copies)
    copied.groups = copies
    plain = vd.Predictions(copied.values, copied.labels)
    widths = []
    for given in (copied, plain):
        row = vd.evaluate(given, methods=["mean"], intervals=True, floors=False)["mean"].summary["nll"]
        widths.append(row.high - row.low)
    assert widths[0] == pytest.approx(2 * widths[1], rel=0.15)
    effects = [vd.inspect(given).value.sources[0].nll_without for given in (copied, plain)]
    assert (effects[0].high - effects[0].low) > 1.5 * (effects[1].high - effects[1].low)


def test_walk_forward_fits_on_the_past_only(rng, predictions):
    periods = np.repeat([1, 2, 3, 4], 100)
    evaluation = vd.evaluate(
        predictions, methods=["members", "mean", "temperature"], walk_forward=periods, floors=False
    )
    assert evaluation.protocol == "3 periods, after a fit on those before"
    losses = []
    for period in (2, 3, 4):
        past, now = np.flatnonzero(periods < period), np.flatnonzero(periods == period)
        fitted = vd.Temperature().fit(predictions.select(samples=past))
        probs = fitted.predict_proba(predictions.select(samples=now))
        losses += (-np.log(probs[np.arange(len(now)), predictions.labels[now]])).tolist()
    assert evaluation["temperature"].summary["nll"].value == pytest.approx(np.mean(losses), rel=1e-9)
    assert evaluation["mean"].summary.n_samples == 300
    as_groups = vd.Predictions(predictions.values, predictions.labels, groups=periods)
    again = vd.evaluate(as_groups, methods=["temperature"], walk_forward=True, floors=False)
    assert again["temperature"].summary["nll"].value == evaluation["temperature"].summary["nll"].value
    with pytest.raises(errors.ParameterError, match="the predictions have no groups"):
        vd.evaluate(vd.Predictions(predictions.values, predictions.labels), walk_forward=True)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
@pytest.mark.parametrize("dates", [False, True], ids=["texts", "dates"])
def test_walk_forward_command_reads_a_column(tmp_path, predictions, suffix, dates):
    months = np.repeat(["2024-9", "2024-10", "2024-11", "2024-12"], 100)
    if dates:
        months = pd.to_datetime(months).to_numpy()
    path = str(tmp_path / f"p{suffix}")
    if suffix == ".npz":
        np.savez(path, probs=predictions.values, labels=predictions.labels, month=months)
    else:
        samples = {"sample": range(400), "label": predictions.labels, "month": months}
        frames = [
            pd.DataFrame({**samples, "source": f"s{s}"} | dict(zip("abc", probs.T, strict=True)))
            for s, probs in enumerate(predictions)
        ]
        table = pd.concat(frames)
        table.to_csv(path, index=False) if suffix == ".csv" else table.to_parquet(path, index=False)
    loaded = vd.load(path, group_column="month")
    texts = months.astype("M8[D]").astype(str).tolist() if dates else months.tolist()
    midnight = " 00:00:00" if dates and suffix == ".parquet" else ""
    assert loaded.groups.tolist() == [text + midnight for text in texts]
    vd.save(loaded, tmp_path / "again.npz")
    assert vd.load(tmp_path / "again.npz").groups.tolist() == loaded.groups.tolist()
    expected = vd.evaluate(loaded, methods=["temperature"], walk_forward=True, floors=False)
    options = ["evaluate", path, "--methods", "temperature", "--no-intervals", "--no-floors", "--json"]
    for option in ("--walk-forward", "--time-column"):
        result = CliRunner().invoke(program, [*options, option, "month"])
        assert result.exit_code == 0, result.output
        scores = json.loads(result.stdout)
        assert scores["protocol"] == "3 periods, after a fit on those before"
        value = scores["methods"][0]["summary"]["nll"]["value"]
        assert value == pytest.approx(expected["temperature"].summary["nll"].value)
    with pytest.raises(errors.FileFormatError, match="has no column 'year'; it has: "):
        vd.load(path, group_column="year")


def test_group_column_needs_columns(tmp_path, predictions):
    np.save(tmp_path / "p.npy", predictions.values)
    with pytest.raises(errors.ParameterError, match=r"has no column 'month'; columns are read from \.npz, \.csv"):
        vd.load(tmp_path / "p.npy", group_column="month")


def test_saved_calibrator_is_scored_as_it_is(tmp_path, predictions):
    first, second = predictions.split(random_state=0)
    fitted = vd.Temperature().fit(first)
    path = str(tmp_path / "cal.json")
    fitted.save(path)
    probs = fitted.predict_proba(second)
    expected = metrics.nll(second.labels, probs)
    evaluation = vd.evaluate(second, methods=["mean", path, fitted], floors=False)
    assert evaluation.protocol == "all samples"
    assert [scores.method for scores in evaluation.methods] == ["mean", path, "fitted temperature"]
    for method in (path, "fitted temperature"):
        assert evaluation[method].summary["nll"].value == pytest.approx(expected, rel=1e-12)
    vd.save(second, tmp_path / "p.npz")
    result = CliRunner().invoke(
        program, ["evaluate", str(tmp_path / "p.npz"), "--methods", f"mean,{path}", "--no-intervals", "--json"]
    )
    assert result.exit_code == 0, result.output
    scores = {row["method"]: row for row in json.loads(result.stdout)["methods"]}
    assert scores[path]["summary"]["nll"]["value"] == pytest.approx(expected)
    assert "cal.json" in scores[path]["title"]
    with pytest.raises(errors.SavedFileError, match="there is no file"):
        vd.evaluate(second, methods=[str(tmp_path / "none.json")])
    other = vd.Predictions(random_ensemble(np.random.default_rng(0), 3, 50, 4), np.arange(50) % 4)
    with pytest.raises(errors.ShapeError, match="fitted for 3 classes and the predictions have 4"):
        vd.evaluate(other, methods=[path])


def test_saved_pool_matches_sources_by_name(tmp_path, predictions):
    named = vd.Predictions(predictions.values, predictions.labels, source_names=["a", "b", "c"])
    fitted = vd.Temperature(combine="linear-pool").fit(named)
    swapped = named.select(sources=["c", "a", "b"])
    scores = [
        vd.evaluate(given, methods=[fitted], floors=False).methods[0].summary["nll"] for given in (named, swapped)
    ]
    assert scores[0].value == pytest.approx(scores[1].value, rel=1e-9)
