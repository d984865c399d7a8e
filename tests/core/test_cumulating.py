"""What runs along an axis: values of its own kind, mistakes, and the same as a graph."""

import numpy as np

import minflow as flow
from tests.core.programs import Compiled
from tests.core.refusals import refusals

X = flow.tensor([[2.0, 0.0, 3.0], [1.0, -1.0, 0.0]], dtype=flow.float64)


def slopes(function, x):
    x = x.clone().requires_grad_()
    function(x).backward()
    return x.grad.tolist()


def test_products_with_zeros_have_finite_slopes():
    assert slopes(lambda x: x.cumprod(0).sum(), flow.tensor([2.0, 0.0, 3.0])) == [1, 2 + 6, 0]
    assert slopes(lambda x: x.cumprod(0).sum(), flow.tensor([0.0, 0.0, 3.0])) == [1, 0, 0]
    assert flow.autograd.gradgradcheck(lambda x: x.cumprod(1), (X.clone().requires_grad_(),))


def test_log_of_sums_neither_overflows_nor_loses_its_slope():
    x = flow.tensor([1000.0, 1001.0, -1000.0, 1000.0])
    assert np.allclose(flow.logcumsumexp(x, 0).numpy(), np.logaddexp.accumulate(x.numpy()))
    assert np.isfinite(slopes(lambda x: flow.logcumsumexp(x, 0).sum(), x)).all()


def test_extremes_name_the_last_place():
    values, indices = flow.cummax(flow.tensor([1.0, 3.0, 3.0, float("nan"), 5.0]), 0)
    assert values.tolist()[:3] == [1, 3, 3] and np.isnan(values.numpy()[3:]).all()
    assert indices.tolist() == [0, 1, 2, 3, 3]


def test_differences_and_areas():
    y = flow.tensor([1.0, 4.0, 9.0, 16.0])
    assert flow.diff(y, n=2).tolist() == [2, 2]
    assert flow.diff(flow.tensor([True, False, False])).tolist() == [True, False]
    assert flow.trapezoid(y).item() == 21.5 and flow.trapezoid(y, dx=2).item() == 43
    assert flow.cumulative_trapezoid(y, flow.tensor([0.0, 1.0, 3.0, 4.0])).tolist() == [2.5, 15.5, 28]
    assert flow.gradient(y, spacing=flow.tensor([1.0, 2.0, 3.0, 4.0]))[0].tolist() == [3, 4, 6, 7]


Y = flow.arange(4.0)
test_mistakes = refusals([
    (lambda: flow.diff(Y, n=-1), "n is -1"),
    (lambda: flow.trapezoid(Y, Y, dx=1), "both given"),
    (lambda: flow.trapezoid(Y, Y[:2]), "2 coordinates for 4 samples"),
    (lambda: flow.gradient(Y, spacing=(1, 2)), "2 spacings for 1 axes"),
    (lambda: flow.gradient(Y, edge_order=3), "edge_order is 3"),
    (lambda: flow.gradient(Y[:1]), "has 1 samples"),
    (lambda: flow.logcumsumexp(flow.tensor([1]), 0), "must be floating"),
])


def test_as_a_graph():
    def program(x):
        return [x.cumprod(1), *x.cummax(0), *x.cummin(1), x.logcumsumexp(1), x.diff(dim=0), flow.trapezoid(x),
                *flow.gradient(x)]

    found = Compiled(program)(X)
    for got, want in zip(found, program(X)):
        assert np.array_equal(got, want.numpy())
