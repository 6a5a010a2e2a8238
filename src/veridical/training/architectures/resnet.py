"""Residual networks (He, Zhang, Ren & Sun, 2016, "Deep Residual Learning for Image Recognition"), and ResNeXt.

In their CIFAR form, with a 3x3 stem that keeps the resolution; with ``imagenet``, a 7x7 stem and pooling.  The stride
of a bottleneck is in its 3x3 convolution.  With ``groups`` they are ResNeXt (Xie, Girshick, Dollár, Tu & He, 2017,
"Aggregated Residual Transformations").
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from veridical.training.architectures.layers import EXPANSION, ConvNet, conv, residual_stages


class Residual(nn.Module):
    """relu(F(x) + x), a rectifier between F's convolutions, each with normalisation.

    Where the shape changes, the shortcut is a 1x1 convolution.
    """

    def __init__(self, stride: int, *convolutions: nn.Conv2d) -> None:
        super().__init__()
        inputs, outputs = convolutions[0].in_channels, convolutions[-1].out_channels
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(conv(inputs, outputs, 1, stride=stride), nn.BatchNorm2d(outputs))
        for number, convolution in enumerate(convolutions, 1):
            self.add_module(f"conv{number}", convolution)
            self.add_module(f"norm{number}", nn.BatchNorm2d(convolution.out_channels))
        self._last = f"norm{len(convolutions)}"

    def forward(self, values: Tensor) -> Tensor:
        residual = values
        for name, layer in self.named_children():
            if name != "shortcut":
                residual = layer(residual)
                if name.startswith("norm") and name != self._last:
                    residual = torch.relu(residual)
        return torch.relu(residual + self.shortcut(values))


def _stem(in_channels: int, width: int, imagenet: bool) -> nn.Sequential:
    """The resolution of the images, or a quarter of it."""
    if not imagenet:
        return nn.Sequential(conv(in_channels, width, 3), nn.BatchNorm2d(width), nn.ReLU())
    return nn.Sequential(
        conv(in_channels, width, 7, stride=2), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, stride=2, padding=1)
    )


def build(
    *,
    depths: tuple[int, ...],
    width: int,
    n_classes: int,
    in_channels: int,
    inner: int = 0,
    groups: int = 1,
    imagenet: bool = False,
) -> ConvNet:
    """``depths[i]`` blocks in stage i, whose widths are 2^i times those of the first.

    Blocks are two 3x3 convolutions of ``width`` channels, or bottlenecks around one of ``inner`` channels.
    """
    outputs = [width * (EXPANSION if inner else 1) * 2**stage for stage in range(len(depths))]

    def block(stage: int, inputs: int, stride: int) -> nn.Module:
        last, middle = outputs[stage], inner * 2**stage
        if not inner:
            return Residual(stride, conv(inputs, last, 3, stride=stride), conv(last, last, 3))
        wide = conv(middle, middle, 3, stride=stride, groups=groups)
        return Residual(stride, conv(inputs, middle, 1), wide, conv(middle, last, 1))

    stages = residual_stages(depths, outputs, width, block)
    return ConvNet(_stem(in_channels, width, imagenet), stages, outputs[-1], n_classes)
