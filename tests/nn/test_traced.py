"""Layers in a trace: a training step as a graph gives the bits that eager gives, running statistics too."""

import copy

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.trace import trace
from tests.reference import execute

IMAGES, ROWS = (4, 6, 8, 8), (4, 6)
LAYERS = [
    (nn.Linear(6, 3), ROWS),
    (nn.Linear(8, 3), IMAGES),
    (nn.Conv2d(6, 4, 3), IMAGES),
    (nn.Conv2d(6, 6, 3, 2, 1, groups=6), IMAGES),
    (nn.Conv2d(6, 4, (2, 3), padding="same"), IMAGES),
    (nn.MaxPool2d(2), IMAGES),
    (nn.AvgPool2d(3, 2, 1), IMAGES),
    (nn.AdaptiveAvgPool2d(3), IMAGES),
    (nn.BatchNorm2d(6), IMAGES),
    (nn.BatchNorm1d(6), ROWS),
    (nn.BatchNorm2d(6, momentum=None), IMAGES),
    (nn.BatchNorm2d(6, affine=False), IMAGES),
    (nn.BatchNorm2d(6).eval(), IMAGES),
    (nn.LayerNorm(8), IMAGES),
    (nn.Dropout(0.4), IMAGES),
    (nn.Dropout(0.4).eval(), IMAGES),
    (nn.Flatten(), IMAGES),
    (nn.ReLU(), ROWS),
    (nn.ReLU6(inplace=True), ROWS),
    (nn.LeakyReLU(inplace=True), ROWS),
    (nn.GELU(), ROWS),
    (nn.GELU("tanh"), ROWS),
    (nn.SiLU(), ROWS),
    (nn.Softmax(1), ROWS),
    (nn.LogSoftmax(-1), IMAGES),
    (nn.Sigmoid(), ROWS),
    (
        nn.Sequential(
            nn.Conv2d(6, 4, 3),
            nn.BatchNorm2d(4),
            nn.ReLU(inplace=True),
            nn.Dropout(0.1),
            nn.Flatten(),
            nn.Linear(144, 2),
        ),
        IMAGES,
    ),
]
LABELS = np.array([0, 2, 1, 1])


def bits(tensors):
    return [None if t is None else t.numpy().tobytes() for t in tensors]


def step(model, x):
    """Forward, backward, and everything that came of it."""
    x = x * 1.0
    out = model(x)
    (out * out).sum().backward()
    grads = [p.grad for p in model.parameters()]
    return [out, *grads]


@pytest.mark.parametrize(("model", "shape"), LAYERS, ids=lambda p: type(p).__name__ if isinstance(p, nn.Module) else "")
def test_traced_is_eager(model, shape):
    eager, traced = copy.deepcopy(model), copy.deepcopy(model)
    x = flow.tensor(np.random.default_rng(0).standard_normal(shape).astype("float32"), requires_grad=False)
    if not list(model.parameters()):
        eager, traced = nn.Sequential(nn.Identity(), eager), nn.Sequential(nn.Identity(), traced)
        for net in (eager, traced):
            net.scale = nn.Parameter(flow.ones(shape[-1]))
            net.register_forward_pre_hook(lambda m, args: (args[0] * m.scale,))
    flow.manual_seed(3)
    want = bits(step(eager, x))
    flow.manual_seed(3)
    graph, _ = trace(lambda x: step(traced, x), [x])
    got = [a.tobytes() for a in execute(graph, [x.numpy()])]
    assert got == want
    assert bits(traced.buffers()) == bits(eager.buffers())
    assert all(p.grad is None for p in traced.parameters())


@pytest.mark.parametrize(
    "loss",
    [
        nn.CrossEntropyLoss(),
        nn.CrossEntropyLoss(flow.tensor([1.0, 2.0, 0.5]), ignore_index=1, label_smoothing=0.1),
        nn.NLLLoss(),
        nn.CrossEntropyLoss(reduction="none"),
    ],
    ids=repr,
)
def test_losses(loss):
    array = np.random.default_rng(0).standard_normal((4, 3)).astype("float32")
    inputs = [flow.tensor(array), flow.tensor(LABELS)]
    weight = nn.Parameter(flow.ones(3))

    def program(x, y):
        out = loss(x * weight, y)
        out.sum().backward()
        return [out, weight.grad]

    graph, _ = trace(program, inputs)
    got = [a.tobytes() for a in execute(graph, [x.numpy() for x in inputs])]
    assert got == bits(program(*inputs))


def test_numbers_losses_and_embedding():
    x, y = flow.rand(4, 3), flow.rand(4, 3)
    table = nn.Embedding(5, 3, padding_idx=0)
    index = flow.tensor([[0, 4], [2, 2]])

    def program(x, y, index):
        losses = [kind()(x, y) for kind in (nn.MSELoss, nn.L1Loss, nn.BCELoss, nn.BCEWithLogitsLoss)]
        rows = table(index)
        (rows * rows).sum().backward()
        found = [
            *losses,
            rows,
            table.weight.grad,
            nn.functional.one_hot(index, 5),
            nn.functional.pad(x, (1, 0), value=2.0),
        ]
        return found

    inputs = [x, y, index]
    graph, _ = trace(program, inputs)
    got = [a.tobytes() for a in execute(graph, [t.numpy() for t in inputs])]
    assert got == bits(program(*inputs))


def test_setting_a_buffer_is_an_update():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", flow.zeros(2))

        def forward(self, x):
            self.total = self.total * 0.5 + x.detach().sum(0)
            return x * self.total

    eager, traced = Counting(), Counting()
    x = flow.ones(3, 2)
    storage = traced.total
    graph, _ = trace(traced, [x])
    for _ in range(3):
        want = eager(x)
        assert execute(graph, [x.numpy()])[0].tolist() == want.tolist()
    assert traced.total is storage and traced.total.tolist() == eager.total.tolist()


def test_hooks_run_once_in_the_trace():
    layer, seen = nn.Linear(2, 2), []
    layer.register_forward_hook(lambda m, args, out: seen.append(out) or out * 2)
    layer.register_full_backward_hook(lambda m, gi, go: (None if gi[0] is None else gi[0] * 3,))
    weight = nn.Parameter(flow.ones(2))

    def program(x):
        layer(x * weight).sum().backward()
        return [weight.grad]

    x = flow.ones(1, 2)
    graph, _ = trace(program, [x])
    assert len(seen) == 1
    got = execute(graph, [x.numpy()])[0]
    assert len(seen) == 1
    assert np.array_equal(got, program(x)[0].numpy())


def test_mistakes_are_found_in_a_trace_too():
    with pytest.raises(ValueError, match=r"(?s)fc1|Linear\.weight takes 3"):
        trace(nn.Linear(3, 2), [flow.ones(1, 4)])
    with pytest.warns(flow.MinflowWarning, match="softmax"):
        weight = nn.Parameter(flow.ones(3))
        trace(
            lambda x, y: nn.CrossEntropyLoss()(nn.functional.softmax(x * weight, 1), y),
            [flow.ones(4, 3), flow.tensor(LABELS)],
        )
