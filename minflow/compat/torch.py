"""`import minflow.compat.torch`: from here on `import torch` is minflow, and `import torchvision` is minflow.vision."""

from .names import borrow

borrow("torch")
