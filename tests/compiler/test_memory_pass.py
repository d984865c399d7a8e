"""Savings of the memory pass: masks behind a pooling, recomputed values, and delayed large gradients."""

import numpy as np
import pytest
from fusion_checks import names, same_bits
from graph_models import Step, eager_step

import minflow as flow
from minflow import nn
from minflow.compiler.executor import run
from minflow.compiler.passes.common_subexpressions import common_subexpressions
from minflow.compiler.passes.decomposition import decompose
from minflow.compiler.passes.node_order import reduce_memory
from minflow.compiler.passes.recompute import MIN_BYTES, recompute_cheap_values
from minflow.compiler.passes.relu_pool_reorder import reorder_relu_pool_grad
from minflow.compiler.plan import Plan
from minflow.compiler.uses import Uses
from minflow.core.trace import trace
from tests.reference import execute


def bits(x):
    """The bytes of x, with one NaN for all: the sign of NaN + NaN depends on where numpy's vector loop starts."""
    return np.where(np.isnan(x), np.float32("nan"), x).tobytes() if x.dtype.kind == "f" else x.tobytes()


def pooled(x, w, size=2, stride=2):
    h = (x * w).relu()
    y = nn.functional.max_pool2d(h, size, stride)
    ((y * y * w).sum() - (y * 3).sum()).backward()
    return w.grad, y


def pooling_graph(function=pooled, **options):
    w = flow.tensor(0.75, requires_grad=True)
    return trace(lambda x: function(x, w, **options), [flow.zeros(4, 3, 16, 16)])[0]


def test_relu_mask_moves_behind_max_pool():
    graph = pooling_graph()
    after = reorder_relu_pool_grad(graph)
    assert sorted(names(after)) == sorted(names(graph))
    (mask,) = [node for node in after.nodes if node.op.name == "relu_grad"]
    assert mask.out_specs[0].shape == (4, 3, 8, 8) and mask.phase == "backward" and mask.origin.op.name == "relu"
    assert Plan(after).arena_bytes < Plan(graph).arena_bytes
    for seed in range(4):
        # many ties and zeros
        x = np.random.default_rng(seed).integers(-3, 3, (4, 3, 16, 16)).astype("float32")
        same_bits(graph, after, x, bits=bits)
    x[0, 0, 0, :4] = np.nan, np.inf, -np.inf, -0.0
    x[1, 1, :4, 0] = -np.inf
    x[2, 2, :, 0] = np.nan
    same_bits(graph, after, x, bits=bits)


def test_relu_mask_of_reference_kernels_keeps_zeros(reference_kernels):
    """They multiply by the mask, so a masked negative cotangent is -0.0, whether it is scattered before or after."""

    def cotangent(x, w):
        before = x * w
        y = nn.functional.max_pool2d(before.relu(), 2)
        return flow.autograd.grad(-(y * 3).sum(), [before])[0]

    graph = pooling_graph(cotangent)
    after = reorder_relu_pool_grad(graph)
    assert after is not graph
    same_bits(graph, after, np.random.default_rng(0).integers(-3, 2, (4, 3, 16, 16)).astype("float32"))


def test_relu_mask_stays_for_overlapping_windows_and_other_users():
    def read_again(x, w):
        h = (x * w).relu()
        y = nn.functional.max_pool2d(h, 2)
        (spread,) = flow.autograd.grad((y * y).sum(), [h], retain_graph=True)
        (y * y).sum().backward()
        return w.grad, spread

    for graph in (pooling_graph(size=3, stride=2), trace_of_twice(), pooling_graph(read_again)):
        after = reorder_relu_pool_grad(graph)
        x = np.random.default_rng(0).standard_normal((4, 3, 16, 16)).astype("float32")
        same_bits(graph, after, x, bits=bits)
    assert names(reorder_relu_pool_grad(pooling_graph(size=3, stride=2))) == names(pooling_graph(size=3, stride=2))
    assert names(reorder_relu_pool_grad(trace_of_twice())) == names(trace_of_twice())


def trace_of_twice():
    """A ReLU whose result goes to a pooling and elsewhere: its cotangent is a sum and not the output of the pooling."""

    def twice(x, w):
        h = (x * w).relu()
        (nn.functional.max_pool2d(h, 2).sum() + (h * h).sum()).backward()
        return w.grad, h * 1

    return pooling_graph(twice)


def gelu_graph(size=200):
    w = flow.rand(size, size).requires_grad_()

    def program(x):
        h = x
        for _ in range(3):
            h = nn.functional.gelu(h @ w)
        h.sum().backward()
        return h.sum(), w.grad

    return common_subexpressions(decompose(trace(program, [flow.zeros(size, size)])[0]))


def test_cheap_values_are_recomputed():
    graph = gelu_graph()
    after = recompute_cheap_values(graph)
    added = [node for node in after.nodes if node.phase == "recompute"]
    assert added and {node.op.name for node in added} <= {"add", "sub", "mul"}
    assert all(node.number is None for node in added)
    assert len(after.nodes) == len(graph.nodes) + len(added)
    assert Uses(after).least_bytes() < 0.9 * Uses(graph).least_bytes()
    assert Plan(after).arena_bytes < 0.9 * Plan(graph).arena_bytes
    same_bits(graph, after, np.random.default_rng(0).standard_normal((200, 200)).astype("float32"), bits=bits)
    assert recompute_cheap_values(gelu_graph(40)) is not after and names(
        recompute_cheap_values(gelu_graph(40))
    ) == names(gelu_graph(40)), "small values are kept"
    assert MIN_BYTES > 40 * 40 * 4


def test_updated_parameters_are_not_inputs_of_recomputation():
    """The recomputation would read the new values."""
    w, b = flow.rand(200, 200).requires_grad_(), flow.rand(200).requires_grad_()

    def program(x):
        scaled = x * b
        y = (scaled * scaled @ w).sum()
        y.backward()
        flow.no_grad()(b.add_)(b.grad)
        return y

    graph = trace(program, [flow.zeros(200, 200)])[0]
    assert len(graph.updates) == 1
    assert not any(
        b.array is getattr(x.node, "array", None)
        for node in recompute_cheap_values(graph).nodes
        if node.phase == "recompute"
        for x in node.inputs
        if isinstance(x, tuple)
    )
    x = np.random.default_rng(0).standard_normal((200, 200)).astype("float32")
    before = b.numpy(force=True).copy()
    run(Plan(reduce_memory(graph)), [x])
    first = b.numpy(force=True).copy()
    b.array[...] = before
    execute(graph, [x])
    assert first.tobytes() == b.array.tobytes() != before.tobytes()


@pytest.mark.parametrize("keep", [True, False])
def test_large_weight_gradient_is_delayed_to_save_memory(keep):
    """16 images of 64 kB each, then a dense layer of 4 MB whose gradient would live during all of backward."""

    def model():
        flow.manual_seed(0)
        return nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.Sigmoid(),
            nn.Conv2d(16, 16, 3, padding=1),
            nn.Sigmoid(),
            nn.AvgPool2d(4),
            nn.Flatten(),
            nn.Linear(1024, 1000),
        )

    x = flow.rand(16, 1, 32, 32)
    trained = model()
    graph = Step(trained, flow.optim.SGD(trained.parameters(), lr=0.1), keep_gradients=keep, exact=True)
    losses = [graph(x).item() for _ in range(3)]
    nodes = graph.nodes
    (weight_grad,) = [
        i for i, node in enumerate(nodes) if node.out_specs[0].shape == (1000, 1024) and node.phase == "backward"
    ]
    others = [
        i for i, node in enumerate(nodes) if node.phase == "backward" and not node.op.is_view and i != weight_grad
    ]
    assert weight_grad > max(others) and nodes[-1].phase == "optimizer"

    other = model()
    optimizer = flow.optim.SGD(other.parameters(), lr=0.1)
    for loss in losses:
        assert eager_step(other, lambda y, _: y.square().mean(), optimizer, x, None).item() == loss
    assert [p.numpy(force=True).tobytes() for p in other.parameters()] == [
        p.numpy(force=True).tobytes() for p in graph.model.parameters()
    ]
