"""`out=`: the result is written into the caller's tensor, eagerly and in a graph. Every name with `out`:
`../test_public_calls.py`.
"""

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.base import out as base
from minflow.core.base.errors import CallError, DTypeError, GradError, ShapeError, TraceError
from tests.core.refusals import refusals
from tests.graphs import Predict

X, ONE = flow.tensor([[1.0, 4.0], [9.0, 2.0]]), flow.tensor([1.0, 2.0])
CALLS = {  # one of each kind of public function: an op, a function, an overload, of a namespace, of a list
    "sqrt": lambda **o: flow.sqrt(X, **o),
    "hypot": lambda **o: flow.hypot(input=X, other=X, **o),
    "add": lambda **o: flow.add(X, ONE, alpha=2, **o),
    "cat": lambda **o: flow.cat([X, X], 1, **o),
    "sum": lambda **o: flow.sum(X, 0, keepdim=True, **o),
    "matmul": lambda **o: flow.matmul(X, X, **o),
    "linalg.norm": lambda **o: flow.linalg.norm(X, dim=1, **o),
    "special.erfcx": lambda **o: flow.special.erfcx(X, **o),
    "special.multigammaln": lambda **o: flow.special.multigammaln(X, 1, **o),
    "where": lambda **o: flow.where(X > 2, X, 0.0, **o),
    "gt": lambda **o: flow.gt(X, 2, **o),
    "full": lambda **o: flow.full((2, 2), 7.0, **o),
    "arange": lambda **o: flow.arange(4.0, **o),
    "argmax": lambda **o: flow.argmax(X, 1, **o),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_result_is_written(call):
    want = call()
    place = flow.zeros_like(want)
    view = place.reshape(-1)
    assert call(out=place) is place and place.equal(want) and view.equal(want.reshape(-1))
    assert call(out=None).equal(want)
    empty = flow.empty(0, dtype=want.dtype)
    assert call(out=empty) is empty and empty.shape == want.shape and empty.equal(want)
    wide = flow.zeros(want.shape, dtype=flow.float64)
    np.testing.assert_allclose(call(out=wide).numpy(), want.numpy().astype("float64"), rtol=1e-6)


def test_several_results():
    values, indices = flow.empty(0), flow.empty(0, dtype=flow.int64)
    result = flow.max(X, 1, out=(values, indices))
    assert result.values is values and result.indices is indices
    assert values.tolist() == [4.0, 9.0] and indices.tolist() == [1, 0]
    flow.sort(X, 1, out=(rows := flow.zeros(2, 2), places := flow.zeros(2, 2, dtype=flow.int64)))
    assert rows.tolist() == [[1, 4], [2, 9]] and places.tolist() == [[0, 1], [1, 0]]
    with pytest.raises(DTypeError, match="max: out must be a tuple of 2 tensors, got Tensor"):
        flow.max(X, 1, out=values)
    with pytest.raises(DTypeError, match="sqrt: out must be a tensor, got 2 values"):
        flow.sqrt(X, out=(values, values))


def test_out_may_be_an_input_or_a_view():
    x = flow.tensor([1.0, 2.0, 3.0])
    flow.flip(x, [0])
    flow.mul(x, x, out=x)
    assert x.tolist() == [1, 4, 9]
    flow.add(x[:2], 1, out=x[1:])
    assert x.tolist() == [1, 2, 5]


def test_factories_take_the_dtype_of_out():
    place = flow.ones(3, dtype=flow.int32)
    assert flow.zeros(3, out=place) is place and place.tolist() == [0, 0, 0] and place.dtype is flow.int32
    assert flow.rand(3, out=flow.ones(3, dtype=flow.float64)).dtype is flow.float64
    flow.manual_seed(3)
    first = flow.rand(2)
    flow.manual_seed(3)
    assert flow.rand(2, out=flow.zeros(2)).equal(first)  # one draw, not two
    mask = flow.zeros(3, dtype=flow.bool)
    assert flow.bernoulli(flow.tensor([0.0, 1.0, 1.0]), out=mask) is mask and mask.tolist() == [False, True, True]


test_refused = refusals([
    (ShapeError, lambda: flow.add(X, 1, out=flow.zeros(3)), r"add: the result has the shape \(2, 2\), out has \(3,\)"),
    (DTypeError, lambda: flow.add(X, 1, out=flow.zeros(2, 2, dtype=flow.int64)), "float32, which out, int64"),
    (GradError, lambda: flow.exp(flow.ones(2, requires_grad=True), out=flow.zeros(2)), "does not record gradients"),
    (GradError, lambda: flow.add(ONE, 1, out=flow.zeros(2, requires_grad=True)), "add: out= does not record gradients"),
    (CallError, lambda: flow.relu(X, out=X), "relu has no argument 'out'"),
    (CallError, lambda: flow.reshape(X, (4,), out=X), "reshape has no argument 'out'"),
    (CallError, lambda: flow.add(X, 1, aplha=2, out=X.clone()), "add has no argument 'aplha'"),
    (ShapeError, lambda: flow.add(X, flow.ones(3), out=X.clone()), "add: sizes differ, 2 .axis 1 of a. and 3"),
    (ShapeError, lambda: flow.add(X, 1, out=flow.zeros(2)[:0]), "cannot take the shape"),
])  # fmt: skip


def test_leaf_may_be_written_under_no_grad():
    leaf = flow.zeros(2, requires_grad=True)
    with flow.no_grad():
        flow.add(ONE, 1, out=leaf)
    assert leaf.tolist() == [2, 3] and leaf.requires_grad


def test_out_in_a_graph_is_a_rebinding():
    class Running(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", flow.zeros(2))

        def forward(self, x):
            flow.add(self.total, x, out=self.total)
            return self.total * 1

    eager, traced = Running(), Running()
    graph = Predict(traced)
    for _ in range(3):
        assert graph(ONE).equal(eager(ONE))
    assert traced.total.equal(eager.total) and traced.total.tolist() == [3, 6]
    with pytest.raises(TraceError, match=r"cannot take the shape \(2,\)"):
        Predict(lambda x: flow.add(x, 1, out=flow.empty(0)))(ONE)


def test_call_without_out_skips_the_wrapper(monkeypatch):
    monkeypatch.setattr(base, "IMPLEMENTATION", [])
    for call in CALLS.values():
        call()
