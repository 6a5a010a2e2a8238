"""Throughput of training and prediction against a bare PyTorch loop over the same batches, in the same process.

    python benchmarks/training.py [--images 2560] [--repeats 5]

The bare loop gets its batches ready made (shuffled, cropped, normalised) and keeps no statistics: what it takes is
the network's time alone.  Ours makes the batches, counts loss and accuracy, and, when predicting, checks scores and
labels and writes them to disk.  Runs alternate and the best of each counts.  Times are processor seconds of one
thread, so that a busy machine changes both sides alike.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from veridical.training import ImageBatches, ImageSet, build, collect_predictions
from veridical.training.trainer import train_epoch

#: What is promised: no more than this many times the bare loop.
TRAINING_LIMIT, PREDICTION_LIMIT = 1.2, 1.1


def bare_epoch(model: nn.Module, optimiser: torch.optim.SGD, batches: list[tuple[Tensor, Tensor]], half: bool) -> None:
    """What anyone would write."""
    model.train()
    for images, labels in batches:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
            logits = model(images)
        loss = functional.cross_entropy(logits, labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def bare_prediction(model: nn.Module, batches: list[tuple[Tensor, Tensor]]) -> np.ndarray:
    """Logits of all batches, kept in memory."""
    model.eval()
    with torch.inference_mode():
        return torch.cat([model(images) for images, _ in batches]).numpy()


def best_of(repeats: int, *calls: Callable[[], object]) -> list[float]:
    """The least processor time of each call, runs alternating."""
    best = [np.inf] * len(calls)
    for _ in range(repeats + 1):  # the first round warms up
        for i, call in enumerate(calls):
            started = time.process_time()
            call()
            best[i] = min(best[i], time.process_time() - started)
    return best


def fresh(arch: str) -> tuple[nn.Module, torch.optim.SGD]:
    torch.manual_seed(0)
    model = build(arch, 10).to(memory_format=torch.channels_last)
    return model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=2560)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--arch", default="resnet8")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (options.images, 32, 32, 3), dtype=np.uint8)
    images = ImageSet.of(pixels, rng.integers(0, 10, options.images), n_classes=10)
    training, prediction = ImageBatches(images, batch_size=128), ImageBatches(images, batch_size=512)
    ready = list(training.training(0, 0, augment=True))

    print(f"{options.arch}, {options.images} images of 32 x 32, one thread, best of {options.repeats}")
    print(f"{'':28}{'bare':>10}{'ours':>10}{'ratio':>8}{'limit':>8}")
    seconds = {}
    for precision in ("float32", "bfloat16"):
        bare, ours = fresh(options.arch), fresh(options.arch)
        half = precision == "bfloat16"

        def our_epoch(network: tuple[nn.Module, torch.optim.SGD] = ours, precision: str = precision) -> None:
            batches = training.training(0, 0, augment=True)
            train_epoch(*network, batches, lambda step: 0.01, precision=precision, seed=0)

        times = best_of(options.repeats, lambda bare=bare, half=half: bare_epoch(*bare, ready, half), our_epoch)
        seconds[precision] = times[1]
        report(f"training epoch, {precision}", times, TRAINING_LIMIT)
    model, ready = fresh(options.arch)[0], list(prediction)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "predictions.npz"
        times = best_of(
            options.repeats,
            lambda: bare_prediction(model, ready),
            lambda: collect_predictions([model], prediction, out=out),
        )
    report("prediction, float32", times, PREDICTION_LIMIT)
    print(f"bfloat16 trains {seconds['float32'] / seconds['bfloat16']:.2f} times as fast as float32")


def report(what: str, times: list[float], limit: float) -> None:
    bare, ours = times
    print(f"{what:28}{bare:9.2f}s{ours:9.2f}s{ours / bare:8.3f}{limit:8.1f}")


if __name__ == "__main__":
    main()
