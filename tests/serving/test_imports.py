"""What loading and applying a saved calibrator imports: NumPy, and nothing that takes longer than the answer."""

import subprocess
import sys

import numpy as np
import pytest
from calibration_cases import NAMES, labelled_ensemble

import veridical as vd

#: What a server does without.  Numba is the compiler; the readers of prediction files are veridical's own.
HEAVY = ("numba", "llvmlite", "scipy", "sklearn", "threadpoolctl", "matplotlib", "pandas", "torch", "click", "rich")
READERS = "veridical.predictions.files"

PROGRAM = """
import sys
import numpy as np
import veridical as vd

calibrator = vd.load_calibrator(sys.argv[1])
predictions = np.load(sys.argv[2])
probs, confidence, labels = calibrator.predict_all(predictions)
assert calibrator.predict(predictions) == labels
assert calibrator.predict_confidence(predictions) == confidence
applied = vd.apply_calibrator(calibrator, predictions, kind=calibrator.kind)
assert np.abs(applied.probs - probs).max() <= 1e-12
print(sorted(name for name in sys.modules if name.split(".")[0] in sys.argv[3:] or name.startswith(sys.argv[3])))
"""


@pytest.fixture(scope="module")
def ensemble():
    return labelled_ensemble(np.random.default_rng(0), n_samples=300)


def imported_while_serving(calibrator, predictions, folder):
    calibrator.save(folder / "calibrator.json")
    np.save(folder / "one.npy", predictions)
    command = [sys.executable, "-W", "error", "-c", PROGRAM, folder / "calibrator.json", folder / "one.npy", READERS]
    done = subprocess.run([*command, *HEAVY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.filterwarnings("ignore::veridical.errors.VeridicalWarning")
@pytest.mark.parametrize("name", NAMES)
def test_serving_one_sample_imports_numpy_alone(name, ensemble, tmp_path):
    probs, labels = ensemble
    parameters = {"candidates": ["temperature", "spline"]} if name == "auto" else {}
    calibrator = vd.calibrators()[name](**parameters).fit(probs, labels)
    assert imported_while_serving(calibrator, probs[:, :1], tmp_path) == "[]"


@pytest.mark.parametrize("combine", ["tde", "atde", "consensus", "aconsensus", "linear-pool", "log-pool"])
def test_serving_other_combiners_imports_numpy_alone(combine, ensemble, tmp_path):
    probs, labels = ensemble
    calibrator = vd.PTDE(combine=combine, random_state=0).fit(probs, labels)
    assert imported_while_serving(calibrator, probs[:, :1], tmp_path) == "[]"


@pytest.mark.parametrize("kind", ["logits", "log_probs"])
def test_serving_logarithms_imports_numpy_alone(kind, ensemble, tmp_path):
    probs, labels = ensemble
    calibrator = vd.PTDE(kind=kind, random_state=0).fit(np.log(probs), labels)
    assert imported_while_serving(calibrator, np.log(probs[:, :1]), tmp_path) == "[]"


@pytest.mark.compiled
def test_serving_many_samples_loads_the_kernels(ensemble, tmp_path):
    """The check above can fail: larger inputs are left to the compiled kernels."""
    probs, labels = ensemble
    program = PROGRAM.replace("== labels", "is not None").replace("== confidence", "is not None")
    vd.Temperature().fit(probs, labels).save(tmp_path / "calibrator.json")
    np.save(tmp_path / "many.npy", probs)
    command = [sys.executable, "-c", program, tmp_path / "calibrator.json", tmp_path / "many.npy", READERS, *HEAVY]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "'numba'" in done.stdout
    assert "sklearn" not in done.stdout
