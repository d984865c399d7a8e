"""Wrong arguments with an error text of their own; every argument of every name: `../test_public_calls.py`."""

import math

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.base.errors import MinflowError
from tests.core.refusals import refusals
from tests.graphs import Training


class Picture:
    """Just enough of a PIL image for a mistake: not a tensor, an array or a number."""

    def getbands(self):
        return ("L",)


def x():
    return (flow.arange(12) % 7 / 7 + 0.1).reshape(3, 4)


def test_errors_raised_by_user_code_are_unchanged():
    class Odd:
        def __array__(self, *args, **options):
            raise KeyError("mine")

    for call in (lambda: flow.tensor(Odd()), lambda: flow.as_tensor([Odd()]), lambda: x() + flow.tensor(Odd())):
        with pytest.raises(KeyError, match="mine") as caught:
            call()
        assert type(caught.value) is KeyError
    with pytest.raises(KeyError, match="mine"):
        flow.autograd.gradcheck(lambda a: Odd().__array__(), [flow.ones(2, dtype=flow.float64, requires_grad=True)])


test_the_wrong_argument_is_named = refusals([
    (
        lambda: nn.Flatten()(np.zeros((3, 4))),
        r"(?s)the input must be a tensor, got ndarray of float64, shape \[3, 4\].*flow.from_numpy"
    ),
    (lambda: nn.Flatten()(Picture()), r"(?s)the input must be a tensor, got Picture.*Try: transforms.ToTensor"),
    (lambda: flow.cos(0), r"(?s)^cos: the input must be a tensor, got int.*x  0"),
    (lambda: flow.eye(-1), r"(?s)^flow.eye: negative.*n  -1.*Try: flow.eye\(n, m=None"),
    (lambda: flow.arange(math.nan), "^arange: start, end and step must be finite, got 0, nan and 1"),
    (lambda: flow.zeros(10**6, 10**6), r"(?s)^full: the result, float32.1000000, 1000000., needs 4,000.0 GB of memory"),
    (
        lambda: nn.functional.dropout(x(), "x"),
        r"(?s)^nn.functional.dropout: p must be a number, got str.*p  'x'"
    ),
    (lambda: flow.gather(x(), 0, 3), r"(?s)^flow.gather: the index must be a tensor, got int.*index  3"),
    (lambda: x().sum(keepdim="x"), r"(?s)^Tensor.sum: keepdim must be True or False, got str.*'x'"),
    (lambda: x().expand_as(3), r"(?s)^expand_as: the other must be a tensor, got int.*other  3"),
    (lambda: nn.utils.clip_grad_norm_([nn.Parameter(x())], "x"), r"(?s)max_norm must be a number, got str.*'x'"),
    (
        lambda: nn.utils.clip_grad_norm_(nn.Linear(2, 1).parameters, 1.0),
        r"(?s)^nn.utils.clip_grad_norm_: 'method' object is not iterable.*parameters"
    ),
])  # fmt: skip


def test_nan_learning_rate_is_named_in_eager_and_graphs():
    layer = nn.Linear(2, 1)
    sgd = flow.optim.SGD(layer.parameters(), lr=0.1)
    graph = Training(layer, sgd)
    graph(flow.ones(3, 2))
    before = layer.weight.tolist()
    for wrong in ("x", None, [1]):
        for step in (lambda: graph(flow.ones(3, 2)), sgd._learning_rates):
            sgd.param_groups[0]["lr"] = wrong
            with pytest.raises(
                MinflowError, match=r"(?s)SGD: the learning rate of a group must be a number.*lr"
            ) as caught:
                step()
            assert "test_wrong_arguments.py" in caught.value.where
    assert layer.weight.tolist() == before
    sgd.param_groups[0]["lr"] = 0.1
    graph(flow.ones(3, 2))
