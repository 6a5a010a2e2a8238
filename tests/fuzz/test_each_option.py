"""Every option and argument of every command gets every odd text, one at a time, while the others are as usual."""

from __future__ import annotations

from pathlib import Path

import click
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from conftest import HUNT
from hunting import SEED
from programs import veridical_in_process
from rule import check_command, counts
from test_command_lines import ALWAYS, INPUTS, OUTPUTS, TEXTS, USUAL, clean, commands, snapshot
from test_command_lines import folder as folder

matplotlib.use("Agg")
pytestmark = pytest.mark.compiled

#: One of so many odd texts is tried for each option, another one for the next; all with VERIDICAL_HUNT=70.
ONE_OF = max(70 // max(HUNT, 1), 1)
#: Commands that take seconds get one of so many of these.
SLOW = {"report": 12, "calibrate": 4, "compare": 2, "train": 2}
NUMBERS = ("1.5", "inf", "-inf", "0x10", "1_000", "1e3", "٣", "1,", ",", "True", "--quiet", "-", "a b", "x" * 3000)
ODD = tuple(dict.fromkeys((*TEXTS, *NUMBERS, *INPUTS, *OUTPUTS)))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images, and a run that was trained on them."""
    path = tmp_path_factory.mktemp("trained")
    images, labels = np.zeros((4, 16, 16, 1), np.uint8), np.array([0, 1, 0, 1])
    np.savez(path / "images.npz", train_images=images, train_labels=labels, test_images=images, test_labels=labels)
    done = veridical_in_process(*usual_line("train", commands()["train"], path), "--out", path / "run")
    assert done.returncode == 0, done
    return path


def usual_line(name: str, command: click.Command, trained: Path) -> list[str]:
    """A command that succeeds, with the arguments and options that it needs."""
    words = [*name.split(), *ALWAYS.get(name, ALWAYS.get(name.split()[0], []))]
    data = ["--dataset", "npz", "--data", str(trained / "images.npz")]
    if name == "train":
        return ["train", *data, "--arch", "resnet8", "--epochs", "1", "--members", "1", "--out", "out"]
    if name == "predict":
        return ["predict", str(trained / "run"), *data, "--out", "out.npz"]
    words += [USUAL.get(str(each.name), "usual.npz") for each in command.params if isinstance(each, click.Argument)]
    return [*words, "--out", "out.npz"] if name == "apply" else words


def odd_texts(parameter: click.Parameter, words: list[str]) -> tuple[str, ...]:
    """An output may replace a file that is not an input of the command, so it is given no such name."""
    is_output = parameter.name in ("out", "report_path", "figures", "model")
    return tuple(text for text in ODD if not is_output or text in words or text not in INPUTS)


def lines(name: str, command: click.Command, trained: Path) -> list[tuple[click.Parameter, list[str], int]]:
    """(parameter, words of the command, place of the odd text)."""
    usual = usual_line(name, command, trained)
    result = []
    for parameter in command.params:
        option = parameter.opts[0]
        if isinstance(parameter, click.Argument):
            place = 1 if name == "predict" else usual.index(USUAL.get(str(parameter.name), "usual.npz"))
            result.append((parameter, usual, place))
        elif not getattr(parameter, "is_flag", False) and option != "--help":
            result.append((parameter, [*usual, option, ""], len(usual) + 1))
    return result


@pytest.mark.parametrize("name", commands())
def test_each_option(name, folder, trained, monkeypatch):
    monkeypatch.chdir(folder)
    clean(folder)
    if HUNT or name not in SLOW:
        words = usual_line(name, commands()[name], trained)
        assert veridical_in_process(*words).returncode == 0, words
        clean(folder)
    before, turn, failures = snapshot(folder), SEED, []
    one_of = ONE_OF * SLOW.get(name, 1)
    for parameter, words, place in lines(name, commands()[name], trained):
        turn += 7
        for number, text in enumerate(odd_texts(parameter, words)):
            if number % one_of != turn % one_of:
                continue
            tried = [*words[:place], text, *words[place + 1 :]]
            try:
                done = veridical_in_process(*tried)
                check_command(done, as_json=False)
                clean(folder)
                assert snapshot(folder) == before, "an input changed"
                counts["examples"] += 1
            except Exception as error:
                failures.append(f"{name} {parameter.opts[0]} {text[:50]!r}: {type(error).__name__}: {error}"[:300])
            finally:
                plt.close("all")
    assert not failures, f"{len(failures)} failures:\n" + "\n".join(failures)
