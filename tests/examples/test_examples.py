"""The example scripts run and show what they claim."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from veridical.metrics import CalibrationState

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = pytest.mark.compiled


def run_example(name, *arguments):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_monitor_alerts_after_the_drift_begins_and_not_before(tmp_path):
    text = run_example("monitor_calibration.py", "--out", tmp_path, "--hours", 84, "--drift-from", 48)
    first = int(re.search(r"first alert at hour (\d+)", text).group(1))
    assert 48 < first < 72
    states = [CalibrationState.load(path) for path in sorted(tmp_path.glob("hour-*.json"))]
    assert len(states) == 84
    everything = states[0].merge(*states[1:])
    assert f"{everything.n_samples:,}" in text
    first_day, last_day = (states[start].merge(*states[start + 1 : start + 24]) for start in (0, 60))
    assert last_day.compute()["ece"] > 3 * first_day.compute()["ece"]


def test_calibrated_ensemble_compares_with_scikit_learn():
    text = run_example("calibrated_ensemble.py", "--seeds", 1, "--data", "iris")
    rows = {line[2:22].strip(): line[22:].split() for line in text.splitlines()[1:]}
    assert set(rows) == {
        "CalibratedEnsemble", "voting", "voting, sigmoid", "voting, isotonic", "voting, temperature", "stacking",
    }  # fmt: skip
    ours, stacking = float(rows["CalibratedEnsemble"][0]), float(rows["stacking"][0])
    assert 0 < ours < 0.5
    assert float(rows["stacking"][4]) == pytest.approx(stacking - ours, abs=2e-4)


def test_hv_in_the_loss_pulls_members_together():
    text = run_example("hv_in_the_loss.py", "--seeds", 1, "--steps", 60)
    rows = {float(line.split()[0]): line.replace("%", "").split() for line in text.splitlines()[1:]}
    hv = {strength: float(row[5]) for strength, row in rows.items()}
    assert hv[1.0] <= hv[0.1] <= hv[0.0] <= hv[-0.1]
    assert hv[1.0] < hv[-0.1]
    assert all(float(row[1]) > 85 for row in rows.values())
