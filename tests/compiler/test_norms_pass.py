"""Layer norm and group norm as one node each, and their gradients: which patterns are fused, which must not be, and
equal results.
"""

import pytest
from fusion_checks import numbers, ops, same_numbers, traced, with_gradients

import minflow as flow
from minflow import nn
from minflow.compiler.fusion.norms import norms

F = nn.functional
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
    graph = traced(with_gradients(function, wanted), g, x, w, b)
    after, kind = norms(graph), "layer_norm" if name == "layer_norm" else "group_norm"
    assert [op for op in ops(after) if op != "detach"] == [kind, f"{kind}_grad"]
    same_numbers(graph, after, g, x, w, b, tolerance=2e-5)
    one, other = [n for n in after.nodes if n.op.name.startswith(kind)]
    assert (one.phase, other.phase) == ("forward", "backward") and len(one.parts) > 2 < len(other.parts)


@pytest.mark.parametrize("name", PARTS)
def test_without_gradients(name, kernels):
    (_, x, w, b), function = PARTS[name]
    graph = traced(function, x, w, b)
    assert ops(norms(graph)) == ["layer_norm" if name == "layer_norm" else "group_norm"]
    same_numbers(graph, norms(graph), x, w, b, tolerance=2e-5)


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
    graph = traced(with_gradients(whole, (0, 1, 2)), *ROWS)
    after = norms(graph)
    assert {"layer_norm", "layer_norm_grad"} <= {*ops(after)} and "rsqrt" not in ops(after)
    same_numbers(graph, after, *ROWS, tolerance=2e-5)


def test_values_with_other_users_are_kept():
    """The mean alone, a variance that the program uses, a second derivative."""

    def second(x, w, b):
        x = x.detach().requires_grad_()
        (gx,) = flow.autograd.grad(F.layer_norm(x, (8,), w, b).square().sum(), x, create_graph=True)
        return flow.autograd.grad(gx.square().sum(), x)

    def by_hand(x, w, b):
        c = x - x.mean(-1, keepdim=True)
        var = (c * c).mean(-1, keepdim=True)
        return c * flow.rsqrt(var + 1e-5), var

    for program in (
        second,
        by_hand,
        lambda x, w, b: x.mean(-1, keepdim=True),
        lambda x, w, b: F.layer_norm(x.double(), (8,), w.double(), b.double()),
    ):
        graph = traced(program, *ROWS[1:])
        assert norms(graph) is graph
