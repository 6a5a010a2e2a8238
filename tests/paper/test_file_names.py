"""Ensembles recognised by the names of their files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veridical.paper import EnsembleName, recognise


@pytest.mark.parametrize(
    ("name", "dataset", "architecture", "ensemble"),
    [
        ("logits_CIFAR100-PreResNet110-deepens-100-1.pkl.npy", "CIFAR100", "PreResNet110", "deep"),
        ("logits_CIFAR10-PreResNet164-deepens-100-2.pkl.npy", "CIFAR10", "PreResNet164", "deep"),
        ("logits_CIFAR10-WideResNet28x10-deepens-100-1.pkl.npy", "CIFAR10", "WideResNet28x10", "deep"),
        ("logits_ImageNet-ResNet50-deepens-50-1.pkl.npy", "ImageNet", "ResNet50", "deep"),
        ("logits_ImageNet-ResNet50-sse-50-1.pkl.npy", "ImageNet", "ResNet50", "snapshot"),
        ("CIFAR100-ResNet18-snapshot-200.npz", "CIFAR100", "ResNet18", "snapshot"),
        ("some/where/logits_cifar10-densenet121-sse-200-1.npy", "CIFAR10", "DenseNet121", "snapshot"),
        ("cifar100-resnext29-sse.npy", "CIFAR100", "ResNeXt29", "snapshot"),
    ],
)
def test_recognise_reads_names_like_the_authors(name, dataset, architecture, ensemble):
    assert recognise(name) == EnsembleName(dataset, architecture, ensemble)
    assert recognise(name).recognised


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("my_models.npz", "my_models"),
        ("run/predictions.npy", "predictions"),
        ("logits_CIFAR100.npy", "logits_CIFAR100"),
        ("CIFAR100-PreResNet110-deepens-final.npy", "CIFAR100-PreResNet110-deepens-final"),
        ("CIFAR100-AlexNet-deepens-10-1.npy", "CIFAR100-AlexNet-deepens-10-1"),
        ("SVHN-ResNet18-sse-10.npy", "SVHN-ResNet18-sse-10"),
        (".npy", ".npy"),
    ],
)
def test_recognise_keeps_other_names(name, shown):
    assert str(recognise(name)) == shown
    assert not recognise(name).recognised


def test_mean_of_snapshots_is_called_se():
    assert recognise("ImageNet-ResNet50-sse-50-1.npy").mean_method == "SE"
    assert recognise("ImageNet-ResNet50-deepens-50-1.npy").mean_method == "DE"
    assert recognise("mine.npy").mean_method == "DE"


@given(st.text(st.characters(exclude_characters="/\x00"), min_size=1, max_size=60))
def test_recognise_accepts_any_name(name):
    assert recognise(name).dataset


def test_recognise_resolves_dots(tmp_path, monkeypatch):
    inside = tmp_path / "my_models" / "members"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    assert recognise(".").dataset == "members"
    assert recognise("..").dataset == "my_models"
    assert recognise("/").dataset == "/"
