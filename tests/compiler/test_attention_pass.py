"""Attention as one node: which patterns are fused, which must not be, and equal results."""

import math

import numpy as np
import pytest
from fusion_checks import numbers, same_numbers, traced, with_gradients
from graph_models import Step

import minflow as flow
from minflow import nn
from minflow.compiler.fusion import attention as module
from minflow.compiler.fusion.attention import attention
from minflow.core.ops import linalg
from minflow.platforms import compiled

F = nn.functional
pytestmark = pytest.mark.usefixtures("kernels_of_numpy")


@pytest.fixture
def default_limits():
    """Keep the smallest sizes at which the pass applies; other tests use tiny arrays."""


@pytest.fixture(autouse=True)
def no_size_limits(request, monkeypatch):
    if "default_limits" not in request.fixturenames:
        monkeypatch.setattr(module, "LEAST", 1)


ARRAYS = [numbers(2, 3, 20, 8, seed=i) for i in range(3)]
GRAD = numbers(2, 3, 20, 8, seed=3)
CAUSAL = flow.tensor(np.tril(np.ones((20, 20), bool)))


def unfused_attention(q, k, v):
    """Attention as the small GPT writes it."""
    scores = (q @ k.transpose(-2, -1)) / math.sqrt(8)
    return flow.softmax(scores.masked_fill(CAUSAL == 0, -1e9), dim=-1) @ v


def pretransposed_keys(q, k, v):
    return flow.softmax(linalg.matmul(q, k, ta=False, tb=True) * 0.5 / 2, dim=3) @ v


ATTENTIONS = {
    "plain": F.scaled_dot_product_attention,
    "causal": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    "unfused": unfused_attention,
    "pretransposed keys": pretransposed_keys,
    "of one head": lambda q, k, v: F.scaled_dot_product_attention(q[0, 0], k[0, 0], v[0, 0]),
}


def ops(graph):
    return [node.op.name for node in graph.nodes if node.op.name in ("softmax", "attention", "attention_grad")]


@pytest.mark.parametrize("name", ATTENTIONS)
@pytest.mark.parametrize("train", [False, True])
def test_attention_is_fused(name, train, kernels):
    program, arrays = ATTENTIONS[name], ARRAYS
    if train:
        program, arrays = with_gradients(program, (0, 1, 2)), [GRAD[0, 0] if name == "of one head" else GRAD, *ARRAYS]
    graph = traced(program, *arrays)
    after = attention(graph)
    assert ops(after) == ["attention", "attention_grad"][: 1 + train]
    scored = (2, 3, 20, 20)[-2 if name == "of one head" else 0 :]
    assert not any(spec.shape == scored for node in after.nodes for spec in node.out_specs)
    same_numbers(graph, after, *arrays)


def returns_weights(q, k, v):
    weights = flow.softmax(q @ k.transpose(-2, -1), -1)
    return weights @ v, weights


def returns_scores(q, k, v):
    scores = q @ k.transpose(-2, -1)
    return flow.softmax(scores, -1) @ v + scores.sum()


STAYING = {
    "weights with other users": returns_weights,
    "scores with other users": returns_scores,
    "another axis": lambda q, k, v: flow.softmax(q @ k.transpose(-2, -1), -2) @ v,
    "dropout": lambda q, k, v: F.dropout(flow.softmax(q @ k.transpose(-2, -1), -1), 0.5) @ v,
    "a mask that is added": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=CAUSAL.float()),
    "keys for all examples": lambda q, k, v: flow.softmax(q @ k[0].transpose(-2, -1), -1) @ v,
    "weights on the right": lambda q, k, v: v.transpose(-2, -1) @ flow.softmax(q @ k.transpose(-2, -1), -1),
    "a mask of columns": lambda q, k, v: (
        flow.softmax((q @ k.transpose(-2, -1)).masked_fill(CAUSAL[:, :1], 0.0), -1) @ v
    ),
    "float64": lambda q, k, v: flow.softmax(q.double() @ k.double().transpose(-2, -1), -1) @ v.double(),
}


@pytest.mark.parametrize("name", STAYING)
def test_other_patterns_are_not_fused(name):
    assert "attention" not in ops(attention(traced(STAYING[name], *ARRAYS)))


def test_gradients_with_other_users_are_not_fused():
    def step(*inputs):
        inputs = [x.detach().requires_grad_() for x in inputs]
        weights = flow.softmax(inputs[0] @ inputs[1].transpose(-2, -1), -1)
        out = weights @ inputs[2]
        return flow.autograd.grad(out.sum(), [*inputs, weights])

    def without_values(q, k, v):
        q, k = q.detach().requires_grad_(), k.detach().requires_grad_()
        out = F.scaled_dot_product_attention(q, k, v)
        return (out, *flow.autograd.grad(out.sum(), [q, k]))

    for program in (step, without_values):
        assert ops(attention(traced(program, *ARRAYS))) == ["softmax"]


@pytest.mark.usefixtures("default_limits")
def test_short_sequences_are_not_fused():
    long = numbers(1, 1, 256, 8)
    causal, plain = ATTENTIONS["causal"], ATTENTIONS["plain"]
    assert ops(attention(traced(causal, *ARRAYS))) == ["softmax"]
    assert ops(attention(traced(causal, long, long, long))) == ["attention"]
    assert ops(attention(traced(plain, long, long, long))) == ["softmax"]


def test_fused_node_names_its_operations():
    graph = traced(with_gradients(unfused_attention, (0, 1, 2)), GRAD, *ARRAYS)
    one, back = [node for node in attention(graph).nodes if node.op.name.startswith("attention")]
    assert [part.op.name for part in one.parts] == ["matmul", "div", "where", "softmax", "matmul"]
    assert [part.op.name for part in back.parts].count("matmul") == 4 and {p.phase for p in back.parts} == {"backward"}
    assert back.phase == "backward" and one.where == one.parts[-1].where


def test_model_trains_the_same():
    pytest.importorskip("numba")

    def trained(without):
        compiled.use(without=without)
        flow.manual_seed(0)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        step = Step(layer, flow.optim.SGD(layer.parameters(), lr=0.1), lambda x: (layer(x) ** 2).mean())
        return [step(flow.tensor(numbers(2, 20, 16, seed=i))).numpy().item() for i in range(5)]

    np.testing.assert_allclose(trained([]), trained(["attention"]), rtol=1e-5)
