"""Residual networks (He, Zhang, Ren & Sun, 2016, "Deep Residual Learning for Image Recognition").

resnet8 and resnet18 in their CIFAR form (a 3x3 stem that keeps the resolution), resnet50 in its ImageNet form (a
7x7 stem and pooling, the stride of a bottleneck in its 3x3 convolution).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from veridical.training.architectures.layers import ConvNet, conv, residual_stages

#: A bottleneck block's output is this many times as wide as its 3x3 convolution.
EXPANSION = 4


class Residual(nn.Module):
    """relu(F(x) + x), with a 1x1 convolution on the shortcut where the shape changes; subclasses write F."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(conv(inputs, outputs, 1, stride=stride), nn.BatchNorm2d(outputs))

    def residual(self, values: Tensor) -> Tensor:
        """F(x)."""
        raise NotImplementedError

    def forward(self, values: Tensor) -> Tensor:
        return torch.relu(self.residual(values) + self.shortcut(values))


class BasicBlock(Residual):
    """Two 3x3 convolutions."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__(inputs, outputs, stride)
        self.conv1, self.norm1 = conv(inputs, outputs, 3, stride=stride), nn.BatchNorm2d(outputs)
        self.conv2, self.norm2 = conv(outputs, outputs, 3), nn.BatchNorm2d(outputs)

    def residual(self, values: Tensor) -> Tensor:
        values = torch.relu(self.norm1(self.conv1(values)))
        result: Tensor = self.norm2(self.conv2(values))
        return result


class Bottleneck(Residual):
    """1x1 down to ``inner`` channels, 3x3 (in ``groups``), 1x1 up."""

    def __init__(self, inputs: int, inner: int, outputs: int, stride: int, groups: int = 1) -> None:
        super().__init__(inputs, outputs, stride)
        self.conv1, self.norm1 = conv(inputs, inner, 1), nn.BatchNorm2d(inner)
        self.conv2, self.norm2 = conv(inner, inner, 3, stride=stride, groups=groups), nn.BatchNorm2d(inner)
        self.conv3, self.norm3 = conv(inner, outputs, 1), nn.BatchNorm2d(outputs)

    def residual(self, values: Tensor) -> Tensor:
        values = torch.relu(self.norm1(self.conv1(values)))
        values = torch.relu(self.norm2(self.conv2(values)))
        result: Tensor = self.norm3(self.conv3(values))
        return result


def cifar_stem(in_channels: int, width: int) -> nn.Sequential:
    """A 3x3 convolution that keeps the resolution."""
    return nn.Sequential(conv(in_channels, width, 3), nn.BatchNorm2d(width), nn.ReLU())


def imagenet_stem(in_channels: int, width: int) -> nn.Sequential:
    """A 7x7 convolution and pooling: a quarter of the resolution."""
    return nn.Sequential(
        conv(in_channels, width, 7, stride=2), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, stride=2, padding=1)
    )


def build(
    *,
    depths: tuple[int, ...],
    width: int,
    n_classes: int,
    in_channels: int,
    bottleneck: bool = False,
    imagenet: bool = False,
) -> ConvNet:
    """``depths[i]`` blocks in stage i, whose width is ``width`` times 2^i."""
    inner = [width * 2**stage for stage in range(len(depths))]
    outputs = [width * (EXPANSION if bottleneck else 1) for width in inner]

    def block(stage: int, inputs: int, stride: int) -> nn.Module:
        if bottleneck:
            return Bottleneck(inputs, inner[stage], outputs[stage], stride)
        return BasicBlock(inputs, outputs[stage], stride)

    stages = residual_stages(depths, outputs, width, block)
    stem = imagenet_stem(in_channels, width) if imagenet else cifar_stem(in_channels, width)
    return ConvNet(stem, stages, outputs[-1], n_classes)
