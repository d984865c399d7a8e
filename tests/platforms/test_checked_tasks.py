"""Compiled tasks checked by NumPy: each operation is recomputed from the inputs that its task read, and every value is
between two guard bands that must stay unchanged.
"""

import math

import numpy as np
import pytest

pytest.importorskip("numba", reason="the machine is compiled by numba, which is not installed")

import minflow as flow
from minflow import nn
from minflow.compiler import plan_cache
from minflow.compiler.buffer_assignment import Layout
from minflow.compiler.executor import run
from minflow.compiler.plan import Plan
from minflow.core.ir import Value, outputs_of
from minflow.core.kernels import HOST_PLATFORMS, KERNELS, select
from minflow.platforms.compiled.passes import nchw16c
from tests.graph_models import TrainGraph

BAND = 1 << 10  # bytes before and after each value
FILLED = 0xA5
GEOMETRY = "stride", "padding", "dilation"
AVERAGED = "shape", "kernel_size", "stride", "padding", "ceil_mode"


class Guarded(Plan):
    """A plan that gives each value its own memory, between two guard bands."""

    def fill_arena(self):
        self.buffers = {}
        for v in self.places:
            self.buffers[v] = buffer = np.full(v.spec.nbytes + 2 * BAND, FILLED, np.uint8)
            self.env[v] = buffer[BAND : BAND + v.spec.nbytes].view(v.spec.np).reshape(v.spec.shape)

    def check(self, where):
        for v, buffer in self.buffers.items():
            assert (buffer[:BAND] == FILLED).all() and (buffer[BAND + v.spec.nbytes :] == FILLED).all(), (where, v)


@pytest.fixture
def guarded(on, monkeypatch):
    monkeypatch.setattr(plan_cache, "Plan", Guarded)
    monkeypatch.setattr(Layout, "dying", lambda *_: None)  # values do not share memory


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 40, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(1960, 70),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(70, 10),
    ), (11, 1, 28, 28)


class Block(nn.Module):
    def __init__(self, channels, wide, stride):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(channels, wide, 1, bias=False),
            nn.BatchNorm2d(wide),
            nn.ReLU6(),
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False),
            nn.BatchNorm2d(wide),
            nn.ReLU6(),
            nn.Conv2d(wide, channels, 1, bias=False),
            nn.BatchNorm2d(channels),
        )
        self.stride = stride

    def forward(self, x):
        return x + self.layers(x) if self.stride == 1 else self.layers(x)


def mobile():
    return nn.Sequential(
        nn.Conv2d(3, 24, 3, 2, 1, bias=False),
        nn.BatchNorm2d(24),
        nn.ReLU6(),
        Block(24, 80, 1),
        Block(24, 48, 2),
        Block(24, 48, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(24, 10),
    ), (9, 3, 30, 26)


def resized():
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, 2, 1),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        nn.Conv2d(32, 24, 3, padding=1),
        nn.ReLU(),
        nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False),
        nn.Upsample(scale_factor=3, mode="bilinear"),
        nn.Conv2d(24, 20, 1),
        nn.Upsample(scale_factor=2, mode="nearest"),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(20, 10),
    ), (9, 3, 46, 42)


def dense():
    return nn.Sequential(
        nn.Linear(130, 90), nn.GELU(), nn.LayerNorm(90), nn.Linear(90, 64), nn.Tanh(), nn.Linear(64, 10)
    ), (50, 130)


def attention():
    layer = nn.TransformerEncoderLayer(48, 3, 96, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
    return nn.Sequential(layer, nn.Flatten(), nn.Linear(960, 10)), (8, 20, 48)


MODELS = {"lenet": lenet, "mobile": mobile, "resized": resized, "dense": dense, "attention": attention}
OPTIMIZERS = {
    "sgd": lambda p: flow.optim.SGD(p, lr=0.05),
    "momentum": lambda p: flow.optim.SGD(p, lr=0.05, momentum=0.9),
    "adamw": lambda p: flow.optim.AdamW(p, lr=1e-3),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", MODELS)
def test_each_task_matches_numpy(name, optimizer, guarded):
    flow.manual_seed(1)
    model, shape = MODELS[name]()
    graph = TrainGraph(model, nn.CrossEntropyLoss(), OPTIMIZERS[optimizer](model.parameters()))
    x, y = flow.randn(*shape), flow.randint(0, 10, shape[:1])
    graph(x, y)
    (plan,) = [part.plan for part in graph._last.parts]
    assert check_operations(plan, [x.array, y.array])


def check_operations(plan, inputs, close=None):
    """Run a guarded plan once; return the number of its compiled nodes.

    close: comparison that replaces `near`; it also gets the inputs of the node and the index of the output.
    """
    close = close or near
    for buffer, v in [(plan.buffers[v], v) for v in plan.buffers]:
        buffer[BAND : BAND + v.spec.nbytes] = 0xFF  # NaN, in case a kernel reads uninitialized memory
    states = {s: Value(s, 0, s.out_specs[0]) for s in plan.graph.states}
    known = {v: s.array.copy() for s, v in states.items()}
    known.update(zip([Value(s, 0, s.out_specs[0]) for s in plan.graph.inputs], inputs))
    found = {}

    def watch(node, arrays):
        plan.check(node)
        found[node] = [array.copy() for array in arrays]

    run(plan, inputs, watch=watch)
    known.update({v: s.array.copy() for s, v in states.items() if s.read is not None})
    compiled, pixels = 0, {}
    for node in plan.graph.nodes:
        inputs = [known[v] if v.__class__ is Value else v for v in node.inputs]
        inputs = [np.array(a, order="C") if isinstance(a, np.ndarray) else a for a in inputs]
        with np.errstate(all="ignore"):
            expected = select(node.op, HOST_PLATFORMS).call(*inputs, **node.attrs)
        expected = list(expected) if node.op.many else [expected]
        compiled += (node.op, "compiled") in KERNELS
        read = np.asarray(inputs[0] if inputs else 0.0)
        read = np.abs(read[np.isfinite(read)]).max(initial=0) if read.dtype.kind == "f" else 0
        pixels.update(dict.fromkeys(outputs_of(node), pixels_of(node, pixels)))
        for i, (wanted, got) in enumerate(zip(expected, found.get(node, expected))):
            if not node.op.gradient_of or node.attrs["needs"] >> i & 1:  # others are unspecified
                close(wanted, got, node, pixels[outputs_of(node)[0]], read, inputs, i)
        known.update(zip(outputs_of(node), found.get(node, expected)))
    return compiled


def pixels_of(node, known):
    """Number of pixel rows of a blocked result; None if it is not blocked."""
    shape = node.attrs.get("images" if node.op is nchw16c.blocks_conv2d_weight_grad else "shape")
    if node.op is nchw16c.to_blocks:
        shape = node.inputs[0].spec.shape
    elif node.op is nchw16c.blocks_conv2d:
        shape = nchw16c.result_shape(shape, node.inputs[1].spec.shape, *[node.attrs[k] for k in GEOMETRY])
    elif node.op is nchw16c.blocks_conv2d_max_pool2d:
        shape = nchw16c.result_shape(shape, node.inputs[1].spec.shape, *[node.attrs[k] for k in GEOMETRY])
        shape = nchw16c.pooled(shape, node.attrs["kernel_size"], node.attrs["window_stride"], (0, 0))
    elif node.op is nchw16c.blocks_max_pool2d:
        shape = nchw16c.pooled(**node.attrs)
    elif node.op is nchw16c.blocks_avg_pool2d:
        shape = nchw16c.pooled(**{name: node.attrs[name] for name in AVERAGED})
    elif node.op is nchw16c.blocks_interpolate:
        shape = *shape[:2], *node.attrs["output_size"]
    elif node.op is nchw16c.blocks_average:
        shape = shape[:2]
    elif node.op not in nchw16c.BLOCKED.values():
        return next((known[v] for v in node.inputs if v.__class__ is Value and known.get(v)), None)
    if node.out_specs[0].shape[-1:] != (nchw16c.LANES,) or node.out_specs[0].ndim != 3:
        return None
    return shape[0] * math.prod(shape[2:])


def near(wanted, got, node, pixels, read, *_):
    """True if equal within float32 rounding of the largest element and of the largest input, since sums may cancel."""
    if pixels and wanted.ndim == 3:
        wanted, got = wanted[:, :pixels], got[:, :pixels]
    if wanted.dtype.kind != "f" and node.op is nchw16c.blocks_conv2d_max_pool2d:  # a tie that rounding breaks
        assert (wanted != got).mean() < 1e-3, node
    elif wanted.dtype.kind != "f":
        np.testing.assert_array_equal(wanted, got, err_msg=str(node))
    else:
        scale = np.abs(wanted).max(initial=1e-6)
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=2e-5 * scale + 1e-5 * read, err_msg=str(node))
