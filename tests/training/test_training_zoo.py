"""Checkpoints from elsewhere: names of tensors, wrappers, and that the network computes the same."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest
import torch
from zoo_networks import ZOO, PreResNet, randomised

from veridical.errors import (
    CheckpointError,
    CorruptFileError,
    DatasetError,
    FileFormatError,
    ParameterError,
    UnknownNameError,
)
from veridical.training import build
from veridical.training.checkpoints import save_tensors
from veridical.training.zoo import find_checkpoints, load_checkpoint, load_checkpoints, our_name, zoo_normalisation


@pytest.mark.parametrize("arch", sorted(ZOO))
def test_zoo_network_computes_the_same(tmp_path: Path, arch: str) -> None:
    torch.manual_seed(1)
    theirs = randomised(ZOO[arch](10), seed=2)
    parallel = arch == "resnet50"  # trained on several devices, and saved with what training needed
    state = {("module." if parallel else "") + name: tensor for name, tensor in theirs.state_dict().items()}
    wrapped = {
        "epoch": 90,
        "arch": arch,
        "state_dict": state,
        "best_acc1": torch.tensor(76.1),
        "optimizer": {"lr": 0.1},
    }
    path = tmp_path / "net.pt"
    torch.save(wrapped if parallel else state, path)

    ours = load_checkpoint(path, arch, 10, layout="pytorch-ensembles")

    side = 64 if arch == "resnet50" else 32
    images = torch.randn(2, 3, side, side)
    with torch.inference_mode():
        expected, logits = theirs(images), ours(images)
    assert expected.std() > 0.01  # or the comparison would show nothing
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max()))
    assert not ours.training


@pytest.mark.parametrize("wrapper", ["state_dict", "model_state", "model_state_dict", "model", None])
def test_state_dict_may_be_wrapped(tmp_path: Path, wrapper: str | None) -> None:
    state = PreResNet(110, 10).state_dict()
    path = tmp_path / "net.pth"
    torch.save({wrapper: state, "epoch": 3} if wrapper else state, path)
    model = load_checkpoint(path, "preresnet110", 10, layout="pytorch-ensembles")
    assert torch.equal(model.stem.weight, state["conv1.weight"])  # type: ignore[union-attr]


def test_batch_counts_may_be_missing(tmp_path: Path) -> None:
    state = {n: t for n, t in PreResNet(110, 10).state_dict().items() if not n.endswith("num_batches_tracked")}
    torch.save(state, tmp_path / "old.pt")
    load_checkpoint(tmp_path / "old.pt", "preresnet110", 10, layout="pytorch-ensembles")


@pytest.mark.parametrize(
    ("arch", "theirs", "ours"),
    [
        ("preresnet110", "bn.running_mean", "tail.norm.running_mean"),
        ("preresnet110", "layer3.0.downsample.0.weight", "stages.2.0.shortcut.weight"),
        ("wideresnet28x10", "bn1.weight", "tail.norm.weight"),
        ("wideresnet28x10", "layer1.2.bn1.weight", "stages.0.2.pre1.norm.weight"),
        ("resnet50", "module.bn1.bias", "stem.1.bias"),
        ("resnet50", "module.layer4.2.bn3.bias", "stages.3.2.norm3.bias"),
    ],
)
def test_our_name_translates_names_of_the_zoo(arch: str, theirs: str, ours: str) -> None:
    assert our_name(theirs, arch) == ours


def test_tensor_of_another_shape_is_named(tmp_path: Path) -> None:
    path = tmp_path / "net.pt"
    torch.save(PreResNet(110, 100).state_dict(), path)
    message = r"net\.pt the tensor classifier\.weight has shape \(100, 256\), and the network needs \(10, 256\)"
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(path, "preresnet110", 10, layout="pytorch-ensembles")


def test_first_tensor_that_differs_is_named(tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    save_tensors(path, build("resnet8", 10).state_dict(), {})
    with pytest.raises(CheckpointError, match=r"tensor stem\.0\.weight has shape \(16, 3, 3, 3\), .* \(64, 3, 3, 3\)"):
        load_checkpoint(path, "resnet18", 10)


def test_missing_and_unknown_tensors_are_named(tmp_path: Path) -> None:
    path = tmp_path / "net.pt"
    state = PreResNet(110, 10).state_dict()
    torch.save({**state, "extra.weight": torch.zeros(1)}, path)
    with pytest.raises(CheckpointError, match=r"has a tensor extra\.weight that the network lacks"):
        load_checkpoint(path, "preresnet110", 10, layout="pytorch-ensembles")
    del state["layer2.0.conv1.weight"]
    torch.save(state, path)
    with pytest.raises(CheckpointError, match=r"has no tensor stages\.1\.0\.conv1\.weight"):
        load_checkpoint(path, "preresnet110", 10, layout="pytorch-ensembles")
    torch.save([1, 2], path)
    with pytest.raises(CheckpointError, match="is not a state dict"):
        load_checkpoint(path, "preresnet110", 10, layout="pytorch-ensembles")


class _Touch:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (open, (str(self.path), "w"))


def test_pickled_code_is_not_run(tmp_path: Path) -> None:
    for is_zip in (True, False):
        content = {"state_dict": _Touch(tmp_path / "ran")}
        torch.save(content, tmp_path / "net.pt", _use_new_zipfile_serialization=is_zip)
        with pytest.raises(FileFormatError, match=r"net\.pt cannot be read as tensors .* could run programs"):
            load_checkpoint(tmp_path / "net.pt", "resnet50", 10, layout="pytorch-ensembles")
        assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["net.pt", "net.safetensors"])
@pytest.mark.parametrize("content", [b"", b"nonsense", pickle.dumps([1])[:-2]])
def test_damaged_checkpoints_are_rejected(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CorruptFileError, match="cannot be read as" if content else "is empty"):
        load_checkpoint(tmp_path / name, "resnet8", 10)


@pytest.mark.parametrize("name", ["net.pt", "net.safetensors"])
def test_pipes_are_not_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(FileFormatError, match="is not a regular file"):
        load_checkpoint(tmp_path / name, "resnet8", 10)
    with pytest.raises(DatasetError, match="has no checkpoints"):
        find_checkpoints(tmp_path)


def test_tensors_that_claim_much_are_rejected(tmp_path: Path) -> None:
    torch.save({"stem.weight": torch.zeros(1).expand(10_000, 10_000, 2_000)}, tmp_path / "net.pt")
    with pytest.raises(CorruptFileError, match="claims 800,000,000,000 bytes of content"):
        load_checkpoint(tmp_path / "net.pt", "resnet8", 10)


def test_files_of_old_versions_are_read(tmp_path: Path) -> None:
    state = build("resnet8", 10).state_dict()
    torch.save(state, tmp_path / "net.pt", _use_new_zipfile_serialization=False)
    model = load_checkpoint(tmp_path / "net.pt", "resnet8", 10)
    assert all(torch.equal(tensor, state[name]) for name, tensor in model.state_dict().items())


def test_truncated_safetensors_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    save_tensors(path, build("resnet8", 10).state_dict(), {})
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(CorruptFileError, match="may be truncated"):
        load_checkpoint(path, "resnet8", 10)


def test_load_checkpoint_rejects_unknown_layouts_and_architectures(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="choose one of: veridical, pytorch-ensembles"):
        load_checkpoint(tmp_path, "resnet8", 10, layout="timm")
    with pytest.raises(ParameterError, match="the pytorch-ensembles zoo has no resnet8; it has: preresnet110"):
        load_checkpoint(tmp_path, "resnet8", 10, layout="pytorch-ensembles")


def test_find_checkpoints_sorts_by_number(tmp_path: Path) -> None:
    for name in ("net-10.pt", "net-9.pt", "b.pth", "notes.txt", "a.safetensors", ".net-1.pt.x", "t.state.safetensors"):
        (tmp_path / name).touch()
    assert [p.name for p in find_checkpoints(tmp_path)] == ["a.safetensors", "b.pth", "net-9.pt", "net-10.pt"]
    assert find_checkpoints(tmp_path / "b.pth") == [tmp_path / "b.pth"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match=r"has no checkpoints; put files there that end with \.safetensors"):
        find_checkpoints(tmp_path / "empty")


def test_load_checkpoints_yields_one_network_at_a_time(tmp_path: Path) -> None:
    for seed in range(3):
        torch.manual_seed(seed)
        save_tensors(tmp_path / f"{seed}.safetensors", build("resnet8", 4).state_dict(), {})
    models = load_checkpoints(find_checkpoints(tmp_path), "resnet8", 4)
    first = next(models).classifier.weight  # type: ignore[union-attr]
    second = next(models).classifier.weight  # type: ignore[union-attr]
    assert not torch.equal(first, second)  # type: ignore[arg-type]


def test_zoo_normalisation_depends_on_the_method() -> None:
    plain = [Path("CIFAR100-PreResNet110-3.pt")]
    assert zoo_normalisation("preresnet110", "veridical", plain) is None
    assert zoo_normalisation("resnet50", "pytorch-ensembles", plain) is None  # ImageNet's
    for name, mean in [
        ("CIFAR100-WideResNet28x10-3.pt", 0.4914),
        ("CIFAR10-SSE_WideResNet28x10_run_1-3.pt", 0.5071),
        ("CIFAR10-cSGLD_WideResNet28x10_run_1-3.pt", 0.5071),
        ("CIFAR10-FGE_WideResNet28x10_run_1-3.pt", 0.485),
    ]:
        normalisation = zoo_normalisation("wideresnet28x10", "pytorch-ensembles", [Path("zoo") / name])
        assert normalisation is not None
        assert normalisation.mean[0] == mean
    with pytest.raises(ParameterError, match=r"different methods \(SSE, plain\), .*; predict each method separately"):
        zoo_normalisation("preresnet110", "pytorch-ensembles", [*plain, Path("CIFAR10-SSE_PreResNet110-1.pt")])


def test_load_checkpoint_preserves_the_global_generator(tmp_path: Path) -> None:
    save_tensors(tmp_path / "net.safetensors", build("resnet8", 4).state_dict(), {})
    before = torch.get_rng_state()
    load_checkpoint(tmp_path / "net.safetensors", "resnet8", 4)
    assert torch.equal(torch.get_rng_state(), before)
