"""Ensembles: training learns, members differ, and a killed run can be continued to the same bytes."""

from __future__ import annotations

import json
import os
import resource
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import softmax
from digit_sets import digit_images, digit_sets, few_digits
from programs import in_new_process

import veridical as vd
from veridical.errors import (
    CheckpointError,
    CorruptFileError,
    DatasetError,
    ParameterError,
    ShapeError,
    StorageError,
    UnknownNameError,
)
from veridical.training import collect_predictions, load_ensemble, train_ensemble
from veridical.training.batches import Batch, ImageBatches
from veridical.training.checkpoints import load_tensors, save_tensors
from veridical.training.data.images import ImageSet
from veridical.training.recipes import RECIPES, Recipe
from veridical.training.run_directory import RunDirectory

QUICK = Recipe(schedule="one-cycle", epochs=2, batch_size=32, learning_rate=0.1)


def file_contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix != ".json"}


def test_deep_ensemble_learns_and_beats_its_members(tmp_path: Path) -> None:
    recipe = replace(RECIPES["one-cycle"], epochs=5, batch_size=32, learning_rate=0.1)
    train, test = digit_sets()
    trained = train_ensemble(train, test, out=tmp_path / "run", arch="resnet8", members=3, recipe=recipe)
    predictions = trained.predictions()
    probs = softmax(predictions.values.astype(np.float64))
    accuracies = (probs.argmax(axis=2) == test.labels).mean(axis=1)
    together = (probs.mean(axis=0).argmax(axis=1) == test.labels).mean()
    assert accuracies.min() > 0.6  # chance is 0.1
    assert trained.accuracies() == pytest.approx(accuracies.tolist())
    for one in range(3):
        for other in range(one):
            assert (probs[one].argmax(axis=1) != probs[other].argmax(axis=1)).any()
    assert together > accuracies.mean()

    # The saved networks give the saved logits.
    again = collect_predictions(trained.models(), ImageBatches(test, normalisation=trained.normalisation))
    np.testing.assert_allclose(again.values, predictions.values, rtol=1e-4, atol=1e-4)


def test_cyclic_snapshots_are_the_ends_of_cycles(tmp_path: Path) -> None:
    recipe = Recipe(schedule="cyclic", epochs=4, batch_size=32)
    trained = train_ensemble(
        *few_digits(), out=tmp_path / "run", arch="resnet8", method="snapshot", members=2, recipe=recipe
    )
    assert trained.settings["recipe"]["cycles"] == 2
    assert [trained.directory.record(m)["epoch"] for m in trained.members] == [2, 4]
    first, second = trained.predictions()
    assert (first != second).any()


def test_run_directory_holds_settings_and_records(tmp_path: Path) -> None:
    train_ensemble(*few_digits(), out=tmp_path, arch="resnet8", members=2, recipe=QUICK, random_state=3, dataset="npz")
    run = json.loads((tmp_path / "run.json").read_text())
    assert run["recipe"]["schedule"] == "one-cycle"
    assert len(set(run["seeds"])) == 2
    assert run["random_state"] == 3
    assert run["versions"]["torch"] == torch.__version__
    assert (run["arch"], run["n_classes"], run["image_shape"], run["dataset"]) == ("resnet8", 10, [16, 16, 1], "npz")
    member = json.loads((tmp_path / "member-001.json").read_text())
    assert member["seed"] == run["seeds"][1]
    assert [sorted(epoch) for epoch in member["history"]] == [["accuracy", "loss", "seconds"]] * 2
    assert 0 <= member["test_accuracy"] <= 1
    assert not list(tmp_path.glob("*.state.safetensors"))
    assert not list(tmp_path.glob(".*"))


def test_random_state_decides_every_byte(tmp_path: Path) -> None:
    runs = {}
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        torch.manual_seed(ord(name))  # global state does not matter, and stays as it is
        before = torch.get_rng_state()
        train_ensemble(*few_digits(), out=tmp_path / name, arch="resnet8", members=1, recipe=QUICK, random_state=seed)
        assert torch.equal(torch.get_rng_state(), before)
        runs[name] = file_contents(tmp_path / name)
    assert runs["a"] == runs["b"]
    assert runs["a"]["member-000.npy"] != runs["c"]["member-000.npy"]


def test_members_can_be_added(tmp_path: Path) -> None:
    options = {"arch": "resnet8", "recipe": QUICK}
    train_ensemble(*few_digits(), out=tmp_path / "run", members=1, **options)
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").glob("member-000.*")}
    assert len(written) == 3
    trained = train_ensemble(*few_digits(), out=tmp_path / "run", members=3, **options)
    assert trained.members == [0, 1, 2]
    assert {path: path.stat().st_mtime_ns for path in written} == written
    train_ensemble(*few_digits(), out=tmp_path / "at-once", members=3, **options)
    assert file_contents(tmp_path / "run") == file_contents(tmp_path / "at-once")


def train_to_be_killed(out: str | Path, method: str, schedule: str) -> None:
    """A run that some tests interrupt."""
    images, labels = digit_images()
    train, test = ImageSet.of(images[:256], labels[:256]), ImageSet.of(images[256:400], labels[256:400])
    recipe = Recipe(schedule=schedule, epochs=4, batch_size=32, learning_rate=0.1, nesterov=True)
    members = 2 if method == "deep" or schedule == "cyclic" else None
    train_ensemble(train, test, out=out, arch="resnet8", method=method, members=members, recipe=recipe)


def train_until_killed(out: Path, method: str, schedule: str, kill_epoch: int) -> None:
    """End this process in the middle of the epoch that is the ``kill_epoch``-th to begin."""
    torch.set_num_threads(1)
    begun, complete = 0, ImageBatches.training

    def killed(self: ImageBatches, seed: int, epoch: int, *, augment: bool) -> Iterator[Batch]:
        nonlocal begun
        begun += 1
        for step, batch in enumerate(complete(self, seed, epoch, augment=augment)):
            if begun == kill_epoch and step == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    ImageBatches.training = killed  # type: ignore[method-assign]
    train_to_be_killed(out, method, schedule)


def train_on_a_full_disk(out: Path) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
    message = r"there is no space to write .*trajectory-000.state.safetensors \(File too large\)"
    with pytest.raises(StorageError, match=message):
        train_to_be_killed(out, "deep", "one-cycle")


@pytest.mark.parametrize(
    ("method", "schedule", "kills"),
    [("deep", "one-cycle", (3, 4)), ("snapshot", "step", (1, 3)), ("snapshot", "cyclic", (4,))],
)
def test_killed_run_continues_to_the_same_result(
    tmp_path: Path, method: str, schedule: str, kills: tuple[int, ...]
) -> None:
    train_to_be_killed(tmp_path / "uninterrupted", method, schedule)
    for kill in kills:
        assert in_new_process(train_until_killed, tmp_path / "killed", method, schedule, kill) == -signal.SIGKILL
    assert file_contents(tmp_path / "killed") != file_contents(tmp_path / "uninterrupted")
    train_to_be_killed(tmp_path / "killed", method, schedule)
    killed, uninterrupted = file_contents(tmp_path / "killed"), file_contents(tmp_path / "uninterrupted")
    assert killed.keys() == uninterrupted.keys()
    assert [name for name in killed if killed[name] != uninterrupted[name]] == []
    history = [
        json.loads((tmp_path / n / "member-001.json").read_text())["history"] for n in ("killed", "uninterrupted")
    ]
    assert [epoch["loss"] for epoch in history[0]] == [epoch["loss"] for epoch in history[1]]


def test_full_disk_leaves_no_half_written_checkpoint(tmp_path: Path) -> None:
    assert in_new_process(train_on_a_full_disk, tmp_path / "run") == 0
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["labels.npy", "run.json"]
    train_to_be_killed(tmp_path / "run", "deep", "one-cycle")
    assert load_ensemble(tmp_path / "run").members == [0, 1]


def test_load_reads_a_run_directory(tmp_path: Path) -> None:
    train, test = (replace(images, class_names=tuple("abcdefghij")) for images in few_digits())
    trained = train_ensemble(train, test, out=tmp_path, arch="resnet8", members=2, recipe=QUICK)
    loaded, own = vd.load(tmp_path), trained.predictions()
    np.testing.assert_array_equal(loaded.values, own.values)
    np.testing.assert_array_equal(loaded.labels, test.labels)
    assert (loaded.kind, loaded.source_names, loaded.class_names) == ("logits", own.source_names, tuple("abcdefghij"))
    with pytest.raises(ParameterError, match=r"kind='probs' contradicts .*, which holds 'logits'"):
        vd.load(tmp_path, kind="probs")


def test_run_with_other_settings_is_rejected(tmp_path: Path) -> None:
    train, test = few_digits()
    options = {"out": tmp_path, "arch": "resnet8", "members": 1}
    train_ensemble(train, test, recipe=QUICK, **options)
    before = file_contents(tmp_path)
    with pytest.raises(ParameterError, match="holds a run with epochs 2, not 3; give another directory, or the same"):
        train_ensemble(train, test, recipe=replace(QUICK, epochs=3), **options)
    with pytest.raises(ParameterError, match="holds a run with random_state 0, not 1"):
        train_ensemble(train, test, recipe=QUICK, random_state=1, **options)
    with pytest.raises(ParameterError, match="holds a run with train_images 128, not 127"):
        train_ensemble(train.first(127), test, recipe=QUICK, **options)
    labels = train.labels.copy()
    labels[0] = (labels[0] + 1) % 10
    with pytest.raises(ParameterError, match="holds a run with train_fingerprint"):
        train_ensemble(replace(train, labels=labels), test, recipe=QUICK, **options)
    assert file_contents(tmp_path) == before


def test_run_directory_is_locked(tmp_path: Path) -> None:
    with (
        RunDirectory(tmp_path).lock(),
        pytest.raises(StorageError, match=r"is being trained in by process \d+ on .*; wait until that has ended"),
    ):
        train_ensemble(*few_digits(), out=tmp_path, arch="resnet8", members=1, recipe=QUICK)
    train_ensemble(*few_digits(), out=tmp_path, arch="resnet8", members=1, recipe=QUICK)


def test_temporary_files_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    names = (".member-000.npy.x1y2", ".trajectory-000.state.safetensors.abc", ".run.json.q", ".notes.txt", "own.npy")
    for name in names:
        (tmp_path / name).touch()
    train_ensemble(*few_digits(), out=tmp_path, arch="resnet8", members=1, recipe=QUICK)
    assert [name for name in names if (tmp_path / name).exists()] == [".notes.txt", "own.npy"]


def test_train_ensemble_rejects_invalid_arguments(tmp_path: Path) -> None:
    train, test = few_digits()
    small = ImageSet.of(np.zeros((4, 8, 8, 3), np.uint8), [0, 1, 0, 1])
    out = tmp_path / "run"
    with pytest.raises(ShapeError, match="the images are 8 x 8; resnet8 needs at least 16 x 16"):
        train_ensemble(small, out=out, arch="resnet8")
    with pytest.raises(ShapeError, match=r"test images have shape \(8, 8, 3\) and training images \(16, 16, 1\)"):
        train_ensemble(train, small, out=out, arch="resnet8")
    with pytest.raises(ShapeError, match="there are 12 classes in the test set and 10 in the training set"):
        train_ensemble(train, replace(test, n_classes=12), out=out, arch="resnet8")
    with pytest.raises(DatasetError, match="there is 1 training image"):
        train_ensemble(train.first(1), out=out, arch="resnet8")
    with pytest.raises(UnknownNameError, match="recipe 'fast' is unknown; choose one of: paper"):
        train_ensemble(train, test, out=out, arch="resnet8", recipe="fast")
    with pytest.raises(ParameterError, match="device 'tpu' is unknown; choose one of: auto, cpu"):
        train_ensemble(train, test, out=out, arch="resnet8", device="tpu")
    assert not out.exists()


def test_divergence_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"training diverged in epoch \d .*; try a smaller .* than 1e\+12"):
        train_ensemble(
            *few_digits(), out=tmp_path, arch="resnet8", members=1, recipe=replace(QUICK, learning_rate=1e12, epochs=6)
        )
    assert not list(tmp_path.glob("member-*"))


def test_run_without_test_images_has_no_predictions(tmp_path: Path) -> None:
    trained = train_ensemble(few_digits()[0], out=tmp_path, arch="resnet8", members=1, recipe=QUICK)
    assert trained.accuracies() == [None]
    with pytest.raises(DatasetError, match="has no predictions of its members; it was trained without test images"):
        trained.predictions()


def test_load_ensemble_rejects_unfinished_runs(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"has no run\.json"):
        load_ensemble(tmp_path)
    train_ensemble(*few_digits(), out=tmp_path, arch="resnet8", members=1, recipe=QUICK)
    (tmp_path / "member-000.npy").write_bytes(b"damaged")
    with pytest.raises(CorruptFileError, match=r"member-000\.npy"):
        load_ensemble(tmp_path).predictions()
    (tmp_path / "member-000.json").unlink()
    (tmp_path / "member-first.json").write_text("{}")
    with pytest.raises(DatasetError, match="has no finished member yet; run the training command again"):
        load_ensemble(tmp_path)


def test_damaged_training_state_is_rejected(tmp_path: Path) -> None:
    options = {"out": tmp_path, "arch": "resnet8", "members": 1, "recipe": QUICK}
    with pytest.raises(KeyboardInterrupt):
        train_ensemble(*few_digits(), **options, progress=interrupt_in_second_epoch)
    path = tmp_path / "trajectory-000.state.safetensors"
    tensors, metadata = load_tensors(path)
    wrong: list[Any] = [
        [],
        {},
        {"epoch": "1", "history": []},
        {"epoch": 7, "history": []},
        {"epoch": True, "history": [{}]},
    ]
    for damaged in wrong:
        save_tensors(path, tensors, damaged)
        with pytest.raises(CorruptFileError, match=r"trajectory-000\.state\.safetensors"):
            train_ensemble(*few_digits(), **options)
    save_tensors(path, {**tensors, "momentum.classifier.bias": torch.zeros(3)}, metadata)
    with pytest.raises(CheckpointError, match=r"momentum\.classifier\.bias has shape \(3,\)"):
        train_ensemble(*few_digits(), **options)


def interrupt_in_second_epoch(done: int, total: int, what: str) -> None:
    if "epoch 2/" in what:
        raise KeyboardInterrupt


def test_progress_counts_batches(tmp_path: Path) -> None:
    calls: list[tuple[int, int, str]] = []
    options = {"out": tmp_path, "arch": "resnet8", "recipe": QUICK, "progress": lambda *call: calls.append(call)}
    train_ensemble(*few_digits(), members=2, **options)
    assert [call[:2] for call in calls] == [(done, 16) for done in range(1, 17)]  # 2 runs, 2 epochs, 4 batches
    assert calls[0][2].startswith("run 1, epoch 1/2, training accuracy ")
    calls.clear()
    train_ensemble(*few_digits(), members=2, **options)
    assert calls == []


def test_image_folders_train_to_the_same_bytes(tmp_path: Path) -> None:
    """Images that are decoded when needed: the threads that decode them have no effect."""
    from PIL import Image

    from veridical.training import load_dataset
    from veridical.training.data.image_folders import FolderImages

    rng = np.random.default_rng(0)
    for split in ("train", "val"):
        for name, brightness in (("dark", 30), ("light", 200)):
            (tmp_path / split / name).mkdir(parents=True)
            for i in range(8):
                pixels = (rng.integers(0, 50, (40, 50, 3)) + brightness).astype(np.uint8)
                Image.fromarray(pixels).save(tmp_path / split / name / f"{i}.png")
    train, test = (
        replace(images, images=FolderImages(images.images.paths, 16))  # type: ignore[union-attr]
        for images in (load_dataset("imagenet", tmp_path, split) for split in ("train", "test"))
    )
    recipe = Recipe(schedule="one-cycle", epochs=6, batch_size=8, learning_rate=0.05)
    for name in ("a", "b"):
        trained = train_ensemble(train, test, out=tmp_path / name, arch="resnet8", members=1, recipe=recipe)
    assert file_contents(tmp_path / "a") == file_contents(tmp_path / "b")
    assert trained.accuracies()[0] == 1.0
