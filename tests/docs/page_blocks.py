"""Code blocks of the site's pages, and how they are run."""

from __future__ import annotations

import contextlib
import doctest
import inspect
import io
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from programs import veridical_in_process

DOCS = Path(__file__).parents[2] / "docs"

#: Pages of the site, without what a build leaves behind.
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)

#: Languages of blocks that are read, not run.
SHOWN = {"text", "json", "csv", "toml", "dockerfile", "bibtex"}

#: Programs in console blocks that a test cannot start: they change the environment or serve.
NOT_RUN = {"pip", "docker", "source", "eval"}

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>```+|~~~+)(?P<info>.*)$")
_SETUP = re.compile(r"<!-- setup\n(.*?)-->", flags=re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A code block: what it is written in, its text, and the line of the page it begins on."""

    language: str
    text: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    """All code blocks of a page in order; hidden set-up (``<!-- setup``) is Python."""
    lines = page.read_text(encoding="utf-8").splitlines()
    blocks, number = [], 0
    while number < len(lines):
        match = _FENCE.match(lines[number])
        start = number
        number += 1
        if lines[start].startswith("<!-- setup"):
            number = next(n for n in range(start, len(lines)) if lines[n].startswith("-->"))
            blocks.append(Block("python", "\n".join(lines[start + 1 : number]), start + 1))
        if match is None:
            continue
        end = next(n for n in range(number, len(lines)) if lines[n].strip() == match["ticks"])
        body = inspect.cleandoc("\n".join(lines[number:end])) if match["indent"] else "\n".join(lines[number:end])
        number = end + 1
        info = match["info"].strip()
        if not info.startswith("{"):  # directives are Sphinx's
            blocks.append(Block(info, body, start + 1))
    return blocks


def run_page(page: Path) -> None:
    """Run the Python blocks of a page in one namespace and its commands, and compare what they print."""
    names: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    for block in blocks_of(page):
        where = f"{page.relative_to(DOCS)}:{block.line}"
        if block.language == "python":
            stdout = io.StringIO()
            with contextlib.redirect_stdout(stdout):
                exec(compile("\n" * block.line + block.text, str(page), "exec"), names)
            printed = stdout.getvalue()
        elif block.language == "output":
            compare(block.text, printed, where)
        elif block.language == "console":
            run_commands(block, where)


def run_commands(block: Block, where: str) -> None:
    """Run the lines of a console block that begin with ``$``; what follows each is compared with what it prints."""
    for command, expected in commands_of(block.text):
        program, *arguments = shlex.split(command, comments=True)
        if program in NOT_RUN:
            continue
        assert program == "veridical", f"{where}: the test cannot run {program}"
        done = veridical_in_process(*arguments)
        assert done.returncode == 0, f"{where}: {command}\n{done.stderr}"
        if expected.strip():
            compare(expected, done.stdout, where)


def commands_of(text: str) -> list[tuple[str, str]]:
    """(command, expected output) of a console block; a backslash continues a command."""
    commands: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if commands and commands[-1][0].endswith("\\"):
            commands[-1] = (commands[-1][0][:-1] + " " + line.strip(), [])
        elif line.startswith("$ "):
            commands.append((line[2:], []))
        else:
            commands[-1][1].append(line)
    return [(command, "\n".join(output)) for command, output in commands]


def compare(expected: str, printed: str, where: str) -> None:
    """Fail unless the output is as the page shows it; ``...`` stands for anything, spaces do not matter."""
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    same = doctest.OutputChecker().check_output(expected.strip() + "\n", printed.strip() + "\n", options)
    assert same, f"{where}: the page shows\n{expected}\nbut this is printed:\n{printed}"
