"""Every example in a docstring runs and shows what it says."""

import doctest
import importlib
import pkgutil

import pytest

import veridical

pytestmark = pytest.mark.compiled

MODULES = [
    module.name
    for module in pkgutil.walk_packages(veridical.__path__, "veridical.")
    if not module.name.startswith(("veridical.__main__", "veridical.cli"))
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, tmp_path, monkeypatch):
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"needs an extra: {error}")
    if name.startswith("veridical.training."):
        pytest.importorskip("torch")  # its modules import it where they use it
    monkeypatch.chdir(tmp_path)  # what an example writes goes there
    failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert failed == 0
