"""Layer: MultiheadAttention. Read next: `../functional/attention.py`, its computation, and `transformer.py`."""

from __future__ import annotations

from ...core.base.errors import ShapeError
from ...core.functions.creation import empty
from ...core.source_location import fail
from ...core.spec import Device, DType
from ...core.tensor import Tensor
from .. import functional as F, init
from ..module import Module
from ..parameter import Parameter
from .linear import Linear, check_size


class MultiheadAttention(Module):
    """num_heads attentions in parallel, each over its part of the features; out_proj mixes their results.

    query: float (L, N, embed_dim), key (S, N, kdim), value (S, N, vdim); with batch_first N comes first; or all without
    N. Returns (output, weights): output like query; weights (N, L, S), the mean over the heads, (N, num_heads, L, S)
    with average_attn_weights=False, None with need_weights=False. True in a mask means not to attend: key_padding_mask
    (N, S), attn_mask (L, S) or (N * num_heads, L, S); floats are added. is_causal is a hint that attn_mask is causal.
    in_proj_weight (3 * embed_dim, embed_dim), or q_proj_weight, k_proj_weight, v_proj_weight if kdim or vdim differ,
    are initialized by Glorot & Bengio's rule, biases to 0. Vaswani et al. 2017, section 3.2.2.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        for name, value in (("embed_dim", embed_dim), ("num_heads", num_heads)):
            check_size("MultiheadAttention", name, value, 1)
        if embed_dim % num_heads:
            what = f"MultiheadAttention: embed_dim is {embed_dim}, and num_heads {num_heads} does not divide it"
            fail(ShapeError, what, "each head has embed_dim / num_heads features")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        one = self._qkv_same_embed_dim
        shapes = {
            "in_proj_weight": (3 * embed_dim, embed_dim) if one else None,
            "q_proj_weight": None if one else (embed_dim, embed_dim),
            "k_proj_weight": None if one else (embed_dim, self.kdim),
            "v_proj_weight": None if one else (embed_dim, self.vdim),
            "in_proj_bias": (3 * embed_dim,) if bias else None,
            "bias_k": (1, 1, embed_dim) if add_bias_kv else None,
            "bias_v": (1, 1, embed_dim) if add_bias_kv else None,
        }
        for name, shape in shapes.items():
            numbers = None if shape is None else Parameter(empty(*shape, device=device, dtype=dtype))
            self.register_parameter(name, numbers)
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Reinitialize all weights."""
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        F.arguments.check_tensor("MultiheadAttention", query, "query")
        swap = self.batch_first and query.spec.ndim == 3
        if swap:  # transpose a shared tensor once, so that one product gives queries, keys and values
            turned = {id(x): x.transpose(0, 1) for x in (query, key, value)}
            query, key, value = (turned[id(x)] for x in (query, key, value))
        out, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            self.training,
            key_padding_mask,
            need_weights,
            attn_mask,
            not self._qkv_same_embed_dim,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return out.transpose(0, 1) if swap else out, weights
