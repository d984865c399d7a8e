"""Layers in a trace: a training step as a graph gives the bits that eager gives, running statistics too."""

import copy

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.trace import trace
from minflow.nn.summary import tensors_in
from tests.reference import execute
from tests.registered import LABELS, TARGETS, layer_cases, loss_cases


def bits(tensors):
    return [None if t is None else t.numpy().tobytes() for t in tensors]


def step(model, x):
    """Forward, backward, and everything that came of it."""
    x = x * 1.0 if x.spec.floating else x
    outs = tensors_in(model(x))
    sum((out * out).sum() for out in outs).backward()
    grads = [p.grad for p in model.parameters()]
    return [*outs, *grads]


@pytest.mark.parametrize(("name", "make", "x"), layer_cases(), ids=lambda p: p if isinstance(p, str) else "")
def test_traced_is_eager(name, make, x):
    if isinstance(x, tuple):
        x = np.random.default_rng(0).standard_normal(x).astype("float32")
    model, x = make(), flow.tensor(x)
    eager, traced = copy.deepcopy(model), copy.deepcopy(model)
    if not list(model.parameters()):
        eager, traced = nn.Sequential(nn.Identity(), eager), nn.Sequential(nn.Identity(), traced)
        for net in (eager, traced):
            net.scale = nn.Parameter(flow.ones(x.shape[-1]))
            net.register_forward_pre_hook(lambda m, args: (args[0] * m.scale,))
    flow.manual_seed(3)
    want = bits(step(eager, x))
    flow.manual_seed(3)
    graph, _ = trace(lambda x: step(traced, x), [x])
    got = [a.tobytes() for a in execute(graph, [x.numpy()])]
    assert got == want
    assert bits(traced.buffers()) == bits(eager.buffers())
    assert all(p.grad is None for p in traced.parameters())


@pytest.mark.parametrize(("name", "options"), loss_cases())
def test_losses(name, options):
    """Of numbers between 0 and 1, which are probabilities, logits and log-probabilities enough."""
    numbers = np.random.default_rng(0).uniform(0.1, 0.9, (2, 4, 3)).astype("float32")
    loss, targets = getattr(nn, name)(**options), TARGETS.get(name, numbers[1])
    targets = targets if isinstance(targets, tuple) else (targets,)
    inputs = [flow.tensor(numbers[0]), *map(flow.tensor, targets)]
    weight = nn.Parameter(flow.ones(3))

    def program(x, *targets):
        out = loss(x * weight, *targets)
        out.sum().backward()
        return [out, weight.grad]

    graph, _ = trace(program, inputs)
    got = [a.tobytes() for a in execute(graph, [x.numpy() for x in inputs])]
    assert got == bits(program(*inputs))


def test_functions_without_a_layer():
    x, index = flow.rand(4, 3), flow.tensor([[0, 4], [2, 2]])

    def program(x, index):
        return [nn.functional.one_hot(index, 5), nn.functional.pad(x, (1, 0), value=2.0)]

    graph, _ = trace(program, [x, index])
    got = [a.tobytes() for a in execute(graph, [x.numpy(), index.numpy()])]
    assert got == bits(program(x, index))


def test_attributes_of_pools_stand_in_the_order_of_their_arguments():
    def program(x):
        return [nn.functional.max_pool2d(x, 2, dilation=2), nn.functional.avg_pool2d(x, 2, divisor_override=3)]

    graph, _ = trace(program, [flow.rand(1, 1, 6, 6)])
    largest, mean = [list(node.attrs) for node in graph.nodes]
    assert largest == ["kernel_size", "stride", "padding", "dilation", "ceil_mode"]
    assert mean == ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"]


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
