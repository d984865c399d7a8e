"""Fusion of elementwise operations: what becomes one node, what must not, and that NumPy gives the same bits."""

import numpy as np
import pytest
from fusion_checks import same_bits, traced

import minflow as flow
from minflow import nn
from minflow.compiler.fusion import OUTPUTS, Operand, read_as
from minflow.compiler.passes import PASSES
from minflow.compiler.plan import Plan
from minflow.platforms.compiled.passes.elementwise_fusion import clusters
from tests.fusion_programs import inputs_of, random_program, training
from tests.reference import execute
from tests.sampling import sampled

pytestmark = pytest.mark.usefixtures("kernels_of_numpy")


def ops(graph):
    """Names of ops; for a fused region those of its nodes."""
    return [repr(n.attrs["code"]) if n.op.name == "cluster" else n.op.name for n in graph.nodes if not n.op.is_view]


X = np.random.default_rng(0).standard_normal((6, 8)).astype("f4")
W = np.random.default_rng(1).standard_normal((8, 8)).astype("f4")


@pytest.mark.parametrize("seed", sampled(range(40), 0.4))
def test_bits_of_random_programs_are_unchanged(seed):
    arrays = inputs_of([(4, 7, 16), (3, 33), (2, 3, 5, 5), (1, 9), (17, 1), (5, 40)][seed % 6], seed)
    graph = traced(random_program(seed, seed % 2 == 1), *arrays)
    before = [*graph.nodes]
    after = clusters(graph)
    assert len(after.nodes) < len(graph.nodes) and graph.nodes == before, "a pass is pure"
    same_bits(graph, after, *arrays)


@pytest.mark.parametrize("name", ["decoder", "dense"])
def test_bits_of_training_are_unchanged(name):
    found = []
    for passes in (PASSES, (*PASSES[:-1], clusters, PASSES[-1]), (*PASSES, clusters)):
        graph, batch = training(name, passes)
        losses = [graph(*batch).item() for _ in range(3)]
        found.append((losses, {key: value.numpy().tobytes() for key, value in graph.model.state_dict().items()}))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    "expected, function",
    [
        ("mean, sub, mul, mean, add, rsqrt, mul, mul, add", lambda x, w, m: nn.functional.layer_norm(x, (8,), w, w)),
        ("div, where, softmax", lambda x, w, m: flow.softmax((x / 3).masked_fill(m, -1e9), dim=-1)),
        ("add, mul, erf, add, mul, mul", lambda x, w, m: nn.functional.gelu(x + w)),
        ("add, relu, sum", lambda x, w, m: flow.relu(x + w).sum(0)),
        ("exp, mul, sum, sub", lambda x, w, m: x - (flow.exp(x) * x).sum(-1, keepdim=True)),
    ],
)
def test_layers_are_fused(expected, function):
    graph = traced(function, X, W[0], X > 0)
    assert ops(clusters(graph)) == [expected]
    same_bits(graph, clusters(graph), X, W[0], X > 0)


def test_node_between_two_members_prevents_fusion():
    graph = traced(lambda x, w: (x * 2 + (flow.exp(x * 2) @ w)).tanh(), X, W)
    after = clusters(graph)
    assert ops(after) == ["mul, exp", "matmul", "add, tanh"]
    same_bits(graph, after, X, W)


def test_values_with_outside_users_are_outputs():
    graph = traced(lambda x: ((x + 1).exp(), (x + 1).sum(0), (x + 1).exp() * 2), X)
    (node,) = clusters(graph).nodes
    assert len(node.out_specs) == 3 and repr(node.attrs["code"]) == "add, exp, sum, mul"
    same_bits(graph, clusters(graph), X)


def test_too_many_outputs_split_the_region():
    graph = traced(lambda x: [x * i for i in range(2, 20)], X)
    after = clusters(graph)
    assert max(len(node.out_specs) for node in after.nodes) == OUTPUTS
    same_bits(graph, after, X)


def test_update_follows_users_of_the_old_value():
    state = flow.tensor(W)

    def program(x):
        y = state * x[0] + 1
        state.add_(flow.ones(8, 8) @ flow.ones(8, 8))
        return y.exp() * 2

    graph = traced(program, X)
    after = clusters(graph)
    assert len(after.nodes) < len(graph.nodes) and len(Plan(after).in_place) == len(Plan(graph).in_place) == 1
    expected = execute(graph, [X])[0]
    state.copy_(flow.tensor(W))
    assert execute(after, [X])[0].tobytes() == expected.tobytes()
    assert np.array_equal(state.numpy(), W + 8)


def test_result_may_overwrite_an_operand():
    state = flow.tensor(W)

    def program(x):
        state.mul_(0.9).add_(x[0] * 0.1)
        return x + 1

    plan = Plan(clusters(traced(program, X)))
    assert [str(node.op) for node in plan.nodes].count("cluster") == 1 and len(plan.in_place) == 1


@pytest.mark.parametrize(
    "program",
    [
        lambda x, w: (x.double() * 2).exp(),
        lambda x, w: (x.int() * 2) + 1,
        lambda x, w: (x.t() * 2).sin(),
        lambda x, w: (x.t() + w[:, :6]).cos(),
        lambda x, w: x**2.5,
        lambda x, w: (x > 0).float(),
        lambda x, w: x.sum(),
        lambda x, w: x.sum(0, keepdim=True).sum(1),
        lambda x, w: x[None].mean((0, 1)),
    ],
)
def test_unsupported_operations_are_not_fused(program):
    graph = traced(program, X, W)
    assert ops(clusters(graph)) == ops(graph)


@pytest.mark.parametrize(
    "shape, operand",
    [
        ((2, 1, 4), Operand("full", 2, 3)),
        ((3, 4), Operand("full", 3, 1)),
        ((3, 1), Operand("row", 3, 1)),
        ((2, 1, 1), Operand("row", 2, 3)),
        ((1, 1, 4), Operand("full", 1, 1)),
        ((2, 3, 4), Operand("full", 6, 1)),
        ((1,), Operand("scalar", 1)),
        ((2, 3, 1), Operand("row", 6, 1)),
    ],
)
def test_access_patterns_of_operands(shape, operand):
    a, b = np.ones(shape, "f4"), np.random.default_rng(0).standard_normal((2, 3, 4)).astype("f4")
    graph = traced(lambda a, b: ((a + b).exp() * (b + 1)).tanh(), a, b)
    after = clusters(graph)
    assert len(after.nodes) == 1 and read_as(after.nodes[0].inputs[0], (2, 3, 4), 6, 4) == operand
    same_bits(graph, after, a, b)


def test_reduction_without_the_last_axis_has_no_rows():
    a, b = np.ones((2, 1, 3, 1), "f4"), np.ones((2, 4, 3, 5), "f4")
    graph = traced(lambda a, b: (a + b).exp() * 2, a, b)
    assert ops(clusters(graph)) == ["add", "exp, mul"]


def test_region_keeps_its_nodes_and_source_location():
    after = clusters(traced(lambda x: (x * 2).exp() + 1, X))
    (node,) = after.nodes
    assert [part.op.name for part in node.parts] == ["mul", "exp", "add"] and node.where == node.parts[-1].where
    assert "mul, exp, add" in str(after) and node.phase == "forward"


def test_single_operation_is_compiled_if_large():
    assert ops(clusters(traced(lambda x: x + 1, X))) == ["add"]
    (node,) = clusters(traced(lambda x: x + 1, np.ones((64, 64), "f4"))).nodes
    assert node.op.name == "cluster"


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.relu(),
        lambda x: (x + 1).relu() * 2,
        lambda x: nn.functional.gelu(x),
        lambda x: nn.functional.silu(x),
        lambda x: (x * x + 1).sqrt(),
        lambda x: (x * 0.5).tanh() * x,
        lambda x: nn.functional.softmax(x * 2, 1),
    ],
)
def test_recomputed_forward_is_fused_into_backward(function):
    """Values recomputed in backward are computed only there."""

    def program(g, x):
        x = x.detach().requires_grad_()
        return flow.autograd.grad(function(x), x, g)

    arrays = [np.random.default_rng(seed).standard_normal((200, 200)).astype("f4") for seed in range(2)]
    graph = traced(program, *arrays)
    same_bits(graph, clusters(graph), *arrays)
