"""Residual networks whose convolutions come after normalisation and rectifier, in three stages.

``bottleneck`` (He, Zhang, Ren & Sun, 2016, "Identity Mappings"), depth 9n + 2: n blocks of a 1x1, a 3x3 and a 1x1
convolution in each stage.  As in the pytorch-ensembles zoo, depth 110 is made of bottlenecks too (n = 12), and a
shortcut that changes the shape is a 1x1 convolution of the block's input, without normalisation.

``widen`` (Zagoruyko & Komodakis, 2016), depth 6n + 4: n blocks of two 3x3 convolutions, ``widen`` times as wide as the
thin network.  In the zoo convolutions have biases, and the second one of a block has the stride; both forms are
supported, because the weights of one give wrong results in the other.
"""

from __future__ import annotations

from torch import Tensor, nn

from veridical.training.architectures.layers import EXPANSION, ConvNet, NormRelu, conv, residual_stages

_WIDTH = 16


class PreActivation(nn.Module):
    """x + F(x), normalisation and rectifier before each of F's convolutions."""

    def __init__(self, stride: int, *convolutions: nn.Conv2d) -> None:
        super().__init__()
        for number, convolution in enumerate(convolutions, 1):
            self.add_module(f"pre{number}", NormRelu(convolution.in_channels))
            self.add_module(f"conv{number}", convolution)
        inputs, outputs = convolutions[0].in_channels, convolutions[-1].out_channels
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = conv(inputs, outputs, 1, stride=stride, bias=convolutions[0].bias is not None)

    def forward(self, values: Tensor) -> Tensor:
        residual = values
        for name, layer in self.named_children():
            if name != "shortcut":
                residual = layer(residual)
        result: Tensor = residual + self.shortcut(values)
        return result


def build(
    *,
    depth: int,
    n_classes: int,
    in_channels: int,
    widen: int = 0,
    conv_bias: bool = False,
    stride_on_second: bool = False,
) -> ConvNet:
    """A network of ``depth`` layers: of pairs of 3x3 convolutions if it is to be widened, else of bottlenecks."""
    inner = [_WIDTH * (widen or 1) * 2**stage for stage in range(3)]
    outputs = inner if widen else [width * EXPANSION for width in inner]

    def pair(stage: int, inputs: int, stride: int) -> nn.Module:
        first, second = (1, stride) if stride_on_second else (stride, 1)
        width = outputs[stage]
        return PreActivation(
            stride,
            conv(inputs, width, 3, stride=first, bias=conv_bias),
            conv(width, width, 3, stride=second, bias=conv_bias),
        )

    def bottleneck(stage: int, inputs: int, stride: int) -> nn.Module:
        width = inner[stage]
        return PreActivation(
            stride, conv(inputs, width, 1), conv(width, width, 3, stride=stride), conv(width, outputs[stage], 1)
        )

    n_blocks = (depth - 4) // 6 if widen else (depth - 2) // 9
    stages = residual_stages((n_blocks,) * 3, outputs, _WIDTH, pair if widen else bottleneck)
    stem = conv(in_channels, _WIDTH, 3, bias=conv_bias)
    return ConvNet(stem, stages, outputs[-1], n_classes, tail=NormRelu(outputs[-1]))
