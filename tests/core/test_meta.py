"""The device "meta": every op has the shape, dtype and strides that it has on the CPU, and no elements."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.autograd import grad
from minflow.core.dispatch import apply
from minflow.core.infer import data_dependent
from minflow.core.op import OPS
from minflow.core.ops.examples import cases
from tests.core.test_ops_on_device import many, tensors
from tests.measuring import peak

F = nn.functional
META = flow.device("meta")
flow.zeros(1, device=META)  # loads what `apply` needs
WITH_EXAMPLES = [op for op in OPS.values() if op.examples and not op.moves]
REFUSED = (flow.GradError, flow.LinAlgError)  # on the CPU, by the elements


def facts(t):
    if t is None:
        return None
    return tuple(t.shape), t.dtype, t.stride() if t.numel() else None, t.requires_grad  # NumPy: 0 for an empty array


def run(op, example, device):
    """The facts of the results of an op and of its gradients, and the devices of the results."""
    inputs = tensors(op, example.arrays(), device, True)
    attrs = example.attrs | ({"device": device} if "device" in op.attrs else {})
    results = many(apply(op, *inputs, **attrs))
    outs = [t for t in results if t.requires_grad]
    leaves = [x for x in inputs if isinstance(x, flow.Tensor) and x.requires_grad]
    found = grad(outs, leaves, [flow.ones_like(t) for t in outs], allow_unused=True) if outs else []
    return [facts(t) for t in (*results, *found)], {t.device for t in results}


@pytest.mark.parametrize("op", WITH_EXAMPLES, ids=lambda op: op.name)
def test_every_op_has_the_shapes_of_the_cpu(op):
    for example in cases(op):
        if op.infer is data_dependent:
            with pytest.raises(flow.DeviceError, match="meta are read"):
                run(op, example, META)
            continue
        try:
            wanted, _ = run(op, example, flow.device("cpu"))
        except REFUSED:
            continue
        found, devices = run(op, example, META)
        assert found == wanted
        assert META in devices or not set(op.inputs) - set(op.host_inputs)


def test_no_elements_are_allocated():
    models = []
    create = lambda: models.append(nn.Transformer(4096, 32, 4, 4, 16384, device="meta"))
    assert peak(create, below=10_000_000) < 10_000_000
    assert sum(p.numel() for p in models[0].parameters()) == 1_879_588_864
    assert flow.zeros(10**6, 10**6, device="meta").sum(1).shape == (10**6,)


def test_a_model_trains_without_elements():
    with flow.device("meta"):
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 5))
        x, y = flow.randn(2, 3, 8, 8), flow.zeros(2, dtype=flow.int64)
    for optimizer in (flow.optim.SGD(model.parameters(), 0.1, momentum=0.9), flow.optim.AdamW(model.parameters())):
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    assert model[0].weight.grad.shape == (8, 3, 3, 3) and model[1].running_mean.is_meta
    assert model.to_empty(device="cpu")[0].weight.is_cpu and type(model[0].weight) is nn.Parameter


@pytest.mark.parametrize("read", [
    lambda x: x.sum().item(), lambda x: x.tolist(), lambda x: bool(x.any()), lambda x: x.numpy(), lambda x: x.cpu(),
    lambda x: f"{x.sum():.2f}", lambda x: flow.ones(2, 3).copy_(x), lambda x: x[x > 0], lambda x: x.unique(),
    lambda x: flow.equal(x, x), lambda x: x.untyped_storage().tolist(),
])  # fmt: skip
def test_reading_is_one_error(read):
    with pytest.raises(flow.DeviceError, match="elements of a tensor on the device meta are read"):
        read(flow.ones(2, 3, device="meta"))


def test_meta_tensors_print_and_name_their_device():
    x = flow.ones(2, 3, device="meta")
    assert repr(x) == "tensor(..., size=(2, 3), device='meta', dtype=minflow.float32)"
    assert (x.is_meta, x.is_cpu, str(x.device), repr(x.device)) == (True, False, "meta", "device(type='meta')")
    assert x.to("meta") is x and (x + flow.tensor(1.0)).is_meta and not flow.empty_like(x, device="cpu").is_meta
    with pytest.raises(flow.DeviceError, match="a is on meta, and b is on cpu"):
        x + flow.ones(2, 3)


@pytest.mark.parametrize("call", [
    lambda: nn.Linear(4, 3, device="meta")(flow.ones(2, 4)), lambda: nn.Linear(4, 3)(flow.ones(2, 4, device="meta")),
    lambda: nn.Conv2d(1, 2, 3, device="meta")(flow.ones(1, 1, 5, 5)), lambda: flow.ones(3) @ flow.ones(3, device=META),
])  # fmt: skip
def test_meta_and_other_tensors_in_one_op(call):
    with pytest.raises(flow.DeviceError, match="is on meta, and .* is on cpu") as caught:
        call()
    assert '.to("meta") for the shapes alone; or to_empty(device="cpu") of the module on meta' in caught.value.hint


def test_loading_into_meta_needs_memory():
    source, model = nn.Linear(3, 4), nn.Linear(3, 4, device="meta")
    with pytest.raises(flow.StateError, match="assign=True"):
        model.load_state_dict(source.state_dict())
    model.load_state_dict(source.state_dict(), assign=True)
    assert flow.equal(model(flow.ones(3)), source(flow.ones(3)))
    other = nn.Linear(3, 4, device="meta").to_empty(device="cpu")
    other.load_state_dict(source.state_dict())
    assert flow.equal(other.weight, source.weight) and other.weight.requires_grad


def test_a_graph_of_meta_tensors_is_refused():
    class Forward(nn.Graph):
        def build(self, x):
            return x * 2

    with pytest.raises(flow.GraphError, match="cannot be compiled for meta") as caught:
        Forward()(flow.ones(2, device="meta"))
    assert "model.to_empty" in caught.value.hint and "model(x).shape" in caught.value.hint


def test_default_device_and_blocks():
    with flow.device("meta"):
        assert flow.ones(2).is_meta and nn.Linear(2, 2).weight.is_meta and flow.tensor([1.0]).is_meta
        with flow.device("cpu"):
            assert flow.ones(2).is_cpu and flow.get_default_device() == flow.device("cpu")
        assert flow.ones(2).is_meta and flow.ones(2, device="cpu").is_cpu
    flow.set_default_device("meta")
    try:
        assert flow.rand(2).is_meta and flow.get_default_device() is META
        with flow.device("cpu"):
            assert flow.arange(2).is_cpu
        with ThreadPoolExecutor(1) as pool:  # the default is that of one thread, as in PyTorch
            assert pool.submit(lambda: flow.ones(2)).result().is_cpu
    finally:
        flow.set_default_device(None)
    assert flow.ones(2).is_cpu


def test_a_block_does_not_move_tensors_of_other_devices():
    x = flow.arange(6.0).reshape(2, 3)
    model, inputs = nn.LSTM(3, 2), flow.rand(4, 2, 3)
    with flow.device("meta"):
        assert (x + np.ones(3, np.float32))[[0]].is_cpu and (np.ones(3, np.float32) * x).is_cpu and x[x > 1].is_cpu
        assert model(inputs)[0].is_cpu and nn.init.orthogonal_(x.clone()).is_cpu and nn.init.eye_(x.clone()).is_cpu
        assert nn.init.sparse_(flow.ones(3, 3), 0.5).is_meta and nn.init.dirac_(flow.ones(2, 2, 3)).is_meta
        assert nn.init.orthogonal_(flow.empty(2, 3)).is_meta


def test_a_device_block_in_a_graph():
    class Forward(nn.Graph):
        def build(self, x):
            with flow.device("cpu"):
                return x + flow.ones(2)

    assert Forward()(flow.zeros(2)).tolist() == [1, 1]
