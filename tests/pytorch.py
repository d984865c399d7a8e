"""PyTorch, imported on first use, so that test collection does not wait for it."""

import importlib
import importlib.util

import pytest

installed = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not installed, reason="no PyTorch")


class LazyModule:
    """A module that is imported at the first access to an attribute."""

    def __init__(self, name):
        self.name = name

    def __getattr__(self, part):
        return getattr(importlib.import_module(self.name), part)


torch, T = LazyModule("torch"), LazyModule("torch.nn")
