"""Files that are not calibrators at all, and calibrators whose arrays have other dimensions."""

import json
import os

import pytest
from calibration_cases import labelled_ensemble

import veridical as vd
from veridical.errors import ParameterError, SavedFileError


@pytest.mark.parametrize("what", ["pipe", "device", "directory", "large"])
def test_load_calibrator_reads_regular_files_of_limited_size(tmp_path, what):
    path = tmp_path / "cal.json"
    if what == "pipe":
        os.mkfifo(path)
    elif what == "device":
        path.symlink_to("/dev/zero")
    elif what == "directory":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate((64 << 20) + 1)
    with pytest.raises(SavedFileError, match=r"it is not a regular file of at most 64 MB"):
        vd.load_calibrator(path)


@pytest.mark.parametrize("path", [5, None, "", "a\0b"])
def test_load_calibrator_refuses_what_is_not_a_path(path):
    with pytest.raises(ParameterError, match="the path is "):
        vd.load_calibrator(path)


@pytest.mark.parametrize(
    "name", [name for name, method in vd.calibrators().items() if name != "auto" and method._state]
)
def test_state_of_no_dimensions_is_refused(rng, tmp_path, name):
    """Each array in turn is replaced by a single number."""
    path = tmp_path / "cal.json"
    probs, labels = labelled_ensemble(rng)
    vd.calibrators()[name]().fit(probs, labels).save(path)
    document = json.loads(path.read_text())
    document.pop("sha256")
    arrays = [key for key, value in document["state"].items() if isinstance(value, dict) and "shape" in value]
    for key in arrays:
        state = {**document["state"], key: {"shape": [], "values": [0.5]}}
        path.write_text(json.dumps({**document, "state": state}))
        with pytest.raises(SavedFileError, match="is not a calibrator that veridical saved"):
            vd.load_calibrator(path)
