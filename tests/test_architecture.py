"""The direction of imports between packages, and what is imported before it is used."""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import veridical

PACKAGE = Path(veridical.__file__).parent

#: Single modules at the top -> modules that they may import.  Every package may import them.
MODULES = {
    "_version": set(),
    "_names": set(),
    "errors": {"_names"},
    "_columns": set(),
    "_progress": {"errors"},
    "_lazy": {"errors"},
    "_dispatch": set(),
    "_tables": {"_lazy", "_names"},
    "_atomic": {"errors"},
    "_outputs": {"errors", "_atomic"},
    "_locking": {"errors"},
    "_parallel": {"errors"},
    "_minimisation": {"errors", "_parallel"},
    "_json": {"errors", "_atomic"},
    "_templates": set(),
}

#: Package -> packages that it may import.  Earlier packages never import later ones.
PACKAGES = {
    "_kernels": {"errors"},
    "_numpy_kernels": set(),
    "backends": {"_kernels"},
    "predictions": {"backends"},
    "combine": {"_kernels", "_numpy_kernels", "backends", "predictions"},
    "metrics": {"_kernels", "backends", "predictions", "combine"},
    "calibrate": {"_kernels", "backends", "predictions", "combine", "metrics"},
    "training": {"backends", "predictions"},
    "data": {"predictions"},
    "evaluation": {"_kernels", "_numpy_kernels", "predictions", "combine", "metrics", "calibrate"},
    "jury": {"predictions", "combine", "metrics", "evaluation"},
    "export": {"backends", "predictions", "combine", "calibrate"},
    "torch": {"backends", "predictions", "combine", "metrics", "calibrate"},
    "ensemble": {"predictions", "combine", "calibrate", "evaluation"},
    "plots": {"predictions", "combine", "metrics", "evaluation"},
    "report": {"predictions", "combine", "metrics", "evaluation", "plots", "jury"},
    "paper": {"predictions", "metrics", "calibrate", "data", "evaluation", "plots"},
    "blocks": {"predictions", "combine", "metrics", "calibrate", "evaluation", "report"},
    "scale": {"blocks"},
    "cli": {
        "predictions",
        "combine",
        "metrics",
        "calibrate",
        "training",
        "data",
        "evaluation",
        "report",
        "paper",
        "jury",
        "export",
        "blocks",
    },
}

#: Packages that only compute, and import nothing else.
COMPUTING = {"_kernels", "_numpy_kernels"}

MAY_IMPORT = MODULES | {
    name: allowed if name in COMPUTING else allowed | MODULES.keys() for name, allowed in PACKAGES.items()
}


#: Modules that load a later package by name when they are called -> that package.
LOADED_BY_NAME = {
    "_dispatch.py": {"blocks"},
    "calibrate/base.py": {"export"},
}


def packages_imported_by(path):
    """Packages and top modules that a module names in its import statements, at any depth."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "veridical":
            parts = node.module.split(".")
            yield from ([parts[1]] if len(parts) > 1 else [alias.name for alias in node.names])
        elif isinstance(node, ast.ImportFrom) and node.level:
            pytest.fail(f"{path} has a relative import")
        elif isinstance(node, ast.Import):
            yield from (name.split(".")[1] for name in (a.name for a in node.names) if name.startswith("veridical."))


def packages_loaded_by_name(path):
    """Packages in strings like "veridical.blocks", by which modules are loaded when they are needed."""
    for node in ast.walk(ast.parse(path.read_text())):
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        if name := re.fullmatch(r"veridical\.(\w+)[\w.]*", text):
            yield name[1]


def test_imports_point_one_way():
    for path in sorted(PACKAGE.rglob("*.py")):
        package = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if package in ("__init__", "__main__"):
            continue
        assert package in MAY_IMPORT, f"{path} is not in a known package"
        forbidden = set(packages_imported_by(path)) - MAY_IMPORT[package] - {package}
        assert not forbidden, f"{path} imports from {forbidden}"


def test_modules_loaded_by_name_are_allowed():
    later = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        module = path.relative_to(PACKAGE).as_posix()
        package = module.split("/")[0].removesuffix(".py")
        if package in MAY_IMPORT:
            named = {name for name in packages_loaded_by_name(path) if name in MAY_IMPORT}
            if forbidden := named - MAY_IMPORT[package] - {package}:
                later[module] = forbidden
    assert later == LOADED_BY_NAME


def test_permissions_are_used():
    for package, allowed in PACKAGES.items():
        files = sorted((PACKAGE / package).rglob("*.py"))
        used = {name for path in files for name in (*packages_imported_by(path), *packages_loaded_by_name(path))}
        assert allowed <= used, f"{package} never imports {allowed - used}"


def test_document_names_every_package_and_module():
    document = (PACKAGE.parents[1] / "ARCHITECTURE.md").read_text()
    listing = document[document.index("src/veridical/\n") : document.index("tests/  ")]
    entries = [path for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    names = {path.name if path.suffix else f"{path.name}/" for path in entries} - {"__main__.py"}
    assert sorted(names) == sorted({word for word in listing.split() if word in names}), "see ARCHITECTURE.md"


def test_imports_form_no_cycle():
    for package, allowed in MAY_IMPORT.items():
        seen, remaining = set(), list(allowed)
        while remaining:
            current = remaining.pop()
            assert current != package, f"{package} can import itself in a circle"
            if current not in seen:
                seen.add(current)
                remaining.extend(MAY_IMPORT[current])


@pytest.mark.parametrize("program", ["import veridical", "from veridical.cli import run; run(['--help'])"])
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


LAZY = sorted(path for path in PACKAGE.rglob("__init__.py") if "names_on_demand" in path.read_text())


@pytest.mark.parametrize("path", LAZY, ids=lambda path: path.parent.name)
def test_type_checkers_see_the_names_of_run_time(path):
    imports = next(node for node in ast.parse(path.read_text()).body if isinstance(node, ast.If)).body
    module = importlib.import_module(".".join(path.relative_to(PACKAGE.parent).parent.parts))
    assert sorted(alias.asname for node in imports for alias in node.names) == sorted(module.__all__)
    for node in imports:
        for alias in node.names:
            defined = importlib.import_module(node.module)
            assert alias.asname == alias.name, f"{path}: type checkers hide {alias.name}"
            assert getattr(module, alias.name) is getattr(defined, alias.name)


def test_modules_have_at_most_400_lines():
    for path in PACKAGE.rglob("*.py"):
        assert path.read_text().count("\n") <= 400, f"{path} is too long"
        assert path.stem not in ("utils", "helpers", "core", "common", "misc")
