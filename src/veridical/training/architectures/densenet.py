"""Densely connected networks in their CIFAR form (Huang, Liu, van der Maaten & Weinberger, 2017).

The bottleneck variant with compression 1/2 (DenseNet-BC); the stem is a 3x3 convolution without normalisation, since
every dense layer begins with its own.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from veridical.training.architectures.layers import ConvNet, NormRelu, conv


class DenseLayer(nn.Module):
    """Appends ``growth`` channels to its input."""

    def __init__(self, inputs: int, growth: int) -> None:
        super().__init__()
        inner = 4 * growth
        self.pre1, self.conv1 = NormRelu(inputs), conv(inputs, inner, 1)
        self.pre2, self.conv2 = NormRelu(inner), conv(inner, growth, 3)

    def forward(self, values: Tensor) -> Tensor:
        new = self.conv2(self.pre2(self.conv1(self.pre1(values))))
        return torch.cat([values, new], dim=1)


def _transition(inputs: int) -> nn.Sequential:
    """Half the channels at half the resolution."""
    return nn.Sequential(NormRelu(inputs), conv(inputs, inputs // 2, 1), nn.AvgPool2d(2))


def build(*, depths: tuple[int, ...], growth: int, n_classes: int, in_channels: int) -> ConvNet:
    """``depths[i]`` dense layers in stage i, a transition between stages."""
    stages, inputs = [], 2 * growth
    stem = conv(in_channels, inputs, 3)
    for stage, depth in enumerate(depths):
        layers: list[nn.Module] = []
        for _ in range(depth):
            layers.append(DenseLayer(inputs, growth))
            inputs += growth
        if stage + 1 < len(depths):
            layers.append(_transition(inputs))
            inputs //= 2
        stages.append(nn.Sequential(*layers))
    return ConvNet(stem, stages, inputs, n_classes, tail=NormRelu(inputs))
