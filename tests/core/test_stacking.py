"""Stacking, splitting, windows: which results are views, and mistakes."""

import minflow as flow
from tests.core.refusals import refusals

X = flow.arange(24.0).reshape(2, 3, 4)
V = flow.tensor([1, 2, 3])


def test_splits_are_views():
    x = flow.zeros(2, 6)
    for part in (x.hsplit(3)[0], x.tensor_split(4, 1)[3], x.vsplit([1])[1], x.split_with_sizes([1, 5], 1)[0]):
        part += 1
    assert x.tolist() == [[2, 1, 0, 0, 0, 1], [3, 2, 1, 1, 1, 2]]
    y = flow.tensor(1.0)
    flow.atleast_3d(y)[0, 0, 0] = 5.0
    assert y.item() == 5


def test_combined_operations():
    assert flow.block_diag(V, flow.tensor([[4.0], [5.0]])).tolist() == [[1, 2, 3, 0], [0, 0, 0, 4], [0, 0, 0, 5]]
    assert flow.cartesian_prod(V[:2], V[2:]).tolist() == [[1, 3], [2, 3]]
    assert flow.combinations(V).tolist() == [[1, 2], [1, 3], [2, 3]]
    assert flow.combinations(V[:2], with_replacement=True).tolist() == [[1, 1], [1, 2], [2, 2]]
    assert flow.broadcast_shapes((2, 1), 3) == flow.Size([2, 3])
    assert flow.column_stack([V, V]).shape == (3, 2) and flow.dstack([V, V]).shape == (1, 3, 2)
    assert flow.vstack([flow.tensor(1.0), flow.tensor(2.0)]).shape == (2, 1)
    assert flow.new_ones(V, (2,)).dtype is flow.int64 and flow.repeat(V, 2).tolist() == [1, 2, 3, 1, 2, 3]


test_mistakes = refusals(
    [
        (lambda: X.hsplit(2), "axis 1 of size 3 cannot be split into 2"),
        (lambda: V.vsplit(3), "vsplit: the tensor must have at least 2 axes, got 1"),
        (lambda: X.tensor_split(0), "must be from 1 to 1,000,000, got 0"),
        (lambda: X.rot90(1, (0, 0)), "one axis twice"),
        (lambda: X.rot90(1, (0,)), r"dims must be two axes, got \(0,\)"),
        (lambda: V.fliplr(), "fliplr: the tensor must have at least 2 axes, got 1"),
        (lambda: flow.block_diag(X), "tensor 0 must have at most 2 axes, got 3"),
        (lambda: flow.cartesian_prod(V, X), "tensor 1 must be a vector, got 3 axes"),
        (lambda: flow.combinations(V, -1), "r must be at least 0, got -1"),
        (lambda: flow.broadcast_shapes((2,), (3,)), "two sizes differ"),
        (lambda: flow.hann_window(-1), "0 or more"),
        (lambda: flow.hann_window(3, dtype=flow.int64), "must be floating"),
        (lambda: flow.logspace(0, 1, -1), "steps must be at least 0, got -1"),
        (lambda: flow.tril_indices(-1, 2), "-1 rows"),
        (lambda: flow.vander(X), "3 axes"),
        (lambda: flow.inner(V, V[:2]), "sizes 3 and 2"),
    ]
)
