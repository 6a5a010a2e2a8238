"""Networks: published parameter counts, shapes, and images that do not fit."""

from __future__ import annotations

import pytest
import torch

from veridical.errors import ParameterError, ShapeError, UnknownNameError
from veridical.training.architectures import ARCHITECTURES, build, check_image_shape

# (architecture, classes, parameters) and where the figure is published.
PUBLISHED = [
    # Three stages of one block, width 16, as in the ensemble that ships with the package ("78 thousand parameters"):
    # counted by hand, 464 + 4,672 + 14,528 + 57,728 + 650.
    ("resnet8", 10, 78_042),
    # kuangliu/pytorch-cifar's ResNet18, as summaries of it print (torchvision's 11,689,512 less the stem and head).
    ("resnet18", 10, 11_173_962),
    # The same repository's DenseNet121 (torchvision's 7,978,856 less stem, its normalisation, and head).
    ("densenet121", 10, 6_956_298),
    # imgclsmob's table of CIFAR-10 models: ResNeXt-29 (32x4d).
    ("resnext29", 10, 4_775_754),
    # imgclsmob: PreResNet-164(BN) 1,703,258 and PreResNet-272(BN) 2,816,090; He et al. (2016) say 1.7 M for 164.
    ("preresnet164", 10, 1_703_258),
    # Depth 110 of bottlenecks lies on the line through those two: each 9 layers add 92,736.
    ("preresnet110", 10, 1_703_258 - 6 * (2_816_090 - 1_703_258) // 12),
    # imgclsmob: WRN-28-10; Zagoruyko & Komodakis (2016) say 36.5 M.
    ("wideresnet28x10", 10, 36_479_194),
    # torchvision's resnet50 (He et al. 2016: 25.5 M).
    ("resnet50", 1000, 25_557_032),
]


def n_parameters(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(("arch", "n_classes", "published"), PUBLISHED)
def test_parameter_counts_are_the_published_ones(arch: str, n_classes: int, published: int) -> None:
    assert n_parameters(build(arch, n_classes)) == published


def test_every_architecture_has_a_published_count() -> None:
    assert {arch for arch, _, _ in PUBLISHED} == set(ARCHITECTURES)


@pytest.mark.parametrize("arch", ["preresnet110", "resnet18", "densenet121"])
def test_number_of_classes_changes_only_the_last_layer(arch: str) -> None:
    ten, hundred = build(arch, 10), build(arch, 100)
    assert n_parameters(hundred) - n_parameters(ten) == 90 * (ten.classifier.in_features + 1)


def test_wide_network_of_the_zoo_has_biases() -> None:
    # One per output channel: 16 of the stem, 2 x 4 blocks of 160, 320 and 640, and three shortcuts.
    biases = 16 + 8 * (160 + 320 + 640) + (160 + 320 + 640)
    assert n_parameters(build("wideresnet28x10", 10, zoo_form=True)) == 36_479_194 + biases


@pytest.mark.parametrize("arch", sorted(set(ARCHITECTURES) - {"wideresnet28x10"}))
@pytest.mark.parametrize("channels", [1, 3])
def test_networks_map_images_to_logits(arch: str, channels: int) -> None:
    model = build(arch, 7, in_channels=channels).eval()
    side = ARCHITECTURES[arch].smallest_image
    with torch.inference_mode():
        logits = model(torch.randn(2, channels, side, side))
    assert logits.shape == (2, 7)
    assert torch.isfinite(logits).all()


@pytest.mark.parametrize("arch", sorted(set(ARCHITECTURES) - {"wideresnet28x10"}))
def test_every_parameter_has_a_gradient(arch: str) -> None:
    torch.manual_seed(0)
    model = build(arch, 5).to(memory_format=torch.channels_last)
    side = ARCHITECTURES[arch].smallest_image
    logits = model(torch.randn(4, 3, side, side))
    torch.nn.functional.cross_entropy(logits, torch.arange(4)).backward()
    without_gradient = [
        name for name, parameter in model.named_parameters() if parameter.grad is None or not parameter.grad.any()
    ]
    assert without_gradient == []


def test_logits_are_float32_under_autocast() -> None:
    model = build("resnet8", 10).eval()
    images = torch.randn(4, 3, 32, 32)
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        assert model.stem(images).dtype == torch.bfloat16
        logits = model(images)
    assert logits.dtype == torch.float32
    assert (logits != logits.bfloat16().float()).any()  # more digits than bfloat16 has


@pytest.mark.parametrize(
    ("arch", "shape", "message"),
    [
        ("resnet18", (8, 8, 3), "the images are 8 x 8; resnet18 needs at least 16 x 16"),
        ("resnet50", (32, 32, 3), "the images are 32 x 32; resnet50 needs at least 64 x 64"),
        ("resnet8", (32, 32, 4), r"4 channels \(shape \(32, 32, 4\)\); resnet8 needs 1"),
    ],
)
def test_check_image_shape_rejects_images_that_do_not_fit(arch: str, shape: tuple[int, int, int], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        check_image_shape(arch, shape)


def test_build_rejects_unknown_names_and_too_few_classes() -> None:
    with pytest.raises(
        UnknownNameError, match=r"'resnet9' is unknown \(did you mean .*; choose one of: resnet8, resnet18"
    ):
        build("resnet9", 10)
    with pytest.raises(ParameterError, match="n_classes is 1; give a whole number from 2 to 100,000"):
        build("resnet8", 1)
