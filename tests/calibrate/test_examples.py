"""The examples in the calibrators' docstrings run."""

import doctest
import importlib
import pkgutil

import pytest

import veridical.calibrate


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(veridical.calibrate.__path__)])
def test_examples(name):
    module = importlib.import_module(f"veridical.calibrate.{name}")
    assert doctest.testmod(module).failed == 0
