"""A file format of one's own: one object, for predictions, labels, votes and calibrated results."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import veridical as vd
from veridical.cli.commands import program
from veridical.predictions.files.contents import Columns
from veridical.predictions.files.formats import FORMATS
from veridical.predictions.files.table_format import table_format


def read_columns(path, choose):
    """A list of names, and a list of entries for each."""
    names, columns = json.loads(path.read_text())
    content = dict(zip(names, columns, strict=True))
    of_numbers, of_text = choose(names)
    numbers = np.array([content[name] for name in of_numbers], float).T
    return Columns(names, numbers, {name: ["" if e is None else str(e) for e in content[name]] for name in of_text})


def write_columns(path, types, blocks, *, for_spreadsheets=False):
    columns = [[] for _ in types]
    for block in blocks:
        for column, part in zip(columns, block, strict=True):
            column += np.asarray(part).tolist()
    path.write_text(json.dumps([list(types), columns]))


@pytest.fixture(autouse=True)
def own_format(monkeypatch):
    own = table_format(".columns", read_columns, write_columns, unwritable="$^", keeps_types=False)
    monkeypatch.setitem(FORMATS, ".columns", own)


def test_own_format_holds_predictions_labels_and_calibrated_results(tmp_path):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 50)
    probs = (rng.dirichlet([1, 1, 1], (2, 50)) + np.eye(3)[labels]) / 2
    labels[:9] = rng.integers(0, 3, 9)
    predictions = vd.Predictions(probs, class_names=["ant", "bee", "cow"], sample_ids=[f"s{n}" for n in range(50)])
    vd.save(predictions, tmp_path / "p.columns")
    write_columns(tmp_path / "y.columns", {"id": str, "label": int}, [[predictions.sample_ids[::-1], labels[::-1]]])
    loaded = vd.load(tmp_path / "p.columns", labels=tmp_path / "y.columns")
    np.testing.assert_array_equal(loaded.values, probs)
    np.testing.assert_array_equal(loaded.labels, labels)
    runner, calibrator, out = CliRunner(), str(tmp_path / "cal.json"), tmp_path / "out.columns"
    files = [str(tmp_path / "p.columns"), "--labels", str(tmp_path / "y.columns")]
    for command in (["calibrate", *files, "-m", "temperature"], ["apply", calibrator, *files]):
        result = runner.invoke(program, [*command, "-o", calibrator if command[0] == "calibrate" else str(out)])
        assert result.exit_code == 0, result.output
    expected = vd.apply_calibrator(vd.load_calibrator(calibrator), loaded)
    np.testing.assert_array_equal(vd.load(out).values[0], expected.probs)


def test_own_format_holds_votes(tmp_path):
    votes = {"item": ["q", "q", "r", "r"], "source": ["a", "b", "a", "b"], "label": ["x", "x", "y", None]}
    write_columns(tmp_path / "v.columns", votes, [list(votes.values())])
    assert vd.judge(tmp_path / "v.columns").answer("q") == vd.judge(votes).answer("q")
    assert vd.load_votes(tmp_path / "v.columns").class_names == ("x", "y")


def test_own_format_is_listed(tmp_path):
    (tmp_path / "p.xyz").touch()
    for call in (lambda: vd.load(tmp_path / "p.xyz"), lambda: vd.save(vd.load_demo(), tmp_path / "p.xyz")):
        with pytest.raises(vd.errors.FileFormatError, match=r"\.columns"):
            call()
