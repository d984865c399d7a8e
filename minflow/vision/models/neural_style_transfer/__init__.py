"""A network that paints a photograph in one style, at flowvision's address. Read next: `stylenet.py`."""

from .stylenet import NeuralStyleTransfer as NeuralStyleTransfer, neural_style_transfer as neural_style_transfer
