"""AlexNet, with the parameter names and results of torchvision.

Source: Krizhevsky 2014, "One weird trick for parallelizing convolutional neural networks" (arXiv:1404.5997), section 5.
"""

from __future__ import annotations

from typing import Any

from ... import nn
from ...core.functions import flatten
from ...core.tensor import Tensor
from .weights import build


class AlexNet(nn.Module):
    """AlexNet.

    x: float (N, 3, H, W), H and W at least 63. Returns the logits (N, num_classes).
    """

    def __init__(self, num_classes: int = 1000, dropout: float = 0.5):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 11, stride=4, padding=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, stride=2),
            nn.Conv2d(64, 192, 5, padding=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, stride=2),
            nn.Conv2d(192, 384, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(384, 256, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(256, 256, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, stride=2),
        )
        self.avgpool = nn.AdaptiveAvgPool2d((6, 6))
        self.classifier = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(256 * 6 * 6, 4096),
            nn.ReLU(inplace=True),
            nn.Dropout(dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(inplace=True),
            nn.Linear(4096, num_classes),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(flatten(self.avgpool(self.features(x)), 1))


def alexnet(pretrained: Any = False, progress: bool = True, weights: Any = None, **kwargs: Any) -> AlexNet:
    """AlexNet: 61,100,840 parameters."""
    return build("alexnet", AlexNet, pretrained, weights, **kwargs)
