"""Every option of the commands on predictions, run in this process: files, --json, --quiet and exit codes."""

import json

import numpy as np
import pandas as pd
import pytest
from ensembles import random_ensemble
from programs import veridical_in_process as veridical

import veridical as vd
from veridical.metrics import SUMMARY_METRICS
from veridical.report.verdict import calibration_sentence

pytestmark = pytest.mark.compiled

QUICK = ("--no-floors", "--no-intervals")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same 60 samples of three sources in several forms."""
    folder = tmp_path_factory.mktemp("predictions")
    rng = np.random.default_rng(0)
    probs = random_ensemble(rng, 3, 60, 3)
    labels = np.array([rng.choice(3, p=row) for row in probs.mean(axis=0)])
    vd.save(vd.Predictions(probs, labels, source_names=list("abc")), folder / "p.npz")
    np.save(folder / "scores.npy", np.log(probs))
    np.save(folder / "samples_first.npy", probs.swapaxes(0, 1))
    np.save(folder / "labels.npy", labels)
    np.save(folder / "others.npy", (labels + 1) % 3)
    vd.Temperature().fit(probs, labels).save(folder / "cal.json")
    return folder


@pytest.fixture(scope="module")
def predictions(folder):
    return vd.load(folder / "p.npz")


def document(*arguments):
    """What a command prints with --json."""
    done = veridical(*arguments, "--json")
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return json.loads(done.stdout)


def rejected(*arguments):
    """The message of a command that ends with exit code 2 and prints nothing else."""
    done = veridical(*arguments)
    assert (done.returncode, done.stdout) == (2, ""), done
    return done.stderr


def figures(content):
    """Method -> metric -> value, of an evaluation in JSON."""
    return {
        scores["method"]: {metric: scores["summary"][metric]["value"] for metric in SUMMARY_METRICS}
        for scores in content["methods"]
    }


# --- how predictions are read


def test_kind_and_axis_say_what_an_array_is(folder):
    expected = figures(document("evaluate", folder / "p.npz", *QUICK))
    labels = ("-y", folder / "labels.npy")
    for options in (("scores.npy", "--kind", "logits"), ("samples_first.npy", "--sources-axis", "1")):
        name, *rest = options
        read = figures(document("evaluate", folder / name, *rest, *labels, *QUICK))
        assert read.keys() == expected.keys()
        for method, values in expected.items():
            assert read[method] == pytest.approx(values, abs=1e-9)


def test_messages_about_columns_and_votes_name_the_option_that_helps(tmp_path):
    (tmp_path / "logits.csv").write_text("label,cat,dog,fold\ncat,1,0,3\ndog,0,1,4\n")
    assert "Others are chosen with --class-columns, and" in veridical("inspect", tmp_path / "logits.csv").stderr
    pd.DataFrame({"cat": [0.5], "dog": [0.5], "comment": ["ok"]}).to_parquet(tmp_path / "text.parquet")
    pd.read_parquet(tmp_path / "text.parquet").to_csv(tmp_path / "text.csv", index=False)
    for name in ("text.csv", "text.parquet"):
        assert "choose the columns of classes with --class-columns." in rejected("inspect", tmp_path / name)
    votes = [f"{item},{juror},{'aAb'[item % 3]}" for item in range(9) for juror in "xyz"]
    (tmp_path / "votes.csv").write_text("\n".join(["item,source,label", *votes]))
    assert "which --normalize makes one." in " ".join(veridical("jury", tmp_path / "votes.csv").stdout.split())


def test_labels_of_the_option_are_used_instead_of_those_in_the_file(folder, predictions):
    content = document("evaluate", folder / "p.npz", "--labels", folder / "others.npy", "-m", "mean", *QUICK)
    others = np.load(folder / "others.npy")
    accuracy = np.mean(predictions.values.mean(axis=0).argmax(axis=1) == others)
    assert figures(content)["mean"]["accuracy"] == pytest.approx(accuracy)


def test_numbers_of_another_kind_are_located(folder):
    message = rejected("evaluate", folder / "scores.npy", "-y", folder / "labels.npy")
    assert message.startswith("Error: ")
    assert "source 0, sample 0" in message
    assert "--kind logits" in message


@pytest.mark.parametrize("command", ["evaluate", "compare", "calibrate", "inspect", "report"])
@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--kind", "magic", "'magic' is not one of 'probs', 'logits', 'log_probs'"),
        ("--sources-axis", "3", "3 is not in the range 0<=x<=2"),
        ("--sources-axis", "x", "'x' is not a valid integer"),
    ],
)
def test_bad_values_of_reading_options_are_rejected(folder, command, option, value, words):
    message = rejected(command, folder / "p.npz", option, value)
    assert words in message
    assert f"Usage: veridical {command} " in message


@pytest.mark.parametrize(
    "command", ["evaluate", "compare", "calibrate", "inspect", "report", "apply", "export", "jury"]
)
def test_missing_argument_and_unknown_option_are_rejected(command):
    assert "Missing argument" in rejected(command)
    assert "No such option '--magic'" in rejected(command, "--magic")


# --- evaluate


def test_evaluate_seed_decides_halves_and_floors(folder, predictions):
    content = document("evaluate", folder / "p.npz", "-m", "mean,ts", "--no-intervals", "--seed", "5")
    expected = vd.evaluate(predictions, methods=["mean", "ts"], random_state=5)
    assert content["random_state"] == 5
    assert content["methods"] == json.loads(json.dumps([scores.to_dict() for scores in expected.methods]))
    other = document("evaluate", folder / "p.npz", "-m", "mean,ts", "--no-intervals", "--seed", "6")
    assert figures(other) != figures(content)


def test_evaluate_leaves_floors_and_intervals_out(folder):
    whole = document("evaluate", folder / "p.npz", "-m", "mean")["methods"][0]["summary"]["ece"]
    assert None not in whole.values()
    without_floors = document("evaluate", folder / "p.npz", "-m", "mean", "--no-floors")["methods"][0]["summary"]["ece"]
    assert (without_floors["floor"], without_floors["low"]) == (None, whole["low"])
    without_intervals = document("evaluate", folder / "p.npz", "-m", "mean", "--no-intervals")
    assert without_intervals["methods"][0]["summary"]["ece"] == {**whole, "low": None, "high": None}


def test_evaluate_prints_one_table_unless_there_is_more_to_say(folder):
    plain = veridical("evaluate", folder / "p.npz", "-m", "members,mean", *QUICK).stdout
    assert plain.startswith("Scored on all samples; errors and accuracy in %\n")
    assert "one source (mean of 3)" in " ".join(plain.split())
    assert "metric" not in plain
    more = veridical("evaluate", folder / "p.npz", "-m", "members,mean", "--no-intervals").stdout
    assert "noise floor" in more
    assert "interval" not in more
    held_out = veridical("evaluate", folder / "p.npz", "-m", "ts", *QUICK).stdout
    assert held_out.startswith("Scored on held-out half;")


@pytest.mark.parametrize("command", ["evaluate", "compare", "calibrate", "report"])
@pytest.mark.parametrize(("seed", "words"), [("-1", "random_state is -1"), ("x", "'x' is not a valid integer")])
def test_bad_seed_is_rejected(folder, tmp_path, command, seed, words):
    out = ("--out", tmp_path / "r.html") if command == "report" else ()
    method = ("--method", "ts") if command in ("calibrate", "report") else ("--methods", "ts")
    assert words in rejected(command, folder / "p.npz", *method, *out, "--seed", seed)
    assert list(tmp_path.iterdir()) == []


# --- calibrate


def test_calibrate_json_equals_the_python_result(folder, predictions, tmp_path):
    out = tmp_path / "cal.json"
    content = document("calibrate", folder / "p.npz", "-m", "ts", "--seed", "4", "-o", out)
    expected = vd.fit_calibrator(predictions, method="ts", random_state=4)
    verdict = calibration_sentence(expected.evaluation, expected.judged, "TS")
    written = {"verdict": verdict, "out": str(out), "report": None}
    assert content == {**json.loads(json.dumps(expected.to_dict())), **written}
    assert vd.load_calibrator(out).temperature_ == expected.calibrator.temperature_


def test_calibrate_without_out_writes_nothing(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = veridical("calibrate", folder / "p.npz", "-m", "ts")
    assert done.returncode == 0, done.stderr
    assert "Scored on the half that was not used to fit" in done.stdout
    assert "Wrote" not in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_calibrate_quiet_writes_and_prints_nothing(folder, tmp_path):
    done = veridical("calibrate", folder / "p.npz", "-m", "ts", "--out", tmp_path / "cal.json", "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert vd.load_calibrator(tmp_path / "cal.json").name == "temperature"


def test_options_of_auto_are_rejected_by_other_methods(folder):
    message = rejected("calibrate", folder / "p.npz", "-m", "ts", "--objective", "distribution")
    assert "parameter of temperature 'objective' is unknown" in message
    assert "parameter of temperature 'keep_labels' is unknown" in rejected(
        "calibrate", folder / "p.npz", "-m", "ts", "--change-labels"
    )
    assert "'speed' is not one of 'confidence', 'distribution'" in rejected(
        "calibrate", folder / "p.npz", "--objective", "speed"
    )


def test_calibrate_needs_a_method_that_fits(folder):
    message = rejected("calibrate", folder / "p.npz", "-m", "mean")
    assert message == "Error: mean has nothing to fit; name a calibrator, such as 'temperature'.\n"


def test_calibrate_checks_its_outputs_before_it_works(folder, tmp_path):
    before = (folder / "p.npz").read_bytes()
    assert "calibrators are saved as .json" in rejected("calibrate", folder / "p.npz", "-o", folder / "p.npz")
    assert "does not end in .html" in rejected("calibrate", folder / "p.npz", "--report", tmp_path / "r.txt")
    assert (folder / "p.npz").read_bytes() == before
    assert list(tmp_path.iterdir()) == []


# --- apply


def test_apply_writes_what_the_calibrator_predicts(folder, predictions, tmp_path):
    out = tmp_path / "out.npz"
    content = document("apply", folder / "cal.json", folder / "p.npz", "-o", out)
    calibrator = vd.load_calibrator(folder / "cal.json")
    probs, confidence, label = calibrator.predict_all(predictions)
    assert content == {
        "schema": 1,
        "type": "calibrated",
        "out": str(out),
        "n_samples": 60,
        "mean_confidence": pytest.approx(confidence.mean()),
    }
    with np.load(out) as written:
        assert set(written) == {"probs", "confidence", "prediction", "labels"}
        np.testing.assert_array_equal(written["probs"], probs)
        np.testing.assert_array_equal(written["prediction"], label)


def test_apply_says_what_it_wrote_or_nothing(folder, tmp_path):
    out = tmp_path / "out.npz"
    printed = veridical("apply", folder / "cal.json", folder / "p.npz", "-o", out).stdout
    assert " ".join(printed.split()).startswith(f"Wrote {out}: 60 samples, mean confidence ")
    assert veridical("apply", folder / "cal.json", folder / "p.npz", "-o", out, "-q").stdout == ""


def test_apply_rejects_what_does_not_fit(folder, tmp_path):
    out = tmp_path / "out.npz"
    assert "Missing option '--out'" in rejected("apply", folder / "cal.json", folder / "p.npz")
    assert "use the extension .npz, .npy, .csv, .parquet" in rejected(
        "apply", folder / "cal.json", folder / "p.npz", "-o", tmp_path / "a.txt"
    )
    assert "is the same file as the input" in rejected(
        "apply", folder / "cal.json", folder / "p.npz", "-o", folder / "p.npz"
    )
    np.save(tmp_path / "more_classes.npy", np.full((3, 4, 5), 0.2))
    message = rejected("apply", folder / "cal.json", tmp_path / "more_classes.npy", "-o", out)
    assert message == "Error: this calibrator was fitted for 3 classes and the predictions have 5; fit one for them.\n"
    assert not out.exists()


# --- threshold


def test_threshold_json_equals_the_python_result(folder, predictions):
    content = document("threshold", folder / "cal.json", folder / "p.npz", "--max-risk", 0.4)
    calibrator = vd.load_calibrator(folder / "cal.json")
    assert content == vd.choose_threshold(calibrator, predictions, max_risk=0.4).to_dict()


def test_threshold_says_what_is_guaranteed_or_why_nothing_is(folder):
    printed = veridical("threshold", folder / "cal.json", folder / "p.npz", "--max-risk", 0.001).stdout
    assert "No threshold guarantees a risk of 0.1% with confidence 90%: 2,302" in " ".join(printed.split())


def test_threshold_rejects_a_risk_that_is_none(folder):
    assert "max_risk is 0" in rejected("threshold", folder / "cal.json", folder / "p.npz", "--max-risk", 0)
    assert "Missing option '--max-risk'" in rejected("threshold", folder / "cal.json", folder / "p.npz")


# --- compare


def test_compare_json_equals_the_python_result(folder, predictions):
    content = document("compare", folder / "p.npz", "-m", "mean, ts", "--splits", "2", "--seed", "3")
    expected = vd.compare_calibrators(predictions, methods=["mean", "ts"], n_splits=2, random_state=3)
    assert content == json.loads(json.dumps(expected.to_dict()))


def test_compare_prints_the_floor_of_the_mean_or_of_the_first_method(folder, predictions):
    for methods in ("ts,mean", "ts,platt"):
        done = veridical("compare", folder / "p.npz", "-m", methods, "--splits", "1")
        comparison = vd.compare_calibrators(predictions, methods=methods.split(","), n_splits=1)
        floor = comparison.floors["mean" if "mean" in comparison.methods else "temperature"]
        assert f"Noise floor: ECE-KDE {100 * floor['ece_kde']:.2f}, ECE {100 * floor['ece']:.2f}" in done.stdout
        assert done.stdout.startswith("1 random halves; errors and accuracy in %; * is the best of its column\n")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--splits", "0"), "0 is not in the range x>=1"),
        (("--splits", "x"), "'x' is not a valid integer range"),
        (("-m", "members"), "methods names 'members'; compare takes methods that combine the sources."),
        (("-m", "ts,magic"), "method 'magic' is unknown; choose one of: members, mean"),
    ],
)
def test_compare_rejects_bad_options(folder, options, words):
    assert words in rejected("compare", folder / "p.npz", *options)


# --- inspect, methods, report


def test_inspect_json_equals_the_python_result(folder, predictions):
    assert document("inspect", folder / "p.npz") == json.loads(json.dumps(vd.inspect(predictions).to_dict()))


def test_inspect_prints_sources_value_and_notes(folder, predictions):
    text = veridical("inspect", folder / "p.npz").stdout
    assert max(map(len, text.splitlines())) <= 80
    inspection = vd.inspect(predictions)
    assert text.startswith("Predictions(3 sources, 60 samples, 3 classes, kind='probs', float64, labelled)\n")
    assert "Trusted least" not in text  # trust is about agreement; there are labels
    assert "3 sources, all 60 samples; in %\n" in text
    assert f"What sources are worth, on the half of the samples ({inspection.value.n_samples})" in text
    for heading in ("agrees with mean", "agrees with others", "accuracy alone", "accuracy without it (95%)"):
        assert heading in text
    unlabelled = veridical("inspect", folder / "scores.npy", "--kind", "logits").stdout
    assert "What sources are worth" not in unlabelled
    assert "Trusted least, as it agrees least with the others: " in unlabelled
    assert "Note: There are no labels: accuracy and calibration cannot be measured." in unlabelled


def test_inspect_of_a_calibrator_is_quiet_where_asked(folder):
    content = document("inspect", folder / "cal.json")
    assert (content["type"], content["method"], content["n_sources"]) == ("calibrator", "temperature", 3)
    done = veridical("inspect", folder / "cal.json", "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_methods_json_describes_every_calibrator():
    assert max(map(len, veridical("methods").stdout.splitlines())) <= 80
    content = document("methods")
    for name, method in vd.calibrators().items():
        assert content["calibrators"][name] == {
            "title": method.title,
            "summary": method.summary,
            "keeps_labels": bool(method.keeps_labels),
            "needs_sources": method.needs_sources,
        }
    assert content["metrics"]["accuracy"]["lower_is_better"] is False
    assert content["metrics"]["ece"]["lower_is_better"] is True


def test_report_rejects_other_files_than_pages(folder, tmp_path):
    assert "does not end in .html" in rejected("report", folder / "p.npz", "-o", tmp_path / "r.txt")
    (tmp_path / "notes.html").write_text("my notes")
    assert "exists and is not an HTML page" in rejected("report", folder / "p.npz", "-o", tmp_path / "notes.html")
    assert (tmp_path / "notes.html").read_text() == "my notes"
    assert "'gif' is not one of 'svg', 'png', 'pdf'" in rejected("report", folder / "p.npz", "--format", "gif")


def test_export_json_says_what_was_written(folder, tmp_path):
    out = tmp_path / "cal.onnx"
    content = document("export", folder / "cal.json", out, "--dtype", "float64")
    assert content == {
        "schema": 1,
        "type": "exported",
        "out": str(out),
        "method": "temperature",
        "combine": "mean",
        "n_sources": 3,
        "n_classes": 3,
        "dtype": "float64",
    }
    assert out.stat().st_size > 0
    assert "'float16' is not one of 'float32', 'float64'" in rejected(
        "export", folder / "cal.json", out, "--dtype", "float16"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("evaluate", "p.npz", "-m", "mean", *QUICK),
        ("inspect", "p.npz"),
        ("compare", "p.npz", "-m", "mean", "--splits", "1"),
        ("methods",),
    ],
)
def test_quiet_leaves_json_alone(folder, arguments):
    command, *rest = arguments
    rest = [folder / word if word == "p.npz" else word for word in rest]
    with_quiet = veridical(command, *rest, "--quiet", "--json")
    assert with_quiet.returncode == 0
    assert with_quiet.stdout == veridical(command, *rest, "--json").stdout
    assert veridical(command, *rest, "--quiet").stdout == ""


@pytest.mark.parametrize("command", ["evaluate", "compare", "calibrate", "inspect"])
def test_short_help_is_that_of_the_long_option(command):
    assert veridical(command, "-h").stdout == veridical(command, "--help").stdout
    assert veridical(command, "-h").returncode == 0
