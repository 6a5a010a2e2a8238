"""Networks with the module names of the pytorch-ensembles zoo, written from its naming for the tests.

They make state dicts like those of the zoo's files, and compute what such weights should compute.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class PreActivationBottleneck(nn.Module):
    def __init__(self, inputs: int, planes: int, stride: int) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, planes, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, stride, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(planes)
        self.conv3 = nn.Conv2d(planes, 4 * planes, 1, bias=False)
        if stride > 1 or inputs != 4 * planes:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, 4 * planes, 1, stride, bias=False))

    def forward(self, x: Tensor) -> Tensor:
        out = self.conv1(functional.relu(self.bn1(x)))
        out = self.conv2(functional.relu(self.bn2(out)))
        out = self.conv3(functional.relu(self.bn3(out)))
        return out + (self.downsample(x) if hasattr(self, "downsample") else x)


class WideBasic(nn.Module):
    def __init__(self, inputs: int, planes: int, stride: int) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, planes, 3, 1, 1)
        self.bn2 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, stride, 1)
        if stride > 1 or inputs != planes:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, planes, 1, stride))

    def forward(self, x: Tensor) -> Tensor:
        out = self.conv2(functional.relu(self.bn2(self.conv1(functional.relu(self.bn1(x))))))
        return out + (self.shortcut(x) if hasattr(self, "shortcut") else x)


class PostActivationBottleneck(nn.Module):
    def __init__(self, inputs: int, planes: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, planes, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.conv3 = nn.Conv2d(planes, 4 * planes, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * planes)
        if stride > 1 or inputs != 4 * planes:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, 4 * planes, 1, stride, bias=False), nn.BatchNorm2d(4 * planes)
            )

    def forward(self, x: Tensor) -> Tensor:
        out = functional.relu(self.bn1(self.conv1(x)))
        out = functional.relu(self.bn2(self.conv2(out)))
        return functional.relu(self.bn3(self.conv3(out)) + (self.downsample(x) if hasattr(self, "downsample") else x))


def stage(block: type[nn.Module], inputs: int, planes: int, outputs: int, count: int, stride: int) -> nn.Sequential:
    return nn.Sequential(block(inputs, planes, stride), *(block(outputs, planes, 1) for _ in range(count - 1)))


class PreResNet(nn.Module):
    def __init__(self, depth: int, classes: int) -> None:
        super().__init__()
        n = (depth - 2) // 9
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.layer1 = stage(PreActivationBottleneck, 16, 16, 64, n, 1)
        self.layer2 = stage(PreActivationBottleneck, 64, 32, 128, n, 2)
        self.layer3 = stage(PreActivationBottleneck, 128, 64, 256, n, 2)
        self.bn = nn.BatchNorm2d(256)
        self.fc = nn.Linear(256, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layer3(self.layer2(self.layer1(self.conv1(x))))
        return self.fc(functional.avg_pool2d(functional.relu(self.bn(x)), 8).flatten(1))


class WideResNet28x10(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1)
        self.layer1 = stage(WideBasic, 16, 160, 160, 4, 1)
        self.layer2 = stage(WideBasic, 160, 320, 320, 4, 2)
        self.layer3 = stage(WideBasic, 320, 640, 640, 4, 2)
        self.bn1 = nn.BatchNorm2d(640)
        self.linear = nn.Linear(640, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layer3(self.layer2(self.layer1(self.conv1(x))))
        return self.linear(functional.avg_pool2d(functional.relu(self.bn1(x)), 8).flatten(1))


class ResNet50(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = stage(PostActivationBottleneck, 64, 64, 256, 3, 1)
        self.layer2 = stage(PostActivationBottleneck, 256, 128, 512, 4, 2)
        self.layer3 = stage(PostActivationBottleneck, 512, 256, 1024, 6, 2)
        self.layer4 = stage(PostActivationBottleneck, 1024, 512, 2048, 3, 2)
        self.fc = nn.Linear(2048, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.max_pool2d(functional.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean(dim=(2, 3)))


def randomised(network: nn.Module, seed: int) -> nn.Module:
    """The network in evaluation mode, its biases, norms and running statistics random."""
    generator = torch.Generator().manual_seed(seed)
    for name, tensor in network.state_dict().items():
        if name.endswith("running_var") or (name.endswith("weight") and tensor.ndim == 1):
            tensor.copy_(torch.rand(tensor.shape, generator=generator) + 0.5)
        elif tensor.ndim <= 1 and tensor.is_floating_point():
            tensor.copy_(0.1 * torch.randn(tensor.shape, generator=generator))
    return network.eval()


ZOO = {
    "preresnet110": lambda classes: PreResNet(110, classes),
    "preresnet164": lambda classes: PreResNet(164, classes),
    "wideresnet28x10": WideResNet28x10,
    "resnet50": ResNet50,
}
