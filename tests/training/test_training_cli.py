"""``veridical train`` and ``veridical predict`` as a user types them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from digit_sets import digit_images
from programs import veridical_in_process, veridical_on_terminal
from zoo_networks import PreResNet, randomised

from veridical.training import load_ensemble


def assert_rejected(*words: object) -> str:
    """The one sentence of bad input, with exit code 2."""
    done = veridical_in_process(*words)
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    return str(done.stderr)


def write_digits(path: Path) -> Path:
    images, labels = digit_images()
    np.savez(
        path,
        train_images=images[:300],
        train_labels=labels[:300],
        test_images=images[300:400],
        test_labels=labels[300:400],
        class_names=np.array(list("0123456789")),
    )
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_digits(tmp_path / "digits.npz")


QUICK = ("--arch", "resnet8", "--recipe", "one-cycle", "--epochs", "2", "--batch-size", "32", "--lr", "0.1")


def test_train_predict_and_evaluate(tmp_path: Path, data: Path) -> None:
    run, out = tmp_path / "run", tmp_path / "p.npz"
    train = ("train", "--dataset", "npz", "--data", data, *QUICK, "--members", 2, "--out", run)
    result = veridical_in_process(*train, "--limit", 128)
    assert result.returncode == 0, result.stderr
    assert "2 members in " in " ".join(result.stdout.split())
    assert load_ensemble(run).settings["train_images"] == 128
    result = veridical_in_process("predict", run, "--data", data, "--out", out)
    assert result.returncode == 0, result.stderr
    assert "2 members, 100 samples, 10 classes" in " ".join(result.stdout.split())
    with np.load(out, allow_pickle=False) as stored:
        assert sorted(stored) == ["class_names", "labels", "logits", "source_names"]
        assert stored["logits"].shape == (2, 100, 10)
        assert stored["source_names"].tolist() == ["member-000", "member-001"]
        np.testing.assert_allclose(stored["logits"], load_ensemble(run).predictions().values, rtol=1e-4, atol=1e-4)
    result = veridical_in_process("evaluate", run, "--json", "--no-intervals", "--no-floors")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["data"]["kind"] == "logits"
    assert assert_rejected(*train).startswith("Error: ")  # without the limit it is another run
    result = veridical_in_process("predict", run, "--data", data, "--split", "train", "--limit", 7, "--out", out)
    assert "2 members, 7 samples" in " ".join(result.stdout.split())
    settings = json.loads((run / "run.json").read_text())
    del settings["dataset"]
    (run / "run.json").write_text(json.dumps(settings))
    assert "the data set is not known; give --dataset" in assert_rejected("predict", run, "--data", data, "--out", out)


def test_train_and_predict_print_json_or_nothing(tmp_path: Path, data: Path) -> None:
    run, out = tmp_path / "run", tmp_path / "p.npz"
    train = ("train", "--dataset", "npz", "--data", data, *QUICK, "--members", 1, "--limit", 64, "-o", run)
    result = veridical_in_process(*train, "--json")
    assert json.loads(result.stdout) == {
        "schema": 1,
        "type": "training",
        "out": str(run),
        "members": [{"name": "member-000", "test_accuracy": load_ensemble(run).accuracies()[0]}],
    }
    assert "run 1, epoch 2/2: loss " in result.stderr
    assert "member-000 written, test accuracy" in result.stderr
    predict = ("predict", run, "--data", data, "-o", out)
    result = veridical_in_process(*predict, "--json", "-q")
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
        result = veridical_in_process(*words, "-q")
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_train_draws_a_bar_on_a_terminal(tmp_path: Path, data: Path) -> None:
    words = ("train", "--dataset", "npz", "--data", data, *QUICK, "--members", 1, "--out", tmp_path / "run")
    code, _, drawn = veridical_on_terminal(*words)
    assert code == 0
    assert b"run 1, epoch 2/2" in drawn
    assert b"training accuracy" in drawn
    assert b"0:00:0" in drawn
    assert b"member-000 written, test accuracy" in drawn


def test_data_directory_has_a_default(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    message = assert_rejected("train", "--dataset", "cifar100", "--arch", "wideresnet28x10", "--out", "run")
    assert message.startswith("Error: data does not exist; unpack cifar-100-python.tar.gz")
    monkeypatch.setenv("VERIDICAL_DATA", str(tmp_path))
    message = assert_rejected("train", "--dataset", "cifar100", "--out", "run")
    assert "has no cifar100 train files" in message


def test_predict_reads_checkpoints_of_the_zoo(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (6, 32, 32, 3), dtype=np.uint8)
    np.savez(tmp_path / "d.npz", test_images=images, test_labels=np.arange(6), class_names=np.array(list("abcdefghij")))
    networks, folder = [], tmp_path / "zoo"
    folder.mkdir()
    for i in (2, 10):
        torch.manual_seed(i)
        networks.append(randomised(PreResNet(110, 10), seed=i))
        torch.save({"state_dict": networks[-1].state_dict()}, folder / f"CIFAR10-PreResNet110-{i}.pt")
    out = tmp_path / "p.npz"
    words = ("predict", folder, "--dataset", "npz", "--data", tmp_path / "d.npz", "--arch", "preresnet110")
    result = veridical_in_process(*words, "--layout", "pytorch-ensembles", "--out", out)
    assert result.returncode == 0, result.stderr
    mean, std = torch.tensor([0.4914, 0.4822, 0.4465]), torch.tensor([0.2023, 0.1994, 0.2010])
    inputs = ((torch.from_numpy(images) / 255 - mean) / std).permute(0, 3, 1, 2)
    with torch.inference_mode():
        expected = torch.stack([network(inputs) for network in networks]).numpy()
    with np.load(out, allow_pickle=False) as stored:
        assert stored["source_names"].tolist() == ["CIFAR10-PreResNet110-2.pt", "CIFAR10-PreResNet110-10.pt"]
        np.testing.assert_allclose(stored["logits"], expected, rtol=1e-3, atol=1e-3)
    message = assert_rejected(*words, "--out", out)
    assert "has no tensor stem.weight" in message
    words = ("predict", folder, "--dataset", "npz", "--data", tmp_path / "d.npz", "--out", tmp_path / "q.npz")
    assert (
        "is not a training run of veridical (it has no run.json); give --arch and, if needed, --layout."
        in assert_rejected(*words)
    )
    assert "give --dataset, one of: cifar10" in assert_rejected("predict", folder, "--data", ".", "--out", out)
    assert not (tmp_path / "q.npz").exists()


def test_invalid_input_is_one_sentence_and_exit_code_two(tmp_path: Path, data: Path) -> None:
    run = tmp_path / "run"
    train = ("train", "--dataset", "cifar10", "--data", tmp_path / "nowhere", "--out", run)
    assert "nowhere does not exist; unpack cifar-10-python.tar.gz" in assert_rejected(*train)
    train = ("train", "--dataset", "npz", "--data", data, "--out", run)
    assert "resnet50 needs at least 64 x 64" in assert_rejected(*train, "--arch", "resnet50")
    assert "epochs is 0" in assert_rejected(*train, "--arch", "resnet8", "--epochs", 0)
    assert not run.exists()
    assert veridical_in_process(*train, *QUICK, "--members", 1, "--limit", 64, "--quiet").returncode == 0
    assert "does not end with .npz" in assert_rejected("predict", run, "--data", data, "--out", "p.csv")
    with np.load(data) as stored:
        arrays = dict(stored)
    other = tmp_path / "other.npz"
    np.savez(other, **(arrays | {"test_images": np.zeros((100, 20, 20, 3), np.uint8)}))
    predict = ("predict", run, "--data", other, "--out", tmp_path / "p.npz")
    assert "have shape (20, 20, 3), and the run was trained on [16, 16, 1]" in assert_rejected(*predict)
    np.savez(other, **(arrays | {"class_names": np.array(list("0123456789abc"))}))
    assert "has 13 classes, and the run was trained on 10" in assert_rejected(*predict)
    assert not (tmp_path / "p.npz").exists()


def test_missing_pytorch_names_the_extra(tmp_path: Path, data: Path) -> None:
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
        "Error: This needs torch, which is not installed; run, in a clone of veridical: pip install '.[torch]'"
    )
    assert not (tmp_path / "run").exists()


def test_help_lists_choices_without_importing_pytorch() -> None:
    program = (
        "import sys\n"
        "from programs import veridical_in_process\n"
        "for command in ('train', 'predict'):\n"
        "    done = veridical_in_process(command, '--help')\n"
        "    assert done.returncode == 0 and 'wideresnet28x10' in done.stdout, done\n"
        "    assert f'Examples:\\n    veridical {command} ' in done.stdout, done\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[1])


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A data file and the directory of a finished run on it."""
    folder = tmp_path_factory.mktemp("trained")
    data, run = write_digits(folder / "digits.npz"), folder / "run"
    words = ("train", "--dataset", "npz", "--data", data, *QUICK, "--members", 1, "--limit", 64, "-q", "--out", run)
    assert veridical_in_process(*words).returncode == 0
    return data, run


DEEP = "[" * 100_000
WRONG_VALUES = [None, True, 0, -1, 10**30, 1.5, "x", "", [], [[]], {}, {"mean": "x"}, {"mean": [0], "std": [None]}]


@pytest.mark.parametrize(
    "content", ["", "{", "null", "[]", "7", '"run"', DEEP, "\ud800", "{}"], ids=lambda c: repr(c[:4])
)
def test_damaged_run_json_is_one_sentence(trained: tuple[Path, Path], tmp_path: Path, content: str) -> None:
    data, run = trained
    damaged = tmp_path / "run"
    shutil.copytree(run, damaged)
    (damaged / "run.json").write_text(content, errors="surrogatepass")
    assert "run.json" in assert_rejected("predict", damaged, "--data", data, "--out", tmp_path / "p.npz")
    train = ("train", "--dataset", "npz", "--data", data, *QUICK, "--members", 1, "--limit", 64, "--out", damaged)
    assert str(damaged) in assert_rejected(*train)
    assert not (tmp_path / "p.npz").exists()


@pytest.mark.parametrize("key", ["arch", "n_classes", "image_shape", "normalisation", "class_names", "dataset"])
def test_wrong_values_in_run_json_are_one_sentence(trained: tuple[Path, Path], tmp_path: Path, key: str) -> None:
    data, run = trained
    damaged = tmp_path / "run"
    shutil.copytree(run, damaged)
    settings = json.loads((run / "run.json").read_text())
    for value in WRONG_VALUES:
        if value is None and key in ("class_names", "dataset"):  # as in a run without them
            continue
        (damaged / "run.json").write_text(json.dumps({**settings, key: value}))
        if (key, value) != ("class_names", []):  # predictions take their names from the data set
            assert_rejected("predict", damaged, "--data", data, "--out", tmp_path / "p.npz")
        train = ("train", "--dataset", "npz", "--data", data, *QUICK, "--members", 1, "--limit", 64, "--out", damaged)
        assert f"holds a run with {key}" in assert_rejected(*train) or key == "normalisation"
    assert not (tmp_path / "p.npz").exists()


@pytest.mark.parametrize(
    "content", ["", "[]", DEEP, '{"test_accuracy": "x"}', '{"test_accuracy": 7}', '{"test_accuracy": NaN}'],
    ids=lambda c: repr(c[:22]),
)  # fmt: skip
def test_damaged_member_record_is_one_sentence(trained: tuple[Path, Path], tmp_path: Path, content: str) -> None:
    data, run = trained
    damaged = tmp_path / "run"
    shutil.copytree(run, damaged)
    (damaged / "member-000.json").write_text(content)
    train = ("train", "--dataset", "npz", "--data", data, *QUICK, "--members", 1, "--limit", 64, "--out", damaged)
    assert "member-000.json" in assert_rejected(*train)


def test_predict_ignores_files_that_only_look_like_members(trained: tuple[Path, Path], tmp_path: Path) -> None:
    data, run = trained
    copied = tmp_path / "run"
    shutil.copytree(run, copied)
    for name in ("member-x.json", "member-.json", "member-1.json"):
        (copied / name).write_text("{}")
    assert veridical_in_process("predict", copied, "--data", data, "--out", tmp_path / "p.npz").returncode == 0
    (copied / "member-000.safetensors").write_bytes(b"damaged")
    assert "member-000.safetensors" in assert_rejected("predict", copied, "--data", data, "--out", tmp_path / "q.npz")
