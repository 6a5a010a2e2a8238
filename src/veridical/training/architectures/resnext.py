"""ResNeXt in its CIFAR form (Xie, Girshick, Dollár, Tu & He, 2017, "Aggregated Residual Transformations")."""

from __future__ import annotations

from torch import nn

from veridical.training.architectures.layers import ConvNet, residual_stages
from veridical.training.architectures.resnet import Bottleneck, cifar_stem

_STEM_WIDTH = 64
_WIDTHS = (256, 512, 1024)


def build(*, blocks: int, cardinality: int, group_width: int, n_classes: int, in_channels: int) -> ConvNet:
    """Three stages of ``blocks`` bottlenecks, ``cardinality`` groups of ``group_width`` channels in the first."""

    def block(stage: int, inputs: int, stride: int) -> nn.Module:
        inner = cardinality * group_width * 2**stage
        return Bottleneck(inputs, inner, _WIDTHS[stage], stride, groups=cardinality)

    stages = residual_stages((blocks,) * 3, _WIDTHS, _STEM_WIDTH, block)
    return ConvNet(cifar_stem(in_channels, _STEM_WIDTH), stages, _WIDTHS[-1], n_classes)
