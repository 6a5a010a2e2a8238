"""``veridical train`` and ``veridical predict`` as a user types them."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner, Result
from digit_sets import digit_images
from zoo_networks import PreResNet, settled

from veridical.cli import main
from veridical.training import load_ensemble


def veridical(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def refused(result: Result) -> str:
    """The one sentence of a refusal."""
    assert result.exit_code == 2, result.output
    return result.output.strip().splitlines()[-1]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    images, labels = digit_images()
    path = tmp_path / "digits.npz"
    np.savez(
        path,
        train_images=images[:300],
        train_labels=labels[:300],
        test_images=images[300:400],
        test_labels=labels[300:400],
        class_names=np.array(list("0123456789")),
    )
    return path


QUICK = ("--arch", "resnet8", "--recipe", "one-cycle", "--epochs", "2", "--batch-size", "32", "--lr", "0.1")


def test_from_images_to_predictions(tmp_path: Path, data: Path) -> None:
    run, out = tmp_path / "run", tmp_path / "p.npz"
    given = ("train", "--dataset", "npz", "--data", data, *QUICK, "--members", 2, "--out", run)
    result = veridical(*given, "--limit", 128)
    assert result.exit_code == 0, result.output
    assert "2 members in " in " ".join(result.stdout.split())
    assert load_ensemble(run).settings["train_images"] == 128
    result = veridical("predict", run, "--data", data, "--out", out)
    assert result.exit_code == 0, result.output
    assert "2 members, 100 samples, 10 classes" in " ".join(result.stdout.split())
    with np.load(out, allow_pickle=False) as stored:
        assert sorted(stored) == ["class_names", "labels", "logits", "source_names"]
        assert stored["logits"].shape == (2, 100, 10)
        assert stored["source_names"].tolist() == ["member-000", "member-001"]
        np.testing.assert_allclose(stored["logits"], load_ensemble(run).predictions().values, rtol=1e-4, atol=1e-4)
    result = veridical("evaluate", run, "--json", "--no-intervals", "--no-floors")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["data"]["kind"] == "logits"
    assert refused(veridical(*given)).startswith("Error: ")  # without the limit it is another run
    result = veridical("predict", run, "--data", data, "--split", "train", "--limit", 7, "--out", out)
    assert "2 members, 7 samples" in " ".join(result.stdout.split())


def test_json_and_quiet(tmp_path: Path, data: Path) -> None:
    run, out = tmp_path / "run", tmp_path / "p.npz"
    train = ("train", "--dataset", "npz", "--data", data, *QUICK, "--members", 1, "--limit", 64, "-o", run)
    result = veridical(*train, "--json")
    assert json.loads(result.stdout) == {
        "schema": 1,
        "type": "training",
        "out": str(run),
        "members": [{"name": "member-000", "test_accuracy": load_ensemble(run).accuracies()[0]}],
    }
    assert "epoch 2/2" in result.stderr
    predict = ("predict", run, "--data", data, "-o", out)
    result = veridical(*predict, "--json", "-q")
    assert json.loads(result.stdout) == {
        "schema": 1,
        "type": "predictions",
        "out": str(out),
        "kind": "logits",
        "n_sources": 1,
        "n_samples": 100,
        "n_classes": 10,
        "source_names": ["member-000"],
        "class_names": list("0123456789"),
    }
    for words in (train, predict):
        result = veridical(*words, "-q")
        assert (result.exit_code, result.output) == (0, "")


def test_a_line_per_epoch_where_there_is_no_terminal(tmp_path: Path, data: Path) -> None:
    words = ("train", "--dataset", "npz", "--data", data, *QUICK, "--method", "snapshot", "--limit", 64)
    result = veridical(*words, "--out", tmp_path / "run")
    assert "run 1, epoch 2/2: loss " in result.stderr
    assert "member-001 written, test accuracy" in result.stderr
    assert "2 members in" in result.stdout


def test_a_bar_on_a_terminal(tmp_path: Path, data: Path) -> None:
    """Run on a pseudo-terminal, the program shows accuracy and time left."""
    controller, terminal = pty.openpty()
    words = ["train", "--dataset", "npz", "--data", data, *QUICK, "--members", 1, "--out", tmp_path / "run"]
    program = [sys.executable, "-m", "veridical", *map(str, words)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "140", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=terminal, env=environment) as process:
        os.close(terminal)
        shown = b""
        while True:
            try:
                shown += os.read(controller, 65536)
            except OSError:  # the other end is closed
                break
    os.close(controller)
    assert process.returncode == 0
    assert b"run 1, epoch 2/2" in shown
    assert b"training accuracy" in shown
    assert b"0:00:0" in shown
    assert b"member-000 written, test accuracy" in shown


def test_the_data_directory_has_a_default(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = refused(veridical("train", "--dataset", "cifar100", "--arch", "wideresnet28x10", "--out", "run"))
    assert said.startswith("Error: data does not exist; unpack cifar-100-python.tar.gz")
    monkeypatch.setenv("VERIDICAL_DATA", str(tmp_path))
    said = refused(veridical("train", "--dataset", "cifar100", "--out", "run"))
    assert "holds no cifar100 train files" in said


def test_other_peoples_checkpoints(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (6, 32, 32, 3), dtype=np.uint8)
    np.savez(tmp_path / "d.npz", test_images=images, test_labels=np.arange(6), class_names=np.array(list("abcdefghij")))
    networks, folder = [], tmp_path / "zoo"
    folder.mkdir()
    for i in (2, 10):
        torch.manual_seed(i)
        networks.append(settled(PreResNet(110, 10), seed=i))
        torch.save({"state_dict": networks[-1].state_dict()}, folder / f"CIFAR10-PreResNet110-{i}.pt")
    out = tmp_path / "p.npz"
    words = ("predict", folder, "--dataset", "npz", "--data", tmp_path / "d.npz", "--arch", "preresnet110")
    result = veridical(*words, "--layout", "pytorch-ensembles", "--out", out)
    assert result.exit_code == 0, result.output
    mean, std = torch.tensor([0.4914, 0.4822, 0.4465]), torch.tensor([0.2023, 0.1994, 0.2010])
    inputs = ((torch.from_numpy(images) / 255 - mean) / std).permute(0, 3, 1, 2)
    with torch.inference_mode():
        expected = torch.stack([network(inputs) for network in networks]).numpy()
    with np.load(out, allow_pickle=False) as stored:
        assert stored["source_names"].tolist() == ["CIFAR10-PreResNet110-2.pt", "CIFAR10-PreResNet110-10.pt"]
        np.testing.assert_allclose(stored["logits"], expected, rtol=1e-3, atol=1e-3)
    said = refused(veridical(*words, "--out", out))
    assert "has no tensor stem.weight" in said
    words = ("predict", folder, "--dataset", "npz", "--data", tmp_path / "d.npz", "--out", tmp_path / "q.npz")
    assert "is no run of ours (no run.json); say --arch" in refused(veridical(*words))
    assert "give --dataset, one of: cifar10" in refused(veridical("predict", folder, "--data", ".", "--out", out))
    assert not (tmp_path / "q.npz").exists()


def test_refusals_are_one_sentence_and_code_two(tmp_path: Path, data: Path) -> None:
    run = tmp_path / "run"
    train = ("train", "--dataset", "cifar10", "--data", tmp_path / "nowhere", "--out", run)
    assert "nowhere does not exist; unpack cifar-10-python.tar.gz" in refused(veridical(*train))
    train = ("train", "--dataset", "npz", "--data", data, "--out", run)
    assert "resnet50 needs at least 64 x 64" in refused(veridical(*train, "--arch", "resnet50"))
    assert "epochs is 0" in refused(veridical(*train, "--arch", "resnet8", "--epochs", 0))
    assert not run.exists()
    assert veridical(*train, *QUICK, "--members", 1, "--limit", 64, "--quiet").exit_code == 0
    assert "does not end with .npz" in refused(veridical("predict", run, "--data", data, "--out", "p.csv"))
    with np.load(data) as stored:
        arrays = dict(stored)
    other = tmp_path / "other.npz"
    np.savez(other, **(arrays | {"test_images": np.zeros((100, 20, 20, 3), np.uint8)}))
    predict = ("predict", run, "--data", other, "--out", tmp_path / "p.npz")
    assert "have shape (20, 20, 3), and the run was trained on [16, 16, 1]" in refused(veridical(*predict))
    np.savez(other, **(arrays | {"class_names": np.array(list("0123456789abc"))}))
    assert "has 13 classes, and the run was trained on 10" in refused(veridical(*predict))
    assert not (tmp_path / "p.npz").exists()


def test_without_pytorch_the_extra_is_named(tmp_path: Path, data: Path) -> None:
    """As in an installation without the extra: importing torch fails."""
    program = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ImportError("no torch here")
sys.meta_path.insert(0, NoTorch())
import numpy as np
from sklearn.naive_bayes import GaussianNB
from veridical.cli import main
from veridical.training import collect_predictions
rows, labels = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 3
assert collect_predictions([GaussianNB().fit(rows, labels)], (rows, labels)).n_classes == 3
main(["train", "--dataset", "npz", "--data", sys.argv[1], "--out", sys.argv[2]])
"""
    words = [sys.executable, "-c", program, str(data), str(tmp_path / "run")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.strip() == (
        "Error: This needs torch, which is not installed; run: pip install 'veridical[torch]'"
    )
    assert not (tmp_path / "run").exists()


def test_help_lists_the_choices_without_pytorch() -> None:
    program = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from veridical.cli import main\n"
        "for command in ('train', 'predict'):\n"
        "    result = CliRunner().invoke(main, [command, '--help'])\n"
        "    assert result.exit_code == 0 and 'wideresnet28x10' in result.output, result.output\n"
        "    assert f'Examples:\\n    veridical {command} ' in result.output, result.output\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
