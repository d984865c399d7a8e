"""Dropout of whole channels, and dropout that preserves mean and variance. Read next: `dropout.py`."""

from __future__ import annotations

from ...core.base.errors import ShapeError
from ...core.functions.random import bernoulli_like, dropout as drop
from ...core.ops import activation_composites
from ...core.ops.shape import filled
from ...core.source_location import fail, warn
from ...core.tensor import Tensor
from .dropout import keeps_all


def channel_mask_shape(name: str, input: Tensor, ranks: tuple[int, int], batched: bool) -> tuple[int, ...]:
    """Return the shape of a mask with one element per channel. ranks: number of axes of an example and of a batch."""
    shape, ndim = input.spec.shape, input.spec.ndim
    if ndim not in ranks:
        what = f"{name}: the input must have {ranks[1]} axes, or {ranks[0]} for one example, got {ndim}"
        if ndim < 2 or name == "dropout1d":
            fail(ShapeError, what, "F.dropout for single elements", input=input)
        warn(f"{what}; axis 1 is taken for the channels", "F.dropout, or nn.Dropout, for single elements", input=input)
        batched = True
    outer = 2 if batched or ndim == ranks[1] else 1
    return (*shape[:outer], *[1] * (ndim - outer))


def drop_channels(
    name: str, input: Tensor, p: float, training: bool, inplace: bool, ranks: tuple[int, int], batched: bool = False
) -> Tensor:
    unchanged = keeps_all(name, input, p) or not training
    if name != "dropout1d" and (unchanged or not input.spec.size):
        return input
    shape = channel_mask_shape(name, input, ranks, batched)
    if unchanged:
        return input
    kept = drop(filled(input.spec.replace(shape=shape), 1), p)
    return input.mul_(kept) if inplace else input * kept


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of (N, C, L) or (C, L): each becomes 0 with probability p, else x / (1 - p)."""
    return drop_channels("dropout1d", input, p, training, inplace, (2, 3))


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of (N, C, H, W). Three axes are taken as (N, C, L), as in PyTorch.

    Tompson et al. 2015, section 3.2.
    """
    return drop_channels("dropout2d", input, p, training, inplace, (3, 4), batched=True)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    return drop_channels("dropout3d", input, p, training, inplace, (4, 5))


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout for selu: dropped elements become its lower limit, then an affine map restores mean and variance.

    Klambauer et al. 2017, section 3.
    """
    if keeps_all("alpha_dropout", input, p) or not training:
        return input
    return alpha_dropout_impl(input, p, inplace, input.spec.shape)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """alpha_dropout of whole channels of (N, C, ...)."""
    if keeps_all("feature_alpha_dropout", input, p) or not training:
        return input
    shape = input.spec.shape
    if p < 1 and input.spec.size and len(shape) < 2:
        what = f"feature_alpha_dropout: the input must be (N, C, ...), got {len(shape)} axes"
        fail(ShapeError, what, "F.alpha_dropout for single elements", input=input)
    return alpha_dropout_impl(input, p, inplace, (*shape[:2], *[1] * (len(shape) - 2)))


def alpha_dropout_impl(input: Tensor, p: float, inplace: bool, shape: tuple[int, ...]) -> Tensor:
    if p == 1:
        new = input * 0.0
    else:
        kept = bernoulli_like(filled(input.spec.replace(shape=shape), 1), 1 - p)
        new = activation_composites.alpha_dropout(input, kept, p=float(p))
    return input.copy_(new) if inplace else new
