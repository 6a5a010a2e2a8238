"""Command lines under the rule of ``rule.py``; the commands and their options are read from the program itself."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

import click
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from hunting import hunted
from hypothesis import given
from hypothesis import strategies as st
from programs import veridical_in_process
from rule import check_command

import veridical as vd
from veridical.cli.commands import COMMANDS, program

matplotlib.use("Agg")

pytestmark = pytest.mark.compiled

#: Files that every command may be given; the folder is the current directory while it runs.
INPUTS = (
    "usual.npz", "usual.csv", "logits.npy", "labels.txt", "labels.npy", "votes.csv", "gold.csv",
    "calibrator.json", "empty.npz", "absent.npz",
    "one.npz", "names.npz", "images.npz", "unlabelled.npz", "zero.npz", "text.npz", "missing.npz", "folder", ".",
    "probs.npy", "member0.npy", "member1.npy", "short.npy", "grouped.csv", "probs.zarr", "many votes.csv",
    "many gold.csv", "/dev/null", "", "usual.npz/x", "x" * 300, "\x1b[31m.npz", "*.npz", "http://x/y.npz",
)  # fmt: skip
OUTPUTS = (
    "out.html",
    "out.json",
    "out.npz",
    "out.svg",
    "out.csv",
    "no/such/out.html",
    "folder",
    "",
    "usual.npz",
    "out",
    "x" * 300,
)
#: What a parameter usually names.
USUAL = {
    "votes": "votes.csv",
    "gold": "gold.csv",
    "calibrator": "calibrator.json",
    "data": "images.npz",
    "labels": "labels.txt",
    "report_path": "out2.html",
    "model": "out.onnx",
    "checkpoints": "run",
}
#: Predictions that can be read, with the options that they need.
PREDICTIONS = (
    ["usual.npz"],
    ["usual.npz"],
    ["usual.csv"],
    ["absent.npz"],
    ["names.npz"],
    ["one.npz"],
    ["probs.npy", "--labels", "labels.txt"],
    ["probs.npy", "-y", "labels.npy", "--kind", "logits"],  # which is suspected
    ["probs.zarr", "--labels", "labels.npy"],
    ["logits.npy", "--kind", "log_probs", "--labels", "labels.npy"],
    ["unlabelled.npz", "--labels", "labels.txt"],
    ["member0.npy", "member1.npy", "--kind", "probs", "--labels", "labels.txt"],
    ["member0.npy", "member1.npy", "short.npy", "--kind", "probs"],
    ["usual.npz", "usual.csv"],
    ["grouped.csv", "--groups", "group"],
    ["grouped.csv"],
    ["votes.csv", "--kind", "labels"],
)
#: Values of options that fit.
FITTING = {
    "methods": ("mean", "mean,temperature", "consensus", "ptde", "members,mean", "log-pool+vector", "temperature"),
    "method": ("temperature", "mean", "consensus", "ptde-hist", "log-pool", "platt"),
    "group_column": ("group", "day", "label"),
    "time_column": ("day", "group"),
    "block_memory": ("64KB", "1MB", "4096", "1GB"),
    "workers": ("0", "x", "2000"),  # a cluster takes seconds to start
    "class_columns": ("0,1", "cat,dog", "0,1,2"),
    "abstain": ("refused,n/a", "1"),
    "classes": ("0,1", "1,0", "0,1,2", "cat,dog"),
    "sources": ("1", "2", "1,3", "3"),
    "gold": ("gold.csv", "many gold.csv"),
    "votes": ("votes.csv", "many votes.csv", "many votes.csv"),
    "labels": ("labels.txt", "labels.npy", "gold.csv"),
    "out": ("out.html", "out.json", "out.npz", "out.csv", "out.zarr", "out"),
    "figures": ("out",),
    "device": ("cpu",),
    "seed": ("0", "1", "4294967295"),
    "calibrator": ("calibrator.json",),
    "data": ("images.npz",),
    "dataset": ("npz",),
    "arch": ("resnet8",),
    "class_axis": ("2", "-1"),
    "limit": ("2", "1"),
}
TEXTS = (
    "",
    "mean",
    "temperature",
    "ptde",
    "a,b",
    "1,2",
    "0",
    "-1",
    "3",
    "nan",
    "1e308",
    "9" * 30,
    "é",
    "\x1b[31m",
    "--",
    "{}",
)

#: Options that keep a command short where it would otherwise take seconds.
ALWAYS: dict[str, list[str]] = {
    "compare": ["--methods", "mean,temperature", "--splits", "1"],
    "calibrate": ["--method", "temperature"],
    "evaluate": ["--no-floors", "--no-intervals"],
    "reproduce": ["--sources", "1"],
    "threshold": ["--max-risk", "0.5"],
    "train": ["--epochs", "0"],
}
#: Commands that take seconds, because they draw, or fit many calibrators, or compile.
RARELY = {"report": 1, "calibrate": 3, "jury": 3, "reproduce table1": 2, "reproduce figure2": 1, "reproduce figure3": 1}
#: Commands that would take minutes; the tests of their own run them.
NOT_TRIED = ("demo", "compile", "reproduce all", "reproduce table2", "reproduce table3", "reproduce table4")


def commands() -> dict[str, click.Command]:
    """All commands by what one types, those of groups as two words."""
    context = click.Context(program)
    result: dict[str, click.Command] = {}
    for name in COMMANDS:
        command = program.get_command(context, name)
        assert command is not None
        inner = command.commands if isinstance(command, click.Group) else {}
        result |= {f"{name} {part}": inner[part] for part in inner} or {name: command}
    return {name: command for name, command in result.items() if name not in NOT_TRIED}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small inputs of every kind, good and bad."""
    path = tmp_path_factory.mktemp("commands")
    rng = np.random.default_rng(0)
    probs, labels = rng.dirichlet([1, 1, 1], size=(3, 24)), rng.integers(0, 3, 24)
    usual = vd.Predictions(probs, labels)
    vd.save(usual, path / "usual.npz")
    vd.save(usual, path / "usual.csv")
    np.save(path / "logits.npy", np.log(probs))
    np.save(path / "probs.npy", probs)
    vd.save(vd.Predictions(probs), path / "probs.zarr")
    for s in range(2):
        np.save(path / f"member{s}.npy", probs[s])
    np.save(path / "short.npy", probs[2, :20])
    rows = ((n, s, *probs[s, n], labels[n], f"g{n // 4}", n // 6) for n in range(24) for s in range(3))
    lines = ["sample,source,a,b,c,label,group,day", *(",".join(map(str, row)) for row in rows)]
    (path / "grouped.csv").write_text("\n".join(lines) + "\n")
    np.savetxt(path / "labels.txt", labels, fmt="%d")
    np.save(path / "labels.npy", labels)
    vd.Temperature().fit(usual).save(path / "calibrator.json")
    vd.save(vd.Predictions(np.empty((2, 0, 3)), []), path / "empty.npz")
    absent = probs.copy()
    absent[0] = np.nan
    vd.save(vd.Predictions(absent, labels), path / "absent.npz")
    vd.save(vd.Predictions(probs[:, :1], labels[:1]), path / "one.npz")
    vd.save(vd.Predictions(probs), path / "unlabelled.npz")
    hard = ["\x1b[31mred", "a\nb", "\ud800"]
    vd.save(vd.Predictions(probs, labels, source_names=hard, class_names=hard), path / "names.npz")
    images = {"train_images": np.zeros((4, 8, 8), np.uint8), "train_labels": [0, 1, 0, 1]}
    np.savez(path / "images.npz", **images, test_images=images["train_images"], test_labels=[0, 1, 0, 10**9])
    (path / "votes.csv").write_text(
        "item,source,label\n" + "".join(f"{n},{s},{n % 2}\n" for n in range(6) for s in range(3))
    )
    (path / "gold.csv").write_text("item,label\n0,0\n1,1\n")
    # Five jurors of 40 items: one copies another, one always gives the same answer, one guesses, some are absent.
    truth = rng.integers(0, 3, 40)
    votes = np.where(rng.random((3, 40)) < 0.8, truth, rng.integers(0, 3, (3, 40)))
    votes = np.stack([*votes, votes[0], np.zeros(40, int), rng.integers(0, 3, 40)])
    rows = [f"{n},juror {s},{votes[s, n]}" for n in range(40) for s in range(6) if rng.random() < 0.9]
    (path / "many votes.csv").write_text("\n".join(["item,source,label", *rows]) + "\n")
    (path / "many gold.csv").write_text("item,label\n" + "".join(f"{n},{truth[n]}\n" for n in range(15)))
    (path / "zero.npz").write_bytes(b"")
    (path / "text.npz").write_text("this is text")
    (path / "folder").mkdir()
    return path


def snapshot(folder: Path) -> dict[str, str]:
    """The content of the inputs."""
    files = (path for path in folder.iterdir() if path.is_file())
    return {path.name: hashlib.md5(path.read_bytes()).hexdigest() for path in files}


def value_of(parameter: click.Parameter) -> st.SearchStrategy[str]:
    """What a user may type for a parameter; most often something that fits."""
    kind = parameter.type
    if isinstance(kind, click.Choice):
        return st.sampled_from([*kind.choices, *kind.choices, "", "other"])
    if isinstance(kind, click.types.IntParamType):
        return st.sampled_from(["0", "1", "1", "2", "-1", "3", "9" * 30, "1.5", "x"])
    if isinstance(kind, click.types.FloatParamType):
        return st.sampled_from(["0", "0.1", "1", "-1", "nan", "inf", "1e308", "x"])
    if isinstance(kind, click.Path):
        names = OUTPUTS if parameter.name in ("out", "report_path", "figures") else INPUTS
        return st.sampled_from([USUAL.get(str(parameter.name), names[0])] * len(names) + list(names))
    return st.sampled_from(TEXTS)


def fitting_value(parameter: click.Parameter) -> st.SearchStrategy[str]:
    """What makes sense for a parameter."""
    if str(parameter.name) in FITTING:
        return st.sampled_from(FITTING[str(parameter.name)])
    if isinstance(parameter.type, click.Choice):
        return st.sampled_from([*parameter.type.choices])
    if isinstance(parameter.type, click.types.IntParamType):
        return st.sampled_from(("1", "2"))
    if isinstance(parameter.type, click.types.FloatParamType):
        return st.sampled_from(("0.1", "1"))
    if isinstance(parameter.type, click.Path):
        return st.just(USUAL.get(str(parameter.name), "usual.npz"))
    return st.sampled_from(TEXTS)


@st.composite
def sensible_lines(draw: Any, name: str, command: click.Command) -> list[str]:
    """A command with arguments that fit it, most of which do not fit each other."""
    words = [*name.split(), *ALWAYS.get(name, ALWAYS.get(name.split()[0], []))]
    for parameter in command.params:
        if isinstance(parameter, click.Argument) and parameter.nargs == -1:
            words += draw(st.sampled_from(PREDICTIONS))
        elif isinstance(parameter, click.Argument):
            words.append(draw(fitting_value(parameter)))
        elif isinstance(parameter, click.Option) and (parameter.required or draw(st.integers(0, 5)) == 0):
            words.append(draw(st.sampled_from([*parameter.opts, *parameter.secondary_opts])))
            if not parameter.is_flag:
                words.append(draw(fitting_value(parameter)))
    return words


@st.composite
def odd_lines(draw: Any, name: str, command: click.Command) -> list[str]:
    """A command with its arguments and some of its options, whatever they are."""
    words = [*name.split(), *ALWAYS.get(name, ALWAYS.get(name.split()[0], []))]
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            count = draw(st.sampled_from((1, 1, 1, 1, 1, 1, 0, 2))) if parameter.nargs == 1 else draw(st.integers(1, 2))
            words += [draw(value_of(parameter)) for _ in range(count)]
        elif isinstance(parameter, click.Option) and (parameter.required or draw(st.integers(0, 3)) == 0):
            flags = [*parameter.opts, *parameter.secondary_opts]
            words.append(draw(st.sampled_from(flags)))
            if not parameter.is_flag:
                words.append(draw(value_of(parameter)))
    if draw(st.integers(0, 9)) == 0:
        words.insert(draw(st.integers(0, len(words))), draw(st.sampled_from(TEXTS)))
    return words


@pytest.mark.parametrize("name", commands())
def test_command(name, folder, monkeypatch):
    command, before = commands()[name], snapshot(folder)
    monkeypatch.chdir(folder)

    @hunted(RARELY.get(name, 6))
    @given(st.data())
    def keeps_the_rule(data):
        words = data.draw(data.draw(st.sampled_from((sensible_lines, odd_lines)))(name, command))
        if any("\0" in word for word in words):
            return
        try:
            done = veridical_in_process(*words)
        finally:
            plt.close("all")
        check_command(done, "--json" in words)
        clean(folder)
        assert snapshot(folder) == before, "an input changed"

    clean(folder)
    keeps_the_rule()


def clean(folder: Path) -> None:
    """Remove what a command wrote; nothing may be left under a temporary name."""
    for entry in folder.iterdir():
        if entry.name in INPUTS:
            continue
        assert not entry.name.startswith("."), f"{entry.name} was left behind"
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    for entry in (folder / "folder").iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


@hunted(50)
@given(
    st.lists(
        st.sampled_from((*COMMANDS, *TEXTS, "--json", "--quiet", "--help", "--version", "usual.npz", "--out")),
        max_size=4,
    )
)
def test_words_in_any_order(folder, words):
    words = [word for word in words if word not in ("demo", "reproduce", "compare", "report", "compile")]
    here = os.getcwd()
    os.chdir(folder)
    try:
        check_command(veridical_in_process(*words), False)
        clean(folder)
    finally:
        os.chdir(here)
