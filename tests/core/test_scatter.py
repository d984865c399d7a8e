"""Writes by index, mask and view, and strided views: views write to their base, graphs, mistakes."""

import pytest

import minflow as flow
from minflow.core.base.errors import DTypeError
from tests.core.refusals import refusals

X = flow.arange(6.0).reshape(2, 3)
IDS = flow.tensor([1, 0])


def test_strided_views_are_writable():
    x = flow.arange(7.0)
    windows = x.unfold(0, 3, 2)
    assert windows.tolist() == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]
    windows[0, 0] = 9.0
    x.as_strided((2,), (3,), 1).zero_()
    assert x.tolist() == [9, 0, 2, 3, 0, 5, 6] and windows[1].tolist() == [2, 3, 0]
    assert X[1:].as_strided((2,), (1,)).tolist() == [3, 4]  # offset of the view
    assert X.t().as_strided((2,), (1,), 0).tolist() == [0, 1]  # offset in the storage, not in the view


def test_overlapping_views_accumulate_gradients():
    x = flow.zeros(4, requires_grad=True)
    (x.as_strided((3, 2), (1, 1)) * flow.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])).sum().backward()
    assert x.grad.tolist() == [1, 5, 9, 6]
    x.grad = None
    (x.unfold(0, 2, 1) * flow.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])).sum().backward()
    assert x.grad.tolist() == [1, 5, 9, 6]


def test_batches_of_slices():
    x = flow.arange(12.0).reshape(2, 3, 2)
    assert flow.batch_gather(x, flow.tensor([[2, 0], [1, 1]])).tolist() == [[[4, 5], [0, 1]], [[8, 9], [8, 9]]]
    assert x.batch_gather(flow.tensor([1])).tolist() == x[1:].tolist()


test_mistakes = refusals(
    [
        (lambda: X.scatter_reduce(1, IDS.reshape(2, 1), X, "max"), "reduce is 'max'"),
        (lambda: X.scatter_reduce(1, IDS.reshape(2, 1), X.double(), "sum"), "src is float64"),
        (lambda: X.index_reduce(0, IDS, X, "sum"), "reduce is 'sum'"),
        (lambda: X.index_reduce(0, IDS[:1], X, "prod"), "1 positions for a source"),
        (lambda: X.put(IDS, X), "as many elements"),
        (lambda: X.put(IDS + 6, X[0, :2]), "put: index 7"),
        (lambda: X.masked_scatter(X > 1, X[0, :1]), "masked_scatter: index"),
        (lambda: X.masked_scatter(X, X), "mask must be bool"),
        (lambda: X.select_scatter(X, 0, 1), r"src must have shape \(3,\), got \(2, 3\)"),
        (lambda: X.slice_scatter(X, 1, step=0), "step must be at least 1, got 0"),
        (lambda: X.diag_embed(0, 1, 1), "the same axis"),
        (lambda: X[0].fill_diagonal_(1.0), "axes of the same size|has shape"),
        (lambda: X.fill_diagonal_([]), r"fill_diagonal_: the value must be one number, got \[\]"),
        (lambda: X.as_strided((2, 2), (1,)), "one stride"),
        (lambda: X.as_strided((2, 2), (1, -1)), "strides"),
        (lambda: X.as_strided_scatter(X[:, :2], (2, 2), (1, -1)), "strides"),
        (lambda: X.as_strided_scatter(X[:, :2], (2, 2), (1, 2), -1), "reach"),
        (lambda: X.as_strided((7,), (1,)), "reach element 6, and there are 6"),
        (lambda: X.unfold(1, 4, 1), "windows of 4"),
        (lambda: X.sum_to_size(2, 2), "does not broadcast"),
        (lambda: flow.unravel_index(X, (2, 3)), "float32"),
        (lambda: flow.batch_gather(X, flow.tensor([[1], [0], [1]])), "batch"),
    ]
)


REFUSED = {  # tensors of values are not truncated silently, as in PyTorch
    "index_put_": lambda x, v: x.index_put_((flow.tensor([0]),), v),
    "index_put_ adding": lambda x, v: x.index_put_((flow.tensor([0]),), v, True),
    "scatter_": lambda x, v: x.scatter_(0, flow.tensor([0]), v),
    "scatter_add_": lambda x, v: x.scatter_add_(0, flow.tensor([0]), v),
    "index_add_": lambda x, v: x.index_add_(0, flow.tensor([0]), v),
    "index_copy_": lambda x, v: x.index_copy_(0, flow.tensor([0]), v),
    "index_reduce_": lambda x, v: x.index_reduce_(0, flow.tensor([0]), v, "amax"),
    "scatter_reduce_": lambda x, v: x.scatter_reduce_(0, flow.tensor([0]), v, "amax"),
    "items": lambda x, v: x.__setitem__([0], v),
    "masked items": lambda x, v: x.__setitem__(flow.tensor([True, False]), v),
    "a list": lambda x, v: x.__setitem__(slice(0, 1), v.tolist()),
    "add_": lambda x, v: x[:1].add_(v),
    "copy_ of a list": lambda x, v: x[:1].copy_(v.tolist()),
}


@pytest.mark.parametrize("name", REFUSED)
def test_floats_are_not_truncated_silently(name):
    x = flow.tensor([1, 2])
    with pytest.raises(DTypeError, match=r"float32[\s\S]*int64"):
        REFUSED[name](x, flow.tensor([0.7]))
    assert x.tolist() == [1, 2]
    x = x.double()
    if "reduce" not in name:
        REFUSED[name](x, flow.tensor([7.0]))
        assert x[0].item() in (7, 8)
