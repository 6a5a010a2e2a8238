"""Comparisons of calibrators: figures over splits, cells of the table, JSON, and what is rejected."""

import json
import math

import numpy as np
import pytest
from ensembles import random_ensemble

import veridical as vd
from veridical import errors
from veridical.evaluation.comparison import MethodComparison
from veridical.evaluation.facts import DataFacts
from veridical.metrics import SUMMARY_METRICS

FACTS = DataFacts(2, 4, 3, "probs", "float64", "0" * 64, ("a", "b"), ("x", "y", "z"))


def comparison_of(values, n_splits):
    """A comparison in which every metric of a method has the values of ``values``, unless named."""
    whole = {
        method: {metric: tuple(columns.get(metric, columns["rest"])) for metric in SUMMARY_METRICS}
        for method, columns in values.items()
    }
    return MethodComparison(FACTS, tuple(values), whole, {}, dict.fromkeys(values, 0.0), n_splits, 0, {})


@pytest.fixture(scope="module")
def predictions():
    rng = np.random.default_rng(5)
    probs = random_ensemble(rng, 3, 120, 3, spread=2.0)
    labels = np.array([rng.choice(3, p=row) for row in probs.mean(axis=0)])
    return vd.Predictions(probs, labels)


def test_mean_and_deviation_over_splits():
    comparison = comparison_of({"mean": {"rest": (0.1, 0.2, 0.6)}}, 3)
    assert comparison.mean("mean", "ece") == pytest.approx(0.3)
    assert comparison.std("mean", "ece") == pytest.approx(math.sqrt((0.04 + 0.01 + 0.09) / 2))
    assert math.isnan(comparison_of({"mean": {"rest": (0.1,)}}, 1).std("mean", "ece"))
    assert math.isnan(comparison_of({"mean": {"rest": (0.1, math.inf)}}, 2).std("mean", "nll"))


def test_best_method_has_the_lowest_error_and_the_highest_accuracy():
    comparison = comparison_of({"mean": {"rest": (0.2, 0.4)}, "irm": {"rest": (0.1, 0.3)}}, 2)
    assert comparison.best("ece") == "irm"
    assert comparison.best("accuracy") == "mean"
    assert comparison.to_dict()["best"] == {metric: comparison.best(metric) for metric in SUMMARY_METRICS}


@pytest.mark.parametrize(
    ("metric", "values", "cell"),
    [
        ("ece", (0.05, 0.07), "6.00±1.41"),
        ("ece", (0.005, 0.005), "0.50±.00"),
        ("ece", (0.1, 0.12), "11.0±1.4"),
        ("accuracy", (0.8, 0.9), "85.00±7.07"),
        ("nll", (0.25, 0.75), ".500±.354"),
        ("nll", (1.25, 1.75), "1.500±.354"),
        ("nll", (0.5, math.inf), "infinite"),
        ("ece", (0.05,), "5.00"),
        ("brier", (0.25,), ".250"),
    ],
)
def test_cell_is_short_and_has_its_deviation(metric, values, cell):
    comparison = comparison_of({"mean": {"rest": values}}, len(values))
    heading, ((title, *cells),) = comparison.rows()
    assert heading == ["method", "ECE-KDE", "ECE", "NLL", "Brier", "KS", "Acc"]
    assert title == "DE"
    assert cells[SUMMARY_METRICS.index(metric)] == f"{cell}*"


def test_equal_methods_share_the_star():
    values = {"mean": {"rest": (0.2,)}, "temperature": {"rest": (0.2,), "ece": (0.1,)}}
    _, rows = comparison_of(values, 1).rows()
    stars = [[cell.endswith("*") for cell in row[1:]] for row in rows]
    assert stars == [[True, False, True, True, True, True], [True] * 6]


def test_data_frame_has_all_digits():
    comparison = comparison_of({"mean": {"rest": (1 / 3, 2 / 3)}, "irm": {"rest": (0.1, 0.3)}}, 2)
    frame = comparison.to_frame()
    assert frame["method"].tolist() == ["mean", "irm"]
    assert frame["ece"].tolist() == [0.5, 0.2]
    assert frame["ece_std"][0] == comparison.std("mean", "ece")
    assert frame["labels_changed"].tolist() == [0.0, 0.0]


@pytest.mark.compiled
def test_splits_continue_from_the_seed(predictions):
    both = vd.compare_calibrators(predictions, methods=["mean", "platt"], n_splits=2, random_state=3)
    second = vd.compare_calibrators(predictions, methods=["mean", "platt"], n_splits=1, random_state=4)
    for method in ("mean", "platt"):
        for metric in SUMMARY_METRICS:
            assert both.values[method][metric][1:] == second.values[method][metric]
    assert (both.n_splits, both.random_state) == (2, 3)


@pytest.mark.compiled
def test_labels_changed_are_counted_against_the_mean(predictions):
    comparison = vd.compare_calibrators(predictions, methods=["tde", "temperature", "vector"], n_splits=2)
    expected = []
    for i in range(2):
        fitted_on, scored_on = predictions.split(random_state=i)
        label = vd.VectorScaling().fit(fitted_on).predict(scored_on)
        expected.append((label != vd.discover(scored_on, max_iter=0).prediction).sum())
    assert comparison.labels_changed["vector"] == np.mean(expected)
    assert comparison.labels_changed["temperature"] == 0


@pytest.mark.compiled
def test_floors_are_means_over_splits_of_calibration_errors(predictions):
    comparison = vd.compare_calibrators(predictions, methods=["mean"], n_splits=2)
    assert set(comparison.floors["mean"]) == {"ece_kde", "ece", "ks_error"}
    single = [
        vd.compare_calibrators(predictions, methods=["mean"], n_splits=1, random_state=i).floors["mean"]["ece"]
        for i in range(2)
    ]
    assert comparison.floors["mean"]["ece"] == pytest.approx(np.mean(single))


@pytest.mark.compiled
def test_comparison_of_numpy_numbers_goes_to_json(predictions):
    comparison = vd.compare_calibrators(predictions, methods=["mean"], n_splits=np.int64(1), random_state=np.int64(2))
    document = json.loads(json.dumps(comparison.to_dict()))
    assert (document["type"], document["n_splits"], document["random_state"]) == ("comparison", 1, 2)


@pytest.mark.compiled
def test_progress_counts_methods_of_all_splits(predictions):
    calls = []
    vd.compare_calibrators(
        predictions, methods=["mean", "platt"], n_splits=2, progress=lambda *call: calls.append(call)
    )
    assert calls[-1] == (4, 4, "done")
    assert [call[0] for call in calls] == [0, 1, 2, 3, 4]
    assert {call[1] for call in calls} == {4}
    assert [call[2].rpartition(", ")[2] for call in calls[:-1]] == ["split 1", "split 1", "split 2", "split 2"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_splits": 0}, "n_splits is 0; give a whole number of at least 1."),
        ({"n_splits": 2.5}, "n_splits is 2.5; give a whole number of at least 1."),
        ({"methods": ["mean", "members"]}, "methods names 'members'; compare takes methods that combine the sources."),
        ({"methods": []}, 'methods is empty; name at least one, such as ["mean"].'),
    ],
)
def test_comparison_rejects_bad_parameters(predictions, options, sentence):
    with pytest.raises(errors.ParameterError) as caught:
        vd.compare_calibrators(predictions, **options)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("seed", [-1, 0.5, "1", None])
def test_comparison_rejects_what_is_not_a_seed(predictions, seed):
    with pytest.raises(errors.ParameterError, match=r"^random_state is .*; give a whole number from 0 to"):
        vd.compare_calibrators(predictions, methods=["mean"], random_state=seed)
