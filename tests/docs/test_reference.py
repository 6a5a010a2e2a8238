"""The reference has every public name once, and each has a docstring that says what a user needs."""

import importlib
import inspect
import re

import pytest
from page_blocks import DOCS

import veridical as vd

PAGES = "\n".join(page.read_text() for page in (DOCS / "reference" / "api").glob("*.md"))
DOCUMENTED = re.findall(r"^\.\. auto(?:function|class|data|exception):: veridical\.(\S+)", PAGES, flags=re.MULTILINE)
MODULES = set(re.findall(r"^\.\. automodule:: veridical\.(\S+)", PAGES, flags=re.MULTILINE))

#: Packages whose names are public, beside those of ``veridical`` itself.
PACKAGES = (
    "calibrate",
    "combine",
    "evaluation",
    "export",
    "jury",
    "metrics",
    "paper",
    "plots",
    "report",
    "scale",
    "torch",
    "training",
)


def public_names():
    """Dotted names below ``veridical``; those that ``veridical`` itself exports are not repeated for their package."""
    names = {name for name in vd.__all__ if name != "__version__" and not inspect.ismodule(getattr(vd, name))}
    for package in PACKAGES:
        module = importlib.import_module(f"veridical.{package}")
        for name in module.__all__:
            value = getattr(module, name)
            if getattr(vd, name, None) is not value and not inspect.ismodule(value):
                names.add(f"{package}.{name}")
    return names


def test_every_public_name_has_an_entry():
    assert sorted(DOCUMENTED) == sorted(set(DOCUMENTED))  # none twice
    assert set(DOCUMENTED) == public_names()


def test_modules_without_own_entries_are_documented_whole():
    assert {"errors", "metrics.gradients"} == MODULES


def resolve(name):
    value = vd
    for part in name.split("."):
        value = getattr(value, part) if hasattr(value, part) else importlib.import_module(f"{value.__name__}.{part}")
    return value


FUNCTIONS = sorted(name for name in public_names() if inspect.isfunction(resolve(name)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_has_an_example(name):
    assert ">>> " in (inspect.getdoc(resolve(name)) or "")


CLASSES = sorted(name for name in public_names() if inspect.isclass(resolve(name)))


@pytest.mark.parametrize("name", CLASSES)
def test_class_has_an_example(name):
    text = inspect.getdoc(resolve(name))
    assert len(text.splitlines()) > 3
    assert ">>> " in text
