"""The program, run as a subprocess on pipes or on a pseudo-terminal, or in this process."""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import subprocess
import sys
import tempfile

PROGRAM = (sys.executable, "-m", "veridical")


def veridical(*arguments, env=None, **options):
    """Run the program on pipes; its exit code and what it printed."""
    environment = {**os.environ, "COLUMNS": "80", "TERM": "dumb", **(env or {})}
    command = [*PROGRAM, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, **options)


def veridical_in_process(*arguments):
    """Run a command in this process, which saves its imports; what it returns is that of :func:`veridical`."""
    from veridical.cli import run

    stdout, stderr = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        code = run([*map(str, arguments)])
    return subprocess.CompletedProcess(arguments, code, stdout.getvalue(), stderr.getvalue())


def in_new_process(function, *arguments):
    """Call a function of a module in a new process; its exit code, negative after a signal, 0 after a return.

    Processes are forked from one that has imported PyTorch and readers of files, and has no threads.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["torch", "pyarrow.parquet", "zarr", "veridical.training.ensemble", "veridical.predictions.files"]
    )
    process = context.Process(target=function, args=arguments)
    process.start()
    process.join()
    return process.exitcode


def veridical_on_terminal(*arguments, columns=140):
    """Run the program with a pseudo-terminal as stderr: its exit code, stdout, and the bytes drawn on the terminal."""
    import pty

    controller, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns), "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryFile("w+") as output:
        command = [*PROGRAM, *map(str, arguments)]
        with subprocess.Popen(command, stdout=output, stderr=terminal, env=environment) as process:
            os.close(terminal)
            drawn = b""
            while True:  # read all the time: a full buffer would stop the program
                try:
                    drawn += os.read(controller, 1 << 16)
                except OSError:  # the other end is closed
                    break
        os.close(controller)
        output.seek(0)
        return process.returncode, output.read(), drawn
