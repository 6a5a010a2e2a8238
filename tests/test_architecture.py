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
    "backends": {"_kernels"},
    "predictions": {"backends"},
    "combine": {"_kernels", "backends", "predictions"},
    "metrics": {"_kernels", "backends", "predictions", "combine"},
    "calibrate": {"_kernels", "backends", "predictions", "combine", "metrics"},
    "training": {"backends", "predictions"},
    "data": {"predictions"},
    "evaluation": {"_kernels", "predictions", "combine", "metrics", "calibrate"},
    "jury": {"predictions", "combine", "metrics", "evaluation"},
    "export": {"predictions", "combine", "calibrate"},
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
COMPUTING = {"_kernels"}

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


#: Package, or "veridical" for the single modules at the top -> the most lines that it may have.  Lower a number when a
#: package shrinks; a package that needs more has to say why in its commit.
MOST_LINES = {
    "_kernels": 2600,
    "backends": 750,
    "blocks": 2350,
    "calibrate": 3710,
    "cli": 1950,
    "combine": 3865,
    "data": 80,
    "ensemble": 850,
    "evaluation": 4897,
    "export": 600,
    "jury": 2200,
    "metrics": 4441,
    "paper": 2150,
    "plots": 1050,
    "predictions": 4850,
    "report": 1850,
    "scale": 20,
    "torch": 300,
    "training": 2950,
    "veridical": 1800,
}
#: How many modules may have a single importer or fewer than 50 lines, and how many lines may tell mypy to be quiet.
MOST_WITH_ONE_IMPORTER, MOST_SMALL, MOST_IGNORED = 48, 24, 45
#: Module -> comparisons with the name of a calibrator or combiner, which its class should answer.  It may only shrink.
COMPARED_NAMES = {
    "calibrate.base": 3,
    "combine.in_memory": 1,
    "ensemble.calibrated_ensemble": 1,
    "evaluation.choice": 2,
    "evaluation.engine": 1,
    "report.html_page": 4,
    "report.prepare": 1,
    "report.verdict": 1,
    "training.devices": 2,  # "auto" is also the name of a device
}


def modules():
    """Name of each module below the package, as in "metrics.binned" -> its path."""
    paths = {".".join(path.relative_to(PACKAGE).with_suffix("").parts): path for path in PACKAGE.rglob("*.py")}
    return {name: path for name, path in sorted(paths.items()) if path.name not in ("__init__.py", "__main__.py")}


def test_packages_keep_to_their_budgets():
    lines = dict.fromkeys(MOST_LINES, 0)
    for path in PACKAGE.rglob("*.py"):
        package = path.relative_to(PACKAGE).parts[0] if path.parent != PACKAGE else "veridical"
        assert package in lines, f"{package} has no budget"
        lines[package] += path.read_text().count("\n")
    exceeded = {package: n for package, n in lines.items() if n > MOST_LINES[package]}
    assert not exceeded, f"more lines than MOST_LINES allows: {exceeded}"


def test_few_modules_are_small_or_have_one_importer():
    names, importers = modules(), {}
    for name, path in names.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("veridical"):
                home = node.module.removeprefix("veridical").lstrip(".")
                for imported in (home, *(f"{home}.{alias.name}".lstrip(".") for alias in node.names)):
                    importers.setdefault(imported, set()).add(name)
    alone = [name for name in names if len(importers.get(name, ())) == 1]
    assert len(alone) <= MOST_WITH_ONE_IMPORTER, f"join them with their importers: {alone}"
    small = [name for name, path in names.items() if path.read_text().count("\n") < 50]
    assert len(small) <= MOST_SMALL, f"fewer than 50 lines: {small}"


def test_types_are_seldom_ignored():
    ignored = {name: path.read_text().count("# type: ignore") for name, path in modules().items()}
    assert sum(ignored.values()) <= MOST_IGNORED, {name: n for name, n in ignored.items() if n}


def test_registered_names_are_compared_in_their_classes_only():
    registered = {*veridical.calibrators(), *veridical.combine.COMBINERS}
    counts = {}
    for name, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text())):
            compared = [node.value] if isinstance(node, ast.MatchValue) else []
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.In | ast.NotIn):
                compared = [part for side in (node.left, *node.comparators) for part in ast.walk(side)]
            if any(isinstance(part, ast.Constant) and part.value in registered for part in compared):
                counts[name] = counts.get(name, 0) + 1
    more = {name: n for name, n in counts.items() if n > COMPARED_NAMES.get(name, 0)}
    assert not more, f"let the class answer in place of a comparison with its name: {more}"


def test_library_names_no_option_of_the_command_line():
    """A sentence of the library names parameters, and ``veridical.cli.with_options`` writes them as options."""
    for name, path in modules().items():
        tree = ast.parse(path.read_text())
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        docs = {id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, documented) and is_doc(node.body)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
                flags = re.findall(r"(?<![\w-])--[a-z][a-z-]+", node.value)
                assert name.startswith("cli.") or not flags, f"{path} names {flags} in {node.value!r}"


def is_doc(body):
    """Whether a body begins with a docstring."""
    return isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
