"""Program: read damaged files; ``test_mutated_files.py`` runs it.

    python mutated_formats.py GROUP FOLDER SEED N_FILES

Prints, for each format of a group, how many of N_FILES files were read, how many were refused, and which broke the
rule, as JSON.
"""

from __future__ import annotations

import json
import random
import resource
import shutil
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from mutation import mutate_bytes, mutate_directory, mutate_json, mutate_npy, mutate_zip
from rule import check_call, check_sentence, places_of_nan

import veridical as vd
from veridical.errors import VeridicalError

#: docs/reference/files.md: a file that claims more than so many times its size, plus so much, is refused; tables and
#: what is made of the scores take up to three times that.
MULTIPLE, PLUS, TIMES = 1100, 512 << 20, 3
#: No allocation may be larger than this, whether its memory is used or not.
MOST_ADDRESSES = 8 << 30
MOST_FAILURES = 10


@dataclass(frozen=True)
class Format:
    """How to write a good file, to damage it, and to read it."""

    write: Callable[[Path], Path]
    mutate: Callable[[bytes, random.Random], bytes] | None
    read: Callable[[Path], Any]


def _predictions() -> vd.Predictions:
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1, 1], size=(3, 12))
    return vd.Predictions(
        probs, rng.integers(0, 3, 12), source_names=["one", "two", "three"], class_names=["cat", "dog", "owl"],
        sample_ids=[f"sample {n}" for n in range(12)],
    )  # fmt: skip


def _saved(suffix: str) -> Callable[[Path], Path]:
    return lambda folder: vd.save(_predictions(), folder / f"probs{suffix}")


def _without_ids(suffix: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        full = _predictions()
        return vd.save(vd.Predictions(full.values, full.labels), folder / f"probs{suffix}")

    return write


def _compressed(folder: Path) -> Path:
    full = _predictions()
    np.savez_compressed(folder / "c.npz", probs=full.values, labels=full.labels, class_names=np.array(full.class_names))
    return folder / "c.npz"


def _npy(folder: Path) -> Path:
    np.save(folder / "probs.npy", _predictions().values)
    return folder / "probs.npy"


def _labels_file(suffix: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        labels, path = [n % 3 for n in range(12)], folder / f"labels{suffix}"
        if suffix == ".npy":
            np.save(path, np.asarray(labels))
        elif suffix == ".json":
            path.write_text(json.dumps({"labels": labels}))
        elif suffix == ".csv":
            path.write_text("sample,label\n" + "".join(f"{n},{label}\n" for n, label in enumerate(labels)))
        else:
            path.write_text("".join(f"{label}\n" for label in labels))
        return path

    return write


def _calibrator(name: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        rng = np.random.default_rng(0)
        probs = rng.dirichlet([1, 1, 1], size=(3, 60))
        path = folder / "calibrator.json"
        vd.calibrators()[name]().fit(probs, rng.integers(0, 3, 60)).save(path)
        return path

    return write


def _state(folder: Path) -> Path:
    full = _predictions()
    state = vd.metrics.CalibrationState(20)
    state.update(full.labels, full.values[0])
    state.save(folder / "state.json")
    return folder / "state.json"


def _run_directory(folder: Path) -> Path:
    """What ``veridical train`` leaves, of networks that nobody trained."""
    import torch

    from veridical.training.data.images import ImageSet
    from veridical.training.ensemble import train_ensemble
    from veridical.training.recipes import Recipe

    torch.set_num_threads(1)
    images = np.random.default_rng(0).integers(0, 256, (4, 16, 16), dtype=np.uint8)
    data = ImageSet.of(images, np.array([0, 1, 2, 0]), n_classes=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train_ensemble(data, data, out=folder / "run", arch="resnet8", members=2, recipe=Recipe(epochs=1, batch_size=4))
    return folder / "run"


def _read_run(path: Path) -> Any:
    from veridical.training import load_ensemble

    ensemble = load_ensemble(path)
    ensemble.accuracies(), ensemble.source_names, ensemble.normalisation
    for model in ensemble.models():
        assert model is not None
    return vd.load(path)


def _safetensors(folder: Path) -> Path:
    run = _run_directory(folder)
    return next(path for path in sorted(run.rglob("*.safetensors")))


def _read_weights(path: Path) -> Any:
    from veridical.training import load_checkpoint

    return load_checkpoint(path, arch="resnet8", n_classes=3, in_channels=1)


def _vote_rows() -> list[tuple[str, str, str]]:
    return [(f"item {n}", f"juror {s}", ("cat", "dog", "owl")[(n * (s + 1)) % 3]) for n in range(8) for s in range(4)]


def _votes(folder: Path) -> Path:
    lines = ["item,source,label", *(",".join(row) for row in _vote_rows())]
    (folder / "votes.csv").write_text("\n".join(lines) + "\n")
    return folder / "votes.csv"


def _votes_with_confidences(folder: Path) -> Path:
    rows = [(*row, str(0.5 + n % 5 / 10)) for n, row in enumerate(_vote_rows())]
    lines = ["item,source,label,confidence", *(",".join(row) for row in rows)]
    (folder / "votes.csv").write_text("\n".join(lines) + "\n")
    return folder / "votes.csv"


def _judge(path: Path) -> Any:
    check_call("load_votes", vd.load_votes, path)
    result = vd.judge(path)
    assert not list(places_of_nan(result.to_dict())), "NaN"
    return result


def _use(path: Path) -> Any:
    """Predictions, as the next function would use them."""
    predictions = vd.load(path)
    check_call("discover", vd.discover, predictions, missing="skip")
    return predictions


def _use_calibrator(path: Path) -> Any:
    calibrator = vd.load_calibrator(path)
    new = np.random.default_rng(1).dirichlet([1, 1, 1], size=(3, 4))
    probs = check_call("predict_proba", calibrator.predict_proba, new)
    check_call("inspect_calibrator", vd.inspect_calibrator, calibrator)
    assert probs is None or not list(places_of_nan(probs))
    return calibrator


def _use_labels(path: Path) -> Any:
    full = _predictions()
    good = path.with_name("good.npz")
    if not good.exists():
        vd.save(vd.Predictions(full.values), good)
    return vd.load(good, labels=path)


def _forged(content: bytes, rng: random.Random) -> bytes:
    """A calibrator that was changed and has no checksum any more, or the old one."""
    return mutate_json(content, rng, drop=("sha256",) if rng.random() < 0.9 else ())


def _zip_or_bytes(content: bytes, rng: random.Random) -> bytes:
    return mutate_zip(content, rng) if rng.random() < 0.6 else mutate_bytes(content, rng)


_TEXT_LABELS = (".txt", ".csv", ".npy")

#: Group -> format -> how it is written, damaged and read.  A group is read in one process.
GROUPS: dict[str, dict[str, Format]] = {
    "arrays": {
        "npz": Format(_saved(".npz"), _zip_or_bytes, _use),
        "compressed npz": Format(_compressed, _zip_or_bytes, _use),
        "npy": Format(_npy, mutate_npy, _use),
        "csv": Format(_saved(".csv"), mutate_bytes, _use),
        "csv without ids": Format(_without_ids(".csv"), mutate_bytes, _use),
        "votes": Format(_votes, mutate_bytes, _judge),
        "votes with confidences": Format(_votes_with_confidences, mutate_bytes, _judge),
    },
    "torch": {
        "run directory": Format(_run_directory, None, _read_run),
        "safetensors": Format(_safetensors, mutate_bytes, _read_weights),
    },
    "labels": {
        **{f"labels{suffix}": Format(_labels_file(suffix), mutate_bytes, _use_labels) for suffix in _TEXT_LABELS},
        "labels.json": Format(_labels_file(".json"), mutate_json, _use_labels),
    },
    "fits": {
        "state": Format(_state, mutate_json, vd.metrics.CalibrationState.load),
        **{name: Format(_calibrator(name), _forged, _use_calibrator) for name in vd.calibrators()},
    },
}


def peak_memory() -> int:
    """Most memory that this process has ever used, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def used_memory() -> int:
    """Memory that this process uses now, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def damage(good: Path, bad: Path, format: Format, rng: random.Random) -> int:
    """Write a damaged copy; its size."""
    if format.mutate is None:
        shutil.rmtree(bad, ignore_errors=True)
        shutil.copytree(good, bad)
        mutate_directory(bad, rng)
        return sum(path.stat().st_size for path in bad.rglob("*") if path.is_file())
    content = format.mutate(good.read_bytes(), rng)
    bad.write_bytes(content)
    return len(content)


def read_damaged(name: str, format: Format, folder: Path, seed: int, n_files: int) -> dict[str, Any]:
    """How many damaged files of a format were read and refused, and what became of the others."""
    rng = random.Random(f"{seed} {name}")
    good = format.write(folder)
    format.read(good)  # imports and compiled kernels are not memory that a file takes
    bad = folder / "bad" / good.name
    bad.parent.mkdir()
    outcome: dict[str, Any] = {"read": 0, "refused": 0, "failures": []}
    for n in range(n_files):
        size, before = damage(good, bad, format, rng), used_memory()
        peak = peak_memory()
        try:
            try:
                format.read(bad)
                outcome["read"] += 1
            except VeridicalError as error:
                check_sentence(str(error))
                outcome["refused"] += 1
            more = peak_memory() - before if peak_memory() > peak else 0
            assert more <= TIMES * (MULTIPLE * size + PLUS), f"{size} bytes took {more >> 20} MB"
        except BaseException:
            kept = folder / f"failure-{n}{good.suffix}"
            bad.rename(kept)
            outcome["failures"].append(f"{kept}: {traceback.format_exc()}")
            if len(outcome["failures"]) == MOST_FAILURES:
                break
    return outcome


def main(group: str, folder: Path, seed: int, n_files: int) -> dict[str, Any]:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES))
    warnings.simplefilter("ignore")
    outcomes = {}
    for name, format in GROUPS[group].items():
        place = folder / name
        place.mkdir()
        outcomes[name] = read_damaged(name, format, place, seed, n_files)
    return outcomes


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))))
