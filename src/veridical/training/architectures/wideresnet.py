"""Wide residual networks (Zagoruyko & Komodakis, 2016).

Depth 6n + 4: n pre-activation blocks of two 3x3 convolutions in each of three stages, ``widen`` times as wide as the
thin network.  The pytorch-ensembles zoo gives its convolutions biases and strides in the second one; both forms are
here, because checkpoints of the one give wrong answers in the other.
"""

from __future__ import annotations

from torch import Tensor, nn

from veridical.training.architectures.layers import ConvNet, NormRelu, conv

_THIN_WIDTH = 16


class WideBlock(nn.Module):
    """x + F(x), normalisation and rectifier before each of F's two convolutions."""

    def __init__(self, inputs: int, outputs: int, strides: tuple[int, int], bias: bool) -> None:
        super().__init__()
        self.pre1, self.conv1 = NormRelu(inputs), conv(inputs, outputs, 3, stride=strides[0], bias=bias)
        self.pre2, self.conv2 = NormRelu(outputs), conv(outputs, outputs, 3, stride=strides[1], bias=bias)
        stride = max(strides)
        changes_shape = stride != 1 or inputs != outputs
        self.shortcut: nn.Module = (
            conv(inputs, outputs, 1, stride=stride, bias=bias) if changes_shape else nn.Identity()
        )

    def forward(self, values: Tensor) -> Tensor:
        residual = self.conv2(self.pre2(self.conv1(self.pre1(values))))
        result: Tensor = residual + self.shortcut(values)
        return result


def build(
    *,
    depth: int,
    widen: int,
    n_classes: int,
    in_channels: int,
    conv_bias: bool = False,
    stride_on_second: bool = False,
) -> ConvNet:
    """A network of ``depth`` = 6n + 4 layers."""
    stages, inputs = [], _THIN_WIDTH
    for stage in range(3):
        blocks = []
        for block in range((depth - 4) // 6):
            outputs = _THIN_WIDTH * widen * 2**stage
            stride = 2 if stage > 0 and block == 0 else 1
            strides = (1, stride) if stride_on_second else (stride, 1)
            blocks.append(WideBlock(inputs, outputs, strides, conv_bias))
            inputs = outputs
        stages.append(nn.Sequential(*blocks))
    stem = conv(in_channels, _THIN_WIDTH, 3, bias=conv_bias)
    return ConvNet(stem, stages, inputs, n_classes, tail=NormRelu(inputs))
