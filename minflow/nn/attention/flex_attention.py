"""`flow.nn.attention.flex_attention`: attention whose scores a function changes, such as ALiBi or a sliding window.

The functions are called once, with tensors that hold all indices and broadcast: they may compute with them and use them
to index tensors, but not in `if`. All scores are computed; no block is skipped. Source: Dong et al. 2024
(arXiv:2412.05496). Read next: `../functional/attention.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.base.errors import ShapeError, StateError
from ...core.functions import where
from ...core.functions.creation import arange
from ...core.messages.suggestions import name_hints as _name_hints
from ...core.source_location import fail
from ...core.tensor import Tensor
from ..functional import softmax

_DEFAULT_SPARSE_BLOCK_SIZE = 128
__all__ = ["BlockMask", "and_masks", "create_block_mask", "create_mask", "flex_attention", "noop_mask", "or_masks"]


def indices(sizes: tuple[int, ...], device: Any) -> list[Tensor]:
    """Index tensors of the four axes of the scores, each along its own axis."""
    return [
        arange(n, device=device).reshape([-1 if i == axis else 1 for i in range(4)]) for axis, n in enumerate(sizes)
    ]


def noop_mask(batch: Tensor, head: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
    """Mask of everything: every query sees every key."""
    return (q_idx >= 0) & (kv_idx >= 0)


def and_masks(*mask_mods: Callable) -> Callable:
    """Mask function of the places at which all functions are true."""
    return lambda b, h, q, kv: combined(mask_mods, lambda x, y: x & y, b, h, q, kv)


def or_masks(*mask_mods: Callable) -> Callable:
    """Mask function of the places at which one of the functions is true."""
    return lambda b, h, q, kv: combined(mask_mods, lambda x, y: x | y, b, h, q, kv)


def combined(functions: Any, combine: Callable, *places: Tensor) -> Tensor:
    first, *rest = functions
    result = first(*places)
    for function in rest:
        result = combine(result, function(*places))
    return result


def create_mask(
    mod_fn: Callable, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = "cpu", **options: Any
) -> Tensor:
    """bool (B, H, Q_LEN, KV_LEN): the values of a mask function. B, H: None for 1."""
    shape = (B or 1, H or 1, Q_LEN, KV_LEN)
    return mod_fn(*indices(shape, device)).expand(*shape)


class BlockMask:
    """A mask function and the sizes that it is for. block_mask[...] and sparsity() are those of its dense mask."""

    def __init__(self, mask_mod: Callable, shape: tuple[int, int, int, int], device: Any):
        self.mask_mod, self.shape, self.device = mask_mod, shape, device
        self.seq_lengths = shape[-2:]

    def to_dense(self) -> Tensor:
        """bool (B, H, Q_LEN, KV_LEN)."""
        return create_mask(self.mask_mod, *self.shape, device=self.device)

    def sparsity(self) -> float:
        """Percentage of the scores that are masked."""
        return 100 * (1 - self.to_dense().float().mean().item())

    def to(self, device: Any) -> BlockMask:
        """The mask on a device."""
        return BlockMask(self.mask_mod, self.shape, device)

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def create_block_mask(
    mask_mod: Callable,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
) -> BlockMask:
    """BlockMask of `mask_mod(batch, head, q_idx, kv_idx)`, True where a query may attend. B, H: None for all.

    BLOCK_SIZE and _compile have no effect: all scores are computed.
    """
    return BlockMask(mask_mod, (B or 1, H or 1, Q_LEN, KV_LEN), "cpu" if device is None else device)


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: dict | None = None,
    *,
    return_aux: Any = None,
) -> Any:
    """softmax(score_mod(query @ key.mT * scale)) @ value, without the keys that block_mask leaves out.

    query: float (B, H, L, E). key: (B, H, S, E). value: (B, H, S, V). Returns (B, H, L, V), with return_lse also the
    log-sum-exp of the scores, (B, H, L). score_mod: `score_mod(score, batch, head, q_idx, kv_idx)`. scale: 1 / sqrt(E)
    by default. enable_gqa: several heads of queries share one head of keys. A query that may attend to no key gets 0.
    """
    if return_aux is not None:
        fail(StateError, "flex_attention: return_aux is not supported", "return_lse=True")
    if {x.ndim for x in (query, key, value)} != {4} or query.shape[-1] != key.shape[-1]:
        what = "flex_attention: query, key and value must be (batch, heads, steps, features), of the same features"
        fail(ShapeError, what, "x.unsqueeze(0)", query=query, key=key, value=value)
    if enable_gqa:
        repeats = query.shape[1] // key.shape[1]
        key, value = (x.repeat_interleave(repeats, 1) for x in (key, value))
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    places = indices(scores.shape, scores.device)
    if score_mod is not None:
        scores = score_mod(scores, *places)
    if block_mask is not None:
        scores = where(block_mask.mask_mod(*places), scores, float("-inf"))
    top = scores.amax(-1, keepdim=True)
    seen = top > float("-inf")
    weights = softmax(where(seen, scores, 0.0), dim=-1)
    out = where(seen, weights, 0.0) @ value
    return (out, scores.logsumexp(-1)) if return_lse else out


__getattr__ = _name_hints("flow.nn.attention.flex_attention", globals())
