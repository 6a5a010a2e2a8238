"""The installed program ``veridical``: Ctrl-C ends it with one line from the first moment, before anything is imported.

It is not in the package, whose own imports take some of the time in which a user may change their mind.
"""

import _signal  # type: ignore[import-not-found]  # the standard module takes ten times as long to import
import os
import sys


def _end(number: int, frame: object) -> None:
    """Say that the program was interrupted, and end it."""
    try:
        os.write(2, b"Interrupted.\n")
    finally:
        os._exit(130)


# Not where the caller has the signal ignored.  The program replaces this handler by one that cleans up.
if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _end)


def main() -> None:
    """Run a command and exit."""
    from veridical.cli import main as run

    run(sys.argv[1:])
