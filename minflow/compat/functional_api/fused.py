"""Fused functions, `_C.fused_...`, composed of other ops: the compiler fuses these by itself.

Each has its own scope, so that views show it as one row. Read next: `reordered.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core import functions as _flow
from ...core.base.errors import OutOfRangeError as _OutOfRangeError, ShapeError as _ShapeError
from ...core.functions import creation as _creation
from ...core.functions.arguments import composite as _composite
from ...core.messages.suggestions import name_hints as _name_hints
from ...core.source_location import fail as _fail
from ...core.spec import bool_ as _bool
from ...core.tensor import Tensor as _Tensor
from ...nn import functional as _F
from .reordered import bias_add as _bias_add

_ACTIVATIONS = {
    "none": lambda x: x,
    "sigmoid": _flow.sigmoid,
    "relu": _flow.relu,
    "gelu": _F.gelu,
    "fast_gelu": lambda x: _F.gelu(x, "tanh"),
    "silu": _F.silu,
}


# ---- softmax of masked scores ----------------------------------------------------------------------------------------


def fused_scale_tril(x: _Tensor, diagonal: int = 0, fill_value: float = 0, scale: float = 1) -> _Tensor:
    """scale * x in the lower triangle of the last two axes, up to a diagonal; fill_value above it."""
    below = _flow.tril(_creation.ones(x.shape[-2:], dtype=_bool, device=x.device), diagonal)
    return _flow.where(below, x * scale, float(fill_value))


def fused_scale_tril_softmax_mask_scale(
    a: _Tensor,
    *,
    p: float = 0.5,
    diagonal: int = 0,
    tril_scale_value: float = 1.0,
    tril_fill_value: float = 0.0,
    generator: Any = None,
) -> tuple[_Tensor, _Tensor]:
    """(dropout of the softmax, the softmax) over the last axis of fused_scale_tril."""
    y = _flow.softmax(fused_scale_tril(a, diagonal, tril_fill_value, tril_scale_value), -1)
    return _F.dropout(y, p, generator=generator), y


def fused_scale_mask_softmax(x: _Tensor, mask: _Tensor, *, fill_value: float = 0.0, scale: float = 1.0) -> _Tensor:
    """Softmax over the last axis of x * scale, with fill_value where the mask is 0."""
    kept = x if scale in (1, None) else x * scale
    return _flow.softmax(_flow.where(mask != 0, kept, float(fill_value)), -1)


def fused_scale_mask_softmax_dropout(
    x: _Tensor,
    mask: _Tensor,
    *,
    fill_value: float = 0.0,
    scale: float = 1.0,
    p: float = 0.5,
    training: bool = True,
    generator: Any = None,
) -> tuple[_Tensor, _Tensor]:
    """(dropout of the softmax, the softmax) of fused_scale_mask_softmax."""
    y = fused_scale_mask_softmax(x, mask, fill_value=fill_value, scale=scale)
    return _F.dropout(y, p, training, generator=generator), y


def fused_bias_add_scale_mask_softmax_dropout(
    a: _Tensor, b: _Tensor, mask: _Tensor, **options: Any
) -> tuple[_Tensor, _Tensor]:
    """fused_scale_mask_softmax_dropout(a + b, mask, ...)."""
    return fused_scale_mask_softmax_dropout(a + b, mask, **options)


def fused_scale_mask_bias_softmax(
    x: _Tensor, mask: _Tensor, bias: _Tensor | None = None, scale: float = 1.0, inplace: bool = False
) -> _Tensor:
    """Softmax over the last axis of x * scale + mask + bias. inplace: without an effect on the result."""
    total = x * scale + mask
    return _flow.softmax(total if bias is None else total + bias, -1)


# ---- layers with a bias ----------------------------------------------------------------------------------------------


def fused_bias_add_gelu(a: _Tensor, b: _Tensor, *, axis: int) -> _Tensor:
    """gelu of a plus a vector b along `axis`."""
    return _F.gelu(_bias_add(a, b, axis))


def fused_bias_add_dropout(a: _Tensor, b: _Tensor, *, p: float = 0.5, axis: int = -1, generator: Any = None) -> _Tensor:
    """Dropout of a plus a vector b along `axis`."""
    return _F.dropout(_bias_add(a, b, axis), p, generator=generator)


def fused_matmul_bias(
    x: _Tensor,
    weight: _Tensor,
    bias: _Tensor | None = None,
    _add_to_output: _Tensor | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
) -> _Tensor:
    """alpha * (x @ weight.T + bias) + beta * _add_to_output."""
    out = _F.linear(x, weight, bias)
    out = out if alpha == 1 else out * alpha
    return out if _add_to_output is None else out + _add_to_output * beta


def fused_mlp(
    x: _Tensor, weights: Sequence[_Tensor], biases: Sequence[_Tensor], skip_final_activation: bool
) -> _Tensor:
    """Linear layers with relu between them, and after the last one unless skip_final_activation."""
    if not weights or len(weights) != len(biases):
        what = f"_C.fused_mlp: {len(weights)} weights and {len(biases)} biases"
        _fail(_ShapeError, what, "as many weights as biases, and at least one", x=x)
    for i, (weight, bias) in enumerate(zip(weights, biases)):
        x = _F.linear(x, weight, bias)
        if i + 1 < len(weights) or not skip_final_activation:
            x = _flow.relu(x)
    return x


cublas_fused_mlp = fused_mlp


def fused_glu(
    x: _Tensor,
    w: _Tensor,
    b: _Tensor | None = None,
    v: _Tensor | None = None,
    c: _Tensor | None = None,
    activation: str = "none",
) -> _Tensor:
    """(x @ w.T + b) * activation(x @ v.T + c); without v, the two are halves of x @ w.T + b."""
    if activation not in _ACTIVATIONS:
        what = f"_C.fused_glu: there is no activation {activation!r}"
        _fail(_OutOfRangeError, what, f"one of {', '.join(_ACTIVATIONS)}")
    hidden = _F.linear(x, w, b)
    hidden, gate = _flow.chunk(hidden, 2, -1) if v is None else (hidden, _F.linear(x, v, c))
    return hidden * _ACTIVATIONS[activation](gate)


def fast_gelu(x: _Tensor) -> _Tensor:
    """Gelu by the approximation with tanh."""
    return _F.gelu(x, "tanh")


def fused_fast_gelu_mul(x: _Tensor, multiplier: _Tensor) -> _Tensor:
    """fast_gelu(x) * multiplier."""
    return _F.gelu(x, "tanh") * multiplier


def fused_dot_feature_interaction(
    features: Sequence[_Tensor],
    output_concat: _Tensor | None = None,
    self_interaction: bool = False,
    output_padding: int = 0,
    pooling: str = "none",
) -> _Tensor:
    """Products of all pairs of vectors of an example, after output_concat, with output_padding zeros at the end.

    features: (N, n_i, D) each.  self_interaction: True to include the square of each vector.  pooling: "sum" for half
    of (square of the sum - sum of the squares), (N, D). Naumov et al. 2019 (arXiv:1906.00091), section 2.1.
    """
    x = _flow.cat(list(features), 1)
    if pooling == "sum":
        return (_flow.square(x.sum(1)) - _flow.square(x).sum(1)) * 0.5
    rows, columns = _flow.tril_indices(x.shape[1], x.shape[1], 0 if self_interaction else -1)
    parts = [*([] if output_concat is None else [output_concat]), (x @ x.mT)[:, rows, columns]]
    return _F.pad(_flow.cat(parts, 1), (0, output_padding))


def fused_cross_feature_interaction(
    x: _Tensor, weight: _Tensor, x0: _Tensor, bias: _Tensor, interaction_mode: str = "vector"
) -> _Tensor:
    """x0 * (x @ weight.T) + bias + x; "matrix": x0 * (x @ weight.T + bias) + x. Wang et al. 2020 (arXiv:2008.13535)."""
    if interaction_mode == "matrix":
        return x0 * _F.linear(x, weight, bias) + x
    return x0 * _F.linear(x, weight) + bias + x


# ---- attention -------------------------------------------------------------------------------------------------------


def _heads(name: str, x: _Tensor, layout: str, size: int | None, part: int) -> _Tensor:
    """Return queries, keys or values (part 0, 1, 2) as (B, H, M, K). size: K.

    A layout has the letters of the axes B (batch), M (position), H (head) and K; axes in parentheses are one axis, and
    "H3K" has queries, keys and values of each head side by side, "H2K" keys and values.
    """
    order = layout.replace("(", "").replace(")", "").replace("2", "").replace("3", "")
    if sorted(order) != sorted("BMHK") or layout.startswith("(BM)"):
        hint = 'layouts such as "BM(HK)", "BHMK" or "BM(H3K)"; nn.functional.scaled_dot_product_attention'
        _fail(_OutOfRangeError, f"_C.{name}: the layout {layout!r} is not supported", hint, x=x)
    if "(" in layout:
        if size is None:
            _fail(_ShapeError, f"_C.{name}: {layout!r} needs the size of a head", "query_head_size=64", x=x)
        several = 3 if "3" in layout else 2 if "2" in layout else 1
        x = x.reshape(*x.shape[:2], -1, several, size)[:, :, :, (part - 3 + several) % several]
    return x.permute(*[order.index(axis) for axis in "BHMK"])


def _arranged(name: str, x: _Tensor, layout: str) -> _Tensor:
    """Return (B, H, M, K) in another layout."""
    order = layout.replace("(", "").replace(")", "")
    if sorted(order) != sorted("BMHK") or layout.startswith("(BM)"):
        _fail(_OutOfRangeError, f"_C.{name}: the layout {layout!r} is not supported", '"BM(HK)" or "BHMK"', x=x)
    x = x.permute(*["BHMK".index(axis) for axis in order])
    return x.flatten(2) if "(HK)" in layout else x


def fused_self_attention(hidden_states: _Tensor, head_size: int = 8, alpha: float = 1.0) -> tuple[_Tensor, _Tensor]:
    """(alpha * queries @ keys.T, values), each (B, H, M, ...), of hidden_states (M, B, H * 3 * head_size)."""
    q, k, v = [_heads("fused_self_attention", hidden_states, "MB(H3K)", head_size, part) for part in range(3)]
    return q @ k.mT * alpha, v


def fused_multi_head_attention_inference_v2(
    query: _Tensor,
    query_layout: str = "BM(HK)",
    query_head_size: int | None = None,
    key: _Tensor | None = None,
    key_layout: str | None = None,
    value: _Tensor | None = None,
    value_layout: str | None = None,
    attn_bias: _Tensor | None = None,
    attn_mask_type: str = "none",
    causal: bool = False,
    causal_diagonal_offset: int = 0,
    output_layout: str = "BM(HK)",
    scale: float | None = None,
) -> _Tensor:
    """Attention of queries, keys and values in these layouts; key, value: by default parts of `query`, or of `key`.

    attn_mask_type: "none", "causal_from_top_left" (also causal=True) or "causal_from_bottom_right".  scale: by default
    1 / sqrt(K).
    """
    name = "fused_multi_head_attention_inference_v2"
    key, key_layout = (query, query_layout) if key is None else (key, key_layout or query_layout)
    value, value_layout = (key, key_layout) if value is None else (value, value_layout or key_layout)
    q = _heads(name, query, query_layout, query_head_size, 0)
    k = _heads(name, key, key_layout, query_head_size or q.shape[-1], 1)
    head = query_head_size or q.shape[-1]
    if value_layout in ("BM(HK)", "MB(HK)"):
        head = value.shape[-1] // q.shape[1]
    v = _heads(name, value, value_layout, head, 2)
    kinds = "none", "causal_from_top_left", "causal_from_bottom_right"
    if attn_mask_type not in kinds:
        what = f"_C.{name}: there is no attn_mask_type {attn_mask_type!r}"
        _fail(_OutOfRangeError, what, f"one of {', '.join(kinds)}")
    rows, columns = q.shape[-2], k.shape[-2]
    mask = attn_bias if attn_bias is None else attn_bias[..., :columns]
    if causal or attn_mask_type != "none":
        offset = causal_diagonal_offset + (columns - rows if attn_mask_type == kinds[2] else 0)
        below = _flow.tril(_creation.ones(rows, columns, dtype=_bool, device=q.device), offset)
        mask = below if mask is None else _flow.where(below, mask, float("-inf"))
    return _arranged(name, _F.scaled_dot_product_attention(q, k, v, mask, scale=scale), output_layout)


def fused_multi_head_attention_inference(
    query: _Tensor,
    key: _Tensor,
    value: _Tensor,
    num_heads: int,
    causal: bool = False,
    *,
    attn_bias: _Tensor | None = None,
    causal_diagonal_offset: int = 0,
) -> _Tensor:
    """Attention of queries, keys and values (B, M, H * K) with num_heads heads."""
    return fused_multi_head_attention_inference_v2(
        query,
        "BM(HK)",
        query.shape[-1] // num_heads,
        key,
        value=value,
        attn_bias=attn_bias,
        causal=causal,
        causal_diagonal_offset=causal_diagonal_offset,
    )


for _name, _function in [*globals().items()]:
    if _name[0] != "_" and getattr(_function, "__module__", "") == __name__:
        globals()[_name] = _composite(_name)(_function)
__getattr__ = _name_hints("flow._C", globals())
