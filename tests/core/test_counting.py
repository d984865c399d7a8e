"""Counting, quantiles, equal ones: mistakes by their text, graphs, and the names that are OneFlow's."""

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import MinflowError, TraceError
from tests.core.programs import Compiled

X = flow.tensor([[1.0, 4.0, 2.0], [4.0, 4.0, 0.0]])
IDS = flow.tensor([3, 1, 1, 0])


def test_equal_ones():
    values, inverse, counts = flow.unique(IDS, return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([0, 1, 3], [2, 1, 1, 0], [1, 2, 1])
    assert flow.unique_consecutive(IDS, return_counts=True)[1].tolist() == [1, 2, 1]
    rows = flow.tensor([[2, 1], [1, 2], [2, 1]])
    assert flow.unique(rows, dim=0).tolist() == [[1, 2], [2, 1]]
    assert flow.unique(flow.tensor([float("nan"), 1.0, float("nan")])).shape == (3,)  # NaN equals nothing


def test_what_has_no_fixed_shape_is_refused_in_a_graph():
    for function in (flow.unique, flow.unique_consecutive, flow.bincount, lambda x: x.repeat_interleave(x, 0)):
        with pytest.raises(TraceError) as caught:
            Compiled(function)(IDS)
        assert caught.value.hint


def test_as_a_graph():
    def program(x):
        both = x.quantile(flow.tensor([0.2, 0.7]), 1), flow.nanquantile(x, 0.4), x.histc(3), x.mode().values
        return [*both, *flow.histogram(x, 4), flow.searchsorted(flow.tensor([0.0, 2.0]), x), flow.isin(x, 4.0),
                x.kthvalue(2).values, x.nanmedian(), x.nanmean(1), *x.aminmax(), x.msort()]

    found = Compiled(program)(X)
    for got, want in zip(found, program(X)):
        assert np.array_equal(got, want.numpy())


@pytest.mark.parametrize("call, what", [
    (lambda: flow.bincount(X), "vector of integers"),
    (lambda: flow.bincount(IDS, IDS[:2]), "2 weights for 4 numbers"),
    (lambda: flow.bincount(IDS - 1), r"-1 \(at position 3"),
    (lambda: flow.bincount(IDS, minlength=-1), "minlength is -1"),
    (lambda: flow.histc(IDS), "must be floating"),
    (lambda: flow.histc(X, 3, 2, 1), "from 2 to 1"),
    (lambda: flow.histc(X / 0, 3), "bins from"),
    (lambda: flow.histogram(X, 0), "0 bins"),
    (lambda: flow.histogram(X, 3, range=(2, 1)), r"range is \(2, 1\)"),
    (lambda: flow.histogram(X, 3, weight=IDS), "weight must have the shape of input"),
    (lambda: flow.quantile(X, 1.5), "q goes from 1.5"),
    (lambda: flow.quantile(IDS, 0.5), "int64"),
    (lambda: flow.quantile(X, 0.5, interpolation="cubic"), "'cubic'"),
    (lambda: flow.quantile(X, flow.tensor([0.5], dtype=flow.float64)), "q is float64"),
    (lambda: flow.quantile(X[:0], 0.5), "no quantile"),
    (lambda: flow.kthvalue(X, 4), "k is 4"),
    (lambda: flow.nanmean(IDS), "int64"),
    (lambda: flow.mode(X[:0], 0), "no elements along axis 0"),
    (lambda: flow.searchsorted(X, flow.zeros(3, 2)), "searchsorted"),
    (lambda: flow.searchsorted(X[0], X, side="up"), "'up'"),
    (lambda: flow.bucketize(X, X), "2 axes"),
    (lambda: X.repeat_interleave(flow.tensor([1, 2, 3]), 0), "3 repeats for 2 elements"),
    (lambda: X.repeat_interleave(-1), "repeats is -1"),
])
def test_mistakes(call, what):
    with pytest.raises(MinflowError, match=what) as caught:
        call()
    assert caught.value.hint


def test_repeats_by_a_tensor_as_a_graph_that_knows_their_sum():
    program = lambda x: x.repeat_interleave(flow.tensor([2, 0, 1]), 1, output_size=3)
    assert Compiled(program)(X)[0].tolist() == [[1, 1, 2], [4, 4, 0]]
    assert flow.repeat_interleave(flow.tensor([2, 0, 1])).tolist() == [0, 0, 2]
    x = X.clone().requires_grad_()
    x.repeat_interleave(flow.tensor([2, 0, 1]), 1).sum().backward()
    assert x.grad.tolist() == [[2, 0, 1], [2, 0, 1]]


def test_measures_of_oneflow():
    score = flow.roc_auc_score(flow.tensor([0, 0, 1, 1]), flow.tensor([0.1, 0.4, 0.35, 0.8]))
    assert score.tolist() == [0.75] and score.dtype is flow.float32
    assert flow.roc_auc_score(flow.tensor([0, 1]), flow.tensor([0.5, 0.5])).item() == 0.5
    predictions = flow.tensor([[0.1, 0.9, 0.5], [0.3, 0.2, 0.2]])
    assert flow.tensor([2, 1]).in_top_k(predictions, 1).tolist() == [False, False]
    assert flow.tensor([2, 1]).in_top_k(predictions, 2).tolist() == [True, True]
    boxes = flow.tensor([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.9], [3.0, 3.0, 4.0, 4.0]])
    scores = flow.tensor([0.5, 0.9, 0.7])
    assert flow.nms(boxes, scores, 0.5).tolist() == [1, 2] and boxes.nms(scores, 0.99).tolist() == [1, 2, 0]
    for call, what in ((lambda: flow.nms(boxes, scores[:2], 0.5), "4"), (lambda: flow.nms(boxes.long(), scores, 0.5),
                       "int64"), (lambda: flow.roc_auc_score(IDS, scores), "4 labels for 3")):
        with pytest.raises(MinflowError, match=what):
            call()
    with pytest.raises(TraceError):
        Compiled(lambda b, s: flow.nms(b, s, 0.5))(boxes, scores)


def test_boxes_are_found_beside_the_models():
    from minflow.vision import ops

    assert ops.nms(flow.tensor([[0.0, 0.0, 1.0, 1.0]]), flow.tensor([1.0]), 0.5).tolist() == [0]
