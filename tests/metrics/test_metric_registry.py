"""The registry, the names that the package offers, and the documentation made from them."""

import doctest
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import veridical.metrics
from veridical import metrics
from veridical.metrics.registry import markdown_table

DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_every_public_name_is_there():
    for name in metrics.__all__:
        assert getattr(metrics, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'f1'"):
        metrics.f1  # noqa: B018


@pytest.mark.parametrize("name", metrics.METRICS)
def test_every_metric_has_the_same_shape(name):
    metric = metrics.METRICS[name]
    assert metric.function is getattr(metrics, name)
    parameters = inspect.signature(metric.function).parameters
    assert [*parameters][:2] == ["y_true", "probs"]
    assert all(p.kind is p.KEYWORD_ONLY for p in [*parameters.values()][2:])
    assert parameters["sample_weight"].default is None
    assert metric.function.__doc__
    assert "Examples" in metric.function.__doc__


def test_the_documented_table_is_the_registry():
    assert markdown_table() in DOCS.read_text()


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(veridical.metrics.__path__)])
def test_examples(name):
    module = importlib.import_module(f"veridical.metrics.{name}")
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0
