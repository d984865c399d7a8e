"""Rearrangements of channels, as composite ops: into pixels and back, and among groups. Each is one transposed copy."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..base.errors import ShapeError
from ..op import Op, define
from ..spec import Spec
from .examples import Case, case, floats, ints, strided
from .shape import clone, permute, reshape


def rearrangement(signature: str, infer: Callable, decompose: Callable, examples: list[Case], doc: str) -> Op:
    """An op that moves elements of any dtype."""
    return define(signature, infer, decompose=decompose, domain="complex", examples=examples, doc=doc, module=__name__)


def rearranged(x, apart: tuple[int, ...], dims: tuple[int, ...], shape: tuple[int, ...]):
    """Split axes to the shape `apart`, permute, and merge axes to `shape`."""
    return reshape(clone(permute(x.reshape(apart), dims=dims)), shape=shape)


def pixel_shuffle_spec(input: Spec, upscale_factor: int) -> Spec:
    r, shape = upscale_factor, input.shape
    if len(shape) < 3 or r < 1 or shape[-3] % (r * r):
        what = f"pixel_shuffle: an input of shape {shape} with upscale_factor {r}"
        raise ShapeError(what, hint="(..., C * r * r, H, W)")
    *outer, c, h, w = shape
    return input.replace(shape=(*outer, c // (r * r), h * r, w * r))


def pixel_shuffle_parts(input, upscale_factor):
    (*outer, c, h, w), r = input.spec.shape, upscale_factor
    apart = (math.prod(outer), c // (r * r), r, r, h, w)
    return rearranged(input, apart, (0, 1, 4, 2, 5, 3), (*outer, c // (r * r), h * r, w * r))


pixel_shuffle = rearrangement(
    "pixel_shuffle(input; upscale_factor)",
    pixel_shuffle_spec,
    pixel_shuffle_parts,
    [
        case(floats(2, 8, 3, 2), upscale_factor=2),
        case(strided(9, 2, 3), upscale_factor=3),
        case(ints(2, 1, 4, 2, 1), upscale_factor=2),
        case(floats(0, 4, 2, 2), upscale_factor=2),
    ],
    "Channels as pixels: (..., C * r * r, H, W) to (..., C, H * r, W * r). Shi et al. 2016, eq. 4.",
)


def pixel_unshuffle_spec(input: Spec, downscale_factor: int) -> Spec:
    r, shape = downscale_factor, input.shape
    if len(shape) < 3 or r < 1 or shape[-2] % r or shape[-1] % r:
        what = f"pixel_unshuffle: an input of shape {shape} with downscale_factor {r}"
        raise ShapeError(what, hint="(..., C, H * r, W * r)")
    *outer, c, h, w = shape
    return input.replace(shape=(*outer, c * r * r, h // r, w // r))


def pixel_unshuffle_parts(input, downscale_factor):
    (*outer, c, h, w), r = input.spec.shape, downscale_factor
    apart = (math.prod(outer), c, h // r, r, w // r, r)
    return rearranged(input, apart, (0, 1, 3, 5, 2, 4), (*outer, c * r * r, h // r, w // r))


pixel_unshuffle = rearrangement(
    "pixel_unshuffle(input; downscale_factor)",
    pixel_unshuffle_spec,
    pixel_unshuffle_parts,
    [
        case(floats(2, 2, 6, 4), downscale_factor=2),
        case(strided(2, 3, 6), downscale_factor=3),
        case(ints(2, 1, 1, 4, 2), downscale_factor=2),
        case(floats(0, 1, 2, 2), downscale_factor=2),
    ],
    "Pixels as channels: (..., C, H * r, W * r) to (..., C * r * r, H, W), the inverse of pixel_shuffle.",
)


def channel_shuffle_spec(input: Spec, groups: int) -> Spec:
    if input.ndim < 3 or groups < 1 or input.shape[1] % groups:
        what = f"channel_shuffle: an input of shape {input.shape} in {groups} groups"
        raise ShapeError(what, hint="(N, C, ...) with a number of groups that divides C")
    return input


def channel_shuffle_parts(input, groups):
    n, c, *size = input.spec.shape
    return rearranged(input, (n, groups, c // groups, math.prod(size)), (0, 2, 1, 3), input.spec.shape)


channel_shuffle = rearrangement(
    "channel_shuffle(input; groups)",
    channel_shuffle_spec,
    channel_shuffle_parts,
    [
        case(floats(2, 6, 3, 2), groups=3),
        case(strided(1, 4, 3), groups=2),
        case(ints(2, 4, 1, 2, 1), groups=4),
        case(floats(2, 4, 0), groups=2),
    ],
    "Interleave groups of channels (axis 1): the first of each group, then the second. Zhang et al. 2018, fig. 1.",
)
