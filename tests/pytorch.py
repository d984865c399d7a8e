"""PyTorch, imported by the first test that uses it: who collects these tests and runs others does not wait for it."""

import importlib
import importlib.util

import pytest

installed = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not installed, reason="no PyTorch")


class Late:
    """A module that is imported when it is first asked for something."""

    def __init__(self, name):
        self.name = name

    def __getattr__(self, part):
        return getattr(importlib.import_module(self.name), part)


torch, T = Late("torch"), Late("torch.nn")
