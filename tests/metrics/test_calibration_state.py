"""Mergeable calibration states: sums that do not depend on order, and values within their bounds."""

import json

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from veridical import errors, metrics
from veridical.metrics import CalibrationState

EXACT = {
    "ece": metrics.ece,
    "ece_width": lambda y, p, **options: metrics.ece(y, p, binning="width", **options),
    "ece_kde": lambda y, p, n_bins: metrics.ece_kde(y, p),
    "ks_error": lambda y, p, n_bins: metrics.ks_error(y, p),
    "accuracy": lambda y, p, n_bins: metrics.accuracy(y, p),
}

#: Confidences with ties, on edges of common bins and grids, and anywhere.
CONFIDENCES = st.one_of(
    st.sampled_from([0.0, 1.0, 0.5, 0.1, 0.3, 0.7, 0.9999, 1 / 15, 14 / 15, 0.25, 0.123]),
    st.integers(0, 60).map(lambda k: k / 60),
    st.floats(0, 1),
)


def distributions(rng, n_samples, n_classes=4, dtype=np.float64):
    """(labels, probabilities); rows of float16 and float32 do not sum to one exactly."""
    logits = 3 * rng.standard_normal((n_samples, n_classes))
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (probs.cumsum(axis=1) < rng.random((n_samples, 1))).sum(axis=1)
    return np.minimum(labels, n_classes - 1), probs.astype(dtype)


def smooth_samples(rng, name, n_samples):
    """(correct, confidence) of a smooth distribution of confidences."""
    confidence = {
        "under-confident": lambda: rng.beta(2, 2, n_samples),
        "over-confident": lambda: rng.beta(5, 1.2, n_samples),
        "calibrated": lambda: rng.beta(4, 1.5, n_samples),
        "sharp": lambda: 1 / (1 + np.exp(-rng.normal(4, 2, n_samples))),
        "uniform": lambda: rng.random(n_samples),
    }[name]()
    accuracy = {"under-confident": confidence**0.7, "over-confident": confidence**1.3, "sharp": confidence**1.1}
    return rng.random(n_samples) < accuracy.get(name, confidence), confidence


class TestMerge:
    @settings(max_examples=examples(100))
    @given(st.integers(1, 60), st.integers(0, 10**6), st.sampled_from([np.float16, np.float32, np.float64]), st.data())
    def test_state_does_not_depend_on_portions_and_order(self, n_samples, seed, dtype, data):
        rng = np.random.default_rng(seed)
        labels, probs = distributions(rng, n_samples, dtype=dtype)
        whole = CalibrationState().update(labels, probs)
        order = rng.permutation(n_samples)
        cuts = sorted(data.draw(st.lists(st.integers(0, n_samples), max_size=5)))
        portions = [portion for portion in np.split(order, cuts) if portion.size]
        parts = [CalibrationState()]  # an empty one changes nothing
        parts += [CalibrationState().update(labels[part], np.asfortranarray(probs[part])) for part in portions]
        assert parts[0].merge(*parts[1:]) == whole
        shuffled = [parts[k] for k in rng.permutation(len(parts))]
        while len(shuffled) > 1:  # merged as a tree
            shuffled = [a.merge(*b) for a, *b in (shuffled[k : k + 2] for k in range(0, len(shuffled), 2))]
        assert shuffled[0] == whole
        assert shuffled[0].compute().to_dict() == whole.compute().to_dict()

    def test_portions_of_large_arrays_give_the_same_state(self, rng):
        for dtype in (np.float32, np.float64):
            labels, probs = distributions(rng, 30_000, 37, dtype)
            probs[::3] *= dtype(1 + 3e-6)  # some rows are renormalised, some are not
            whole = CalibrationState().update(labels, probs)
            parts = CalibrationState()
            for start in range(0, 30_000, 777):
                parts.update(labels[start : start + 777], probs[start : start + 777])
            assert parts == whole

    def test_merge_leaves_its_arguments_alone(self):
        a, b = CalibrationState().update([True], [0.5]), CalibrationState().update([False], [0.25])
        merged = a.merge(b)
        assert (a.n_samples, b.n_samples, merged.n_samples) == (1, 1, 2)
        merged.update([True], [1.0])
        assert (a.n_samples, b.n_samples) == (1, 1)
        assert a != b

    def test_merge_rejects_other_grids_and_other_objects(self):
        with pytest.raises(errors.ParameterError, match="15360 and 30 cells"):
            CalibrationState().merge(CalibrationState(30))
        with pytest.raises(errors.ParameterError, match="cannot merge 5 with a state"):
            CalibrationState().merge(5)

    def test_full_state_rejects_more_samples(self):
        state = CalibrationState().update([True], [0.5])
        state.count[:] *= state.capacity
        with pytest.raises(errors.ParameterError, match="holds 1,030,791,751,680 samples; start another one"):
            state.merge(CalibrationState().update([True], [0.5]))
        # Sums of the largest offsets still fit.
        assert int(state.capacity) * ((1 << 36) // state.n_cells + 2) < 1 << 63


class TestValues:
    @settings(max_examples=examples(300))
    @given(st.lists(st.tuples(CONFIDENCES, st.booleans()), min_size=1, max_size=60), st.integers(1, 120), st.data())
    def test_exact_values_are_within_the_bounds(self, pairs, n_cells, data):
        confidence, correct = (np.array(column) for column in zip(*pairs, strict=True))
        n_bins = data.draw(st.integers(1, min(n_cells, 20)))
        summary = CalibrationState(n_cells).update(correct, confidence).compute(n_bins=n_bins)
        for name, metric in EXACT.items():
            exact = metric(correct, confidence, n_bins=n_bins)
            assert abs(summary[name] - exact) <= summary.bounds[name] + 1e-12, name

    @pytest.mark.compiled
    @pytest.mark.parametrize("name", ["under-confident", "over-confident", "calibrated", "sharp", "uniform"])
    def test_smooth_confidences_have_small_errors(self, name, rng):
        correct, confidence = smooth_samples(rng, name, 1_000_000)
        summary = CalibrationState().update(correct, confidence).compute()
        for metric, function in EXACT.items():
            error = abs(summary[metric] - function(correct, confidence, n_bins=15))
            assert error < 1e-4, metric
            assert error <= summary.bounds[metric] + 1e-12, metric

    @pytest.mark.parametrize("n_bins", [1, 2, 3, 4, 5, 15, 16, 30, 60, 15360])
    def test_equal_width_error_is_exact_where_edges_agree(self, n_bins, rng):
        confidence = np.concatenate((rng.random(2000), np.arange(61) / 60))
        correct = rng.random(len(confidence)) < confidence
        summary = CalibrationState().update(correct, confidence).compute(n_bins=n_bins)
        exact = metrics.ece(correct, confidence, n_bins=n_bins, binning="width")
        assert summary["ece_width"] == pytest.approx(exact, abs=1e-10)
        if n_bins in (1, 2, 4, 15, 30, 60, 15360):
            assert summary.bounds["ece_width"] == 2.0**-36

    def test_values_are_exact_for_confidences_moved_within_their_cells(self, rng):
        """Scores piled up inside one cell: each counts as the mean of its cell, which is less than a cell away."""
        confidence = np.concatenate((0.7313 + 1e-5 * rng.random(5000), rng.choice([0.2, 0.5, 1.0], 500)))
        correct = rng.random(len(confidence)) < 0.6
        state = CalibrationState().update(correct, confidence)
        summary = state.compute()
        cells = state.cells()
        cell_of = np.searchsorted(cells.edges, confidence, side="left") - 1
        moved = (cells.confidence / cells.count)[np.searchsorted(cells.index, cell_of)]
        assert np.abs(moved - confidence).max() < summary.resolution == 1 / 15360
        assert summary["ece"] == pytest.approx(metrics.ece(correct, moved), abs=1e-9)
        assert summary["ece_width"] == pytest.approx(metrics.ece(correct, moved, binning="width"), abs=1e-9)
        assert summary["ks_error"] == pytest.approx(metrics.ks_error(correct, moved), abs=1e-9)
        assert summary.bounds["ece"] > 0.01  # nothing is known about the order within the cell, and the bound says so

    def test_equal_confidences_are_exact(self, rng):
        confidence = rng.choice([0.3, 0.7313, 0.95, 1.0], 20_000)
        correct = rng.random(20_000) < confidence**1.2
        summary = CalibrationState().update(correct, confidence).compute()
        for name, metric in EXACT.items():
            assert summary[name] == pytest.approx(metric(correct, confidence, n_bins=15), abs=1e-6), name

    def test_losses_are_those_of_the_metrics(self, rng):
        labels, probs = distributions(rng, 5000)
        summary = CalibrationState().update(labels, probs).compute()
        for name in ("nll", "brier"):
            assert summary[name] == pytest.approx(metrics.METRICS[name].function(labels, probs), abs=1e-10)
            assert summary.bounds[name] == 2.0**-36
        assert list(summary.values) == [*metrics.SUMMARY_METRICS, "ece_width"]

    def test_nll_of_probability_zero_is_infinite(self):
        summary = CalibrationState().update([0, 1], [[0.5, 0.5], [1.0, 0.0]]).compute()
        assert summary["nll"] == np.inf
        assert summary.to_dict()["values"]["nll"] == "infinity"

    def test_losses_need_distributions_of_all_samples(self):
        state = CalibrationState().update([0, 1], [[0.5, 0.5], [0.2, 0.8]]).update([True], [0.5])
        assert "nll" not in state.compute().values
        with pytest.raises(errors.UnknownNameError, match="metric 'nll' is unknown; choose one of: ece_kde"):
            state.compute()["nll"]

    def test_curve_is_that_of_its_edges(self, rng):
        correct, confidence = smooth_samples(rng, "over-confident", 50_000)
        curve = CalibrationState().update(correct, confidence).compute().curve
        exact = metrics.reliability_curve(correct, confidence, edges=curve.edges)
        np.testing.assert_array_equal(curve.counts, exact.counts)
        np.testing.assert_allclose(curve.confidence, exact.confidence, atol=1e-10)
        np.testing.assert_allclose(curve.accuracy, exact.accuracy, atol=1e-12)
        np.testing.assert_allclose([curve.low, curve.high], [exact.low, exact.high], atol=1e-6)
        np.testing.assert_allclose(curve.edges, metrics.bin_edges(confidence), atol=1 / 15360)

    def test_pairs_keep_counts_and_mean_confidences(self, rng):
        correct, confidence = smooth_samples(rng, "over-confident", 20_000)
        positions, right, weight = CalibrationState().update(correct, confidence).pairs()
        assert weight.sum() == 20_000
        assert weight[right].sum() == correct.sum()
        for chosen, outcome in ((right, True), (~right, False)):
            mean = positions[chosen] @ weight[chosen] / weight[chosen].sum()
            assert mean == pytest.approx(confidence[correct == outcome].mean(), abs=1e-10)

    def test_summary_prints_values_with_bounds(self):
        text = str(CalibrationState().update([True, False], [0.75, 0.25]).compute())
        assert "2 samples" in text
        assert "Accuracy             50.00 %  ± 0.0e+00" in text


class TestNoiseFloors:
    def test_floors_agree_with_those_of_the_samples(self, rng):
        _, confidence = smooth_samples(rng, "calibrated", 4000)
        state = CalibrationState().update(np.ones(4000, dtype=bool), confidence)
        floors = state.noise_floors(n_draws=400)
        for name in ("ece_kde", "ece", "ks_error"):
            exact = metrics.noise_floor(name, confidence, n_draws=400, random_state=1)
            error = np.hypot(exact.draws.std(), floors[name].draws.std()) / 20
            assert abs(floors[name].mean - exact.mean) < 5 * error
            assert floors[name].quantiles[0.95] == pytest.approx(exact.quantiles[0.95], rel=0.15)

    def test_floors_do_not_depend_on_threads(self, rng):
        correct, confidence = smooth_samples(rng, "calibrated", 500)
        state = CalibrationState().update(correct, confidence)
        one, two = (state.noise_floors(n_draws=20, n_threads=n) for n in (1, 2))
        for name, floor in one.items():
            np.testing.assert_array_equal(floor.draws, two[name].draws)

    def test_floors_of_chosen_metrics(self, rng):
        correct, confidence = smooth_samples(rng, "calibrated", 500)
        state = CalibrationState().update(correct, confidence)
        floors = state.noise_floors(["ks_error"], n_draws=5, quantiles=[0.99])
        np.testing.assert_array_equal(floors["ks_error"].draws, state.noise_floors(n_draws=5)["ks_error"].draws)
        assert list(floors) == ["ks_error"]
        assert list(floors["ks_error"].quantiles) == [0.99]

    def test_floors_of_certain_predictions_are_zero(self):
        floors = CalibrationState().update([True, False], [1.0, 1.0]).noise_floors(n_draws=3)
        assert {floor.mean for floor in floors.values()} == {0.0}


class TestFiles:
    def test_state_survives_json(self, tmp_path, rng):
        labels, probs = distributions(rng, 3000)
        state = CalibrationState().update(labels, probs).update([0, 1], [[1.0, 0.0], [1.0, 0.0]])
        assert CalibrationState.from_dict(json.loads(json.dumps(state.to_dict()))) == state
        state.save(tmp_path / "hour.json")
        assert CalibrationState.load(tmp_path / "hour.json") == state
        assert (tmp_path / "hour.json").stat().st_size < 200_000
        empty = CalibrationState(7)
        assert CalibrationState.from_dict(empty.to_dict()) == empty

    @pytest.mark.parametrize(
        "change",
        [
            {"type": "calibrator"},
            {"schema": 2},
            {"n_cells": 0},
            {"n_cells": 3.0},
            {"n_cells": True},
            {"n_cells": 10**9},
            {"n_samples": 3},
            {"n_samples": None},
            {"nll": "1"},
            {"nll": -1},
            {"n_infinite": 5},
            {"n_with_distributions": 3},
            {"cells": None},
            {"cells": [1, 2]},
            {"cells": {}},
        ],
    )
    def test_damaged_state_is_rejected(self, change):
        content = CalibrationState(30).update([0, 1], [[0.5, 0.5], [0.25, 0.75]]).to_dict()
        with pytest.raises(errors.CorruptFileError, match="calibration state"):
            CalibrationState.from_dict({**content, **change})

    @pytest.mark.parametrize(
        ("name", "values"),
        [
            ("index", [1, 1]),
            ("index", [22, 14]),
            ("index", [-1, 22]),
            ("index", [14, 30]),
            ("index", [14]),
            ("count", [1, 1.0]),
            ("count", [1, True]),
            ("count", [1, -1]),
            ("count", [1, 1 << 70]),
            ("count", "ab"),
            ("correct", [2, 0]),
            ("correct", [-1, 1]),
            ("offset", [1 << 50, 0]),
            ("right_offset", [-(1 << 50), 0]),
        ],
    )
    def test_damaged_cells_are_rejected(self, name, values):
        content = CalibrationState(30).update([0, 1], [[0.5, 0.5], [0.25, 0.75]]).to_dict()
        content["cells"][name] = values
        with pytest.raises(errors.CorruptFileError, match="calibration state"):
            CalibrationState.from_dict(content)

    @settings(max_examples=examples(200))
    @given(st.data())
    def test_mutated_file_is_rejected_or_consistent(self, tmp_path_factory, data):
        path = tmp_path_factory.mktemp("states") / "hour.json"
        state = CalibrationState(30).update([0, 1, 1], [[0.5, 0.5], [0.25, 0.75], [1.0, 0.0]])
        state.save(path)
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 3))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(
                st.sampled_from(b'0123456789-,[]{}":enN \0')
            )
        path.write_bytes(content)
        try:
            loaded = CalibrationState.load(path)
        except errors.CorruptFileError:
            return
        if loaded.n_samples:
            assert not any(np.isnan(value) for value in loaded.compute().values.values())

    def test_bad_paths_are_rejected(self, tmp_path):
        for bad in (5, None, "", "a\0b"):
            with pytest.raises(errors.ParameterError, match="path"):
                CalibrationState.load(bad)
            with pytest.raises(errors.ParameterError, match="path"):
                CalibrationState().save(bad)
        with pytest.raises(errors.CorruptFileError, match="absent"):
            CalibrationState.load(tmp_path / "absent.json")

    def test_message_names_the_damaged_file(self, tmp_path):
        (tmp_path / "hour.json").write_text("{}")
        with pytest.raises(errors.CorruptFileError, match=r"hour\.json.*not a calibration state"):
            CalibrationState.load(tmp_path / "hour.json")
        with pytest.raises(errors.CorruptFileError, match="not a calibration state"):
            CalibrationState.from_dict(5)


class TestInput:
    def test_bad_samples_leave_the_state_unchanged(self):
        state = CalibrationState().update([True, False], [0.5, 0.75])
        before = state.to_dict()
        for bad in (([True, False], [0.5, 1.5]), ([0, 2], [[0.5, 0.5], [0.5, 0.5]]), ([0], [[0.7, 0.7]])):
            with pytest.raises(errors.InvalidInputError):
                state.update(*bad)
        assert state.to_dict() == before

    def test_empty_state_has_no_values(self):
        for call in (CalibrationState().compute, CalibrationState().noise_floors):
            with pytest.raises(errors.ShapeError, match="the state is empty; update it"):
                call()

    @pytest.mark.parametrize("n_cells", [0, -1, 2.5, True, 1 << 21, np.array([3])])
    def test_bad_number_of_cells_is_rejected(self, n_cells):
        with pytest.raises(errors.ParameterError, match="n_cells"):
            CalibrationState(n_cells)

    def test_bad_options_are_rejected(self):
        state = CalibrationState(30).update([True], [0.5])
        for options in ({"n_bins": 0}, {"n_bins": 31}, {"confidence_level": 2}):
            with pytest.raises(errors.ParameterError, match=next(iter(options))):
                state.compute(**options)
        for options in (
            {"n_draws": 0},
            {"quantiles": [2]},
            {"random_state": "seed"},
            {"n_threads": 0},
            {"metrics": "ece"},
            {"metrics": ["nll"]},
            {"metrics": 5},
            {"metrics": np.array(0)},
        ):
            with pytest.raises(errors.ParameterError):
                state.noise_floors(**options)
