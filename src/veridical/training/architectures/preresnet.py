"""Pre-activation residual networks of bottlenecks (He, Zhang, Ren & Sun, 2016, "Identity Mappings").

Depth 9n + 2: n bottlenecks in each of three stages.  As in the pytorch-ensembles zoo, depth 110 is made of
bottlenecks too (n = 12), and a shortcut that changes the shape is a bare 1x1 convolution of the block's input.
"""

from __future__ import annotations

from torch import Tensor, nn

from veridical.training.architectures.layers import ConvNet, NormRelu, conv
from veridical.training.architectures.resnet import EXPANSION

_WIDTH = 16


class PreBottleneck(nn.Module):
    """x + F(x), normalisation and rectifier before each of F's three convolutions."""

    def __init__(self, inputs: int, inner: int, stride: int) -> None:
        super().__init__()
        outputs = inner * EXPANSION
        self.pre1, self.conv1 = NormRelu(inputs), conv(inputs, inner, 1)
        self.pre2, self.conv2 = NormRelu(inner), conv(inner, inner, 3, stride=stride)
        self.pre3, self.conv3 = NormRelu(inner), conv(inner, outputs, 1)
        changes_shape = stride != 1 or inputs != outputs
        self.shortcut: nn.Module = conv(inputs, outputs, 1, stride=stride) if changes_shape else nn.Identity()

    def forward(self, values: Tensor) -> Tensor:
        residual = self.conv1(self.pre1(values))
        residual = self.conv2(self.pre2(residual))
        residual = self.conv3(self.pre3(residual))
        result: Tensor = residual + self.shortcut(values)
        return result


def build(*, depth: int, n_classes: int, in_channels: int) -> ConvNet:
    """A network of ``depth`` = 9n + 2 layers."""
    stages, inputs = [], _WIDTH
    for stage in range(3):
        blocks = []
        for block in range((depth - 2) // 9):
            inner = _WIDTH * 2**stage
            blocks.append(PreBottleneck(inputs, inner, stride=2 if stage > 0 and block == 0 else 1))
            inputs = inner * EXPANSION
        stages.append(nn.Sequential(*blocks))
    return ConvNet(conv(in_channels, _WIDTH, 3), stages, inputs, n_classes, tail=NormRelu(inputs))
