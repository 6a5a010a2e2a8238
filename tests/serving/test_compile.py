"""``veridical compile``: a later process finds every kernel on disk."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from calibration_cases import labelled_ensemble

import veridical as vd

pytestmark = pytest.mark.compiled

#: Applies a calibrator to more samples than NumPy is left with, and counts kernels that had to be compiled.
PROGRAM = """
import sys
import numpy as np
import veridical as vd
from veridical.evaluation.compilation import loaded_kernels

for path in sys.argv[1:]:
    calibrator = vd.load_calibrator(path)
    for dtype in ("float32", "float64"):
        for n_samples in (65, 3000):
            probs = np.random.default_rng(0).dirichlet(np.ones(4), size=(5, n_samples)).astype(dtype)
            calibrator.predict_all(probs)
    calibrator.load_kernels()
print({kernel.__name__ for kernel in loaded_kernels() if sum(kernel.stats.cache_misses.values())})
"""

TWICE = """
import json
from veridical.evaluation import compile_kernels

print(json.dumps([compile_kernels().to_dict() for _ in range(2)]))
"""


def run(arguments, cache, **options):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, **options)


@pytest.mark.slow
def test_compiled_kernels_are_found(tmp_path, rng):
    cache, paths = tmp_path / "cache", []
    compiled = json.loads(run(["-m", "veridical", "compile", "--json"], cache, check=True).stdout)
    assert compiled["type"] == "compiled"
    assert compiled["n_compiled"] > 0
    assert compiled["directory"].startswith(str(cache))
    probs, labels = labelled_ensemble(rng)
    for name in ("temperature", "spline", "ptde-kde", "truth-logit", "log-pool", "linear-pool"):
        paths.append(tmp_path / f"{name}.json")
        vd.calibrators()[name]().fit(probs, labels).save(paths[-1])
    assert run(["-c", PROGRAM, *map(str, paths)], cache, check=True).stdout.strip() == "set()"
    index = next(cache.rglob("projection.*.nbi"))
    index.unlink()  # one kernel has to be compiled again
    first, second = json.loads(run(["-c", TWICE], cache, check=True).stdout)
    assert first["n_compiled"] > 0
    assert (second["n_compiled"], second["n_found"]) == (0, first["n_compiled"] + first["n_found"])


def test_compile_says_that_nothing_can_be_stored(tmp_path):
    program = """
import numba.core.caching

def refuse(self):
    raise OSError("read-only file system")

numba.core.caching._CacheLocator.ensure_cache_path = refuse
from veridical.cli import main
main(["compile"])
"""
    done = run(["-c", program], tmp_path, check=False)
    assert done.returncode == 2
    assert "cannot be stored" in done.stderr
    assert "Traceback" not in done.stderr


def test_nothing_compiles_for_small_inputs(tmp_path, rng):
    """A cache that stays empty: the first answer does not wait for a compiler."""
    probs, labels = labelled_ensemble(rng)
    vd.PTDE(random_state=0).fit(probs, labels).save(tmp_path / "cal.json")
    np.save(tmp_path / "one.npy", probs[:, :1])
    program = (
        "import sys, numpy as np, veridical as vd; vd.load_calibrator(sys.argv[1]).predict_all(np.load(sys.argv[2]))"
    )
    run(["-c", program, str(tmp_path / "cal.json"), str(tmp_path / "one.npy")], tmp_path / "cache", check=True)
    assert not (tmp_path / "cache").exists()
