"""Attention as one node each for result and gradient: where compiled kernels keep it, with equal results."""

import importlib

import numpy as np
import pytest
from fusion_checks import kept, numbers, same_numbers, traced, with_gradients
from graph_models import Step

import minflow as flow
from minflow import nn
from minflow.platforms import compiled

F = nn.functional
pytest.importorskip("numba")
kernel = importlib.import_module("minflow.platforms.compiled.kernels.attention")
pytestmark = pytest.mark.usefixtures("kernels_of_numpy")


@pytest.fixture
def default_limits():
    """Keep the smallest sizes for which the kernel pays; other tests use tiny arrays."""


@pytest.fixture(autouse=True)
def no_size_limits(request, monkeypatch):
    if "default_limits" not in request.fixturenames:
        monkeypatch.setattr(kernel, "LEAST", 1)


ARRAYS = [numbers(2, 3, 20, 8, seed=i) for i in range(3)]
GRAD = numbers(2, 3, 20, 8, seed=3)
CAUSAL = flow.tensor(np.tril(np.ones((20, 20), bool)))
PADDED = flow.tensor(np.arange(20) < 15).reshape(1, 1, 1, 20)
ATTENTIONS = {
    "plain": F.scaled_dot_product_attention,
    "causal": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    "a mask": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, CAUSAL),
    "padding": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, PADDED),
    "nothing visible": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, CAUSAL & ~CAUSAL[:, :1]),
    "another scale": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=2.0),
    "of one head": lambda q, k, v: F.scaled_dot_product_attention(q[0, 0], k[0, 0], v[0, 0]),
}


def ops(graph):
    wanted = "softmax", "scaled_dot_product_attention", "scaled_dot_product_attention_grad"
    return [node.op.name for node in graph.nodes if node.op.name in wanted]


@pytest.mark.parametrize("name", ATTENTIONS)
@pytest.mark.parametrize("train", [False, True])
def test_attention_is_one_node(name, train, kernels):
    program, arrays = ATTENTIONS[name], ARRAYS
    if train:
        program, arrays = with_gradients(program, (0, 1, 2)), [GRAD[0, 0] if name == "of one head" else GRAD, *ARRAYS]
    after = kept(program, *arrays)
    assert ops(after) == ["scaled_dot_product_attention", "scaled_dot_product_attention_grad"][: 1 + train]
    scored = (2, 3, 20, 20)[-2 if name == "of one head" else 0 :]
    assert not any(spec.shape == scored and spec.floating for node in after.nodes for spec in node.out_specs)
    same_numbers(traced(program, *arrays), after, *arrays)


STAYING = {
    "dropout": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, dropout_p=0.5),
    "a mask that is added": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=CAUSAL.float()),
    "keys for all examples": lambda q, k, v: F.scaled_dot_product_attention(q, k[0], v[0]),
    "a mask of columns": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, CAUSAL[:, :1]),
    "float64": lambda q, k, v: F.scaled_dot_product_attention(q.double(), k.double(), v.double()),
}


@pytest.mark.parametrize("name", STAYING)
def test_others_are_decomposed(name):
    assert ops(kept(STAYING[name], *ARRAYS)) == ["softmax"]


def test_gradient_of_the_mask_is_decomposed():
    def program(q, k, v, mask):
        mask = mask.detach().requires_grad_()
        return flow.autograd.grad(F.scaled_dot_product_attention(q, k, v, mask).sum(), mask)

    arrays = [*ARRAYS, numbers(20, 20)]
    same_numbers(traced(program, *arrays), kept(program, *arrays), *arrays)


@pytest.mark.usefixtures("default_limits")
def test_short_sequences_are_decomposed():
    short, long = numbers(1, 1, kernel.LEAST - 1, 8), numbers(1, 1, kernel.LEAST, 8)
    for name in "causal", "plain":
        assert ops(kept(ATTENTIONS[name], short, short, short)) == ["softmax"]
        assert ops(kept(ATTENTIONS[name], long, long, long)) == ["scaled_dot_product_attention"]


def test_eager_code_uses_the_kernel():
    q, k, v = [flow.tensor(x).requires_grad_() for x in ARRAYS]
    wanted = flow.autograd.grad(F.scaled_dot_product_attention(q, k, v, CAUSAL).square().sum(), [q, k, v])
    compiled.use()
    q.mul(1)  # kernels were selected for these shapes before the limit was lowered
    found = flow.autograd.grad(F.scaled_dot_product_attention(q, k, v, CAUSAL).square().sum(), [q, k, v])
    for a, b in zip(found, wanted):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)


def test_model_trains_the_same():
    def trained(eager):
        compiled.use()
        flow.manual_seed(0)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        loss = lambda x: (layer(x) ** 2).mean()
        optimizer = flow.optim.SGD(layer.parameters(), lr=0.1)
        step = Step(layer, optimizer, loss)
        if eager:
            compiled.use(False)

            def step(x):
                value = loss(x)
                value.backward()
                optimizer.step()
                optimizer.zero_grad()
                return value.detach()

        return [step(flow.tensor(numbers(2, 20, 16, seed=i))).numpy().item() for i in range(5)]

    np.testing.assert_allclose(trained(False), trained(True), rtol=1e-5)
