"""The rooms and the direction of imports between them; how light the package is until it is used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import veridical

PACKAGE = Path(veridical.__file__).parent

#: Room -> rooms it may import from.  Earlier rooms never import later ones.
MAY_IMPORT = {
    "_version": set(),
    "errors": set(),
    "_columns": set(),
    "_lazy": set(),
    "_extras": {"errors"},
    "_atomic": {"errors"},
    "_parallel": {"errors"},
    "_minimisation": {"errors"},
    "_kernels": set(),
    "predictions": {"errors", "_extras", "_parallel", "_atomic"},
    "combine": {"_kernels", "_minimisation", "_parallel", "errors", "predictions"},
    "metrics": {"_kernels", "_lazy", "_parallel", "errors", "predictions", "combine"},
    "calibrate": {
        "_version",
        "_atomic",
        "_kernels",
        "_minimisation",
        "_parallel",
        "errors",
        "predictions",
        "combine",
        "metrics",
    },
    # Training meets the rest only through predictions.
    "training": {"_version", "errors", "_extras", "_atomic", "_lazy", "_parallel", "predictions"},
    "data": {"predictions"},
    "evaluation": {"_version", "_atomic", "_parallel", "errors", "predictions", "combine", "metrics", "calibrate"},
    "report": {
        "_version",
        "_atomic",
        "_parallel",
        "errors",
        "predictions",
        "combine",
        "metrics",
        "calibrate",
        "evaluation",
    },
    "paper": {
        "_version",
        "_atomic",
        "_columns",
        "_lazy",
        "_parallel",
        "errors",
        "predictions",
        "combine",
        "metrics",
        "calibrate",
        "data",
    },
    "cli": {
        "_version",
        "_columns",
        "errors",
        "_extras",
        "_atomic",
        "predictions",
        "combine",
        "data",
        "calibrate",
        "evaluation",
        "report",
        "metrics",
        "paper",
        "training",
    },
}


def rooms_imported_by(path):
    """Rooms that a module names in its import statements, at any depth."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "veridical":
            parts = node.module.split(".")
            yield from ([parts[1]] if len(parts) > 1 else [alias.name for alias in node.names])
        elif isinstance(node, ast.ImportFrom) and node.level:
            pytest.fail(f"{path} has a relative import")
        elif isinstance(node, ast.Import):
            yield from (name.split(".")[1] for name in (a.name for a in node.names) if name.startswith("veridical."))


def test_imports_point_one_way():
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if room in ("__init__", "__main__"):
            continue
        assert room in MAY_IMPORT, f"{path} is in no known room"
        strangers = set(rooms_imported_by(path)) - MAY_IMPORT[room] - {room}
        assert not strangers, f"{path} imports from {strangers}"


def test_rooms_form_no_cycle():
    for room, neighbours in MAY_IMPORT.items():
        seen, waiting = set(), list(neighbours)
        while waiting:
            here = waiting.pop()
            assert here != room, f"{room} can import itself in a circle"
            if here not in seen:
                seen.add(here)
                waiting.extend(MAY_IMPORT[here])


@pytest.mark.parametrize(
    "program", ["import veridical", "from veridical.cli import main; main(['--help'], standalone_mode=False)"]
)
def test_light_until_used(program):
    heavy = ["numba", "scipy", "sklearn", "matplotlib", "torch", "numpy"]
    check = f"; import sys; print('HEAVY', [m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program + check], capture_output=True, text=True, check=True)
    assert "HEAVY []" in done.stdout


def test_public_names_exist():
    for name in veridical.__all__:
        assert getattr(veridical, name) is not None
    assert set(veridical.__all__) <= set(dir(veridical))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        veridical.nonsense  # noqa: B018


def test_no_module_outgrows_its_name():
    for path in PACKAGE.rglob("*.py"):
        assert path.read_text().count("\n") <= 400, f"{path} is too long"
        assert path.stem not in ("utils", "helpers", "core", "common", "misc")
