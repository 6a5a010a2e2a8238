"""The program as a process: streams that are closed, full or not UTF-8, interrupts, and exit codes."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest
from ensembles import random_ensemble
from programs import PROGRAM
from programs import veridical_in_process as veridical

import veridical as vd

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shells and signals differ there")


@pytest.fixture(autouse=True)
def heed_interrupts():
    """A process in the background of a shell ignores Ctrl-C, and the programs it starts inherit that.

    The handler is set here, not by ``preexec_fn``, which would fork: JAX warns about forks once it is imported.
    """
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


@pytest.fixture(scope="module")
def preds(tmp_path_factory):
    """A small labelled ensemble."""
    path = tmp_path_factory.mktemp("predictions") / "preds.npz"
    rng = np.random.default_rng(0)
    probs = random_ensemble(rng, 3, 200, 3)
    labels = [rng.choice(3, p=row) for row in probs.mean(axis=0)]
    vd.save(vd.Predictions(probs, labels), path)
    return path


def shell(command, **environment):
    """Run a shell command in which ``$V`` is the program."""
    variables = {**os.environ, "V": " ".join(PROGRAM), "COLUMNS": "80", "TERM": "dumb", **environment}
    return subprocess.run(["bash", "-c", command], capture_output=True, check=False, env=variables)


def python(program, **options):
    """Run ``program``, which ends with ``main([...])``, as the installed script would."""
    command = [sys.executable, "-c", textwrap.dedent(program)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **options)


def assert_one_sentence(done, code, *words):
    text = done.stderr if isinstance(done.stderr, str) else done.stderr.decode()
    assert done.returncode == code, done
    assert len(text.strip().splitlines()) == 1, text
    for word in words:
        assert word in text


def test_closed_stdout_is_an_error_if_there_is_something_to_print():
    assert_one_sentence(shell("$V methods >&-"), 1, "Error: the output cannot be written (Bad file descriptor).")
    assert_one_sentence(shell("$V methods --json >&-"), 1, "the output cannot be written")
    done = shell("$V methods --quiet >&-")
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.compiled
def test_closed_stdout_does_not_lose_files(preds, tmp_path):
    done = shell(f"$V calibrate {preds} -m temperature --out {tmp_path}/cal.json >&-")
    assert_one_sentence(done, 1, "the output cannot be written")
    vd.load_calibrator(tmp_path / "cal.json")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("options", ["", "--json"])
def test_full_stdout_is_one_sentence(options):
    done = shell(f"$V methods {options} >/dev/full")
    assert_one_sentence(done, 1, "Error: the output cannot be written (No space left on device).")


def test_reader_that_stops_early_causes_no_message():
    done = shell("$V methods | head -n 1; echo ${PIPESTATUS[0]}")
    assert done.stdout.splitlines()[-1] in (b"0", b"1")
    assert done.stderr == b""


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("encoding", "command", "word"),
    [
        ("ascii", "compare {} -m mean,temperature --splits 2", "+-"),
        ("latin-1", "reproduce table1 {} --sources 3", "aTDE"),
        ("ascii", "compare --help", "random halves"),
    ],
)
def test_stdout_may_have_any_encoding(preds, encoding, command, word):
    done = shell(f"$V {command.format(preds)}", PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    assert word in done.stdout.decode(encoding)


def test_json_is_ascii(tmp_path):
    path = tmp_path / "p.npz"
    probs = np.full((3, 4, 2), 0.5)
    vd.save(vd.Predictions(probs, [0, 1, 0, 1], source_names=["café", "中", "c"]), path)
    done = shell(f"$V inspect {path} --json", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done
    assert [source["name"] for source in json.loads(done.stdout)["sources"]] == ["café", "中", "c"]


def test_closed_stderr_does_not_stop_a_command(tmp_path):
    done = shell("$V methods 2>&-")
    assert done.returncode == 0
    assert b"temperature" in done.stdout
    assert shell(f"$V evaluate {tmp_path}/nothing.npz 2>&-").returncode == 2
    assert shell("$V methods --quiet <&- >&- 2>&-").returncode == 0


@pytest.mark.compiled
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_stderr_does_not_stop_a_command(tmp_path):
    probs = np.full((3, 40, 2), 0.5)
    probs[0, 0] = np.nan  # which is worth a warning
    vd.save(vd.Predictions(probs, np.arange(40) % 2), tmp_path / "p.npz")
    evaluate = f"$V evaluate {tmp_path}/p.npz --no-floors --no-intervals"
    assert b"Note: " in shell(evaluate).stderr
    done = shell(f"{evaluate} 2>/dev/full")
    assert done.returncode == 0
    assert b"aTDE" in done.stdout
    assert shell("$V evaluate nothing.npz 2>/dev/full").returncode == 2
    assert shell("$V nonsense 2>/dev/full").returncode == 2


INTERRUPTED_COMMAND = """
    import os, signal, sys, time
    import veridical.evaluation
    from veridical.cli import main

    def inspect(*arguments, **options):
    {body}

    veridical.evaluation.inspect = inspect
    main(["inspect", sys.argv[1] if len(sys.argv) > 1 else {path!r}])
"""

BODIES = {
    "raised": """
        signal.raise_signal(signal.SIGINT)
    """,
    "ignored by a callback": """
        class Callback:
            def __del__(self):
                signal.raise_signal(signal.SIGINT)
        Callback()
        time.sleep(60)
    """,
    "replaced by another exception": """
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise SystemError("returned a result with an exception set") from None
    """,
    "swallowed": """
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            pass
        return None
    """,
    "while threads work": """
        import threading
        threading.Thread(target=time.sleep, args=(60,)).start()
        signal.raise_signal(signal.SIGINT)
    """,
}


@pytest.mark.parametrize("body", BODIES)
def test_interrupt_is_one_line_and_exit_code_130(preds, body):
    program = textwrap.dedent(INTERRUPTED_COMMAND).format(body=textwrap.indent(BODIES[body], ""), path=str(preds))
    started = time.monotonic()
    done = python(program)
    assert (done.returncode, done.stderr) == (130, "Interrupted.\n")
    assert time.monotonic() - started < 45  # nothing waits for the minute of sleep


@pytest.mark.parametrize("module", ["veridical", "click", "veridical.cli.methods"])
def test_ctrl_c_while_the_program_is_imported_is_one_line(module):
    program = """
        import signal
        import sys

        class Interrupting:
            def find_spec(self, name, *rest):
                if name == MODULE:
                    signal.raise_signal(signal.SIGINT)

        sys.meta_path.insert(0, Interrupting())
        from veridical_program import main

        sys.argv[1:] = ["methods"]
        main()
    """
    done = python(program.replace("MODULE", repr(module)))
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Interrupted.\n")


def test_installed_program_runs_commands():
    done = python('import sys; sys.argv[1:] = ["--version"]; from veridical_program import main; main()')
    assert (done.returncode, done.stdout) == (0, f"veridical, version {vd.__version__}\n")
    script = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["scripts"]
    assert script == {"veridical": "veridical_program:main"}


@pytest.mark.compiled
@pytest.mark.parametrize("delay", [1.0, 3.0])
def test_interrupt_at_any_moment_leaves_no_file(preds, tmp_path, delay):
    out = tmp_path / "out"
    out.mkdir()
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}  # compiled anew, which takes seconds
    command = [*PROGRAM, "report", str(preds), "--out", str(out / "report.html")]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as program:
        time.sleep(delay)
        program.send_signal(signal.SIGINT)
        printed, message = program.communicate(timeout=60)
    assert (program.returncode, printed, message) == (130, "", "Interrupted.\n")
    assert list(out.iterdir()) == []


def test_ignored_interrupts_stay_ignored():
    """As in a shell script's background job."""
    program = """
        import signal
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        from veridical.cli import main
        import veridical.calibrate as calibrate
        signal.raise_signal(signal.SIGINT)
        main(["methods", "--quiet"])
    """
    done = python(program)
    assert (done.returncode, done.stderr) == (0, "")


BUG = """
    import veridical.evaluation
    from veridical.cli import main

    def inspect(*arguments, **options):
        raise {error}

    veridical.evaluation.inspect = inspect
    main(["inspect", {path!r}])
"""


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ("ZeroDivisionError('a\\nb')", "veridical failed unexpectedly (ZeroDivisionError: a b); please report it"),
        ("SystemExit(1)", None),
    ],
)
def test_unexpected_errors_are_one_sentence_and_exit_code_1(preds, error, message):
    done = python(textwrap.dedent(BUG).format(error=error, path=str(preds)))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    if message is None:
        assert done.stderr == ""
    else:
        assert_one_sentence(done, 1, message)


@pytest.mark.parametrize("command", ["compare", "evaluate"])
def test_empty_methods_are_rejected(preds, command):
    assert_one_sentence(veridical(command, preds, "--methods", " , "), 2, "--methods is empty; give names")


def test_inspect_of_no_samples_prints_no_numbers(tmp_path):
    np.save(tmp_path / "p.npy", np.zeros((3, 0, 4)))
    done = veridical("inspect", tmp_path / "p.npy")
    assert done.returncode == 0, done.stderr
    assert "nan" not in done.stdout
    assert "Trusted least" not in done.stdout
    assert "There are no samples" in done.stdout
    inspection = json.loads(veridical("inspect", tmp_path / "p.npy", "--json").stdout)
    assert inspection["outlier"] is None
    assert [source["mean_confidence"] for source in inspection["sources"]] == [None] * 3


def test_escape_sequences_in_names_are_not_printed(tmp_path):
    path = tmp_path / "p.npz"
    vd.save(vd.Predictions(np.full((3, 4, 2), 0.5), [0, 1, 0, 1], source_names=["\x1b[31mred", "b", "c"]), path)
    done = veridical("inspect", path)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert r"\x1b[31mred" in done.stdout
    done = veridical("evaluate", tmp_path / "\x1b[2Jnothing.npz")
    assert_one_sentence(done, 2, r"\x1b[2Jnothing.npz; check the name.")
    assert "\x1b" not in done.stderr
