"""Hooks on the tensors that the tape saves: whole models, modes, mistakes. The oracle: test_extension_points_torch."""

import gc
import weakref

import pytest

import minflow as flow
from minflow import nn
from minflow.autograd import graph
from tests.graph_models import FunctionGraph

GENERATOR = flow.Generator().manual_seed(0)
IMAGES = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 4)
)
MODELS = {  # model, shape of the input
    "mlp": (nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4), nn.Softmax(-1)), (5, 8)),
    "images": (IMAGES, (4, 3, 8, 8)),
    "attention": (nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), (5, 2, 8)),
    "recurrent": (nn.LSTM(8, 6), (5, 2, 8)),
}


class Square(flow.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x, None)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]


def gradients(model, x):
    out = model(x)
    out = out[0] if isinstance(out, tuple) else out
    return out, [x, *model.parameters()]


@pytest.mark.parametrize("model, shape", MODELS.values(), ids=MODELS)
def test_the_bits_of_a_model_stay(model, shape):
    calls = [0, 0]

    def pack(tensor):
        calls[0] += 1
        assert not tensor.requires_grad and not flow.is_grad_enabled()
        return tensor.numpy().copy()

    def unpack(array):
        calls[1] += 1
        return flow.from_numpy(array)

    x = flow.randn(*shape, generator=GENERATOR, requires_grad=True)
    plain, wanted = gradients(model, x)
    with graph.saved_tensors_hooks(pack, unpack):
        hooked, _ = gradients(model, x)
    assert calls[0] and not calls[1]
    for a, b in zip(flow.autograd.grad(plain.sum(), wanted), flow.autograd.grad(hooked.sum(), wanted)):
        assert a.tolist() == b.tolist()
    assert calls[1] >= calls[0] / 2


def test_functions_views_checkpoints_and_second_derivatives():
    def program(x):
        y = Square.apply(x).view(2, 2).t()[0].exp().sum()
        y = y + flow.utils.checkpoint.checkpoint(lambda a: (a * a).sin(), x).sum()
        (first,) = flow.autograd.grad(y, x, create_graph=True)
        return first, flow.autograd.grad(first.sum(), x)[0]

    x = flow.tensor([0.5, -1.0, 0.25, 2.0], requires_grad=True)
    plain = program(x)
    with graph.saved_tensors_hooks(lambda t: [t.clone()], lambda packed: packed[0]):
        hooked = program(x)
    assert [t.tolist() for t in hooked] == [t.tolist() for t in plain]


def test_saved_tensors_are_freed():
    x = flow.ones(4, requires_grad=True)
    with graph.saved_tensors_hooks(lambda t: None, lambda packed: flow.ones(4)):
        inner = x * 2
        kept, out = weakref.ref(inner), inner.exp().sum()
    del inner
    gc.collect()
    assert kept() is None
    out.backward()
    assert x.grad.tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize(
    "unpack, kind, said",
    [
        (lambda packed: 3, flow.GradError, "must return the tensor that the pack hook got, got an int"),
        (lambda packed: flow.ones(4), flow.ShapeError, r"(?s)saved\s+float32\[3\].*returned\s+float32\[4\]"),
        (lambda packed: packed.double(), flow.ShapeError, r"(?s)returned\s+float64\[3\]"),
    ],
)
def test_wrong_hooks(unpack, kind, said):
    x = flow.ones(3, requires_grad=True)
    with graph.saved_tensors_hooks(lambda t: t, unpack):
        out = x.exp().sum()
    with pytest.raises(kind, match=said):
        out.backward()


def test_hooks_in_a_graph_are_refused():
    def build(x):
        with graph.save_on_cpu():
            return x * 2

    with pytest.raises(flow.GradError, match="while a graph is built"):
        FunctionGraph(build)(flow.ones(2))
