"""Dense layers as one node: which epilogues a product takes in, which it must not, and equal results."""

import numpy as np
import pytest
from fusion_checks import numbers, same_numbers, traced
from graph_models import TrainGraph

import minflow as flow
from minflow import nn
from minflow.compiler.passes import PASSES
from minflow.platforms.compiled.passes import gemm_epilogue as module
from minflow.platforms.compiled.passes.gemm_epilogue import dense
from tests.sampling import sampled

pytestmark = pytest.mark.usefixtures("kernels_of_numpy")


@pytest.fixture
def default_limits():
    """Keep the smallest sizes at which the pass applies; other tests use tiny arrays."""


@pytest.fixture(autouse=True)
def no_size_limits(request, monkeypatch):
    if "default_limits" not in request.fixturenames:
        monkeypatch.setattr(module, "LEAST", 1)
        monkeypatch.setattr(module, "NARROW", 1)
        monkeypatch.setattr(module, "FEW", 1)


def ops(graph):
    return [
        n.op.name + "".join([f" {n.attrs['act']}"] if n.attrs.get("act") else [])
        for n in graph.nodes
        if not n.op.is_view
    ]


X, W, V, B = numbers(6, 8), numbers(9, 8), numbers(8, 9), numbers(9)


@pytest.mark.parametrize(
    "expected, program",
    [
        (["linear relu"], lambda x, w, v, b: flow.relu(x @ w.T + b)),
        (["linear relu6"], lambda x, w, v, b: nn.functional.relu6(b + x @ v)),
        (["linear"], lambda x, w, v, b: x @ w.T),
        (["linear relu"], lambda x, w, v, b: flow.relu(x @ v)),
        (["linear", "add"], lambda x, w, v, b: (lambda y: y + y)(x @ v)),
        (["linear", "add", "add"], lambda x, w, v, b: (lambda y: (y + b) + y)(x @ v)),
        (["linear", "add"], lambda x, w, v, b: (lambda y: (y, y + b))(x @ v)),
        (["linear", "relu"], lambda x, w, v, b: (lambda y: (y, flow.relu(y)))(x @ v + b)),
        (["linear", "mul", "linear relu"], lambda x, w, v, b: flow.relu((x @ v + b) * 2 @ w + b[:8])),
        (["linear", "relu"], lambda x, w, v, b: flow.relu((x @ v).reshape(9, 6))),
        (["linear", "add"], lambda x, w, v, b: x @ v + b[:6].reshape(6, 1)),
    ],
)
def test_products_fuse_their_epilogues(expected, program, kernels):
    graph = traced(program, X, W, V, B)
    after = dense(graph)
    assert ops(after) == expected
    same_numbers(graph, after, X, W, V, B)


@pytest.mark.usefixtures("default_limits")
@pytest.mark.parametrize("n, k", [(1, 400), (2, 400), (400, 2)])
def test_few_rows_and_short_sums_are_not_fused(n, k):
    """BLAS reads the matrix once; packing would read it twice."""
    x, w = numbers(n, k), numbers(300, k)
    assert ops(dense(traced(lambda x, w: x @ w.T, x, w))) == ["matmul"]


@pytest.mark.usefixtures("default_limits")
def test_small_and_float64_products_are_not_fused():
    x, w = numbers(40, 40), numbers(8, 40)
    assert ops(dense(traced(lambda x: x @ x, x))) == ["linear"]
    assert ops(dense(traced(lambda x, w: x @ w.T, x, w))) == ["matmul"]
    assert ops(dense(traced(lambda x: x @ x, X[:, :6]))) == ["matmul"]
    assert ops(dense(traced(lambda x: x @ x, x.astype("f8")))) == ["matmul"]


@pytest.mark.parametrize("seed", sampled(range(30), 0.4))
def test_random_programs(seed, kernels):
    steps = [
        lambda x, y, w, b: y @ w * 0.1,
        lambda x, y, w, b: y @ w.T * 0.1,
        lambda x, y, w, b: y + b,
        lambda x, y, w, b: flow.relu(y),
        lambda x, y, w, b: flow.relu(y @ w.T * 0.1 + b),
        lambda x, y, w, b: (y @ w).mT @ y @ w * 0.01,
        lambda x, y, w, b: y.mT @ w,
        lambda x, y, w, b: flow.tanh(y) + x,
    ]

    def program(x, w, b):
        rng, values = np.random.default_rng(seed), [x]
        for _ in range(8):
            y = values[rng.integers(len(values))] if rng.random() < 0.3 else values[-1]
            values.append(steps[rng.integers(len(steps))](x, y, w, b))
        return values[-1], values[rng.integers(len(values))] * 1.0

    arrays = numbers(*[(), (3,)][seed % 2], 12, 12, seed=seed), numbers(12, 12, seed=1), numbers(12)
    graph = traced(program, *arrays)
    after = dense(graph)
    assert "matmul" not in ops(after)
    same_numbers(graph, after, *arrays)


def graph_of(program):
    return program._last.parts[0].graph


def trained(passes, keep=True, **options):
    """The graph after three steps, and their results."""
    flow.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU6(), nn.Linear(24, 5))
    graph = TrainGraph(model, nn.CrossEntropyLoss(), flow.optim.SGD(model.parameters(), **{"lr": 0.1, **options}))
    graph.config.keep_gradients(keep)
    graph.passes[:] = passes
    x, y = flow.tensor(numbers(30, 20)), flow.tensor(np.arange(30) % 5)
    losses = [graph(x, y).item() for _ in range(3)]
    return graph, losses, [p.numpy().copy() for p in model.parameters()]


@pytest.mark.parametrize("keep", [True, False])
def test_weight_updates_are_fused(keep, kernels):
    with_pass, losses, parameters = trained((*PASSES[:-1], dense, PASSES[-1]), keep=keep)
    plain, plain_losses, plain_parameters = trained(PASSES, keep=keep)
    names = ops(graph_of(with_pass))
    assert names.count("sgd_linear_shown" if keep else "sgd_linear") == 3
    assert names.count("sgd") == 3  # bias updates
    assert names.count("linear relu") == names.count("linear relu6") == 1
    assert np.allclose(losses, plain_losses, rtol=1e-5)
    assert all(np.allclose(a, b, rtol=1e-4, atol=1e-6) for a, b in zip(parameters, plain_parameters))
    if keep:
        for name, grad in plain.grads.items():
            assert np.allclose(with_pass.grads[name], grad, rtol=1e-4, atol=1e-6)


@pytest.mark.usefixtures("default_limits")
@pytest.mark.parametrize("options", [dict(weight_decay=0.1), dict(maximize=True), dict(momentum=0.9)])
def test_other_updates_are_not_fused(options):
    graph, losses, _ = trained((*PASSES[:-1], dense, PASSES[-1]), **options)
    assert not any(name.startswith("sgd_linear") for name in ops(graph_of(graph)))
    assert np.allclose(losses, trained(PASSES, **options)[1], rtol=1e-5)


def test_fused_node_keeps_its_source_location():
    before, *_ = trained(PASSES)
    after, *_ = trained((*PASSES[:-1], dense, PASSES[-1]))
    old = {n.number: n for n in graph_of(before).nodes}
    fused = [n for n in graph_of(after).nodes if n.op.name in ("linear", "sgd_linear_shown")]
    assert len(fused) == 3 + 3 + 2  # forward, weights, and back to the activations
    for node in fused:
        last = old[node.number]
        assert node.phase == last.phase and node.where is not None
        if node.op.name == "linear" and node.attrs["act"]:
            assert last.op.name == node.attrs["act"] and node.scope.endswith(("model.0", "model.2"))
    grads = [n for n in graph_of(after).nodes if n.op.name == "relu_grad"]
    assert all(n.origin in graph_of(after).nodes and n.origin.op.name == "linear" for n in grads)
