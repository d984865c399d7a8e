"""A network that renders a photograph in one style, under flowvision's module path. Read next: `stylenet.py`."""

from .stylenet import NeuralStyleTransfer as NeuralStyleTransfer, neural_style_transfer as neural_style_transfer
