"""Check programs on a device that is not the CPU, as users write them: their errors, and the copies that they wait for.

The device is the stand-in of `strict_backend.py`.
"""

import gc
import io
import threading
import warnings
import weakref

import numpy as np
import pytest

import minflow as flow
import minflow.nn.functional as F
from minflow import nn
from tests.strict_backend import UPLOADS, StrictArray, counted, strict_cuda


@pytest.fixture(autouse=True)
def device():
    with strict_cuda():
        yield


class Predict(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def build(self, x):
        return self.model(x)


@pytest.mark.parametrize("layer", [nn.CircularPad1d(1), nn.AdaptiveMaxPool1d(3)], ids=lambda m: type(m).__name__)
def test_constants_of_a_graph_are_on_its_device(layer):
    x = flow.randn(2, 3, 8, device="cuda")
    graph, expected = Predict(layer), layer(x).tolist()
    graph(x)
    uploads = UPLOADS.total()
    with counted() as copies:
        result = graph(x)
    assert not copies and UPLOADS.total() == uploads and result.tolist() == expected


def test_views_by_strides():
    x = flow.arange(12, device="cuda").view(3, 4)
    y = x[1:, 1:]
    windows = y.as_strided((2, 2), (4, 1))
    assert windows.tolist() == [[5, 6], [9, 10]] and windows.is_set_to(x[1:, 1:3]) and not windows.is_set_to(x)
    windows.zero_()
    assert x.tolist() == [[0, 1, 2, 3], [4, 0, 0, 7], [8, 0, 0, 11]]


# ---- the default device ----------------------------------------------------------------------------------------------


def test_a_device_is_a_context():
    """In its block and thread, as in PyTorch."""
    here = flow.ones(2)
    with flow.device("cuda") as device:
        made = [flow.tensor(1), flow.as_tensor(np.ones(2)), flow.Tensor(2), flow.randn(2), flow.eye(2), flow.arange(3)]
        parameters = list(nn.LSTM(3, 4).parameters())
        assert {t.device for t in (*made, *parameters)} == {device}
        assert {flow.zeros_like(here).device, flow.ones(1, device="cpu").device} == {here.device}
        thread = threading.Thread(target=lambda: made.append(flow.ones(1)))
        thread.start(), thread.join()
        assert made[-1].device == here.device
        with flow.device("cpu"), device, flow.device("cpu"):
            assert flow.ones(1).device == here.device
        assert flow.ones(1).device == device
    with pytest.raises(ValueError, match="of the block"), device:
        raise ValueError("of the block")
    assert flow.ones(1).device == here.device


def test_a_graph_is_built_again_for_another_default_device():
    graph, x = Predict(lambda x: flow.ones(2)), flow.zeros(2)
    for device in ("cpu", "cuda", "cpu"):
        with flow.device(device):
            assert graph(x).device.type == device


def test_an_index_is_a_gpu():
    x = flow.ones(2)
    assert x.to(0).device == flow.device(0) == flow.device("cuda:0") and flow.ones(2, device=0).is_cuda
    assert nn.Linear(2, 3).to(0).weight.is_cuda and x.to(True).device == x.device
    with pytest.raises(flow.DeviceError, match="no device cuda:1 here"):
        x.to(1)
    with pytest.raises(flow.DeviceError, match="no device -1"):
        x.to(-1)


# ---- errors that wait ------------------------------------------------------------------------------------------------


def wrong_index(x):
    return x[flow.tensor([5], device="cuda")]  # the wrong line


@pytest.mark.parametrize(
    "read",
    [
        lambda x, folder: flow.save(x, io.BytesIO()),
        lambda x, folder: flow.save(x, folder / "x.safetensors"),
        lambda x, folder: flow.cuda.synchronize(),
        lambda x, folder: flow.cuda.synchronize("cuda:0"),
        lambda x, folder: str(x),
    ],
    ids=["open file", "file", "synchronize", "synchronize a device", "print"],
)
def test_a_failed_check_is_raised_by_the_next_read(read, tmp_path):
    x = flow.ones(2, 3, device="cuda")
    wrong_index(x)
    line = wrong_index.__code__.co_firstlineno + 1
    with pytest.raises(flow.OutOfRangeError, match="index 5 is outside axis 0, which has size 2") as error:
        read(x, tmp_path)
    assert type(error.value) is flow.OutOfRangeError and error.value.where.endswith(f":{line}")
    read(x, tmp_path)  # reported once


def test_gradient_of_another_device():
    p = nn.Parameter(flow.ones(2, device="cuda"))
    with pytest.raises(flow.ShapeError, match="dtype and device of its tensor"):
        p.grad = flow.ones(2)


# ---- copies to the host ----------------------------------------------------------------------------------------------


def test_item_of_a_loss_is_one_copy():
    p = nn.Parameter(flow.ones(3, device="cuda"))
    loss = p.sum()
    with counted() as copies:
        assert loss.item() == float(loss) == 3.0
    assert copies.total() == 2


def test_an_evaluation_without_eval_is_reported_and_seldom_read():
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout()).to("cuda")
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1)

    def step():
        model(flow.randn(2, 3, device="cuda")).sum().backward()
        optimizer.step()

    def evaluate(n):
        with flow.no_grad():
            for _ in range(n):
                model(flow.randn(2, 3, device="cuda"))

    with counted() as copies:
        for _ in range(3):
            step()
            evaluate(1)
    assert not copies
    with pytest.warns(UserWarning, match="called under no_grad in training mode"):
        evaluate(2)


# ---- mixed precision -------------------------------------------------------------------------------------------------


def test_autocast_on_a_device():
    x = flow.randn(2, 3, device="cuda")
    with warnings.catch_warnings(), flow.autocast("cuda"):
        warnings.simplefilter("error")
        assert F.linear(x, x).dtype is flow.float16 and flow.amp.is_autocast_enabled("cuda")
        with flow.autocast("cuda", enabled=False):
            assert F.linear(x, x).dtype is flow.float32
    assert flow.amp.is_autocast_available("cuda") and not flow.amp.is_autocast_enabled("cuda")


def test_text_reads_the_printed_elements():
    """The others stay on the device: the shape has more elements than the host has memory for."""
    x = flow.arange(4000, device="cuda").expand(10**6, 10**4, 4000)
    assert str(x[0, :2]).splitlines()[0] == "tensor([[   0,    1,    2,  ..., 3997, 3998, 3999],"
    assert str(x).count("3999") == 6 * 6


def test_size_and_storage_change_on_the_device():
    x = flow.arange(6, device="cuda")
    with counted() as copies:
        x.resize_(2, 2)
        y = flow.arange(3, device="cuda").set_()
        z = flow.arange(3, device="cuda").map_(flow.ones(3, device="cuda"), lambda a, b: a + b)
    assert x.is_cuda and x.tolist() == [[0, 1], [2, 3]] and y.is_cuda and y.shape == (0,)
    assert z.is_cuda and z.tolist() == [1, 2, 3] and copies.total() == 2


def test_summary_of_a_shape_runs_on_the_device_of_the_model():
    assert "float32[2, 4] on cuda:0" in str(flow.summary(nn.Linear(3, 4).to("cuda"), (2, 3)))


def test_distributions_are_checked_with_the_next_read():
    mean, scale = flow.zeros(2, device="cuda"), flow.ones(2, device="cuda")
    with counted() as copies:
        flow.distributions.Normal(mean, scale).log_prob(mean)
        flow.distributions.Normal(mean, scale - 2)
    assert not copies
    with pytest.raises(flow.OutOfRangeError, match="Normal: scale must be > 0, one is -1"):
        mean.tolist()


class Training(Predict):
    def __init__(self, model):
        super().__init__(model)
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1))

    def build(self, x):
        loss = self.model(x).sum()
        loss.backward()
        return loss


def test_waiting_checks_do_not_keep_a_graph():
    graph = Training(nn.Linear(3, 4).to("cuda"))
    graph(flow.ones(2, 3, device="cuda"))
    memory = weakref.ref(graph)
    del graph
    gc.collect()
    assert memory() is None


def test_infinite_loss_of_a_graph_is_reported_with_the_next_read():
    graph = Training(nn.Linear(3, 4).to("cuda"))
    loss = graph(flow.full((2, 3), float("inf"), device="cuda"))
    with pytest.warns(UserWarning, match="(?s)a training step returned .*step  *1\n.*learning rate  0.1"):
        loss.item()


def test_steps_leave_no_arrays(monkeypatch):
    create, arrays = StrictArray.__init__, []

    def create_counted(self, inner):
        create(self, inner)
        arrays.append(weakref.ref(self))

    monkeypatch.setattr(StrictArray, "__init__", create_counted)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).to("cuda")
    optimizer = flow.optim.Adam(model.parameters())
    counts = []
    for _ in range(30):
        optimizer.zero_grad()
        x, y = flow.randn(5, 3).to("cuda"), flow.randint(0, 2, (5,)).to("cuda")
        F.cross_entropy(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        arrays[:] = [array for array in arrays if array() is not None]
        counts.append(len(arrays))
    assert len(set(counts[5:])) == 1


@pytest.mark.parametrize(
    "select",
    [
        lambda x, i: x[i],
        lambda x, i: x.index_select(0, i),
        lambda x, i: x.gather(0, i[:, None]),
        lambda x, i: x.index_add_(0, i, flow.ones(1, 3, device="cuda")),
        lambda x, i: F.embedding(i, x),
    ],
    ids=["index", "index_select", "gather", "index_add_", "embedding"],
)
def test_index_into_an_empty_axis_is_refused_at_once(select):
    with pytest.raises(flow.OutOfRangeError, match="index 1"):
        select(flow.zeros(0, 3, device="cuda"), flow.tensor([1], device="cuda"))


def test_legacy_constants_are_beside_their_tensor():
    assert flow.constant_like(flow.ones(2, device="cuda"), 3.0).tolist() == [3.0, 3.0]
    assert flow.constant_like(flow.ones(2, device="cuda"), 3.0).is_cuda
