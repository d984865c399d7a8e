"""Counting, quantiles, differences: error texts, and names of OneFlow."""

import minflow as flow
from minflow.core.base.errors import TraceError
from tests.core.programs import Compiled
from tests.core.refusals import refusals

X = flow.tensor([[1.0, 4.0, 2.0], [4.0, 4.0, 0.0]])
Y, IDS = flow.arange(4.0), flow.tensor([3, 1, 1, 0])
BOXES = flow.tensor([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.9], [3.0, 3.0, 4.0, 4.0]])
SCORES = flow.tensor([0.5, 0.9, 0.7])


test_mistakes = refusals(
    [
        (lambda: flow.diff(Y, n=-1), "n is -1"),
        (lambda: flow.trapezoid(Y, Y, dx=1), "only one of x and dx"),
        (lambda: flow.trapezoid(Y, Y[:2]), "2 coordinates for 4 samples"),
        (lambda: flow.gradient(Y, spacing=(1, 2)), "2 spacings for 1 axes"),
        (lambda: flow.gradient(Y, edge_order=3), "edge_order is 3"),
        (lambda: flow.gradient(Y[:1]), "has 1 samples"),
        (lambda: flow.logcumsumexp(IDS, 0), "must be floating"),
        (lambda: flow.bincount(X), "vector of integers"),
        (lambda: flow.bincount(IDS, IDS[:2]), "2 weights for 4 elements"),
        (lambda: flow.bincount(IDS - 1), r"-1 \(at position 3"),
        (lambda: flow.bincount(IDS, minlength=-1), "minlength is -1"),
        (lambda: flow.histc(IDS), "must be floating"),
        (lambda: flow.histc(X, 3, 2, 1), "from 2 to 1"),
        (lambda: flow.histc(X / 0, 3), "bins from"),
        (lambda: flow.histogram(X, 0), "0 bins"),
        (lambda: flow.histogram(X, 3, range=(2, 1)), r"range is \(2, 1\)"),
        (lambda: flow.histogram(X, 3, weight=IDS), "weight must have the shape of input"),
        (lambda: flow.quantile(X, 1.5), "q must be probabilities from 0 to 1, got 1.5"),
        (lambda: flow.quantile(IDS, 0.5), "int64"),
        (lambda: flow.quantile(X, 0.5, interpolation="cubic"), "'cubic'"),
        (lambda: flow.quantile(X, flow.tensor([0.5], dtype=flow.float64)), "q is float64"),
        (lambda: flow.quantile(X[:0], 0.5), "at least one element"),
        (lambda: flow.kthvalue(X, 4), "k is 4"),
        (lambda: flow.nanmean(IDS), "int64"),
        (lambda: flow.mode(X[:0], 0), "no elements along axis 0"),
        (lambda: flow.searchsorted(X, flow.zeros(3, 2)), "searchsorted"),
        (lambda: flow.searchsorted(X[0], X, side="up"), "'up'"),
        (lambda: flow.bucketize(X, X), "2 axes"),
        (lambda: X.repeat_interleave(flow.tensor([1, 2, 3]), 0), "3 repeats for 2 elements"),
        (lambda: X.repeat_interleave(-1), "repeats must be at least 0, got -1"),
        (lambda: flow.nms(BOXES, SCORES[:2], 0.5), "4"),
        (lambda: flow.nms(BOXES.long(), SCORES, 0.5), "int64"),
        (lambda: flow.roc_auc_score(IDS, SCORES), "4 labels for 3"),
        (
            TraceError,
            lambda: Compiled(lambda b, s: flow.nms(b, s, 0.5))(BOXES, SCORES),
            "nms: the number of boxes depends",
        ),
        (TraceError, lambda: Compiled(lambda x: flow.unique(x))(IDS), "shape of the result"),
        (TraceError, lambda: Compiled(lambda x: flow.unique_consecutive(x))(IDS), "shape of the result"),
        (TraceError, lambda: Compiled(lambda x: flow.bincount(x))(IDS), "shape of the result"),
        (
            TraceError,
            lambda: Compiled(lambda x: x.repeat_interleave(x, 0))(IDS),
            "output_size is required while a graph is built",
        ),
    ]
)


def test_repeat_interleave_in_a_graph_with_output_size():
    program = lambda x: x.repeat_interleave(flow.tensor([2, 0, 1]), 1, output_size=3)
    assert Compiled(program)(X)[0].tolist() == [[1, 1, 2], [4, 4, 0]]
    assert flow.repeat_interleave(flow.tensor([2, 0, 1])).tolist() == [0, 0, 2]
    x = X.clone().requires_grad_()
    x.repeat_interleave(flow.tensor([2, 0, 1]), 1).sum().backward()
    assert x.grad.tolist() == [[2, 0, 1], [2, 0, 1]]


def test_unique():
    values, inverse, counts = flow.unique(IDS, return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([0, 1, 3], [2, 1, 1, 0], [1, 2, 1])
    assert flow.unique_consecutive(IDS, return_counts=True)[1].tolist() == [1, 2, 1]
    assert flow.unique(flow.tensor([[2, 1], [1, 2], [2, 1]]), dim=0).tolist() == [[1, 2], [2, 1]]
    assert flow.unique(flow.tensor([float("nan"), 1.0, float("nan")])).shape == (3,)  # NaN differs from itself


def test_differences_and_areas():
    y = flow.tensor([1.0, 4.0, 9.0, 16.0])
    assert flow.diff(y, n=2).tolist() == [2, 2]
    assert flow.diff(flow.tensor([True, False, False])).tolist() == [True, False]
    assert flow.trapezoid(y).item() == 21.5 and flow.trapezoid(y, dx=2).item() == 43
    assert flow.cumulative_trapezoid(y, flow.tensor([0.0, 1.0, 3.0, 4.0])).tolist() == [2.5, 15.5, 28]
    assert flow.gradient(y, spacing=flow.tensor([1.0, 2.0, 3.0, 4.0]))[0].tolist() == [3, 4, 6, 7]


def test_oneflow_metrics():
    score = flow.roc_auc_score(flow.tensor([0, 0, 1, 1]), flow.tensor([0.1, 0.4, 0.35, 0.8]))
    assert score.tolist() == [0.75] and score.dtype is flow.float32
    assert flow.roc_auc_score(flow.tensor([0, 1]), flow.tensor([0.5, 0.5])).item() == 0.5
    predictions = flow.tensor([[0.1, 0.9, 0.5], [0.3, 0.2, 0.2]])
    assert flow.tensor([2, 1]).in_top_k(predictions, 1).tolist() == [False, False]
    assert flow.tensor([2, 1]).in_top_k(predictions, 2).tolist() == [True, True]
    assert flow.nms(BOXES, SCORES, 0.5).tolist() == [1, 2] and BOXES.nms(SCORES, 0.99).tolist() == [1, 2, 0]


def test_box_functions_are_in_vision_ops():
    from minflow.vision import ops

    assert ops.nms(flow.tensor([[0.0, 0.0, 1.0, 1.0]]), flow.tensor([1.0]), 0.5).tolist() == [0]
