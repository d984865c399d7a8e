"""Tensor, except its arithmetic."""

import concurrent.futures
import copy
import multiprocessing
import pickle
import threading

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import DeviceError, DTypeError, GradError, OutOfRangeError, ShapeError


def a():
    return flow.tensor([1.0, 2.0, 3.0])


def m():
    return flow.tensor([[1.0, 2.0], [3.0, 4.0]])


def test_numpy_on_the_left():
    x, array = a(), np.array([1, 2, 3], "float32")
    for y in (array * x, np.multiply(x, array), np.multiply(array, x)):
        assert isinstance(y, flow.Tensor) and y.tolist() == [1, 4, 9]
    for number in (np.float32(2), np.float64(2), np.int64(2)):
        assert isinstance(number * x, flow.Tensor) and (number * x).dtype is flow.float32
    assert isinstance(np.add(x, array), flow.Tensor)
    assert isinstance(np.exp(x), flow.Tensor) and np.stack([x, x]).shape == (2, 3)
    assert np.sum(m()).item() == 10 and np.asarray(x, dtype="float64").dtype == np.float64
    leaf = flow.tensor([1.0], requires_grad=True)
    (np.array([3.0], "float32") * leaf).sum().backward()
    assert leaf.grad.tolist() == [3.0]


def test_container_protocol():
    x = m()
    assert len(x) == 2 and [row.tolist() for row in x] == [[1, 2], [3, 4]]
    assert 2.0 in x and 9.0 not in x
    assert {x: 1}[x] == 1 and len({x, x, m()}) == 2
    assert (x == None) is False and (x != None) is True and (x == "x") is False  # noqa: E711
    assert x in [x] and None in [x.grad, x]
    for wrong in (len, iter):
        with pytest.raises(DTypeError, match="0-d tensor"):
            wrong(flow.tensor(1.0))


def test_number_protocol():
    assert float(flow.tensor(2.5)) == 2.5 and int(flow.tensor([2.7])) == 2 and bool(flow.tensor(0)) is False
    assert [1, 2, 3][flow.tensor(1)] == 2 and list(range(flow.tensor(2))) == [0, 1]
    for ask in (bool, float, int, lambda x: x.item()):
        with pytest.raises(ShapeError):
            ask(a())
    with pytest.raises(ShapeError):
        bool(flow.tensor([]))
    with pytest.raises(DTypeError, match="cannot be an index"):
        [1][flow.tensor(0.0)]


def test_layout():
    x = flow.arange(6.0).reshape(2, 3)
    assert x.stride() == (3, 1) and x.T.stride() == (1, 3) and x.stride(-1) == 1
    assert x.is_contiguous() and not x.T.is_contiguous() and x.T.contiguous().is_contiguous()
    assert x[:, 1].storage_offset() == 1 and x[1].data_ptr() == x.data_ptr() + 12
    assert x.mT.shape == (3, 2) and x.size() == (2, 3) and x.size(-1) == 3
    with pytest.raises(ShapeError, match="not contiguous"):
        x.T.view(6)
    for wrong in ((4,), (-1, -1), ()):
        with pytest.raises(ShapeError, match="view"):
            x.view(*wrong)
    with pytest.raises(OutOfRangeError):
        x.stride(5)


def test_to():
    x = a()
    assert x.to("cpu") is x and x.to(flow.float32) is x and x.to(flow.float32, copy=True) is not x
    assert (
        x.to(None) is x and x.to(None, flow.float32) is x and flow.nn.Linear(1, 1).to(None).bias.dtype is flow.float32
    )
    for y in (
        x.to(flow.int64),
        x.to(device="cpu", dtype=flow.int64),
        x.to("cpu", flow.int64),
        x.to(flow.tensor(1)),
        x.long(),
        x.type(flow.int64),
        x.type("minflow.LongTensor"),
        x.type_as(flow.tensor(1)),
    ):
        assert y.dtype is flow.int64
    assert x.type() == "minflow.FloatTensor" and flow.tensor(1).type() == "minflow.LongTensor"
    with pytest.raises(DTypeError, match=r"to\(\) takes"):
        x.to(3.0)
    for ask in (lambda: x.to("cuda"), x.cuda, lambda: flow.zeros(2, device="cuda")):
        with pytest.raises(DeviceError, match="no device cuda:0"):
            ask()


def test_flags():
    x = a()
    assert not x.is_lazy and not x.is_global and x.is_local and not x.is_cuda and x.is_leaf and x.grad_fn is None
    with pytest.raises(GradError, match="only floating"):
        flow.tensor([1]).requires_grad_()
    with pytest.raises(ShapeError, match="gradient has the shape"):
        x.grad = m()
    with pytest.raises(GradError, match="leaves only"):
        (flow.ones(1, requires_grad=True) * 2).requires_grad_(False)
    with pytest.raises(DTypeError, match="takes a tensor"):
        x.data = 3


def test_detach_and_data():
    x = flow.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward()
    assert y.grad.tolist() == [4, 4] and not y.detach().requires_grad and y.detach().data_ptr() == y.data_ptr()
    assert y.detach_() is y and y.is_leaf and not y.requires_grad
    x.data = flow.zeros(3)
    assert x.shape == (3,) and x.requires_grad and x.is_leaf
    x.data[0] = 5
    assert x.tolist() == [5, 0, 0]


def test_view_follows_its_base_where_the_history_ends():
    """See docs/differences.md."""
    leaf = flow.ones(3, requires_grad=True)
    base = leaf * 2
    view, of_leaf = base[1:], leaf[1:]
    assert view.requires_grad and of_leaf.requires_grad
    base.detach_()
    leaf.requires_grad_(False)
    assert not view.requires_grad and not of_leaf.requires_grad


def test_numpy_shares_memory():
    x = a()
    x.numpy()[0] = 9
    assert x[0] == 9
    leaf = flow.ones(1, requires_grad=True)
    assert not leaf.numpy().flags.writeable and leaf.numpy(force=True).flags.writeable
    assert leaf.numpy().ctypes.data == leaf.data_ptr()


def test_views_in_place():
    assert m().t_().tolist() == m().transpose_(0, 1).tolist() == [[1, 3], [2, 4]]
    x = a()
    assert x.unsqueeze_(0) is x and x.shape == (1, 3) and x.squeeze_().shape == (3,)
    leaf = flow.ones(2, 3, requires_grad=True)
    y = leaf * 2
    y.t_()
    (y * flow.arange(6.0).reshape(3, 2)).sum().backward()
    assert leaf.grad.tolist() == [[0, 4, 8], [2, 6, 10]]
    with pytest.raises(GradError, match="leaf"):
        leaf.t_()


def test_copies():
    x = flow.ones(2, requires_grad=True)
    x.note = ["kept"]
    (x * 3).sum().backward()
    twin = copy.deepcopy(x)
    assert twin.requires_grad and twin.grad.tolist() == [3, 3] and twin.grad is not x.grad
    assert twin.note == ["kept"] and twin.note is not x.note and twin.data_ptr() != x.data_ptr()
    tied = copy.deepcopy([x, x])
    assert tied[0] is tied[1]
    parameter = copy.deepcopy(flow.nn.Parameter(flow.ones(1)))
    assert isinstance(parameter, flow.nn.Parameter) and parameter.requires_grad
    assert copy.copy(x).data_ptr() == x.data_ptr()


def samples():
    return [
        flow.tensor(1.5),
        flow.zeros(0, 2),
        flow.tensor([True]),
        flow.ones(1, requires_grad=True),
        m().T,
        flow.nn.Parameter(flow.ones(2)),
    ]


def same(x, y) -> bool:
    return type(x) is type(y) and x.dtype is y.dtype and x.requires_grad == y.requires_grad and x.tolist() == y.tolist()


def test_pickle():
    assert all(same(x, pickle.loads(pickle.dumps(x))) for x in samples())


def back(x):
    return x


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_tensor_is_sent_between_processes(method):
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context(method)) as pool:
        assert all(same(x, y) for x, y in zip(samples(), pool.map(back, samples())))


def test_modes_are_thread_local():
    seen = []

    def look():
        y = flow.ones(1, requires_grad=True) * 2
        seen.append((flow.is_grad_enabled(), y.requires_grad))

    with flow.no_grad():
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        assert not flow.is_grad_enabled()
    assert seen == [(True, True)] and flow.is_grad_enabled()
