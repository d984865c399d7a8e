"""Models for images, with torchvision's parameter names: its weights load by name. Read next: `mobilenet_v2.py`."""

from ...core.messages.near import name_hints as _name_hints
from .lenet import LeNet, lenet
from .mobilenet_v2 import MobileNetV2, mobilenet_v2

__all__ = ["LeNet", "MobileNetV2", "lenet", "mobilenet_v2"]

__getattr__ = _name_hints("flow.vision.models", globals())
