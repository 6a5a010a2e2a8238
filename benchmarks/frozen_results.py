"""Results of every method on every path, kept to be compared after a change that must not change them.

    python benchmarks/frozen_results.py write before/
    python benchmarks/frozen_results.py write after/
    python benchmarks/frozen_results.py compare before/ after/

``write`` keeps arrays (predictions of all methods on all combiners for arrays of several sizes, with absent sources,
for PyTorch, ONNX and blocks; truth vectors; the consensus) and texts (saved calibrators, the JSON of every command).
``compare`` names what differs, with the largest difference, and exits with 1 if anything does.
"""

# ruff: noqa: B023  every function is called before the next turn of its loop
from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

import veridical as vd

#: Numbers of samples of the arrays: one, a small request, just more than one, and several blocks.
SIZES = (1, 10, 65, 4000)
N_SOURCES, N_FIT = 6, 800


class Results:
    """Arrays and texts by name, in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.arrays: dict[str, np.ndarray] = {}
        self.texts: dict[str, str] = {}

    def keep(self, name: str, compute) -> None:
        """Keep the arrays or the text that ``compute`` returns, or the error that it raises."""
        try:
            result = compute()
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
        if isinstance(result, str):
            self.texts[name] = result
            return
        for i, array in enumerate(result if isinstance(result, tuple) else (result,)):
            self.arrays[f"{name}[{i}]"] = np.asarray(array)

    def close(self) -> None:
        """Write everything, and a table of hashes."""
        np.savez(self.directory / "arrays.npz", **self.arrays)
        (self.directory / "texts.json").write_text(json.dumps(self.texts, indent=1, sort_keys=True))
        hashes = {name: hashlib.sha256(array.tobytes()).hexdigest()[:16] for name, array in self.arrays.items()}
        (self.directory / "hashes.json").write_text(json.dumps(hashes, indent=1, sort_keys=True))


def data():
    """The shipped ensemble, as float32 probabilities: samples to fit on, labels, and samples to predict for."""
    demo = vd.load_demo().select(sources=slice(N_SOURCES))
    logits = np.stack([np.asarray(source, dtype=np.float64) for source in demo])
    probs = np.exp(logits - logits.max(axis=-1, keepdims=True))
    probs = (probs / probs.sum(axis=-1, keepdims=True)).astype(np.float32)
    return probs[:, :N_FIT], np.asarray(demo.labels)[:N_FIT], probs[:, N_FIT : N_FIT + max(SIZES)]


def with_absent(probs):
    """The same with every seventh prediction absent, and at least one source present."""
    probs = probs.copy()
    n_sources, n_samples = probs.shape[:2]
    absent = (np.arange(n_sources * n_samples) % 7 == 3).reshape(n_sources, n_samples)
    probs[absent & (np.arange(n_sources) > 0)[:, None]] = np.nan
    return probs


def methods():
    """(calibrator, combiner) names."""
    for name, calibrator in vd.calibrators().items():
        if name == "auto":
            continue
        for combiner in calibrator.combiners:
            yield name, combiner


def keep_predictions(results: Results, scratch: Path) -> None:
    """All methods on all combiners, on all paths."""
    import onnxruntime
    import torch

    fit, labels, new = data()
    fit_absent, new_absent = with_absent(fit), with_absent(new)
    np.save(scratch / "new.npy", new)
    for name, combiner in methods():
        where = f"{combiner}+{name}"
        settings = {"combine": combiner}
        if "random_state" in vd.calibrators()[name]().get_params():
            settings["random_state"] = 0
        try:
            calibrator = vd.calibrators()[name](**settings).fit(fit, labels)
            skipping = vd.calibrators()[name](**settings, missing="skip").fit(fit_absent, labels)
        except Exception as error:
            results.texts[f"fit/{where}"] = f"{type(error).__name__}: {error}"
            continue
        for size in SIZES:
            results.keep(f"array/{where}/{size}", lambda: calibrator.predict_all(new[:, :size]))
            results.keep(f"absent/{where}/{size}", lambda: skipping.predict_all(new_absent[:, :size]))
        results.keep(f"float64/{where}", lambda: calibrator.predict_all(new[:, :300].astype(np.float64)))
        few = torch.tensor(new[:, :65])
        results.keep(f"torch/{where}", lambda: tuple(a.numpy() for a in calibrator.predict_all(few)))
        gradients = few.clone().requires_grad_()
        results.keep(
            f"gradients/{where}",
            lambda: tuple(torch.as_tensor(a).detach().numpy() for a in calibrator.predict_all(gradients)),
        )
        results.keep(f"blocks/{where}", lambda: blocks(calibrator, scratch))
        results.keep(f"onnx/{where}", lambda: onnx(calibrator, scratch, new, onnxruntime))
        calibrator.save(scratch / "cal.json")
        results.texts[f"saved/{where}"] = (scratch / "cal.json").read_text()
        results.keep(f"loaded/{where}", lambda: vd.load_calibrator(scratch / "cal.json").predict_all(new[:, :65]))


def blocks(calibrator, scratch: Path):
    """Predictions block by block."""
    blocked = vd.scale.open(scratch / "new.npy", block_memory=200_000)
    calibrated = vd.scale.apply_calibrator(calibrator, blocked)
    return calibrated.probs, calibrated.confidence, calibrated.prediction


def onnx(calibrator, scratch: Path, new, onnxruntime):
    """Predictions of the exported model, for the first samples."""
    calibrator.to_onnx(scratch / "cal.onnx")
    session = onnxruntime.InferenceSession(str(scratch / "cal.onnx"))
    return tuple(session.run(None, {session.get_inputs()[0].name: new[:, :300]}))


def keep_combinations(results: Results) -> None:
    """Truth vectors and the consensus."""
    _, _, new = data()
    for missing, probs in (("raise", new), ("skip", with_absent(new))):
        for size in SIZES:
            part = probs[:, :size]
            for keep in (True, False):
                results.keep(f"discover/{missing}/{size}/{keep}", lambda: truth(part, missing, keep))
            results.keep(f"consensus/{missing}/{size}", lambda: consensus(part, missing))
    votes = vd.load_demo_jury()
    results.keep("judge", lambda: json.dumps(vd.judge(votes).to_dict(), sort_keys=True, default=str))


def truth(probs, missing, keep):
    """Arrays of truth discovery."""
    result = vd.discover(probs, missing=missing, accuracy_preserving=keep)
    return result.probs, result.reliability, result.hv, result.prediction, result.n_iter, result.converged


def consensus(probs, missing):
    """Arrays of the consensus."""
    result = vd.consensus(probs, missing=missing)
    return result.probs, result.prediction, result.weights


def keep_commands(results: Results, scratch: Path) -> None:
    """The JSON of every command."""
    from veridical.cli import run

    demo = vd.load_demo().select(sources=slice(N_SOURCES), samples=slice(3000))
    vd.save(demo, scratch / "preds.npz")
    file, calibrator = str(scratch / "preds.npz"), str(scratch / "chosen.json")
    commands = [
        ["evaluate", file],
        ["evaluate", file, "--methods", "mean,atde,temperature,ptde,consensus"],
        ["calibrate", file, "--out", calibrator],
        ["calibrate", file, "--objective", "distribution", "--change-labels", "--out", str(scratch / "any.json")],
        ["apply", calibrator, file, "--out", str(scratch / "out.csv")],
        ["compare", file],
        ["inspect", file],
        ["inspect", calibrator],
        ["methods"],
        ["report", file, "--out", str(scratch / "report.html")],
        ["export", calibrator, str(scratch / "cal.onnx")],
        ["reproduce", "table2", file],
        ["demo", "--jury", "--out", str(scratch / "jury.html")],
    ]
    for command in commands:
        results.keep("command/" + " ".join(command).replace(str(scratch), "."), lambda: output(run, command, scratch))
    results.texts["out.csv"] = (scratch / "out.csv").read_text() if (scratch / "out.csv").exists() else "none"


def output(run, command, scratch: Path) -> str:
    """Standard output of a command with ``--json``."""
    stdout = io.StringIO()
    with contextlib.redirect_stdout(stdout), contextlib.suppress(SystemExit):
        run([*command, "--json"])
    text = stdout.getvalue().replace(str(scratch), ".")
    return re.sub(r'"(seconds|created|date|time)": [^,\n]+', r'"\1": 0', text)


def write(directory: Path) -> None:
    """Compute and keep everything."""
    results = Results(directory)
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        keep_combinations(results)
        keep_commands(results, Path(scratch))
        keep_predictions(results, Path(scratch))
    results.close()
    print(f"{len(results.arrays)} arrays, {len(results.texts)} texts")


def compare(before: Path, after: Path) -> int:
    """Print what differs; the number of differences."""
    with np.load(before / "arrays.npz") as first, np.load(after / "arrays.npz") as second:
        names = sorted({*first.files, *second.files})
        arrays = {name: tuple(f[name] if name in f.files else None for f in (first, second)) for name in names}
    differing = 0
    for name, (a, b) in arrays.items():
        if a is not None and b is not None and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes():
            continue
        differing += 1
        if a is None or b is None or a.shape != b.shape:
            print(f"{name}: {None if a is None else a.shape} -> {None if b is None else b.shape}")
        elif np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
            print(f"{name}: equal numbers as {a.dtype} -> {b.dtype}")
        else:
            gap = np.abs(a.astype(np.float64) - b.astype(np.float64))
            print(f"{name}: largest difference {np.nanmax(gap):.3g}, {np.mean(gap > 0):.2%} of the numbers")
    texts = [json.loads((directory / "texts.json").read_text()) for directory in (before, after)]
    for name in sorted({*texts[0], *texts[1]}):
        if texts[0].get(name) != texts[1].get(name):
            differing += 1
            print(f"{name}: texts differ{first_difference(texts[0].get(name), texts[1].get(name))}")
    print(f"{differing} of {len(arrays) + len({*texts[0], *texts[1]})} differ")
    return differing


def first_difference(first: str | None, second: str | None) -> str:
    """Where two texts begin to differ."""
    if first is None or second is None:
        return " (only one has it)"
    at = next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second)))
    return f" at {at}: …{first[max(at - 60, 0) : at + 60]!r} -> {second[max(at - 60, 0) : at + 60]!r}"


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["write", directory]:
            write(Path(directory))
        case ["compare", before, after]:
            sys.exit(compare(Path(before), Path(after)) > 0)
        case _:
            sys.exit(__doc__)
