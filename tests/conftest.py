"""What several tests share: the shipped ensemble, and larger real data where it lies beside the project."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

#: With NUMBA_DISABLE_JIT=1 kernels run as plain Python: coverage sees inside them, at a hundredth of the speed.
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")

#: With VERIDICAL_HUNT=10 Hypothesis tries other examples in every run, and ten times as many.
HUNT = int(os.environ.get("VERIDICAL_HUNT", "0"))

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


SHARED = Path(__file__).resolve().parents[2] / "shared"

REAL_ENSEMBLES = ("cifar10-resnet8-de", "cifar100-mixed-3")


def load_logits(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Float64 logits (S, N, L) and labels of a real ensemble, or skip."""
    path = SHARED / "data" / f"{name}.npz"
    if not path.exists():
        pytest.skip("the real ensembles are not beside the project")
    with np.load(path, allow_pickle=False) as stored:
        return stored["logits"].astype(np.float64), stored["labels"].astype(np.int64)


def load_golden(name: str) -> dict[str, Any]:
    """What other people's implementations gave on a real ensemble, or skip."""
    path = SHARED / "golden" / f"{name}.json"
    if not path.exists():
        pytest.skip("the golden figures are not beside the project")
    return json.loads(path.read_text())  # type: ignore[no-any-return]


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


def load_paper_source() -> str:
    """The LaTeX source of the paper whose tables are reproduced, or skip."""
    path = SHARED / "paper" / "paper.tex"
    if not path.exists():
        pytest.skip("the paper's source is not beside the project")
    return path.read_text(encoding="utf-8")
