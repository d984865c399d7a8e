"""Modules in a trace: functions, attributes, buffers that are set, hooks. Every layer: `test_every_layer.py`."""

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.trace import trace
from tests.graphs import bits
from tests.reference import execute
from tests.registered import LABELS


def test_functions_without_a_layer():
    x, index = flow.rand(4, 3), flow.tensor([[0, 4], [2, 2]])

    def program(x, index):
        return [nn.functional.one_hot(index, 5), nn.functional.pad(x, (1, 0), value=2.0)]

    graph, _ = trace(program, [x, index])
    assert bits(execute(graph, [x.numpy(), index.numpy()])) == bits(program(x, index))


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
