"""A fixture for tests that define classes of tensors, which change how all functions are called from then on."""

import pytest

import minflow as flow
from minflow.core.eager import Eager
from minflow.core.overrides import PLAIN, SUBCLASSES
from minflow.core.trace import Trace


@pytest.fixture
def own_classes(monkeypatch):
    """Undo at the end what the first class of a test prepares."""
    for mode in (Eager, Trace):
        monkeypatch.setattr(mode, "run", mode.run)
    yield
    SUBCLASSES.clear()
    PLAIN.discard(flow.Tensor)
