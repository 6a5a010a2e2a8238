"""Pre-activation residual networks of bottlenecks (He, Zhang, Ren & Sun, 2016, "Identity Mappings").

Depth 9n + 2: n bottlenecks in each of three stages.  As in the pytorch-ensembles zoo, depth 110 is made of
bottlenecks too (n = 12), and a shortcut that changes the shape is a 1x1 convolution of the block's input, without
normalisation.
"""

from __future__ import annotations

from torch import Tensor, nn

from veridical.training.architectures.layers import ConvNet, NormRelu, conv, residual_stages
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
    inner = [_WIDTH * 2**stage for stage in range(3)]
    outputs = [width * EXPANSION for width in inner]
    stages = residual_stages(
        ((depth - 2) // 9,) * 3,
        outputs,
        _WIDTH,
        lambda stage, inputs, stride: PreBottleneck(inputs, inner[stage], stride),
    )
    return ConvNet(conv(in_channels, _WIDTH, 3), stages, outputs[-1], n_classes, tail=NormRelu(outputs[-1]))
