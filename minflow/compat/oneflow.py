"""`import minflow.compat.oneflow`: from here on `import oneflow` is minflow, and so is flowvision if it is not here."""

from .names import borrow

borrow("oneflow")
