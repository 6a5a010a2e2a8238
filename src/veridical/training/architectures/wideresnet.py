"""Wide residual networks (Zagoruyko & Komodakis, 2016).

Depth 6n + 4: n pre-activation blocks of two 3x3 convolutions in each of three stages, ``widen`` times as wide as the
thin network.  In the pytorch-ensembles zoo convolutions have biases, and the second one of a block has the stride;
both forms are supported, because the weights of one give wrong results in the other.
"""

from __future__ import annotations

from torch import Tensor, nn

from veridical.training.architectures.layers import ConvNet, NormRelu, conv, residual_stages

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
    outputs = [_THIN_WIDTH * widen * 2**stage for stage in range(3)]

    def block(stage: int, inputs: int, stride: int) -> nn.Module:
        strides = (1, stride) if stride_on_second else (stride, 1)
        return WideBlock(inputs, outputs[stage], strides, conv_bias)

    stages = residual_stages(((depth - 4) // 6,) * 3, outputs, _THIN_WIDTH, block)
    stem = conv(in_channels, _THIN_WIDTH, 3, bias=conv_bias)
    return ConvNet(stem, stages, outputs[-1], n_classes, tail=NormRelu(outputs[-1]))
