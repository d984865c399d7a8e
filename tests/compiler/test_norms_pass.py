"""Layer norm and group norm as one node, their gradients as another: what is recognised, what must stay, and the same
numbers."""

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.compiler.executor import run
from minflow.compiler.fusion.norms import norms
from minflow.compiler.passes import PASSES, run_passes
from minflow.compiler.plan import Plan
from minflow.core.trace import trace
from tests.reference import execute

F = nn.functional
pytestmark = pytest.mark.usefixtures("kernels_of_numpy")


def numbers(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype("f4")


def traced(program, *arrays):
    return run_passes(trace(program, [flow.tensor(x) for x in arrays])[0], PASSES[:-1])[-1].graph


def ops(graph):
    return [n.op.name for n in graph.nodes if not n.op.is_view]


def same_numbers(before, after, *arrays):
    after.verify()
    expected = execute(before, arrays)
    for found in (execute(after, arrays), run(Plan(after), arrays)):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def with_gradients(function, wanted):
    """The results, and the gradients with respect to some of the inputs."""
    def program(g, *inputs):
        inputs = [x.detach().requires_grad_(i in wanted) for i, x in enumerate(inputs)]
        y = function(*inputs)
        return y, *flow.autograd.grad(y, [inputs[i] for i in wanted], g)
    return program


ROWS, IMAGES = [numbers(6, 8), numbers(6, 8, seed=1), numbers(8), numbers(8)], [
    numbers(2, 6, 4, 5), numbers(2, 6, 4, 5, seed=1), numbers(6), numbers(6)]
PARTS = {"layer_norm": (ROWS, lambda x, w, b: F.layer_norm(x, (8,), w, b)),
         "group_norm": (IMAGES, lambda x, w, b: F.group_norm(x, 2, w, b)),
         "instance_norm": (IMAGES, lambda x, w, b: F.instance_norm(x, None, None, w, b))}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("wanted", [(0,), (0, 1), (0, 1, 2)])
def test_forward_and_backward_are_a_node_each(name, wanted, kernels):
    (g, x, w, b), function = PARTS[name]
    graph = traced(with_gradients(function, wanted), g, x, w, b)
    after, kind = norms(graph), "layer_norm" if name == "layer_norm" else "group_norm"
    assert [op for op in ops(after) if op != "detach"] == [kind, f"{kind}_grad"]
    same_numbers(graph, after, g, x, w, b)
    one, other = [n for n in after.nodes if n.op.name.startswith(kind)]
    assert (one.phase, other.phase) == ("forward", "backward") and len(one.parts) > 2 < len(other.parts)


@pytest.mark.parametrize("name", PARTS)
def test_without_gradients(name, kernels):
    (_, x, w, b), function = PARTS[name]
    graph = traced(function, x, w, b)
    assert ops(norms(graph)) == ["layer_norm" if name == "layer_norm" else "group_norm"]
    same_numbers(graph, norms(graph), x, w, b)


@pytest.mark.parametrize("function", [
    lambda x, w, b: F.layer_norm(x, (8,)), lambda x, w, b: F.layer_norm(x, (8,), w),
    lambda x, w, b: F.layer_norm(x, (8,), None, b), lambda x, w, b: x + F.layer_norm(x, (8,), w, b) * 2,
    lambda x, w, b: flow.tanh(F.layer_norm(flow.exp(x), (8,), w, b)) + F.layer_norm(x, (8,), b, w),
    lambda x, w, b: F.layer_norm(F.layer_norm(x, (8,), w, b) + x, (8,), w, b),
    lambda x, w, b: F.layer_norm(x.reshape(2, 3, 8), (3, 8), w.expand(3, 8), b.expand(3, 8)).reshape(6, 8),
    lambda x, w, b: (F.layer_norm(x, (8,), w, b) @ w[:, None]) * w])
def test_layer_norms_among_others(function, kernels):
    whole = lambda x, w, b: function(x, w, b) + 0 * (w + b)  # noqa: E731
    graph = traced(with_gradients(whole, (0, 1, 2)), *ROWS)
    after = norms(graph)
    assert {"layer_norm", "layer_norm_grad"} <= {*ops(after)} and "rsqrt" not in ops(after)
    same_numbers(graph, after, *ROWS)


def test_what_others_read_stays():
    """The mean alone, a variance that a program wants, a second derivative."""
    def second(x, w, b):
        x = x.detach().requires_grad_()
        gx, = flow.autograd.grad(F.layer_norm(x, (8,), w, b).square().sum(), x, create_graph=True)
        return flow.autograd.grad(gx.square().sum(), x)

    def by_hand(x, w, b):
        c = x - x.mean(-1, keepdim=True)
        var = (c * c).mean(-1, keepdim=True)
        return c * flow.rsqrt(var + 1e-5), var

    for program in (second, by_hand, lambda x, w, b: x.mean(-1, keepdim=True),
                    lambda x, w, b: F.layer_norm(x.double(), (8,), w.double(), b.double())):
        graph = traced(program, *ROWS[1:])
        assert norms(graph) is graph
