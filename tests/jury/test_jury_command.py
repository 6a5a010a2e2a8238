"""``veridical jury``, the page it writes, and votes in the other commands."""

import csv
import json

import numpy as np
import pytest
from programs import veridical_in_process
from test_judge import simulated_votes, write_rows, write_votes

import veridical as vd
from veridical.report.jury_page import order_by_dependence, render_jury


@pytest.fixture
def files(rng, tmp_path):
    votes, truth = simulated_votes(rng)
    path = write_votes(tmp_path / "votes.csv", votes)
    gold = write_rows(tmp_path / "gold.csv", ("item", "label"), [(f"q{n}", "ABC"[truth[n]]) for n in range(60)])
    return path, gold, truth


def test_jury_writes_answers_report_and_json(files, tmp_path):
    path, gold, truth = files
    out, page = tmp_path / "answers.csv", tmp_path / "jury.html"
    done = veridical_in_process("jury", path, "--gold", gold, "--out", out, "--report", page, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["calibration"]["n_gold"] == 60
    with out.open(newline="") as file:
        labels = {row["item"]: row["label"] for row in csv.DictReader(file)}
    assert labels == {answer["item"]: answer["label"] for answer in document["answers"]}
    assert np.mean([labels[f"q{n}"] == "ABC"[truth[n]] for n in range(400)]) > 0.85
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    assert "model-0" in text
    assert "<svg" in text
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org", "")


def test_jury_prints_jurors_and_notes(files):
    done = veridical_in_process("jury", files[0])
    assert done.returncode == 0, done.stderr
    assert "model-5" in done.stdout
    assert "No answers are known" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--out", "answers.txt"], "use the extension .csv"),
        (["--report", "page.txt"], ".html"),
        (["--classes", "A,B"], "'C'"),
    ],
)
def test_jury_refuses_bad_options(files, tmp_path, arguments, words, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = veridical_in_process("jury", files[0], *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gold.csv", "votes.csv"]


def test_jury_never_replaces_its_input(files):
    before = files[0].read_bytes()
    done = veridical_in_process("jury", files[0], "--out", files[0])
    assert done.returncode == 2
    assert files[0].read_bytes() == before


def test_page_escapes_names(rng):
    votes, _ = simulated_votes(rng, n_items=30)
    text = render_jury(vd.judge(votes, source_names=["<script>alert(1)</script>", *"bcdef"]))
    assert "<script>" not in text


def test_jurors_that_repeat_each_other_stand_together(rng):
    dependence = np.eye(6)
    dependence[0, 4] = dependence[4, 0] = 0.9
    order = order_by_dependence(dependence)
    assert abs(order.index(0) - order.index(4)) == 1
    assert sorted(order) == list(range(6))


@pytest.mark.filterwarnings("default::veridical.errors.AbsentSourceWarning")
def test_votes_are_predictions_in_other_commands(files):
    path, gold, _ = files
    predictions = vd.load_votes(path, gold)
    assert predictions.is_votes
    assert "votes" in repr(predictions)
    assert predictions.n_labelled == 60
    done = veridical_in_process(
        "evaluate", path, "--kind", "labels", "--labels", gold, "-m", "mean,consensus", "--json"
    )
    assert done.returncode == 0, done.stderr
    assert [row["method"] for row in json.loads(done.stdout)["methods"]] == ["mean", "consensus"]


COMMANDS = [
    (["evaluate", "{votes}", "--labels", "{gold}", "-m", "members,mean"], "votes have no probabilities of their own"),
    (["inspect", "{votes}", "--labels", "{gold}"], "votes have no probabilities of their own"),
    (["inspect", "{votes}"], "votes have no probabilities of their own"),
    (["compare", "{votes}", "--labels", "{gold}", "-m", "mean,temperature"], ""),
    (["calibrate", "{votes}", "--labels", "{gold}", "-m", "temperature", "--out", "{folder}/cal.json"], "Wrote"),
    (["apply", "{folder}/cal.json", "{votes}", "--out", "{folder}/out.csv"], "Wrote"),
    (["report", "{votes}", "--out", "{folder}/report.html"], "Wrote"),
]


@pytest.mark.compiled
@pytest.mark.filterwarnings("default::veridical.errors.AbsentSourceWarning")
def test_every_command_takes_votes(files, tmp_path):
    path, _, truth = files
    gold = write_rows(tmp_path / "all.csv", ("item", "label"), [(f"q{n}", "ABC"[truth[n]]) for n in range(400)])
    names = {"votes": path, "gold": gold, "folder": tmp_path}
    for arguments, words in COMMANDS:
        done = veridical_in_process(*(argument.format(**names) for argument in arguments), "--kind", "labels")
        assert done.returncode == 0, f"{arguments[0]}: {done.stderr}"
        assert words in " ".join(done.stdout.split()), arguments[0]
    with (tmp_path / "out.csv").open(newline="") as file:
        assert {row["id"] for row in csv.DictReader(file)} == {f"q{n}" for n in range(400)}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["reproduce", "table1"], "the paper's tables and figures are of probabilities, and votes have none"),
        (["reproduce", "figure2"], "use 'veridical jury', or 'veridical evaluate --kind labels'"),
        (
            ["evaluate", "--groups", "item"],
            "a table of votes names its sources, has no axes, no groups, no columns of classes and no sums",
        ),
        (
            ["evaluate", "--walk-forward", "item"],
            "leave --sources-axis, --class-axis, --groups, --class-columns, --renormalize and --walk-forward out",
        ),
        (["inspect", "--sources-axis", "1"], "leave --sources-axis"),
    ],
)
def test_what_makes_no_sense_for_votes_is_said_in_a_sentence(files, arguments, words):
    n_names = 2 if arguments[0] == "reproduce" else 1
    done = veridical_in_process(*arguments[:n_names], files[0], *arguments[n_names:], "--kind", "labels")
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1


def test_labels_are_a_kind_of_predictions():
    votes = [[0, 1, -1], [2, 1, 0]]
    predictions = vd.Predictions(votes, kind="labels", sample_ids=["x", "y", "z"])
    assert repr(predictions) == "Predictions(2 sources, 3 samples, 3 classes, votes, unlabelled)"
    np.testing.assert_array_equal(predictions.values[0, :2], [[1, 0, 0], [0, 1, 0]])
    assert np.isnan(predictions.values[0, 2]).all()
    assert predictions.select(samples=[2, 0]).is_votes
    assert predictions.select(samples=[2, 0]).sample_ids.tolist() == ["z", "x"]
    named = vd.Predictions([["no", ""], ["yes", "no"]], kind="labels")
    assert named.class_names == ("no", "yes")
    np.testing.assert_array_equal(
        vd.Predictions(np.transpose(votes), kind="labels", sources_axis=1).values, predictions.values
    )


@pytest.mark.parametrize(
    ("votes", "words"),
    [([[0, 3]], "the vote is 3"), ([[0, -2]], "the vote is -2"), ([[0.5, 1]], "dtype"), ([0, 1], "shape")],
)
def test_bad_votes_are_refused(votes, words):
    with pytest.raises(vd.errors.InvalidInputError, match=words):
        vd.Predictions(votes, kind="labels", class_names=["a", "b", "c"])
