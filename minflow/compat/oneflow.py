"""On import: from now on `import oneflow` returns minflow, and so does `import flowvision` unless it is installed."""

from .names import alias_library

alias_library("oneflow")
