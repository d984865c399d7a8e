"""utils.tensor: PyTorch's tensors and ours share memory; a stub replaces PyTorch."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import DTypeError
from minflow.utils.tensor import from_torch, to_torch


class TorchTensor:
    def __init__(self, array):
        self.array = array
        self.detach = self.cpu = lambda: self
        self.numpy = lambda: array


def test_both_ways_share_memory(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(from_numpy=TorchTensor))
    theirs = TorchTensor(np.arange(3.0))
    ours = from_torch(theirs)
    theirs.array[0] = 7
    assert ours.tolist() == [7, 1, 2] and to_torch(ours).array.tolist() == [7, 1, 2]
    assert to_torch(flow.ones(2, requires_grad=True)).array.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("call", "value"),
    [
        (lambda: from_torch([1.0]), "[1.0]"),
        (lambda: from_torch(flow.ones(2)), "float32[2]"),
        (lambda: to_torch(np.ones(1)), "array([1.])"),
    ],
)
def test_other_objects_are_refused(call, value):
    with pytest.raises(DTypeError) as caught:
        call()
    assert value in caught.value.values.values()
