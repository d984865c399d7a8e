"""Attention: for each query the mean of the values, weighted by how well the query matches their keys.

It is one op; with dropout, or if the weights are wanted, it runs in one scope, `.../scaled_dot_product_attention`. Read
next: `../../core/ops/attention.py`, `../modules/attention.py`. Source: Vaswani et al. 2017 (arXiv:1706.03762), sections
3.2.1 and 3.2.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...core.base.errors import DTypeError, ShapeError
from ...core.functions import cat, matmul, repeat_interleave
from ...core.functions.arguments import float_or_symbol, in_float32, is_symbolic, is_tensor
from ...core.ops import attention as ops
from ...core.ops.shape import filled
from ...core.source_location import fail
from ...core.spec import bool_, cpu
from ...core.tensor import Tensor
from .arguments import check_tensor, composite
from .dropout import dropout
from .linear import linear
from .shape import pad


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query @ key.mT * scale + attn_mask) @ value; scale is 1 / sqrt(E) by default.

    query: float (..., L, E). key: (..., S, E). value: (..., S, V). Returns (..., L, V). attn_mask: bool (..., L, S),
    True where a query may attend; or float, added to the scores. A query that may not attend to any key gets 0.
    is_causal: query i attends to keys 0 to i. dropout_p: probability of zeroing a weight, in evaluation too.
    enable_gqa: several heads of queries share one head of keys and values (axis -3). Raises ShapeError if sizes differ,
    DTypeError for integers.
    """
    name = "scaled_dot_product_attention"
    for argument, x in (("query", query), ("key", key), ("value", value)):
        check_tensor(name, x, argument)
        if not x.spec.floating:
            fail(DTypeError, f"{name}: {argument} must be floating, got {x.dtype.name}", "x.float()", **{argument: x})
        if x.spec.ndim < 2:
            what = f"{name}: {argument} must be (..., steps, features), got {x.spec.ndim} axes"
            fail(ShapeError, what, "x.unsqueeze(0)", **{argument: x})
    q, k, v = (x.spec.shape for x in (query, key, value))
    if q[-1] != k[-1] or k[-2] != v[-2]:
        what = (
            f"{name}: queries have {q[-1]} features, keys {k[-1]}"
            if q[-1] != k[-1]
            else f"{name}: there are {k[-2]} keys and {v[-2]} values"
        )
        hint = "query (..., L, E), key (..., S, E), value (..., S, V)"
        fail(ShapeError, what, hint, query=query, key=key, value=value)
    if is_causal and attn_mask is not None:
        hint = "one of the two: is_causal is the mask flow.ones(L, S, dtype=flow.bool).tril()"
        fail(ShapeError, f"{name}: attn_mask and is_causal=True are both given", hint, attn_mask=attn_mask)
    if enable_gqa:
        if len(q) < 3 or len(k) < 3 or len(v) < 3 or not k[-3] or q[-3] % k[-3] or q[-3] % v[-3]:
            what = f"{name}: enable_gqa=True shares each head of keys (axis -3) among heads of queries"
            hint = "a number of query heads that is a multiple of the number of key heads"
            fail(ShapeError, what, hint, query=query, key=key, value=value)
        key, value = (repeat_interleave(x, q[-3] // x.spec.shape[-3], -3) for x in (key, value))
    if is_causal:
        attn_mask = filled(query.spec.replace(shape=(q[-2], k[-2]), dtype=bool_), 1).tril()
    elif attn_mask is not None:
        check_mask(name, "attn_mask", attn_mask)
    return attend(query, key, value, attn_mask, dropout_p, scale, not is_causal and attn_mask is not None, False)[0]


def check_mask(name: str, argument: str, mask: Any) -> None:
    check_tensor(name, mask, argument)
    if mask.dtype is not bool_ and not mask.spec.floating:
        what = f"{name}: {argument} must be bool or floating, got {mask.dtype.name}"
        fail(DTypeError, what, f"{argument}.bool()", **{argument: mask})


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout_p: float,
    scale: float | None,
    may_attend_nowhere: bool,
    need_weights: bool,
) -> tuple[Tensor, Tensor | None]:
    """(means, weights or None). mask: bool, True where a query may attend, or float. may_attend_nowhere: True if there
    may be queries that attend to no key; their rows become 0.
    """
    features = query.spec.shape[-1]
    factor = float_or_symbol((1 / math.sqrt(features) if features else 1.0) if scale is None else scale)
    numbers: Any = 0 if mask is None else mask
    if is_tensor(dropout_p) or dropout_p or need_weights:
        return attend_with_weights(query, key, value, numbers, dropout_p, factor, may_attend_nowhere)
    attention: Any = ops.scaled_dot_product_attention
    if is_symbolic(factor):
        return attention.decompose(query, key, value, numbers, scale=factor, nowhere=may_attend_nowhere), None
    if query.spec.device is cpu:  # on a GPU, kernels sum half precision in float32
        attention = in_float32(attention.__call__)
    return attention(query, key, value, numbers, scale=factor, nowhere=may_attend_nowhere), None


@composite("scaled_dot_product_attention")
@in_float32
def attend_with_weights(
    query: Tensor, key: Tensor, value: Tensor, mask: Any, dropout_p: float, factor: float, nowhere: bool
) -> tuple[Tensor, Tensor]:
    weights = dropout(ops.attention_weights(query, key, mask, factor, nowhere), dropout_p)
    return matmul(weights, value), weights


def additive_mask(name: str, argument: str, mask: Tensor | None, like: Tensor) -> Tensor | None:
    """Convert a mask to floats to add: -inf where a bool mask is True, which here means not to attend."""
    if mask is None:
        return None
    check_mask(name, argument, mask)
    if mask.dtype is not bool_:
        return mask.to(like.dtype)
    return filled(mask.spec.replace(dtype=like.dtype), 0).masked_fill(mask, -math.inf)


def project_inputs(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    separate: Sequence[Tensor] | None,
) -> list[Tensor]:
    """Compute the queries, keys and values of all heads, with one product if all three inputs are the same tensor.

    weight: the three weights stacked along axis 0; separate: the three as a sequence. Exactly one of the two is given.
    """
    if separate is None:
        assert weight is not None
        if query is key and key is value:
            return list(linear(query, weight, bias).chunk(3, -1))
        separate = weight.chunk(3)
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return [linear(x, w, b) for x, w, b in zip((query, key, value), separate, biases)]


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Multi-head attention with the weights of `nn.MultiheadAttention`: (output (L, N, E), weights (N, L, S) or None).

    query: float (L, N, E). key, value: (S, N, ...), or all without N. Each of num_heads applies
    `scaled_dot_product_attention` to its part of the features; out_proj mixes the results. True in a mask means not to
    attend: key_padding_mask (N, S), attn_mask (L, S) or (N * num_heads, L, S); floats are added to the scores.
    static_k, static_v: (N * num_heads, S, E / num_heads), used in place of the projected keys and values.
    Raises ShapeError if sizes differ. Source: Vaswani et al. 2017, section 3.2.2.
    """
    name = "multi_head_attention_forward"
    for argument, x in (("query", query), ("key", key), ("value", value)):
        check_tensor(name, x, argument)
    batched = query.spec.ndim == 3
    if query.spec.ndim not in (2, 3) or not query.spec.ndim == key.spec.ndim == value.spec.ndim:
        what = f"{name}: query, key and value have {query.spec.ndim}, {key.spec.ndim} and {value.spec.ndim} axes"
        hint = "(steps, N, features) for all three, or (steps, features) for all three"
        fail(ShapeError, what, hint, query=query, key=key, value=value)
    if not batched:
        same = query is key is value
        query = query.unsqueeze(1)
        key, value = (query, query) if same else (key.unsqueeze(1), value.unsqueeze(1))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    (length, batch, width), (steps, others) = query.spec.shape, key.spec.shape[:2]
    if width != embed_dim_to_check or width % num_heads:
        what = f"{name}: the query has {width} features, embed_dim is {embed_dim_to_check} for {num_heads} heads"
        fail(ShapeError, what, "embed_dim is the last axis of the query, and a multiple of num_heads", query=query)
    if value.spec.shape[:2] != (steps, others) or others != batch:
        hint = "query (L, N, E), key and value (S, N, ...); with batch_first=True N comes first"
        fail(ShapeError, f"{name}: query, key and value do not fit together", hint, query=query, key=key, value=value)
    if (bias_k is None) is not (bias_v is None):
        what = f"{name}: only one of bias_k and bias_v is given"
        fail(ShapeError, what, "both, of shape (1, 1, E), or neither", bias_k=bias_k, bias_v=bias_v)
    if is_causal and attn_mask is None:
        what = f"{name}: is_causal=True is a hint about attn_mask, and there is none"
        fail(ShapeError, what, "attn_mask=nn.Transformer.generate_square_subsequent_mask(L)", query=query)
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    q, k, v = project_inputs(
        query,
        key,
        value,
        in_proj_weight,
        in_proj_bias,
        separate,  # type: ignore[arg-type]  # the three weights are given together
    )
    mask, away = (
        additive_mask(name, "attn_mask", attn_mask, q),
        additive_mask(name, "key_padding_mask", key_padding_mask, q),
    )
    for argument, m, shapes in (
        ("attn_mask", mask, [(length, steps), (batch * num_heads, length, steps)]),
        ("key_padding_mask", away, [(batch, steps)]),
    ):
        if m is not None and m.spec.shape not in shapes:
            what = f"{name}: {argument} must be {' or '.join(str(list(s)) for s in shapes)}, got {list(m.spec.shape)}"
            fail(ShapeError, what, "one number for each query and key", **{argument: m})
    heads = lambda x: x.reshape(x.spec.shape[0], batch, num_heads, -1).permute(1, 2, 0, 3)
    more = 0  # keys appended to the sequence, not covered by a mask
    if bias_k is not None and bias_v is not None:
        k, v = (cat([x, bias.expand(1, batch, width)]) for x, bias in ((k, bias_k), (v, bias_v)))
        more += 1
    features = width // num_heads
    q, k, v = heads(q), heads(k), heads(v)
    k = k if static_k is None else static_k.reshape(batch, num_heads, -1, features)
    v = v if static_v is None else static_v.reshape(batch, num_heads, -1, features)
    if add_zero_attn:
        k, v = (cat([x, filled(x.spec.replace(shape=(batch, num_heads, 1, features)), 0)], 2) for x in (k, v))
        more += 1
    if mask is not None:
        mask = pad(mask, (0, more)) if more else mask
        mask = mask.reshape(batch, num_heads, length, -1) if mask.spec.ndim == 3 else mask
    if away is not None:
        away = (pad(away, (0, more)) if more else away).reshape(batch, 1, 1, -1)
        mask = away if mask is None else mask + away
    nowhere = not need_weights and mask is not None
    out, weights = attend(q, k, v, mask, dropout_p if training else 0.0, None, nowhere, need_weights)
    out = linear(out.permute(2, 0, 1, 3).reshape(length, batch, width), out_proj_weight, out_proj_bias)
    out = out if batched else out.squeeze(1)
    if weights is None or not need_weights:
        return out, None
    weights = weights.mean(1) if average_attn_weights else weights
    return out, weights if batched else weights.squeeze(0)
