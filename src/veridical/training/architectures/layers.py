"""Parts that all families share: the overall shape, the last layer, and the initial weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

#: The output of a bottleneck is this many times as wide as its 3x3 convolution.
EXPANSION = 4


def conv(inputs: int, outputs: int, size: int, *, stride: int = 1, groups: int = 1, bias: bool = False) -> nn.Conv2d:
    """A convolution that keeps the image size, up to the stride; without bias if batch normalisation follows."""
    return nn.Conv2d(inputs, outputs, size, stride=stride, padding=size // 2, groups=groups, bias=bias)


class Classifier(nn.Linear):
    """The last layer, always in float32: in bfloat16 logits have three digits, too few to calibrate."""

    def forward(self, features: Tensor) -> Tensor:
        with torch.autocast(features.device.type, enabled=False):
            return super().forward(features.float())


class NormRelu(nn.Module):
    """Batch normalisation and rectifier, the "pre-activation" of a convolution that follows."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, values: Tensor) -> Tensor:
        return torch.relu(self.norm(values))


def residual_stages(
    n_blocks: Sequence[int], widths: Sequence[int], inputs: int, block: Callable[[int, int, int], nn.Module]
) -> list[nn.Sequential]:
    """Stages of ``n_blocks[i]`` residual blocks with ``widths[i]`` output channels.

    ``block(stage, inputs, stride)`` makes a block; the stride is 2 at the beginning of every stage but the first.
    """
    stages = []
    for stage, width in enumerate(widths):
        blocks = []
        for position in range(n_blocks[stage]):
            blocks.append(block(stage, inputs, 2 if stage > 0 and position == 0 else 1))
            inputs = width
        stages.append(nn.Sequential(*blocks))
    return stages


class ConvNet(nn.Module):
    """Stem, stages, tail, mean over positions, linear classifier: (B, C, H, W) images to (B, L) logits."""

    def __init__(
        self, stem: nn.Module, stages: list[nn.Sequential], features: int, n_classes: int, tail: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.stem = stem
        self.stages = nn.Sequential(*stages)
        self.tail = nn.Identity() if tail is None else tail
        self.classifier = Classifier(features, n_classes)
        self.apply(_initialise)

    def forward(self, images: Tensor) -> Tensor:
        features = self.tail(self.stages(self.stem(images)))
        logits: Tensor = self.classifier(features.float().mean(dim=(2, 3)))
        return logits


def _initialise(module: nn.Module) -> None:
    """He et al. (2015): variance 2 / fan-out, so that the gradient keeps its size through rectifiers."""
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        if module.bias is not None:
            nn.init.zeros_(module.bias)
