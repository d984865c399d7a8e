"""On import: `import torch` is minflow and `import torchvision` is minflow.vision from now on."""

from .names import substitute

substitute("torch")
