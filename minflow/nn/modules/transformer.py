"""Layers: Transformer and its parts. Source: Vaswani et al. 2017 (arXiv:1706.03762), section 3; norm_first: Xiong et
al. 2020 (arXiv:2002.04745), which puts each norm before its block.

Read next: `attention.py`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from ...core.base.errors import DTypeError, OutOfRangeError, ShapeError
from ...core.functions.creation import full
from ...core.source_location import fail
from ...core.spec import Device, DType
from ...core.tensor import Tensor
from .. import functional as F, init
from ..containers import ModuleList
from ..module import Module
from .attention import MultiheadAttention
from .dropout import Dropout
from .linear import Linear, check_size
from .norm import LayerNorm

Activation = str | Callable[[Tensor], Tensor]


def resolve_activation(layer: str, activation: Activation) -> Callable[[Tensor], Tensor]:
    if isinstance(activation, str) and activation not in ("relu", "gelu"):
        fail(OutOfRangeError, f"{layer}: activation is {activation!r}", 'activation="relu", "gelu", or a function')
    if not isinstance(activation, str) and not callable(activation):
        what = f"{layer}: activation must be a function, got {activation!r}"
        fail(DTypeError, what, 'activation="relu", "gelu", or a function such as flow.tanh')
    return getattr(F, activation) if isinstance(activation, str) else activation


def clone_layers(stack: str, layer: Module, num_layers: int, norm: Module | None) -> ModuleList:
    check_size(stack, "num_layers", num_layers)
    for name, part in (("the layer", layer), ("norm", norm)):
        if not isinstance(part, Module) and (name != "norm" or part is not None):
            what = f"{stack}: {name} must be a Module, got {type(part).__name__}"
            fail(DTypeError, what, f"nn.{stack}(nn.{stack}Layer(d_model, nhead), num_layers, nn.LayerNorm(d_model))")
    return clones(layer, num_layers)


def clones(module: Module, N: int) -> ModuleList:
    """N copies of a module; PyTorch's `_get_clones`."""
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


def activation_function(activation: str) -> Callable[[Tensor], Tensor]:
    """The function named "relu" or "gelu"; PyTorch's `_get_activation_fn`."""
    return resolve_activation("_get_activation_fn", activation)


class TransformerLayer(Module):
    """Base of the two layers: attentions, the two linear layers, and a norm and a dropout for each block."""

    _attentions: tuple[str, ...] = ("self_attn",)

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        place: dict[str, Any] = dict(device=device, dtype=dtype)
        for name in self._attentions:
            self.add_module(name, MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **place))
        self.linear1 = Linear(d_model, dim_feedforward, bias, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **place)
        self.norm_first = norm_first
        blocks = range(1, len(self._attentions) + 2)
        for i in blocks:
            self.add_module(f"norm{i}", LayerNorm(d_model, layer_norm_eps, bias=bias, **place))
        for i in blocks:
            self.add_module(f"dropout{i}", Dropout(dropout))
        self.activation = resolve_activation(type(self).__name__, activation)

    # The blocks have PyTorch's names: subclasses call and override them.
    def _sa_block(
        self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        """Self-attention and its dropout."""
        seen, _ = self.self_attn(x, x, x, key_padding_mask, False, attn_mask, is_causal=is_causal)
        return self.dropout1(seen)

    def _ff_block(self, x: Tensor) -> Tensor:
        """linear2(activation(linear1(x))), with a dropout after the activation and the last dropout at the end."""
        last = self.dropout2 if len(self._attentions) == 1 else self.dropout3
        return last(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoderLayer(TransformerLayer):
    """x = norm1(x + attention(x));  x = norm2(x + linear2(activation(linear1(x)))).

    src: float (S, N, d_model), (N, S, d_model) with batch_first, or (S, d_model); the output has its shape. src_mask
    and src_key_padding_mask: as attn_mask and key_padding_mask of MultiheadAttention. norm_first: x + block(norm(x)).
    dropout: on the attention weights, after the activation, and at the end of each block.
    """

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        masks = (src_mask, src_key_padding_mask, is_causal)
        if self.norm_first:
            x = src + self._sa_block(self.norm1(src), *masks)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(src + self._sa_block(src, *masks))
        return self.norm2(x + self._ff_block(x))


class TransformerDecoderLayer(TransformerLayer):
    """x = norm1(x + attention(x));  x = norm2(x + attention(x, memory));  x = norm3(x + feed_forward(x)).

    feed_forward(x) = linear2(activation(linear1(x))). tgt: float (T, N, d_model), (N, T, d_model) with batch_first, or
    (T, d_model); the output has its shape. memory: the output of the encoder, (S, N, d_model). Masks: as in
    MultiheadAttention, tgt_... for the first attention, memory_... for the second. norm_first: x + block(norm(x)).
    """

    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        masks = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        memory_masks = (memory_mask, memory_key_padding_mask, memory_is_causal)
        if self.norm_first:
            x = tgt + self._sa_block(self.norm1(tgt), *masks)
            x = x + self._mha_block(self.norm2(x), memory, *memory_masks)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(tgt + self._sa_block(tgt, *masks))
        x = self.norm2(x + self._mha_block(x, memory, *memory_masks))
        return self.norm3(x + self._ff_block(x))

    def _mha_block(
        self,
        x: Tensor,
        mem: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        """Attention to the output of the encoder and its dropout."""
        seen, _ = self.multihead_attn(x, mem, mem, key_padding_mask, False, attn_mask, is_causal=is_causal)
        return self.dropout2(seen)


class TransformerEncoder(Module):
    """num_layers copies of encoder_layer in sequence, then norm unless it is None.

    enable_nested_tensor, mask_check: accepted and ignored; there are no nested tensors, and padded positions are
    computed like others.
    is_causal: a hint that mask is causal.
    """

    def __init__(
        self,
        encoder_layer: TransformerEncoderLayer,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ):
        super().__init__()
        self.layers = clone_layers("TransformerEncoder", encoder_layer, num_layers, norm)
        self.num_layers, self.norm = num_layers, norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, bool(is_causal))
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """num_layers copies of decoder_layer in sequence, then norm unless it is None."""

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None):
        super().__init__()
        self.layers = clone_layers("TransformerDecoder", decoder_layer, num_layers, norm)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask,
                memory_mask,
                tgt_key_padding_mask,
                memory_key_padding_mask,
                bool(tgt_is_causal),
                memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """decoder(tgt, encoder(src)): stacks of num_encoder_layers and num_decoder_layers layers, each with a final
    LayerNorm.

    src: float (S, N, d_model), tgt: (T, N, d_model); with batch_first N comes first; or both without N. The output has
    the shape of tgt. Masks: as in the layers. Weights are initialized by Glorot & Bengio's rule. custom_encoder,
    custom_decoder: used in place of the stacks.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        place: dict[str, Any] = dict(device=device, dtype=dtype)
        options = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        norm = lambda: LayerNorm(d_model, layer_norm_eps, bias=bias, **place)
        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*options, **place), num_encoder_layers, norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*options, **place), num_decoder_layers, norm()
        )
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def _reset_parameters(self) -> None:
        """Reinitialize all matrices."""
        for weight in self.parameters():
            if weight.spec.ndim > 1:
                init.xavier_uniform_(weight)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        axis = 0 if self.batch_first else 1
        if src.spec.ndim == 3 and src.spec.shape[axis] != tgt.spec.shape[axis]:
            fail(
                ShapeError,
                f"Transformer: src has a batch of {src.spec.shape[axis]}, tgt of {tgt.spec.shape[axis]} (axis {axis})",
                "batch_first=True if the batch is axis 0",
                src=src,
                tgt=tgt,
            )
        if not src.spec.shape[-1] == tgt.spec.shape[-1] == self.d_model:
            fail(
                ShapeError,
                f"Transformer: src and tgt have {src.spec.shape[-1]} and {tgt.spec.shape[-1]} features, "
                f"d_model is {self.d_model}",
                "nn.Embedding(words, d_model) before it",
                src=src,
                tgt=tgt,
            )
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: Device | str | None = None, dtype: DType | None = None
    ) -> Tensor:
        """Float (sz, sz): -inf above the diagonal, 0 elsewhere, so that position i attends to positions 0 to i."""
        return full((sz, sz), -math.inf, dtype=dtype, device=device).triu(1)
