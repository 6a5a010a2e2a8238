"""Shared by all tests: profiles, real ensembles with golden figures, and the skips that CI accepts."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# For the processes of pytest-xdist, as many as there are cores: threads of BLAS and PyTorch would fight for them.
os.environ.setdefault("OMP_NUM_THREADS", "1")

#: With NUMBA_DISABLE_JIT=1 kernels run as plain Python: coverage sees inside them, at a hundredth of the speed.
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")

#: With VERIDICAL_HUNT=10 Hypothesis tries other examples in every run, and ten times as many.
HUNT = int(os.environ.get("VERIDICAL_HUNT", "0"))
if HUNT:  # the same seed in every process of the run
    os.environ.setdefault("VERIDICAL_SEED", str(secrets.randbelow(2**32)))


def pytest_report_header() -> str | None:
    """The seed of a hunt, by which it can be repeated."""
    return f"hunt: VERIDICAL_HUNT={HUNT} VERIDICAL_SEED={os.environ['VERIDICAL_SEED']}" if HUNT else None


settings.register_profile(
    "default", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True, derandomize=not HUNT,
    max_examples=100 * max(HUNT, 1),
)  # fmt: skip
settings.load_profile("default")


def examples(n: int) -> int:
    """How many examples Hypothesis tries: ``n``, more when hunting, a few where kernels run as plain Python."""
    return max(n // 50, 5) if INTERPRETED else n * max(HUNT, 1)


def pytest_configure(config: pytest.Config) -> None:
    """Compiled code passes over NaN in silence; NumPy's scalars, which stand in for it, warn."""
    if INTERPRETED:
        config.addinivalue_line("filterwarnings", "ignore::RuntimeWarning")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what plain Python cannot do in reasonable time."""
    if INTERPRETED:
        for item in items:
            if item.get_closest_marker("compiled"):
                item.add_marker(pytest.mark.skip(reason="too slow without compiled kernels"))


#: Reasons to skip a test that continuous integration accepts, by how they begin; any other skip fails it.
ACCEPTED_SKIPS = {
    "too slow without compiled kernels": "the second run, with NUMBA_DISABLE_JIT=1, is for coverage of the kernels",
    "no C++ compiler on this machine": "torch.compile's default backend needs one; another backend is tested without",
    "no TeX on this machine": "TeX is half a gigabyte for one test",
    "this TeX has no booktabs": "the same",
    "Debian's dataset-fashion-mnist is not installed": "30 MB of images for one test; the format is tested without",
    "no file system can be mounted here": "only root may mount the small disk that fills up",
    "this user may read everything": "file permissions do not bind root, and containers run as root",
    "SCIPY_ARRAY_API is not set": "scikit-learn checks array API support in a process of its own only",
    "this scikit-learn has no such check": "estimator checks come and go between versions",
}


def unexpected_skips(reports: Iterable[pytest.TestReport]) -> list[str]:
    """Where and why tests were skipped, without the accepted reasons."""
    places = []
    for report in reports:
        where, line, reason = report.longrepr if isinstance(report.longrepr, tuple) else (report.nodeid, 0, "")
        reason = reason.removeprefix("Skipped: ")
        if not reason.startswith(tuple(ACCEPTED_SKIPS)):
            places.append(f"{where}:{line}: {reason}")
    return sorted(set(places))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With CI=true, a skipped test fails the run unless its reason is accepted."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI", "") != "true" or hasattr(session.config, "workerinput") or reporter is None:
        return
    places = unexpected_skips(reporter.stats.get("skipped", []))
    if places:
        reporter.write_line("\nSkipped for reasons that tests/conftest.py does not accept:", red=True)
        for place in places:
            reporter.write_line(f"  {place}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@contextmanager
def restored_registries() -> Iterator[None]:
    """Forget afterwards which calibrators, combiners and metrics were registered meanwhile."""
    from veridical.calibrate.registry import registered
    from veridical.combine import COMBINERS
    from veridical.metrics import METRICS

    registries: tuple[dict[str, Any], ...] = (registered, COMBINERS, METRICS)
    before = [dict(registry) for registry in registries]
    try:
        yield
    finally:
        for registry, entries in zip(registries, before, strict=True):
            registry.clear()
            registry.update(entries)


@pytest.fixture(autouse=True)
def _registries() -> Iterator[None]:
    """What a test, an example or a page registers is unknown to the next."""
    with restored_registries():
        yield


#: Predictions of real networks; tests/golden/README.md says where they and their figures come from.
REAL_ENSEMBLES = ("cifar10-resnet8-de", "cifar100-mixed-3")

GOLDEN = Path(__file__).parent / "golden"


def ensemble_path(name: str) -> Path:
    """The file of a real ensemble: the shipped one, or a part of another in tests/golden."""
    shipped = Path(str(files("veridical.data").joinpath(f"{name}.npz")))
    return shipped if shipped.exists() else GOLDEN / f"{name}.npz"


def load_logits(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Float64 logits (S, N, L) and labels of a real ensemble."""
    with np.load(ensemble_path(name), allow_pickle=False) as stored:
        return stored["logits"].astype(np.float64), stored["labels"].astype(np.int64)


def load_golden(name: str) -> dict[str, Any]:
    """Figures that other authors' implementations gave on a real ensemble."""
    return json.loads((GOLDEN / f"{name}.json").read_text())  # type: ignore[no-any-return]


def softmax(logits: np.ndarray) -> np.ndarray:
    """Softmax over the last axis."""
    scores = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return scores / scores.sum(axis=-1, keepdims=True)


@pytest.fixture(params=REAL_ENSEMBLES)
def real_ensemble(request: pytest.FixtureRequest) -> tuple[str, np.ndarray, np.ndarray]:
    """(name, probabilities (S, N, L) in float64, labels) of each real ensemble."""
    logits, labels = load_logits(request.param)
    return request.param, softmax(logits), labels


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator with a fixed seed."""
    return np.random.default_rng(int(os.environ.get("VERIDICAL_TEST_SEED", "0")))


@pytest.fixture(scope="session")
def blocked_ensemble() -> tuple[np.ndarray, np.ndarray]:
    """Probabilities (5, 3000, 4) and labels: a few blocks of samples."""
    from blocked_ensembles import labelled_ensemble

    return labelled_ensemble()  # type: ignore[no-any-return]


@pytest.fixture
def blocked_files(blocked_ensemble: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> Path:
    """A directory with that ensemble as probs.npy and labels.npy."""
    probs, labels = blocked_ensemble
    np.save(tmp_path / "probs.npy", probs)
    np.save(tmp_path / "labels.npy", labels)
    return tmp_path
