"""On import: `import oneflow` is minflow from now on, and `import flowvision` too unless it is installed."""

from .names import substitute

substitute("oneflow")
