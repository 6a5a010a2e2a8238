"""Architectures by name; one file per family.

An entry names the family that builds the network, and its options, so that listing the names does not import PyTorch.
To add an architecture, add an entry; to add a family, add a file with a ``build`` function.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from veridical._lazy import require
from veridical.errors import ShapeError
from veridical.predictions.validation import check_choice, check_flag, check_integer
from veridical.training.data.images import MOST_CLASSES

if TYPE_CHECKING:
    from veridical.training.architectures.layers import ConvNet


@dataclass(frozen=True)
class Architecture:
    """How to build one network, and the smallest image that it can process.

    Attributes
    ----------
    family : str
        The module of this package whose ``build`` returns the network.
    options : dict
        Arguments of ``build``.
    smallest_image : int
        Side of the smallest image that has a feature map after all strides.
    zoo_options : dict
        Options that differ in the form of the pytorch-ensembles zoo.
    """

    family: str
    options: dict[str, Any]
    smallest_image: int = 16
    zoo_options: dict[str, Any] = field(default_factory=dict)


#: Limit to the channels of images, of which colour has three.
_MOST_CHANNELS = 1024
ARCHITECTURES: dict[str, Architecture] = {
    "resnet8": Architecture("resnet", {"depths": (1, 1, 1), "width": 16}),
    "resnet18": Architecture("resnet", {"depths": (2, 2, 2, 2), "width": 64}),
    "resnet50": Architecture(
        "resnet", {"depths": (3, 4, 6, 3), "width": 64, "inner": 64, "imagenet": True}, smallest_image=64
    ),
    "resnext29": Architecture("resnet", {"depths": (3, 3, 3), "width": 64, "inner": 128, "groups": 32}),
    "densenet121": Architecture("densenet", {"depths": (6, 12, 24, 16), "growth": 32}),
    "preresnet110": Architecture("preactivation", {"depth": 110}),
    "preresnet164": Architecture("preactivation", {"depth": 164}),
    "wideresnet28x10": Architecture(
        "preactivation", {"depth": 28, "widen": 10}, zoo_options={"conv_bias": True, "stride_on_second": True}
    ),
}


def build(arch: str, n_classes: int, *, in_channels: int = 3, zoo_form: bool = False) -> ConvNet:
    """A network whose initial weights come from PyTorch's global generator.

    Parameters
    ----------
    arch : str
        A name in ``ARCHITECTURES``.
    n_classes : int
        Number of outputs L.
    in_channels : int
        1 for grey images, 3 for colour.
    zoo_form : bool
        The form of the pytorch-ensembles zoo, which differs in biases and strides of wide networks.

    Returns
    -------
    torch.nn.Module
        From images (B, C, H, W) to logits (B, L).

    Examples
    --------
    >>> from veridical.training import build
    >>> sum(weights.numel() for weights in build("resnet8", 10).parameters())
    78042
    """
    require("torch", "torch")
    architecture = ARCHITECTURES[check_choice(arch, ARCHITECTURES, "architecture")]
    check_integer(n_classes, "n_classes", 2, MOST_CLASSES)
    check_integer(in_channels, "in_channels", 1, _MOST_CHANNELS)
    check_flag(zoo_form, "zoo_form")
    family = importlib.import_module(f"{__name__}.{architecture.family}")
    options = {**architecture.options, **(architecture.zoo_options if zoo_form else {})}
    network: ConvNet = family.build(n_classes=n_classes, in_channels=in_channels, **options)
    return network


def check_image_shape(arch: str, shape: tuple[int, int, int]) -> None:
    """Reject images (H, W, C) that the architecture cannot process."""
    height, width, channels = shape
    smallest = ARCHITECTURES[check_choice(arch, ARCHITECTURES, "architecture")].smallest_image
    if channels not in (1, 3):
        raise ShapeError(f"the images have {channels} channels (shape {shape}); {arch} needs 1 (grey) or 3 (colour).")
    if min(height, width) < smallest:
        raise ShapeError(
            f"the images are {height} x {width}; {arch} needs at least {smallest} x {smallest}: scale them up, or "
            "choose a smaller architecture."
        )
