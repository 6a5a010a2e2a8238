"""The ``veridical`` program.  ``veridical.cli.commands`` lists its commands, each in a module of its own."""

from __future__ import annotations

import _thread
import codecs
import errno
import io
import os
import re
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn

from veridical._names import printable

#: Exit codes: the output cannot be written or the program has a bug; bad input; Ctrl-C.
FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130

#: Printed where the terminal's encoding lacks a character; of all others, the escape sequence is.
_SUBSTITUTES = {"±": "+-", "→": "->", "–": "-", "─": "-", "━": "-", "…": "...", "×": "x", "↑": "^", "↓": "v"}


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit."""
    interrupts = _Interrupts()
    interrupts.install()
    _prepare_streams()
    code = run(arguments, interrupts)
    _close_streams()
    if code == INTERRUPTED:
        os._exit(code)  # without waiting for threads, which may compile for a minute
    sys.exit(code)


def run(arguments: Sequence[str] | None, interrupts: _Interrupts | None = None) -> int:
    """Run a command; its exit code: 0, or 1, 2 or 130 after one sentence on stderr.  Nothing is ever raised."""
    interrupts = interrupts or _Interrupts()
    try:
        # Imported here, so that an interrupt is handled from the first moment.
        from veridical.cli.commands import program

        result = program.main(arguments, prog_name="veridical", standalone_mode=False)
        sys.stdout.flush()
        code = result if isinstance(result, int) else 0
        interrupts.command_is_over = True
    except BaseException as error:
        interrupts.command_is_over = True
        interrupts.received |= isinstance(error, KeyboardInterrupt)
        code = 0 if interrupts.received else _explain(error)
    if interrupts.received or code == INTERRUPTED:
        print_message("Interrupted.")
        return INTERRUPTED
    return code


#: Parameters that messages of the library name as ``kind="logits"``, ``resume=True`` or ``labels=``; the options that
#: set them have their names.
_PARAMETERS = (
    "arch",
    "block_memory",
    "class_axis",
    "class_columns",
    "classes",
    "dataset",
    "intervals",
    "keep_labels",
    "kind",
    "labels",
    "layout",
    "normalize",
    "objective",
    "period_order",
    "renormalize",
    "resume",
    "sources",
    "sources_axis",
)
_NAME = rf"\b(?P<name>{'|'.join(_PARAMETERS)})="
#: A comma between two of them separates arguments.
_PARAMETER = re.compile(
    rf'{_NAME}(?:"(?P<value>[^"]*)"|True|(?P<no>False)|(?=[\s,.;)]))(?P<comma>, (?=(?:{"|".join(_PARAMETERS)})=))?'
)


def with_options(text: str) -> str:
    """A sentence of the library, in which options stand for parameters.

    Examples
    --------
    >>> with_options('pass kind="logits" or renormalize=True.')
    'pass --kind logits or --renormalize.'
    >>> with_options('try objective="distribution", keep_labels=False.')
    'try --objective distribution --change-labels.'
    """
    return _PARAMETER.sub(_as_option, text)


def _as_option(parameter: re.Match[str]) -> str:
    name, value = parameter["name"], parameter["value"]
    flag = "change-labels" if name == "keep_labels" and parameter["no"] else name.replace("_", "-")
    value = "FILE" if name == "labels" and value is None else value
    return f"--{flag}" + (f" {value}" if value else "") + (" " if parameter["comma"] else "")


def print_message(text: str) -> None:
    """Write lines to stderr; what cannot be written there is lost."""
    with suppress(OSError):
        print("\n".join(map(printable, text.split("\n"))), file=sys.stderr, flush=True)


class _Interrupts:
    """Ctrl-C raises KeyboardInterrupt, and is remembered: compiled code may replace or ignore the exception."""

    def __init__(self) -> None:
        self.received = self.command_is_over = False

    def install(self) -> None:
        handler = signal.getsignal(signal.SIGINT)
        # Not where the caller has it ignored; the installed program has a handler for the time until here.
        if handler is signal.default_int_handler or getattr(handler, "__module__", "") == "veridical_program":
            signal.signal(signal.SIGINT, self._on_signal)
            sys.unraisablehook = self._on_unraisable

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.received = True
        if self.command_is_over:  # what is left is to wait for threads
            print_message("Interrupted.")
            os._exit(INTERRUPTED)
        raise KeyboardInterrupt

    def _on_unraisable(self, unraisable: sys.UnraisableHookArgs) -> None:
        """Interrupt again, a moment later, if a callback from compiled code ignored the exception."""
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(unraisable)
        elif not self.command_is_over:
            again = threading.Timer(0.05, _interrupt_main_thread)
            again.daemon = True
            with suppress(RuntimeError):  # the interpreter is shutting down
                again.start()


def _interrupt_main_thread() -> None:
    if sys.platform == "win32":
        _thread.interrupt_main()
    else:  # a real signal, which also ends a wait in a system call
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def _explain(error: BaseException) -> int:
    """Print what went wrong in one sentence; the exit code."""
    import click

    from veridical.errors import VeridicalError

    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 0 if error.code is None else FAILED
    if isinstance(error, VeridicalError):
        print_message(with_options(f"Error: {error}"))
        return BAD_INPUT
    if isinstance(error, click.ClickException):
        with suppress(OSError):
            error.show()
        return error.exit_code
    if isinstance(error, OSError) and error.errno == errno.EPIPE:  # the reader has seen enough
        return FAILED
    if isinstance(error, OSError) and error.filename is None:
        print_message(f"Error: the output cannot be written ({error.strerror or error}).")
    elif isinstance(error, OSError):
        print_message(f"Error: {error.filename} cannot be used ({error.strerror}).")
    elif isinstance(error, MemoryError):
        print_message("Error: there is not enough memory for this command.")
    else:
        _print_bug(error)
    return FAILED


def _print_bug(error: BaseException) -> None:
    if os.environ.get("VERIDICAL_TRACEBACK"):
        import traceback

        print_message("".join(traceback.format_exception(error)))
    reason = " ".join(str(error).split())
    print_message(
        f"Error: veridical failed unexpectedly ({type(error).__name__}: {reason}); please report it, with what "
        "VERIDICAL_TRACEBACK=1 prints."
    )


class _ClosedStream(io.TextIOBase):
    """Stands for a stdout that was closed before the program started."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


def _prepare_streams() -> None:
    """Replace closed streams, and let no character fail for the terminal's encoding."""
    for descriptor in range(3):  # or the next file that is opened would get the number of a closed stream
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = _ClosedStream()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  (open until the end)
    codecs.register_error("veridical", _substitute)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="veridical")


def _substitute(error: UnicodeError) -> tuple[str, int]:
    """Codec error handler: characters that an encoding lacks, as ASCII."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    chars: Any = error.object[error.start : error.end]
    texts = (_SUBSTITUTES.get(char) or char.encode("ascii", "backslashreplace").decode() for char in chars)
    return "".join(texts), error.end


def _close_streams() -> None:
    """Flush the streams; one that cannot be written is replaced, so that the interpreter does not try again."""
    for descriptor, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
