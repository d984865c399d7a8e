"""Composite ops in graphs: one node each in the trace; decomposed, or kept for a platform that has a kernel."""

import importlib

import pytest
from fusion_checks import kept, numbers, ops, same_bits, same_numbers, traced, with_gradients

import minflow as flow
from minflow import nn
from minflow.compiler.passes import dead_code
from minflow.compiler.passes.decomposition import decompose
from minflow.core.trace import trace

F = nn.functional
pytest.importorskip("numba")
importlib.import_module("minflow.platforms.compiled.kernels.row_norms")
pytestmark = pytest.mark.usefixtures("kernels_of_numpy")


ROWS, IMAGES = (
    [numbers(6, 8), numbers(6, 8, seed=1), numbers(8), numbers(8)],
    [numbers(2, 6, 4, 5), numbers(2, 6, 4, 5, seed=1), numbers(6), numbers(6)],
)
PARTS = {
    "layer_norm": (ROWS, lambda x, w, b: F.layer_norm(x, (8,), w, b)),
    "group_norm": (IMAGES, lambda x, w, b: F.group_norm(x, 2, w, b)),
    "instance_norm": (IMAGES, lambda x, w, b: F.instance_norm(x, None, None, w, b)),
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("wanted", [(0,), (0, 1), (0, 1, 2)])
def test_forward_and_backward_are_one_node_each(name, wanted, kernels):
    (g, x, w, b), function = PARTS[name]
    program = with_gradients(function, wanted)
    graph, after = traced(program, g, x, w, b), kept(program, g, x, w, b)
    kind = "layer_norm" if name == "layer_norm" else "group_norm"
    assert [op for op in ops(after) if op != "detach"] == [kind, f"{kind}_grad"]
    same_numbers(graph, after, g, x, w, b, tolerance=2e-5)
    one, other = [n for n in after.nodes if n.op.name.startswith(kind)]
    assert (one.phase, other.phase) == ("forward", "backward")


@pytest.mark.parametrize("name", PARTS)
def test_without_gradients(name, kernels):
    (_, x, w, b), function = PARTS[name]
    after = kept(function, x, w, b)
    assert ops(after) == ["layer_norm" if name == "layer_norm" else "group_norm"]
    same_numbers(traced(function, x, w, b), after, x, w, b, tolerance=2e-5)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w, b: F.layer_norm(x, (8,)),
        lambda x, w, b: F.layer_norm(x, (8,), w),
        lambda x, w, b: F.layer_norm(x, (8,), None, b),
        lambda x, w, b: x + F.layer_norm(x, (8,), w, b) * 2,
        lambda x, w, b: flow.tanh(F.layer_norm(flow.exp(x), (8,), w, b)) + F.layer_norm(x, (8,), b, w),
        lambda x, w, b: F.layer_norm(F.layer_norm(x, (8,), w, b) + x, (8,), w, b),
        lambda x, w, b: F.layer_norm(x.reshape(2, 3, 8), (3, 8), w.expand(3, 8), b.expand(3, 8)).reshape(6, 8),
        lambda x, w, b: (F.layer_norm(x, (8,), w, b) @ w[:, None]) * w,
    ],
)
def test_layer_norms_in_a_model(function, kernels):
    whole = lambda x, w, b: function(x, w, b) + 0 * (w + b)
    program = with_gradients(whole, (0, 1, 2))
    after = kept(program, *ROWS)
    assert {"layer_norm", "layer_norm_grad"} <= {*ops(after)} and "rsqrt" not in ops(after)
    same_numbers(traced(program, *ROWS), after, *ROWS, tolerance=2e-5)


def second(x, w, b):
    x = x.detach().requires_grad_()
    (gx,) = flow.autograd.grad(F.layer_norm(x, (8,), w, b).square().sum(), x, create_graph=True)
    return flow.autograd.grad(gx.square().sum(), x)


def in_float64(x, w, b):
    return F.layer_norm(x.double(), (8,), w.double(), b.double())


def test_without_a_kernel_it_is_decomposed():
    assert "layer_norm" not in ops(kept(in_float64, *ROWS[1:]))


def test_second_derivatives(kernels):
    same_numbers(traced(second, *ROWS[1:]), kept(second, *ROWS[1:]), *ROWS[1:], tolerance=2e-5)


@pytest.mark.parametrize("program", [second, in_float64, with_gradients(PARTS["layer_norm"][1], (0, 1, 2))])
def test_decompositions_have_the_bits_of_the_composite(program):
    arrays = ROWS if program not in (second, in_float64) else ROWS[1:]
    graph, *_ = trace(program, [flow.tensor(x) for x in arrays])
    graph = dead_code(graph)
    assert any(node.op.composite for node in graph.nodes)
    after = decompose(graph)
    assert not any(node.op.composite for node in after.nodes)
    assert {node.whole.op.name for node in after.nodes if node.whole} == {
        n.op.name for n in graph.nodes if n.op.composite
    }
    same_bits(graph, after, *arrays)


def test_the_gradient_shares_the_forward():
    """The decomposed gradient computes the forward again, and equal nodes are merged."""
    graph = traced(with_gradients(PARTS["layer_norm"][1], (0, 1, 2)), *ROWS)
    assert ops(graph).count("rsqrt") == 1 and all(
        node.phase == "forward" for node in graph.nodes if node.op.name == "rsqrt"
    )


def test_scopes_lines_and_names():
    class Step(nn.Graph):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def build(self, x):
            return self.model(x)

    graph = Step(nn.Sequential(nn.LayerNorm(8)))
    graph(flow.tensor(ROWS[1]))
    names = [call.name for call in graph.plan.record.calls]
    assert names[0] == "model.0/layer_norm-mean-0" and not any("added" in name for name in names)
    assert {call.where for call in graph.plan.record.calls} == {graph.plan.record.calls[0].where}
