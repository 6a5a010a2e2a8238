"""The registry, the names that the package offers, and the documentation made from them."""

import doctest
import importlib
import inspect
import pkgutil
from pathlib import Path

import numpy as np
import pytest

import veridical as vd
import veridical.metrics
from veridical import metrics
from veridical.errors import ParameterError
from veridical.metrics.registry import markdown_table

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"


def test_public_names_exist():
    for name in metrics.__all__:
        assert getattr(metrics, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'f1'"):
        metrics.f1  # noqa: B018


@pytest.mark.parametrize("name", metrics.METRICS)
def test_metric_signatures_agree(name):
    metric = metrics.METRICS[name]
    assert metric.function is getattr(metrics, name)
    parameters = inspect.signature(metric.function).parameters
    assert [*parameters][:2] == ["y_true", "probs"]
    assert all(p.kind is p.KEYWORD_ONLY for p in [*parameters.values()][2:])
    assert parameters["sample_weight"].default is None
    assert metric.function.__doc__
    assert "Examples" in metric.function.__doc__


def test_documented_table_is_the_registry():
    assert markdown_table() in DOCS.read_text()


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(veridical.metrics.__path__)])
def test_examples(name):
    module = importlib.import_module(f"veridical.metrics.{name}")
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_summary_metrics_are_the_columns_of_a_summary():
    rows = metrics.summary([0, 1], [[0.75, 0.25], [0.25, 0.75]], floors=False)
    assert tuple(row.metric for row in rows) == metrics.SUMMARY_METRICS
    assert [metrics.METRICS[name].heading for name in metrics.SUMMARY_METRICS] == [
        "ECE-KDE", "ECE", "NLL", "Brier", "KS", "Acc",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "number", "text"),
    [
        ("ece", 0.05264, "5.26", "5.26 %"),
        ("accuracy", 1.0, "100.00", "100.00 %"),
        ("nll", 0.41237, "0.4124", "0.4124"),
        ("nll", float("inf"), "infinite", "infinite"),
        ("error_auroc", float("nan"), "–", "–"),
        ("ece", float("nan"), "–", "–"),
    ],
)
def test_metric_formats_values(name, value, number, text):
    metric = metrics.METRICS[name]
    assert metric.number(value) == number
    assert metric.text(value) == text


def test_metric_decimals_can_be_chosen():
    assert metrics.METRICS["nll"].number(0.41237, decimals=3) == "0.412"
    assert metrics.METRICS["ece"].text(0.1234, decimals=1) == "12.3 %"


def test_metric_knows_the_better_value():
    assert metrics.METRICS["ece"].is_better(0.01, 0.02)
    assert metrics.METRICS["ece"].best([0.02, 0.01, 0.03]) == 0.01
    assert metrics.METRICS["accuracy"].is_better(0.9, 0.8)
    assert not metrics.METRICS["accuracy"].is_better(0.8, 0.8)
    assert metrics.METRICS["accuracy"].best([0.8, 0.9]) == 0.9


@pytest.fixture
def mean_gap():
    def mean_gap(y_true, probs, *, sample_weight=None):
        """Mean confidence minus accuracy."""
        return abs(np.average(probs - y_true, weights=sample_weight))

    return metrics.register_metric(mean_gap, title="gap", is_calibration_error=True, in_percent=True)


def test_registered_metric_is_a_metric_like_any_other(mean_gap):
    rng = np.random.default_rng(0)
    confidence = rng.beta(4, 1.5, 300)
    correct = rng.random(300) < confidence - 0.1
    expected = abs((confidence - correct).mean())
    row = metrics.summary(correct, confidence, intervals=True, n_draws=20, n_resamples=100)["mean_gap"]
    assert row.value == pytest.approx(expected)
    assert row.floor < row.floor_high < expected
    assert row.low < 0.1 < row.high
    assert metrics.bootstrap("mean_gap", correct, confidence, n_resamples=20).value == row.value
    assert metrics.compare("mean_gap", correct, confidence, confidence - 0.02, n_resamples=20).difference > 0
    demo = vd.load_demo().select(sources=slice(3), samples=slice(300))
    evaluation = vd.evaluate(demo, methods=["mean"])
    scores = evaluation["mean"]
    assert scores.summary["mean_gap"].value == pytest.approx(abs(scores.gap))
    assert "gap" in str(evaluation)
    assert mean_gap.meaning == "Mean confidence minus accuracy."


def test_registered_metric_of_distributions(mean_gap):
    def largest_loss(y_true, probs, *, sample_weight=None):
        return 1 - probs[np.arange(len(y_true)), y_true].min()

    metrics.register_metric(largest_loss, needs_vectors=True)
    assert "largest_loss" not in metrics.SUMMARY_METRICS
    probs = [[0.9, 0.1], [0.4, 0.6]]
    assert metrics.bootstrap("largest_loss", [0, 0], probs, n_resamples=5).value == pytest.approx(0.6)


@pytest.mark.parametrize("name", ["ece", "<lambda>"])
def test_metric_needs_a_name_of_its_own(name):
    def function(y_true, probs, *, sample_weight=None):
        return 0.0

    function.__name__ = name
    with pytest.raises(ParameterError, match="a metric cannot be called"):
        metrics.register_metric(function)
