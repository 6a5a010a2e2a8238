"""The program around its commands: sizes, names, completion, exit codes, messages and encodings."""

import errno
import io
import json
import warnings

import click
import numpy as np
import pytest
from click.shell_completion import ShellComplete
from ensembles import random_ensemble
from hypothesis import given
from hypothesis import strategies as st
from programs import veridical_in_process as veridical

import veridical as vd
from veridical import cli, errors
from veridical.cli.commands import COMMANDS, program
from veridical.cli.options import _parse_size, split_names
from veridical.cli.output import Output

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("program")
    rng = np.random.default_rng(0)
    probs = random_ensemble(rng, 3, 80, 3)
    labels = np.array([rng.choice(3, p=row) for row in probs.mean(axis=0)])
    np.save(folder / "p.npy", probs)
    np.save(folder / "y.npy", labels)
    np.savez(
        folder / "months.npz",
        probs=probs,
        labels=labels,
        month=np.repeat([1, 2], 40),
        group=np.arange(80) % 4,
        name=np.repeat(["Jan", "Feb"], 40),
    )
    vd.Temperature().fit(probs, labels).save(folder / "cal.json")
    return folder


# --- values of options


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1000", 1000),
        ("2K", 2048),
        ("512M", 512 << 20),
        ("1.5g", 3 << 29),
        ("2GB", 2 << 30),
        ("2GiB", 2 << 30),
        (" 1T ", 1 << 40),
        ("100B", 100),
        (None, None),
    ],
)
def test_sizes_have_units(text, size):
    assert _parse_size(None, None, text) == size


@pytest.mark.parametrize("text", ["", "M", "-1M", "1X", "1e9", "one", "1.2.3M", "1 000"])
def test_bad_sizes_are_rejected(text):
    with pytest.raises(errors.ParameterError, match=r"--block-memory is .*; give a size such as 512M or 2G"):
        _parse_size(None, None, text)


@given(st.lists(st.sampled_from(["mean", "ts", "a b"]), min_size=1, max_size=4), st.sampled_from([",", ", ", " ,,"]))
def test_names_are_split_at_commas(names, comma):
    assert split_names(None, None, comma.join(names)) == names


@pytest.mark.parametrize("text", ["", ",", " , "])
def test_empty_lists_of_names_are_rejected(text):
    with pytest.raises(errors.ParameterError, match="--methods is empty"):
        split_names(None, click.Option(["--methods"]), text)


@pytest.mark.parametrize(
    ("words", "incomplete", "completions"),
    [
        (["evaluate", "-m"], "me", {"members", "mean"}),
        (["evaluate", "-m"], "mean,temp", {"mean,temperature"}),
        (["calibrate", "-m"], "mean", set()),
        (["calibrate", "-m"], "temp", {"temperature"}),
        ([], "rep", {"report", "reproduce"}),
    ],
)
def test_names_are_completed(words, incomplete, completions):
    shell = ShellComplete(program, {}, "veridical", "_VERIDICAL_COMPLETE")
    assert {item.value for item in shell.get_completions(words, incomplete)} >= completions
    if words[:1] == ["calibrate"] and incomplete == "mean":
        assert not {item.value for item in shell.get_completions(words, incomplete)} & {"mean", "members"}


# --- commands


@pytest.mark.parametrize("command", list(COMMANDS))
def test_every_command_has_help_and_those_with_arguments_examples(command):
    done = veridical(command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Usage: veridical {command}" in done.stdout
    if command not in ("demo", "methods", "compile"):  # which take no argument
        assert f"    veridical {command} " in done.stdout


def test_help_lists_commands_in_their_order():
    text = veridical("-h").stdout
    places = [text.index(f"\n  {command} ") for command in COMMANDS]
    assert places == sorted(places)


def test_version_is_that_of_the_package():
    assert veridical("--version").stdout == f"veridical, version {vd.__version__}\n"


@pytest.mark.filterwarnings("default::veridical.errors.AbsentSourceWarning")
def test_warning_is_a_note_on_stderr(folder, tmp_path):
    probs = np.load(folder / "p.npy")
    probs[1, 3] = np.nan
    np.save(tmp_path / "p.npy", probs)
    done = veridical("evaluate", tmp_path / "p.npy", "-y", folder / "y.npy", "-m", "mean", "--no-floors", "--json")
    assert done.returncode == 0
    assert done.stderr.startswith("Note: 1 of 240 predictions")
    assert "warnings.warn" not in done.stderr
    json.loads(done.stdout)


# --- options that contradict each other


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("evaluate", "p.npy", "-y", "y.npy", "--block-memory", "1M", "--class-axis", "2"), "have no --class-axis"),
        (("evaluate", "months.npz", "--walk-forward", "month", "--groups", "group"), "leave --groups out"),
        (("evaluate", "p.npy", "-y", "y.npy", "--block-memory", "1M", "--intervals"), "bootstrap intervals need all"),
        (("evaluate", "p.npy", "-y", "y.npy", "--groups", "month"), "has no column 'month'"),
        (("evaluate", "months.npz", "--walk-forward", "week"), "week"),
        (("evaluate", "months.npz", "--walk-forward", "name"), "appear: Jan, Feb). Pass --period-order appearance"),
        (("evaluate", "months.npz", "--period-order", "appearance"), "--walk-forward, which is missing"),
        (("apply", "cal.json", "p.npy", "-o", "OUT.npz", "--resume"), "give --block-memory, too"),
        (("evaluate", "p.npy", "-y", "y.npy", "--workers", "0"), "0 is not in the range"),
        (("calibrate", "p.npy", "-y", "y.npy", "-o", "OUT.json", "--report", "OUT.json"), r".html"),
        (("evaluate", "p.npy", "-y", "nothing.npy"), "nothing.npy"),
        (("evaluate", "months.npz", "--block-memory", "1M"), "is not a .npy or .zarr, which can be read in blocks"),
    ],
)  # fmt: skip
def test_options_that_do_not_go_together_are_rejected(folder, tmp_path, arguments, words):
    before = sorted(path.name for path in folder.iterdir())
    names = [
        folder / word if word.endswith((".npy", ".npz", ".json")) and "OUT" not in word else word for word in arguments
    ]
    names = [tmp_path / str(word) if "OUT" in str(word) else word for word in names]
    done = veridical(*names)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") <= 4
    assert list(tmp_path.iterdir()) == []
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize("periods", [["month"], ["name", "--period-order", "appearance"]], ids=["month", "name"])
def test_walk_forward_takes_its_periods_from_a_column(folder, periods):
    done = veridical(
        "evaluate", folder / "months.npz", "-m", "mean,temperature", "--no-floors", "--no-intervals", "--json",
        "--walk-forward", *periods,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    predictions = vd.load(folder / "months.npz")
    past, last = predictions.select(samples=slice(40)), predictions.select(samples=slice(40, 80))
    fitted = vd.Temperature().fit(past)
    accuracy = np.mean(fitted.predict(last) == last.labels)
    scores = {method["method"]: method["summary"] for method in content["methods"]}
    assert scores["temperature"]["accuracy"]["value"] == pytest.approx(accuracy)
    nll = -np.log(fitted.predict_proba(last)[np.arange(40), last.labels]).mean()
    assert scores["temperature"]["nll"]["value"] == pytest.approx(nll, rel=1e-5)


def test_blocks_give_the_same_accuracy(folder):
    options = ("-y", folder / "y.npy", "-m", "mean", "--no-floors", "--json")
    whole, blocked = (
        json.loads(veridical("evaluate", folder / "p.npy", *options, *more).stdout)["methods"][0]["summary"]["accuracy"]
        for more in ((), ("--block-memory", "64K"))
    )
    assert blocked["value"] == whole["value"]


# --- errors


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (errors.ShapeError("the shape is wrong."), 2, "Error: the shape is wrong.\n"),
        (click.UsageError("no such thing"), 2, "Error: no such thing\n"),
        (OSError(errno.EPIPE, "Broken pipe"), 1, ""),
        (OSError(errno.ENOSPC, "No space left"), 1, "Error: the output cannot be written (No space left).\n"),
        (OSError(errno.EACCES, "Permission denied", "x"), 1, "Error: x cannot be used (Permission denied).\n"),
        (MemoryError(), 1, "Error: there is not enough memory for this command.\n"),
        (SystemExit(None), 0, ""),
        (SystemExit(3), 3, ""),
        (SystemExit("text"), 1, ""),
        (
            ZeroDivisionError("by\nzero"),
            1,
            "Error: veridical failed unexpectedly (ZeroDivisionError: by zero); please report it, with what "
            "VERIDICAL_TRACEBACK=1 prints.\n",
        ),
        (KeyboardInterrupt(), 130, "Interrupted.\n"),
    ],
)  # fmt: skip
def test_errors_have_their_exit_code_and_one_sentence(monkeypatch, error, code, message):
    monkeypatch.delenv("VERIDICAL_TRACEBACK", raising=False)

    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr("veridical.cli.commands.program.main", fail)
    done = veridical("methods")
    assert (done.returncode, done.stdout, done.stderr) == (code, "", message)


def test_traceback_is_printed_where_asked(monkeypatch):
    monkeypatch.setenv("VERIDICAL_TRACEBACK", "1")
    monkeypatch.setattr("veridical.cli.commands.program.main", lambda *arguments, **options: 1 // 0)
    done = veridical("methods")
    assert done.returncode == 1
    assert "Traceback (most recent call last):" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("Error: veridical failed unexpectedly (ZeroDivisionError")


@pytest.mark.parametrize(
    ("text", "encoding", "expected"),
    [
        ("5 ± 1 – 2", "ascii", b"5 +- 1 - 2"),
        ("a → b … × ↑↓ ─━", "ascii", b"a -> b ... x ^v --"),
        ("é", "ascii", b"\\xe9"),
        ("日本", "latin-1", b"\\u65e5\\u672c"),
        ("é ± ×", "latin-1", "é ± ×".encode("latin-1")),
    ],
)
def test_characters_that_an_encoding_lacks_are_written_as_ascii(text, encoding, expected):
    import codecs

    codecs.register_error("veridical-test", cli._substitute)
    assert text.encode(encoding, errors="veridical-test") == expected


def test_decoding_errors_are_not_substituted():
    error = UnicodeDecodeError("ascii", b"\xff", 0, 1, "why")
    with pytest.raises(UnicodeDecodeError):
        cli._substitute(error)


def test_closed_stream_cannot_be_written():
    with pytest.raises(OSError, match="Bad file descriptor"):
        cli._ClosedStream().write("x")


def test_message_that_cannot_be_written_is_lost(monkeypatch):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("sys.stderr", Full())
    cli.print_message("nobody reads this")  # no exception


# --- output


def test_output_is_text_json_or_nothing(capsys):
    for as_json, quiet, expected in (
        (False, False, "words\nlines\n"),
        (True, False, '{\n  "a": null\n}\n'),
        (False, True, ""),
    ):
        output = Output(as_json, quiet)
        output.text("words")
        output.lines("lines")
        output.json({"a": float("nan")})
        assert capsys.readouterr().out == expected


def test_long_text_is_wrapped_between_words(capsys):
    Output().text("word " * 30 + "/a/very/long-path/" + "x" * 90)
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines[:-1])
    assert lines[-1] == "/a/very/long-path/" + "x" * 90


def test_progress_is_not_drawn_without_a_terminal(capsys):
    with Output().progress() as progress:
        assert progress is None
    assert capsys.readouterr().err == ""


def test_warnings_of_a_command_are_not_shown_twice_or_later(folder):
    before = warnings.showwarning
    veridical("inspect", folder / "p.npy", "-q")
    assert warnings.showwarning is before


def test_parameters_that_messages_name_are_options():
    """Every name in the list of parameters is that of an option of some command."""
    options = {option for command in COMMANDS for option in _options_of(program.get_command(None, command))}
    for name in cli._PARAMETERS:
        option = cli.with_options(f"{name}=False" if name == "keep_labels" else f"give {name}=.")
        assert next(word for word in option.rstrip(".").split() if word.startswith("--")) in options


def _options_of(command):
    commands = [command, *getattr(command, "commands", {}).values()]
    return [name for one in commands for parameter in one.params for name in parameter.opts]


def test_other_words_stay_as_they_are():
    for text in ('a file called kindness="x"', "labels are missing", "sources=3", "n_bins=10"):
        assert cli.with_options(text) == text
