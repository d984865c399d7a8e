"""On import: from now on `import torch` returns minflow, and `import torchvision` returns minflow.vision."""

from .names import alias_library

alias_library("torch")
