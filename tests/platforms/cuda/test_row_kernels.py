"""Kernels over rows and channels: infinities and NaN, labels that are ignored or wrong, and launches per call."""

import math

import numpy as np
import pytest

import minflow as flow
from minflow.core.op import OPS
from minflow.nn import functional as F
from tests.strict_backend import StrictArray


@pytest.fixture
def launches(cuda_kernels, monkeypatch):
    """The names of the functions of CUDA C that are launched."""
    from minflow.platforms.cupy import device_code

    names = []
    function = device_code.CudaBackend.function
    monkeypatch.setattr(
        device_code.CudaBackend, "function", lambda self, *key: names.append(key[1]) or function(self, *key)
    )
    return names


def same(got, expected):
    np.testing.assert_allclose(got.cpu().numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


UNUSUAL = [math.inf, -math.inf, math.nan, -0.0, 1e4, -1e4]
ROWS = [[0.5, 1.5, x, 2.5] for x in UNUSUAL] + [[-math.inf] * 4, [math.inf, math.inf, 0.0, -math.inf]]


@pytest.mark.parametrize("function", [flow.softmax, flow.log_softmax], ids=["softmax", "log_softmax"])
@pytest.mark.parametrize("dim", [0, 1])
def test_softmax_of_infinities(launches, function, dim):
    x = flow.tensor(ROWS)
    x = x.T if dim == 0 else x
    same(function(x.to("cuda"), dim), function(x, dim))
    assert launches == ["softmax_rows"]


@pytest.mark.filterwarnings("ignore::minflow.MinflowWarning")
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("labels", [[0, 3, 2, 1, 3, 0, 1, 2], [-100] * 8, [1, -100] * 4])
def test_losses_of_infinities(cuda_kernels, reduction, labels):
    def found(device):
        x = flow.tensor(ROWS, device=device, requires_grad=True)
        loss = F.cross_entropy(x, flow.tensor(labels, device=device), reduction=reduction)
        loss.sum().backward()
        return loss.detach(), x.grad

    for got, expected in zip(found("cuda"), found("cpu")):
        same(got, expected)


def test_labels_that_are_no_class(cuda_kernels):
    """Nothing outside of the scores is read: loss and gradient of such a row are NaN."""
    x, labels = StrictArray(np.zeros((3, 4), "f4")), StrictArray(np.array([1, 4, -1]))
    attrs = dict(ignore_index=-100, reduction="none")
    loss, probs = run("softmax_cross_entropy", x, labels, **attrs)
    np.testing.assert_array_equal(np.isnan(loss), [False, True, True])
    grad = run("softmax_cross_entropy_grad", StrictArray(probs), labels, StrictArray(np.ones(3, "f4")), **attrs)
    np.testing.assert_array_equal(np.isnan(grad).any(1), [False, True, True])


def run(name: str, *arrays, **attrs):
    """Run the kernel of the platform "cupy" on arrays of the device; return NumPy's arrays."""
    from minflow.core.kernels import call_on

    results = call_on(OPS[name], "cupy", "cuda")(*arrays, **attrs)
    return tuple([x.inner for x in results]) if isinstance(results, tuple) else results.inner


def test_launches_of_losses(launches):
    x = flow.randn(3, 5).to("cuda").requires_grad_()
    labels = flow.tensor([0, 4, 2], device="cuda")
    F.cross_entropy(x, labels).backward()
    assert launches == ["loss_rows", "add_losses", "count_labels", "loss_grad_rows"]
    launches.clear()
    F.cross_entropy(x, labels, flow.ones(5, device="cuda"), label_smoothing=0.1, reduction="sum").backward()
    assert launches == ["loss_rows", "add_losses", "loss_grad_rows"]


def test_weights_that_need_a_gradient(launches):
    """Their gradient is that of the decomposition."""

    def found(device):
        x, weight = flow.arange(12.0).reshape(3, 4) / 7, flow.tensor([1.0, 2.0, 0.5, 3.0])
        x, weight = x.to(device).requires_grad_(), weight.to(device).requires_grad_()
        F.cross_entropy(x, flow.tensor([0, 3, 2], device=device), weight, label_smoothing=0.2).backward()
        return x.grad, weight.grad

    for got, expected in zip(found("cuda"), found("cpu")):
        same(got, expected)
    assert launches[:2] == ["loss_rows", "add_losses"] and "loss_grad_rows" not in launches[:3]


def norms_of(device: str):
    """Results and gradients of each norm, of data that are far from 0 and not contiguous."""
    x = (flow.randn(5, 7, 4, 6, generator=flow.Generator().manual_seed(0)) + 1000).transpose(0, 2)
    weight, bias = flow.linspace(0.5, 2.0, 7), flow.linspace(-1.0, 1.0, 7)
    calls = {
        "layer_norm": lambda x, w, b: F.layer_norm(x.transpose(1, 3), (7,), w, b),
        "rms_norm": lambda x, w, b: F.rms_norm(x.transpose(1, 3), (7,), w) + b,
        "group_norm": lambda x, w, b: F.group_norm(x, 7, w, b),
        "instance_norm": lambda x, w, b: F.instance_norm(x, weight=w, bias=b),
        "batch_norm": lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
    }
    found = {}
    for name, call in calls.items():
        leaves = [t.to(device).detach().requires_grad_() for t in (x, weight, bias)]
        out = call(*leaves)
        (out * flow.arange(out.numel()).reshape(out.shape).to(device).sin()).sum().backward()
        found[name] = [out.detach(), *[t.grad for t in leaves]]
    return found


def test_norms_of_strided_data_far_from_zero(launches):
    expected = norms_of("cpu")
    for name, results in norms_of("cuda").items():
        for got, wanted in zip(results, expected[name]):
            np.testing.assert_allclose(got.cpu().numpy(), wanted.numpy(), rtol=1e-3, atol=2e-3, err_msg=name)
    rows, batch = ["norm_rows", "norm_grad_rows", "channel_sums", "add_sums"], ["channel_moments", "batch_norm"]
    ours = [name for name in launches if name in {*rows, *batch, "batch_norm_grad"}]
    assert ours == 4 * rows + [*batch, "channel_sums", "batch_norm_grad"]


@pytest.mark.parametrize("attrs", [dict(kernel_size=2), dict(kernel_size=3, stride=1, padding=1)], ids=str)
def test_pooling(launches, attrs):
    """NaN and infinities in windows, and gradients of windows that overlap."""
    x = flow.tensor([math.nan, math.inf, -math.inf, 0.0, 1.0, -0.0]).repeat(40).reshape(2, 3, 5, 8)

    def found(device):
        leaf = x.to(device).detach().requires_grad_()
        y, indices = F.max_pool2d(leaf, **attrs, return_indices=True)
        weights = flow.arange(1, y.numel() + 1).reshape(y.shape).to(device)
        (y.masked_fill(y.isnan() | y.isinf(), 0.0) * weights).sum().backward()
        return y.detach(), indices, leaf.grad, F.avg_pool2d(leaf.detach(), **attrs)

    for got, expected in zip(found("cuda"), found("cpu")):
        same(got, expected)
    assert [name for name in launches if "pool" in name] == ["max_pool", "max_pool_grad", "avg_pool"]


class Mixed(flow.nn.Module):
    """All families of kernels."""

    def __init__(self):
        super().__init__()
        self.batch, self.group, self.layer = flow.nn.BatchNorm2d(4), flow.nn.GroupNorm(2, 4), flow.nn.LayerNorm(3)
        self.head = flow.nn.Linear(12, 3)

    def forward(self, x):
        x = F.max_pool2d(self.group(self.batch(x)), 3, 2, 1)
        x = F.dropout(F.adaptive_avg_pool2d(x, (2, 3)), 0.25).reshape(len(x), -1, 3)
        return self.head(self.layer(x).reshape(len(x), 2, 12))[:, 0].softmax(-1)


def trained(device: str, graph: bool):
    """Losses and parameters after steps of training."""
    flow.manual_seed(21)
    model = Mixed().to(device)
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
    x, labels = flow.randn(5, 4, 7, 7).to(device), flow.tensor([0, 2, 1, -100, 2]).to(device)

    class Step(flow.nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(optimizer)

        def build(self, x, labels):
            loss = F.cross_entropy(self.model(x), labels, label_smoothing=0.1)
            loss.backward()
            return loss

    def step(x, labels):
        loss = F.cross_entropy(model(x), labels, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    run = Step() if graph else step
    return [run(x, labels).detach() for _ in range(3)] + [p.detach() for p in model.state_dict().values()]


@pytest.mark.filterwarnings("ignore::minflow.MinflowWarning")
@pytest.mark.parametrize("graph", [False, True], ids=["eager", "graph"])
def test_training(launches, graph):
    expected = trained("cpu", graph)
    launches.clear()
    for got, wanted in zip(trained("cuda", graph), expected):
        same(got.float(), wanted.float())
    names = {
        "batch_norm_grad",
        "norm_grad_rows",
        "max_pool_grad",
        "adaptive_avg_pool_grad",
        "loss_grad_rows",
        "dropout",
    }
    assert names <= set(launches)


def test_second_derivatives_of_norms(cuda_kernels):
    def found(device):
        x = flow.linspace(-1, 2, 24).reshape(4, 6).sin().to(device).requires_grad_()
        loss = (F.layer_norm(x, (6,)) ** 3).sum() + F.softmax(x, 1).square().sum()
        (first,) = flow.autograd.grad(loss, x, create_graph=True)
        return flow.autograd.grad(first.square().sum(), x)[0]

    np.testing.assert_allclose(found("cuda").cpu().numpy(), found("cpu").numpy(), rtol=1e-3, atol=1e-3)


def test_launches_of_a_batch_norm_in_evaluation(launches):
    model = flow.nn.BatchNorm2d(3).to("cuda").eval()
    model(flow.randn(2, 3, 4, 4).to("cuda"))
    assert launches == ["batch_norm_inference"]
