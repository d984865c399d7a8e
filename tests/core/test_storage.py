"""Type queries of a tensor, its storage, and Python functions of its elements."""

import pytest

import minflow as flow
from minflow.core.base.errors import MinflowError, TraceError
from tests.core.programs import Compiled


def test_tensor_kind_queries():
    x = flow.zeros(2, 3)
    assert x.is_cpu and not (x.is_meta or x.is_quantized or x.is_mkldnn or x.is_nested or x.is_sparse_csr or x.is_mps)
    assert x.share_memory_() is x and not x.is_pinned()
    assert x.const_data_ptr() == x.data_ptr() and x.t().dim_order() == (1, 0) and not x.is_inference()
    assert x.is_set_to(x.detach()) and not x.is_set_to(x.t()) and x.is_same_size(flow.ones(2, 3))
    y = flow.ones(2, requires_grad=True) * 2
    assert not y.retains_grad
    y.retain_grad()
    assert y.retains_grad


def test_resize():
    x = flow.arange(6.0)
    assert x.resize_(2, 2).tolist() == [[0, 1], [2, 3]]
    assert x.resize_(6).shape == (6,) and x.tolist()[:4] == [0, 1, 2, 3]
    assert x.resize_as_(flow.zeros(1, 2)).tolist() == [[0, 1]]
    y = flow.zeros(4)
    x.set_(y)
    x += 1
    assert y.tolist() == [1, 1, 1, 1]
    x.set_(y, 1, (2,), (2,))
    x += 1
    assert y.tolist() == [1, 2, 1, 2]
    with pytest.raises(MinflowError, match="requires grad"):
        flow.ones(2, requires_grad=True).resize_(3)
    with pytest.raises(MinflowError, match="no storages"):
        x.set_(flow.ones(2, dtype=flow.int64))
    with pytest.raises(TraceError):
        Compiled(lambda x: x.resize_(3))(x)


def test_elementwise_python_functions():
    x = flow.tensor([[1.0, -2.0], [3.0, 4.0]])
    assert x.t().apply_(lambda v: v * 2) is not None and x.tolist() == [[2, -4], [6, 8]]
    assert x.map_(flow.tensor([1.0, 2.0]), lambda a, b: a + b).tolist() == [[3, -2], [7, 10]]
    assert x.map2_(x, x, lambda a, b, c: a + b - c).tolist() == [[3, -2], [7, 10]]
    for call, what in (
        (lambda: x.apply_(3), "must be a function, got int"),
        (lambda: x.map_(flow.ones(3), max), "cannot be broadcast"),
        (lambda: x.clone().requires_grad_().apply_(abs), "requires grad"),
    ):
        with pytest.raises(MinflowError, match=what):
            call()
    with pytest.raises(TraceError):
        Compiled(lambda x: x.apply_(abs))(x)
