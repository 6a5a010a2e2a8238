"""Evaluation and fits over blocks: from states, from sums, or on a subsample that is named."""

import json
import warnings

import numpy as np
import pytest
from blocked_ensembles import BLOCK_MEMORY, labelled_ensemble
from programs import veridical_in_process

import veridical as vd
from veridical import errors, scale
from veridical.calibrate.temperature_sums import TemperatureSums
from veridical.metrics import CalibrationState

pytestmark = pytest.mark.compiled

#: Calibrators that are fitted from states, and how near their confidences are to those of a fit in memory.
FROM_STATES = {"histogram": 2e-3, "isotonic": 2e-3, "platt": 1e-5, "spline": 1e-3}


@pytest.fixture
def opened(blocked_files):
    return scale.open(blocked_files / "probs.npy", blocked_files / "labels.npy", block_memory=BLOCK_MEMORY)


class TestEvaluate:
    def test_scores_are_those_in_memory_within_their_bounds(self, blocked_ensemble, opened):
        methods = ["members", "mean", "tde", "atde", "temperature", "platt"]
        whole, blocked = vd.evaluate(*blocked_ensemble, methods=methods), vd.evaluate(opened, methods=methods)
        assert blocked.protocol == whole.protocol == "held-out half"
        assert [scores.method for scores in blocked.methods] == [scores.method for scores in whole.methods]
        for scores in whole.methods:
            other = blocked[scores.method]
            assert other.labels_changed == scores.labels_changed
            assert other.summary.n_samples == scores.summary.n_samples
            assert other.gap == pytest.approx(scores.gap, abs=1e-6)
            for row in scores.summary:
                bound = other.summary[row.metric].bound
                assert other.summary[row.metric].value == pytest.approx(row.value, abs=bound + 1e-5), row.metric
                assert row.bound is None
                if row.floor is not None:
                    assert other.summary[row.metric].floor == pytest.approx(row.floor, rel=0.2)

    def test_blocks_of_any_size_give_the_same_states(self, blocked_ensemble):
        results = []
        for memory in (1 << 16, 1 << 17, 1 << 22):
            opened = scale.open(*blocked_ensemble, block_memory=memory)
            results.append(vd.evaluate(opened, methods=["members", "mean", "atde"], floors=False).to_dict())
        assert results[0] == results[1] == results[2]

    def test_absent_sources_are_counted_once(self, blocked_ensemble):
        probs = blocked_ensemble[0].copy()
        probs[1, 100:200] = np.nan
        probs[4] = np.nan
        opened = scale.open(probs, blocked_ensemble[1], block_memory=BLOCK_MEMORY)
        with pytest.warns(errors.AbsentSourceWarning) as caught:
            evaluation = vd.evaluate(opened, methods=["members", "mean"], floors=False)
        assert sorted(str(warning.message)[:20] for warning in caught) == [
            "3,100 of 15,000 pred",
            "source 4 has no pred",
        ]
        assert evaluation["source:1"].summary.n_samples == 2900

    def test_intervals_and_missing_labels_are_rejected(self, blocked_ensemble, opened):
        with pytest.raises(errors.ParameterError, match="intervals need all predictions in memory"):
            vd.evaluate(opened, intervals=True)
        with pytest.raises(errors.LabelError, match="needs labels"):
            vd.evaluate(scale.open(blocked_ensemble[0]))

    def test_bound_is_in_the_json(self, opened):
        summary = vd.evaluate(opened, methods=["mean"], floors=False).to_dict()["methods"][0]["summary"]
        assert 0 <= summary["ece"]["bound"] < 0.01
        assert summary["accuracy"]["bound"] == 0


class TestFit:
    @pytest.mark.parametrize("method", FROM_STATES)
    def test_fit_from_states_is_near_the_fit_in_memory(self, blocked_ensemble, opened, method):
        make = vd.calibrators()[method]
        blocked, whole = make().fit(opened), make().fit(*blocked_ensemble)
        gaps = np.abs(blocked.predict_confidence(blocked_ensemble[0]) - whole.predict_confidence(blocked_ensemble[0]))
        assert np.quantile(gaps, 0.99) < FROM_STATES[method]
        assert blocked.n_sources_ == 5

    @pytest.mark.parametrize("method", FROM_STATES)
    def test_weights_of_pairs_count_repetitions(self, method):
        rng = np.random.default_rng(0)
        confidence, times = rng.random(200), rng.integers(1, 5, 200)
        correct = rng.random(200) < confidence
        weighted, repeated = (vd.calibrators()[method]() for _ in range(2))
        weighted._fit_pairs(confidence, correct, times.astype(float))
        repeated._fit_pairs(np.repeat(confidence, times), np.repeat(correct, times))
        for name in weighted._state:
            first, second = getattr(weighted, name), getattr(repeated, name)
            np.testing.assert_allclose(first, second, atol=2e-3 if method == "spline" else 1e-8)

    @pytest.mark.parametrize(("loss", "sharpness"), [("nll", 0.3), ("mse", 3.0)])
    def test_temperature_of_streamed_sums(self, loss, sharpness):
        probs, labels = labelled_ensemble()
        probs = probs.astype(np.float64) ** sharpness
        probs /= probs.sum(axis=-1, keepdims=True)
        blocked = vd.Temperature(loss=loss).fit(scale.open(probs, labels, block_memory=BLOCK_MEMORY))
        assert blocked.temperature_ == pytest.approx(
            vd.Temperature(loss=loss).fit(probs, labels).temperature_, rel=1e-6
        )

    def test_temperature_far_from_the_first_block(self):
        probs, labels = labelled_ensemble()
        order = np.argsort(probs.mean(axis=0)[np.arange(3000), labels])  # the first samples are all wrong
        probs, labels = probs[:, order], labels[order]
        blocked = vd.Temperature().fit(scale.open(probs, labels, block_memory=BLOCK_MEMORY))
        assert blocked.temperature_ == pytest.approx(vd.Temperature().fit(probs, labels).temperature_, rel=1e-6)

    def test_temperature_stays_within_its_bounds(self):
        probs = np.tile([[0.9, 0.1], [0.2, 0.8]], (2, 2000, 1)).reshape(2, 4000, 2)
        labels = np.tile([0, 1], 2000)  # all right: the sharper the better
        fitted = vd.Temperature().fit(scale.open(probs, labels, block_memory=BLOCK_MEMORY))
        assert fitted.temperature_ == pytest.approx(1 / 50)
        sums = TemperatureSums("nll", None)._over(3.0, 100.0)
        assert sums.nodes[:-1].max() == pytest.approx(np.log(50))

    @pytest.mark.parametrize("method", ["ets", "consensus+temperature"])
    def test_other_methods_name_their_subsample(self, blocked_ensemble, method):
        opened = scale.open(*blocked_ensemble, block_memory=BLOCK_MEMORY)
        with pytest.warns(errors.SubsampleWarning, match=r"is fitted on \d+ of 3,000 samples.*random_state=0"):
            first = vd.fit_calibrator(opened, method=method)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", errors.SubsampleWarning)
            second = vd.fit_calibrator(opened, method=method)
        assert first.to_dict() == second.to_dict()
        probs = blocked_ensemble[0][:, :50]
        assert np.array_equal(first.calibrator.predict_proba(probs), second.calibrator.predict_proba(probs))

    def test_fit_state_of_merged_states(self, blocked_ensemble):
        probs, labels = blocked_ensemble
        mean = probs.mean(axis=0, dtype=np.float64)
        states = [CalibrationState().update(labels[k::3], mean[k::3]) for k in range(3)]
        fitted = vd.Isotonic().fit_state(states[0].merge(*states[1:]), n_classes=4, n_sources=5)
        whole = vd.Isotonic().fit(probs, labels)
        gaps = np.abs(fitted.predict_confidence(probs) - whole.predict_confidence(probs))
        assert np.quantile(gaps, 0.99) < 2e-3
        with pytest.raises(errors.ParameterError, match="needs more than confidences"):
            vd.MatrixScaling().fit_state(states[0], n_classes=4)
        with pytest.raises(errors.ParameterError, match="needs more than confidences"):
            vd.Isotonic(combine="log-pool").fit_state(states[0], n_classes=4)


class TestReport:
    def test_report_names_its_subsample(self, blocked_ensemble, tmp_path):
        opened = scale.open(*blocked_ensemble, block_memory=BLOCK_MEMORY)
        with pytest.warns(errors.SubsampleWarning, match=r"about 1,638 of 3,000 samples"):
            report = vd.build_report(opened, method="temperature", intervals=False, out=tmp_path / "report.html")
        assert report.data.verdict.startswith("About 1,638 of 3,000 samples, chosen at random (random_state=0). ")
        assert "About 1,638 of 3,000 samples" in (tmp_path / "report.html").read_text()
        hv = vd.discover(blocked_ensemble[0]).hv
        assert all(hv[sample.sample] == np.float32(sample.hv) for sample in report.data.disputed)


class TestCommands:
    def test_evaluate_in_blocks(self, blocked_files):
        arguments = ("evaluate", blocked_files / "probs.npy", "--labels", blocked_files / "labels.npy", "--json")
        whole = veridical_in_process(*arguments, "--no-intervals")
        blocked = veridical_in_process(*arguments, "--block-memory", "128K")
        assert (whole.returncode, blocked.returncode) == (0, 0), blocked.stderr
        first, second = json.loads(whole.stdout), json.loads(blocked.stdout)
        for a, b in zip(first["methods"], second["methods"], strict=True):
            assert b["summary"]["nll"]["value"] == pytest.approx(a["summary"]["nll"]["value"], abs=1e-9)
        rejected = veridical_in_process(*arguments, "--block-memory", "128K", "--intervals")
        assert rejected.returncode == 2
        assert "intervals" in rejected.stderr

    def test_calibrate_and_apply_in_blocks(self, blocked_files):
        source = (blocked_files / "probs.npy", "--labels", blocked_files / "labels.npy", "--block-memory", "128K")
        done = veridical_in_process("calibrate", *source, "--method", "platt", "--out", blocked_files / "cal.json")
        assert done.returncode == 0, done.stderr
        done = veridical_in_process(
            "apply", blocked_files / "cal.json", *source, "--out", blocked_files / "result.zarr"
        )
        assert done.returncode == 0, done.stderr
        assert "3000 samples" in " ".join(done.stdout.split())
        again = veridical_in_process(
            "apply", blocked_files / "cal.json", *source, "--out", blocked_files / "again.zarr", "--resume"
        )
        assert again.returncode == 0, again.stderr
        calibrated = vd.load(blocked_files / "result.zarr")
        assert np.array_equal(calibrated.values, vd.load(blocked_files / "again.zarr").values)

    def test_report_in_blocks(self, blocked_files):
        source = (blocked_files / "probs.npy", "--labels", blocked_files / "labels.npy", "--block-memory", "128K")
        done = veridical_in_process(
            "report", *source, "--method", "temperature", "--out", blocked_files / "report.html"
        )
        assert done.returncode == 0, done.stderr
        assert "samples, chosen at random" in done.stderr

    @pytest.mark.parametrize("size", ["much", "1.2.3G"])
    def test_bad_size_is_rejected(self, blocked_files, size):
        done = veridical_in_process("evaluate", blocked_files / "probs.npy", "--block-memory", size)
        assert done.returncode == 2
        assert "512M" in done.stderr

    def test_resume_needs_blocks(self, blocked_files):
        vd.Temperature().fit(*labelled_ensemble(500)).save(blocked_files / "cal.json")
        done = veridical_in_process(
            "apply", blocked_files / "cal.json", blocked_files / "probs.npy", "-o", blocked_files / "a.npz", "--resume"
        )
        assert done.returncode == 2
        assert "--block-memory" in done.stderr

    def test_large_files_are_read_in_blocks(self, blocked_files, monkeypatch):
        monkeypatch.setattr("veridical.blocks.opening.STREAM_ABOVE", 10_000)
        arguments = ("evaluate", blocked_files / "probs.npy", "--labels", blocked_files / "labels.npy", "--json")
        done = veridical_in_process(*arguments)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["data"]["sha256"] == ""


def test_large_maps_are_worked_on_in_blocks(blocked_files, monkeypatch):
    labels = np.load(blocked_files / "labels.npy")
    for predictions in (np.load(blocked_files / "probs.npy", mmap_mode="r"), vd.load(blocked_files / "probs.npy")):
        assert vd.evaluate(predictions, labels, methods=["mean"], floors=False)["mean"].summary["ece"].bound is None
        with monkeypatch.context() as patch:
            patch.setattr("veridical._dispatch.STREAM_ABOVE", 10_000)
            blocked = vd.evaluate(predictions, labels, methods=["mean"], floors=False)["mean"].summary
            assert blocked["ece"].bound is not None
            with_intervals = vd.evaluate(predictions, labels, methods=["mean"], floors=False, intervals=True)
            assert with_intervals["mean"].summary["ece"].low is not None
