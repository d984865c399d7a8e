"""Initialization that VGG, ResNet and MobileNetV2 share, as in torchvision."""

from __future__ import annotations

from ... import nn


def reset_layers(model: nn.Module, linear: bool = True) -> None:
    """Reinitialize convolutions as in He et al. 2015 (arXiv:1502.01852), eq. 14, norms to 1 and biases to 0.

    linear: True to draw the weights of Linear layers from N(0, 0.01**2), False to leave these layers.
    """
    for m in model.modules():
        if isinstance(m, nn.Conv2d):
            nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(m, nn.Linear) and linear:
            nn.init.normal_(m.weight, 0, 0.01)
        elif isinstance(m, nn.BatchNorm2d | nn.GroupNorm) and m.weight is not None:
            nn.init.ones_(m.weight)
        else:
            continue
        if m.bias is not None:
            nn.init.zeros_(m.bias)
