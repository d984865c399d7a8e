"""Attention and transformers: against the formula, with masks, as one scope, and mistakes."""

import math

import numpy as np
import pytest

import minflow as flow
import minflow.nn.functional as F
from minflow import nn
from minflow.core.trace import trace


def numbers(*shape, seed=0):
    return flow.tensor(np.random.default_rng(seed).standard_normal(shape))


def formula(q, k, v, mask=0.0):
    scores = np.einsum("...le,...se->...ls", q, k) / math.sqrt(q.shape[-1]) + mask
    weights = np.exp(scores)
    weights /= weights.sum(-1, keepdims=True)
    return weights @ v


def test_attention_is_a_weighted_mean_of_values():
    q, k, v = numbers(2, 3, 4), numbers(2, 5, 4, seed=1), numbers(2, 5, 6, seed=2)
    arrays = [x.numpy() for x in (q, k, v)]
    np.testing.assert_allclose(F.scaled_dot_product_attention(q, k, v).numpy(), formula(*arrays), rtol=1e-12)
    mask = np.random.default_rng(3).standard_normal((3, 5))
    got = F.scaled_dot_product_attention(q, k, v, flow.tensor(mask)).numpy()
    np.testing.assert_allclose(got, formula(*arrays, mask), rtol=1e-12)
    got = F.scaled_dot_product_attention(q, k, v, flow.tensor(mask > 0)).numpy()
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(got, np.nan_to_num(formula(*arrays, np.where(mask > 0, 0, -np.inf))), rtol=1e-12)
    got = F.scaled_dot_product_attention(q, k, v, is_causal=True).numpy()
    np.testing.assert_allclose(got, formula(*arrays, np.where(np.tri(3, 5) > 0, 0, -np.inf)), rtol=1e-12)
    twice = F.scaled_dot_product_attention(q, k, v, scale=1.0).numpy()
    np.testing.assert_allclose(twice, formula(2 * arrays[0], *arrays[1:]), rtol=1e-12)


def test_fully_masked_query_gets_zero_and_no_gradient():
    q, k, v = (numbers(3, 4, seed=s).requires_grad_() for s in range(3))
    mask = flow.tensor([[True, True, False], [False, False, False], [False, True, True]])
    out = F.scaled_dot_product_attention(q, k, v, mask)
    out.sum().backward()
    assert out[1].tolist() == [0.0] * 4 and q.grad[1].tolist() == [0.0] * 4
    assert all(np.isfinite(x.grad.numpy()).all() for x in (q, k, v))


def test_grouped_query_attention():
    q, k, v = numbers(4, 3, 4), numbers(2, 5, 4, seed=1), numbers(2, 5, 4, seed=2)
    got = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    want = formula(q.numpy(), *[x.numpy().repeat(2, 0) for x in (k, v)])
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)


@pytest.mark.parametrize("need_weights", [False, True])
def test_attention_is_one_op_or_one_scope_in_a_graph(need_weights):
    """With weights, it has the scope that autocast recognizes by its last part."""
    layer = nn.MultiheadAttention(4, 2)
    graph, _ = trace(lambda x: layer(x, x, x, need_weights=need_weights)[0], [flow.rand(3, 2, 4)])
    scope = "MultiheadAttention/scaled_dot_product_attention"
    inside = [node.op.name for node in graph.nodes if node.scope == scope]
    assert not need_weights or (inside.count("matmul") == 2 and "softmax" in inside)
    names = [node.op.name for node in graph.nodes]
    assert names.count("scaled_dot_product_attention") == (not need_weights)
    assert names.count("matmul") == (4 if need_weights else 2)  # two are projections


def test_projections_use_one_product():
    layer, x = nn.MultiheadAttention(4, 2, batch_first=True), flow.rand(2, 3, 4)
    got, weights = layer(x, x, x)
    want, _ = layer(x, x * 1, x * 1)
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-5, atol=1e-6)
    assert weights.shape == (2, 3, 3)
    np.testing.assert_allclose(weights.sum(-1).detach().numpy(), 1.0, rtol=1e-5)
    assert layer(x, x, x, average_attn_weights=False)[1].shape == (2, 2, 3, 3)
    assert flow.summary(layer, x, x, x).record.macs == 6 * 4 * 12 + 2 * (2 * 2 * 3 * 3 * 2) + 6 * 4 * 4


def test_masks_match_shorter_sequences():
    layer = nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True).double()
    x = numbers(2, 5, 4)
    away = flow.tensor([[False] * 5, [False] * 3 + [True] * 2])
    np.testing.assert_allclose(
        layer(x, src_key_padding_mask=away)[1, :3].detach().numpy(), layer(x[1:, :3])[0].detach().numpy(), rtol=1e-10
    )
    mask = nn.Transformer.generate_square_subsequent_mask(5, dtype=flow.float64)
    seen = layer(x, src_mask=mask, is_causal=True)
    for n in range(1, 6):
        short = layer(x[:, :n], mask[:n, :n])
        np.testing.assert_allclose(short.detach().numpy(), seen[:, :n].detach().numpy(), rtol=1e-10)


def test_weight_names():
    names = [name for name, _ in nn.MultiheadAttention(4, 2, kdim=3, add_bias_kv=True).named_parameters()]
    assert names == [
        "q_proj_weight",
        "k_proj_weight",
        "v_proj_weight",
        "in_proj_bias",
        "bias_k",
        "bias_v",
        "out_proj.weight",
        "out_proj.bias",
    ]
    names = [name for name, _ in nn.Transformer(4, 2, 1, 1, 8).named_parameters()]
    assert names[0] == "encoder.layers.0.self_attn.in_proj_weight" and names[-1] == "decoder.norm.bias"
    assert nn.TransformerEncoderLayer(4, 2, activation=flow.tanh).activation is flow.tanh


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: F.scaled_dot_product_attention(x, x[..., :2], x), "queries have 4 features, keys 2"),
        (lambda x: F.scaled_dot_product_attention(x, x, x[:, :1]), "3 keys and 1 values"),
        (lambda x: F.scaled_dot_product_attention(x, x, x.long()), "value must be floating, got int64"),
        (lambda x: F.scaled_dot_product_attention(x[0, 0], x, x), "query must be .* got 1 axes"),
        (
            lambda x: F.scaled_dot_product_attention(x, x, x, flow.ones(3, 3), is_causal=True),
            "and is_causal=True are both given",
        ),
        (lambda x: F.scaled_dot_product_attention(x, x, x, flow.ones(3, 3).long()), "attn_mask must be .* got int64"),
        (lambda x: F.scaled_dot_product_attention(x[:1], x, x, enable_gqa=True), "enable_gqa"),
        (lambda x: nn.MultiheadAttention(4, 3), "embed_dim is 4, and num_heads 3"),
        (lambda x: nn.MultiheadAttention(6, 3)(x, x, x), "the query has 4 features, embed_dim is 6"),
        (lambda x: nn.MultiheadAttention(4, 2)(x, x[:, :1], x), "do not fit together"),
        (lambda x: nn.MultiheadAttention(4, 2)(x, x[0], x[0]), "3, 2 and 2 axes"),
        (lambda x: nn.MultiheadAttention(4, 2)(x, x, x, is_causal=True), "a hint about attn_mask"),
        (lambda x: nn.MultiheadAttention(4, 2)(x, x, x, attn_mask=flow.ones(3, 3)), r"be \[2, 2\] or .*, got \[3, 3\]"),
        (lambda x: nn.MultiheadAttention(4, 2)(x, x, x, flow.ones(2, 3)), r"must be \[3, 2\], got \[2, 3\]"),
        (lambda x: nn.TransformerEncoderLayer(4, 2, activation="x"), "activation is 'x'"),
        (lambda x: nn.TransformerEncoderLayer(4, 2, activation=1), "activation must be a function, got 1"),
        (lambda x: nn.TransformerEncoder(None, 2), "the layer must be a Module, got NoneType"),
        (lambda x: nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2), 2, 1), "norm must be a Module, got int"),
        (lambda x: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2), -1), "num_layers must be .* got -1"),
        (lambda x: nn.Transformer(4, 2, 1, 1, 8)(x, x[:, :1]), "a batch of 3, tgt of 1"),
        (lambda x: nn.Transformer(8, 2, 1, 1, 8)(x, x), "4 and 4 features, d_model is 8"),
    ],
)
def test_mistakes(call, words):
    with pytest.raises(flow.MinflowError, match=f"(?s){words}"):
        call(flow.rand(2, 3, 4))


def test_bias_k_requires_bias_v():
    x, weight = flow.ones(2, 1, 4), flow.ones(4, 4)
    with pytest.raises(flow.ShapeError, match="only one of bias_k and bias_v is given"):
        F.multi_head_attention_forward(
            x, x, x, 4, 2, flow.ones(12, 4), None, flow.ones(1, 1, 4), None, False, 0.0, weight, None
        )
