"""Making tensors: what each call gives, what it shares, what it refuses."""

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import DTypeError, GradError, OutOfRangeError, ShapeError


def test_dtypes_of_numbers():
    assert flow.tensor(1.5).dtype is flow.tensor([1, 2.5, True]).dtype is flow.tensor([]).dtype is flow.float32
    assert flow.tensor(1).dtype is flow.tensor([True, 2]).dtype is flow.tensor(range(3)).dtype is flow.int64
    assert flow.tensor(True).dtype is flow.tensor([[False]]).dtype is flow.bool
    assert flow.tensor(np.float64(3)).dtype is flow.tensor([np.float64(3)]).dtype is flow.float64
    assert flow.tensor(np.array([1.0], ">f4")).tolist() == [1.0]


def test_tensors_inside_lists_decide_the_dtype():
    one = flow.tensor(1.0)
    assert flow.tensor([one, 2.0]).dtype is flow.tensor([2.0, one]).dtype is flow.float32
    assert flow.tensor([one.double(), 2.0]).dtype is flow.float64
    assert flow.tensor([one, one]).tolist() == [1.0, 1.0]
    assert flow.tensor(flow.tensor([1.0], requires_grad=True)).requires_grad is False


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: flow.tensor(300, dtype=flow.uint8), "300 does not fit into uint8, which holds 0 to 255"),
        (lambda: flow.tensor([-1, 3], dtype=flow.uint8), "-1 does not fit into uint8"),
        (lambda: flow.tensor(2**70), "does not fit into int64"),
        (lambda: flow.full((2,), 300, dtype=flow.uint8), "300 does not fit into uint8"),
        (lambda: flow.zeros(2, dtype=flow.uint8).fill_(300), "300 does not fit into uint8"),
        (lambda: flow.zeros(2, dtype=flow.uint8) + 300, "add: 300 does not fit into uint8"),
        (lambda: flow.zeros(2, dtype=flow.uint8).add_(300), "add: 300 does not fit into uint8"),
        (lambda: flow.normal(0.0, -1.0, (2,)), "standard deviation"),
        (lambda: 2**70 * flow.tensor([1]), "mul: .* does not fit into int64"),
        (lambda: flow.arange(0, 5, -1), "never arrives"),
        (lambda: flow.linspace(0, 1, -1), "linspace: how many"),
        (lambda: flow.randperm(-1), "randperm: how many"),
        (lambda: flow.randint(5, 5, (2,)), "there is no integer"),
    ],
)
def test_out_of_range(make, text):
    with pytest.raises(OutOfRangeError, match=text):
        make()


@pytest.mark.parametrize(
    "make, kind",
    [
        (lambda: flow.tensor("abc"), DTypeError),
        (lambda: flow.tensor([None]), DTypeError),
        (lambda: flow.tensor([[1], [1, 2]]), ShapeError),
        (lambda: flow.zeros(2, -1), ShapeError),
        (lambda: flow.zeros(2.5), DTypeError),
        (lambda: flow.zeros(2, dtype=3), DTypeError),
        (lambda: flow.from_numpy([1]), DTypeError),
        (lambda: flow.from_numpy(np.arange(6.0)[::-1]), ShapeError),
        (lambda: flow.tensor([1], requires_grad=True), GradError),
    ],
)
def test_refused(make, kind):
    with pytest.raises(kind):
        make()


def test_sizes():
    for make in (flow.zeros, flow.ones, flow.empty, flow.rand, flow.randn):
        for x in (make(2, 3), make((2, 3)), make([2, 3]), make(flow.Size([2, 3])), make(size=(2, 3))):
            assert x.shape == (2, 3) and x.dtype is flow.float32
        assert make(()).shape == () and make(0, 2).numel() == 0
    assert flow.full((2,), 1.5).tolist() == [1.5, 1.5] and flow.full(size=(1,), fill_value=2).dtype is flow.int64
    assert flow.zeros(2, dtype=int).dtype is flow.int64 and flow.zeros(2, dtype="float64").dtype is flow.float64


def test_ranges():
    assert flow.arange(3).tolist() == flow.arange(end=3).tolist() == [0, 1, 2]
    assert flow.arange(5, 0, -2).tolist() == [5, 3, 1]
    assert flow.arange(1, 2, 0.25).tolist() == [1, 1.25, 1.5, 1.75]
    assert flow.linspace(0, 1, 5).tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert flow.eye(2, 3).tolist() == [[1, 0, 0], [0, 1, 0]]


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
    assert flow.from_numpy(np.array([1, 2], ">i4")).tolist() == [1, 2]


def test_dlpack_with_numpy():
    x = flow.arange(4.0)
    array = np.from_dlpack(x)
    x[0] = 5
    assert array[0] == 5
    y = flow.from_dlpack(np.zeros(2, "float32"))
    assert y.dtype is flow.float32 and y.tolist() == [0, 0]


def test_tensor_class():
    assert flow.Tensor(2, 3).shape == (2, 3) and flow.Tensor([1, 2]).tolist() == [1.0, 2.0]
    assert flow.Tensor([1, 2]).dtype is flow.float32 and flow.Tensor().shape == (0,)


def test_new_ones_like_me():
    x = flow.tensor([1, 2], dtype=flow.float64)
    for y in (
        x.new_zeros(2, 3), x.new_ones((2, 3)), x.new_empty(2, 3), x.new_full((2, 3), 4),
        x.new_tensor([[1, 2, 3]] * 2, device="cpu")
    ):
        assert y.shape == (2, 3) and y.dtype is flow.float64
    assert flow.zeros_like(x).dtype is flow.ones_like(x).dtype is flow.full_like(x, 2).dtype is flow.float64


@pytest.mark.parametrize("make", [flow.tensor, flow.as_tensor, flow.FloatTensor, flow.Tensor, flow.ones(1).new_tensor])
def test_a_tensor_in_a_list_stands_for_its_one_number(make):
    """As in PyTorch; where a list begins with numbers, a tensor stands for a row of them."""
    one, two = flow.tensor([1.0]), flow.tensor([[2.0]], requires_grad=True)
    assert make([one, two]).shape == (2,) and make([one, 3]).tolist() == [1, 3] and make([[one], [two]]).shape == (2, 1)
    assert make([4, two]).tolist() == [4, 2] and make([[4], one]).tolist() == [[4], [1]]
    assert make([[1, 2], flow.tensor([3, 4])]).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ShapeError, match=r"shape \(2,\), where one element would fit[\s\S]*flow.stack"):
        make([flow.ones(2), flow.ones(2)])
    with pytest.raises(ShapeError, match=r"shape \(2, 2\), where one axis would fit"):
        make([[1, 2], flow.ones(2, 2)])


@pytest.mark.parametrize("data, dtype", [
    ([flow.tensor(1, dtype=flow.int8), 2], "int64"), ([flow.tensor(1.5, dtype=flow.float16), 2.5], "float32"),
    ([flow.tensor(1.5, dtype=flow.float16), 2], "float16"), ([True, flow.tensor(2.5)], "float32"),
    ([np.uint8(1), -1], "int64"), ([np.float32(1.5), 2.5], "float32"), ([np.float64(1.5), flow.tensor(2)], "float64"),
    ([1, np.bool_(True)], "int64"), ([flow.tensor(1), 1j], "complex64"),
])  # fmt: skip
def test_what_is_in_a_list_counts_alike_for_the_dtype(data, dtype):
    assert flow.tensor(data).dtype.name == dtype


def test_what_integers_cannot_hold_is_refused_also_beside_floats():
    with pytest.raises(OutOfRangeError, match="does not fit into int64"):
        flow.tensor([2**63, 1.5], dtype=flow.int64)
    with pytest.raises(DTypeError, match=r"cannot hold an array of <U1"):
        flow.FloatTensor(np.array(["a"]))
    for sizes in (2**63, 2**62):
        with pytest.raises(ShapeError, match="no tensor has the shape"):
            flow.FloatTensor(sizes)
    assert flow.LongTensor(np.int64(2)).shape == (2,)


def test_tensor_of_a_tensor_keeps_its_gradient():
    x = flow.ones(2, requires_grad=True)
    (flow.Tensor(x) * 3.0 + flow.FloatTensor(x) * 2.0).sum().backward()
    assert x.grad.tolist() == [5, 5]
