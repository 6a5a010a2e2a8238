"""ResNeXt in its CIFAR form (Xie, Girshick, Dollár, Tu & He, 2017, "Aggregated Residual Transformations")."""

from __future__ import annotations

from torch import nn

from veridical.training.architectures.layers import ConvNet
from veridical.training.architectures.resnet import Bottleneck, cifar_stem

_STEM_WIDTH = 64
_STAGES = 3


def build(*, blocks: int, cardinality: int, group_width: int, n_classes: int, in_channels: int) -> ConvNet:
    """Three stages of ``blocks`` bottlenecks, ``cardinality`` groups of ``group_width`` channels in the first."""
    stages, inputs = [], _STEM_WIDTH
    for stage in range(_STAGES):
        inner = cardinality * group_width * 2**stage
        outputs = 256 * 2**stage
        layers: list[nn.Module] = []
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            layers.append(Bottleneck(inputs, inner, outputs, stride, groups=cardinality))
            inputs = outputs
        stages.append(nn.Sequential(*layers))
    return ConvNet(cifar_stem(in_channels, _STEM_WIDTH), stages, inputs, n_classes)
