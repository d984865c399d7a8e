"""Creating tensors: results, shared memory, and errors."""

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import DTypeError, GradError, OutOfRangeError, ShapeError
from tests.core.refusals import refusals

test_refused = refusals(
    [
        (
            OutOfRangeError,
            lambda: flow.tensor(300, dtype=flow.uint8),
            "300 does not fit into uint8, which holds 0 to 255",
        ),
        (OutOfRangeError, lambda: flow.tensor([-1, 3], dtype=flow.uint8), "-1 does not fit into uint8"),
        (OutOfRangeError, lambda: flow.tensor(2**70), "does not fit into int64"),
        (OutOfRangeError, lambda: flow.tensor([2**63, 1.5], dtype=flow.int64), "does not fit into int64"),
        (OutOfRangeError, lambda: flow.full((2,), 300, dtype=flow.uint8), "300 does not fit into uint8"),
        (OutOfRangeError, lambda: flow.zeros(2, dtype=flow.uint8).fill_(300), "300 does not fit into uint8"),
        (OutOfRangeError, lambda: flow.zeros(2, dtype=flow.uint8) + 300, "add: 300 does not fit into uint8"),
        (OutOfRangeError, lambda: flow.zeros(2, dtype=flow.uint8).add_(300), "add: 300 does not fit into uint8"),
        (OutOfRangeError, lambda: 2**70 * flow.tensor([1]), "mul: .* does not fit into int64"),
        (OutOfRangeError, lambda: flow.normal(0.0, -1.0, (2,)), "standard deviation"),
        (OutOfRangeError, lambda: flow.arange(0, 5, -1), "step must lead from 0 to 5, got -1"),
        (OutOfRangeError, lambda: flow.linspace(0, 1, -1), "linspace: the number of elements"),
        (OutOfRangeError, lambda: flow.randperm(-1), "randperm: the number of elements"),
        (OutOfRangeError, lambda: flow.randint(5, 5, (2,)), "there is no integer"),
        (DTypeError, lambda: flow.tensor("abc"), "str"),
        (DTypeError, lambda: flow.tensor([None]), "None"),
        (DTypeError, lambda: flow.FloatTensor(np.array(["a"])), "cannot hold an array of <U1"),
        (DTypeError, lambda: flow.zeros(2.5), "float"),
        (DTypeError, lambda: flow.zeros(2, dtype=3), "3"),
        (DTypeError, lambda: flow.from_numpy([1]), "list"),
        (ShapeError, lambda: flow.tensor([[1], [1, 2]]), "lists whose lengths differ"),
        (ShapeError, lambda: flow.zeros(2, -1), "-1"),
        (ShapeError, lambda: flow.from_numpy(np.arange(6.0)[::-1]), "stride"),
        (GradError, lambda: flow.tensor([1], requires_grad=True), "floating"),
    ]
)


@pytest.mark.parametrize("make", [flow.tensor, flow.as_tensor, flow.FloatTensor, flow.Tensor, flow.ones(1).new_tensor])
def test_mismatched_tensor_in_a_list_is_named(make):
    """Valid lists: `constructors` of `../oracle/families.py`."""
    with pytest.raises(ShapeError, match=r"must have one element, got shape \(2,\)[\s\S]*flow.stack"):
        make([flow.ones(2), flow.ones(2)])
    with pytest.raises(ShapeError, match=r"must have one axis, got shape \(2, 2\)"):
        make([[1, 2], flow.ones(2, 2)])


def test_sizes():
    for make in (flow.zeros, flow.ones, flow.empty, flow.rand, flow.randn):
        for x in (make(2, 3), make((2, 3)), make([2, 3]), make(flow.Size([2, 3])), make(size=(2, 3))):
            assert x.shape == (2, 3) and x.dtype is flow.float32
        assert make(()).shape == () and make(0, 2).numel() == 0
    assert flow.full((2,), 1.5).tolist() == [1.5, 1.5] and flow.full(size=(1,), fill_value=2).dtype is flow.int64
    assert flow.zeros(2, dtype=int).dtype is flow.int64 and flow.zeros(2, dtype="float64").dtype is flow.float64


def test_random():
    assert flow.randint(10, size=(2,)).shape == flow.randint(10, (2,)).shape == flow.randint(0, 10, (2,)).shape == (2,)
    assert sorted(flow.randperm(9).tolist()) == list(range(9))
    assert flow.normal(flow.zeros(3), flow.ones(3)).shape == flow.normal(0.0, 1.0, size=(3,)).shape == (3,)
    assert flow.bernoulli(flow.tensor([0.0, 1.0])).tolist() == flow.tensor([0.0, 1.0]).bernoulli().tolist() == [0, 1]
    flow.manual_seed(3)
    state = flow.get_rng_state()
    first = flow.rand(4)
    flow.set_rng_state(state)
    assert flow.rand(4).tolist() == first.tolist()
    x = flow.zeros(1000)
    assert 0.9 < x.exponential_(1.0, generator=flow.Generator().manual_seed(1)).mean().item() < 1.1 and x.min() >= 0
    assert x.random_(5).max() < 5 and flow.zeros(9, dtype=flow.uint8).random_().dtype is flow.uint8


def test_from_numpy_shares_memory():
    array = np.arange(6.0, dtype="float32")
    x = flow.from_numpy(array)
    array[0], x[1] = 7, 8
    assert x.tolist()[:2] == array.tolist()[:2] == [7, 8]
    assert flow.as_tensor(array).data_ptr() == array.ctypes.data
    assert flow.tensor(array).data_ptr() != array.ctypes.data
    assert flow.as_tensor(x) is x and flow.as_tensor(array, dtype=flow.float64).dtype is flow.float64
    every_second = flow.from_numpy(array[::2])
    every_second.mul_(2)
    array[4] = 40
    assert every_second.tolist() == [14, 4, 40] and every_second.stride() == (2,) and array[0] == 14


def test_from_numpy_read_only_and_foreign_order():
    array = np.arange(3.0)
    array.flags.writeable = False
    x = flow.from_numpy(array)
    assert (x + 1).tolist() == [1, 2, 3]
    with pytest.raises(ShapeError, match="read-only"):
        x.add_(1)
    assert flow.from_numpy(np.array([1, 2], ">i4")).tolist() == flow.tensor(np.array([1, 2], ">f4")).tolist() == [1, 2]


def test_new_tensor_methods():
    x = flow.tensor([1, 2], dtype=flow.float64)
    for y in (
        x.new_zeros(2, 3),
        x.new_ones((2, 3)),
        x.new_empty(2, 3),
        x.new_full((2, 3), 4),
        x.new_tensor([[1, 2, 3]] * 2, device="cpu"),
    ):
        assert y.shape == (2, 3) and y.dtype is flow.float64
    assert flow.zeros_like(x).dtype is flow.ones_like(x).dtype is flow.full_like(x, 2).dtype is flow.float64


def test_scalar_size():
    assert flow.LongTensor(np.int64(2)).shape == (2,)
    for size in (2**63, 2**62):
        with pytest.raises(ShapeError, match="no tensor has the shape"):
            flow.FloatTensor(size)


def test_tensor_of_a_tensor_keeps_requires_grad():
    x = flow.ones(2, requires_grad=True)
    (flow.Tensor(x) * 3.0 + flow.FloatTensor(x) * 2.0).sum().backward()
    assert x.grad.tolist() == [5, 5]
