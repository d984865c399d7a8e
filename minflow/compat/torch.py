"""On import: from now on `import torch` returns minflow, and `import torchvision` returns minflow.vision."""

from .names import substitute

substitute("torch")
