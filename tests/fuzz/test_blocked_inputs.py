"""Predictions that are read in blocks, from .npy files and .zarr stores, under the rule of ``rule.py``."""

from __future__ import annotations

import hashlib
import inspect
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import cases, often
from hunting import hunted
from hypothesis import given
from hypothesis import strategies as st
from odd_values import mostly
from rule import check_call
from strategies import PARAMETERS, arguments

import veridical as vd
from veridical.errors import VeridicalWarning

pytestmark = pytest.mark.compiled

FUNCTIONS = {name: getattr(vd.scale, name) for name in ("discover", "consensus", "evaluate", "apply_calibrator")}
FUNCTIONS["fit_calibrator"] = vd.scale.fit_calibrator
#: Where a result may be written, and where it may not.
OUTPUTS = (None, None, "out.zarr", "out.npz", "out", "out.csv", "arrays", "arrays/probs.npy", "no/such/out", "")


def write(folder: Path, case: Any, suffix: str) -> Path:
    """The scores of a case as a file that can be read in blocks, in a directory of its own."""
    path = folder / "arrays" / f"{case.kind}{suffix}"
    path.parent.mkdir()
    if suffix == ".npy":
        np.save(path, case.scores)
    else:
        import zarr

        n_samples = max(case.scores.shape[1] // 3, 1)
        chunks = (case.n_sources, n_samples, case.n_classes)
        array = zarr.create_array(str(path), shape=case.scores.shape, chunks=chunks, dtype=case.scores.dtype)
        array[...] = case.scores
    return path


def contents(folder: Path) -> dict[str, str]:
    """What is in the files of a directory."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.md5(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_blocked_function(name, tmp_path, monkeypatch):
    function, folder = FUNCTIONS[name], tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)

    @hunted(6)
    @given(st.data())
    def keeps_the_rule(data):
        case = data.draw(cases(most_samples=40))
        shutil.rmtree(folder / "arrays", ignore_errors=True)
        path = write(folder, case, data.draw(st.sampled_from((".npy", ".zarr"))))
        before = contents(folder)
        memory = data.draw(mostly(often(1 << 18, (1, 1 << 12, 10**30))))
        labels = data.draw(mostly(often(case.labels, (None,))))
        blocked = check_call("open", vd.scale.open, path, labels, kind=case.kind, block_memory=memory)
        if blocked is None:
            return
        own = {
            "predictions": st.just(blocked),
            "labels": st.none(),
            "kind": often(None, (case.kind,)),
            "sources_axis": st.none(),
            "method": st.sampled_from(("mean", "temperature", "ptde", "no such method")),
            "out": st.sampled_from(OUTPUTS),
            "resume": st.booleans(),
            "calibrator": st.just(fitted(case)),
        }
        if name not in ("discover", "consensus", "apply_calibrator"):
            own["sources_axis"] = often(None, (0, 1))
        options = data.draw(arguments(function, case, own))
        check_call(name, function, **options)
        after = contents(folder)
        assert {file: after.get(file) for file in before} == before, "an input changed"
        for entry in folder.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    keeps_the_rule()


def fitted(case: Any) -> vd.Temperature:
    """A calibrator for the sources and classes of a case."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(case.n_classes), size=(case.n_sources, 20))
    calibrator = vd.Temperature(kind=case.kind)
    with np.errstate(divide="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", VeridicalWarning)  # random numbers have little to fit
        return calibrator.fit(probs if case.kind == "probs" else np.log(probs), np.arange(20) % case.n_classes)


def test_every_parameter_of_blocked_functions_has_a_strategy():
    own = {"out", "resume", "calibrator", "parameters", "options"}
    for name, function in FUNCTIONS.items():
        for parameter in inspect.signature(function).parameters:
            assert parameter in PARAMETERS or parameter in own, f"{name}: {parameter}"


@hunted(15)
@given(st.data())
def test_opening(data):
    case = data.draw(cases(most_samples=40))
    blocked = check_call(
        "open",
        vd.scale.open,
        data.draw(mostly(often(case.scores, (case.ensemble,)))),
        data.draw(mostly(often(case.labels, (None,)))),
        kind=data.draw(mostly(often(case.kind, ("binary", "labels", None)))),
        sources_axis=data.draw(mostly(often(None, (0, 1, 2)))),
        block_memory=data.draw(often(1 << 16, (1, 4096))),
    )
    if blocked is not None:
        check_call("repr", repr, blocked)
        check_call("with_labels", blocked.with_labels, data.draw(mostly(often(case.labels, (None,)))))
        check_call("blocks", lambda: [block.start for block in blocked.blocks()])
        check_call("discover", vd.discover, blocked, missing="skip")
