"""grid_sample and affine_grid: images sampled at positions given by a tensor. Read next: `interpolation.py`.

A spatial transformer is grid_sample(x, affine_grid(theta, x.shape)). Jaderberg et al. 2015 (arXiv:1506.02025), 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from ...core import functions as f
from ...core.base.errors import DTypeError, ShapeError
from ...core.functions.creation import from_numpy
from ...core.ops.index import gather
from ...core.source_location import fail
from ...core.spec import int64
from ...core.tensor import Tensor
from .arguments import check_tensor, composite
from .interpolation import cubic_weights

MODES, PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def map_outside(place: Tensor, size: int, padding_mode: str, align: bool) -> Tensor:
    """Clamp positions outside an axis to its edge, or reflect them; leave them unchanged with "zeros"."""
    if padding_mode == "reflection":
        low, span = (0.0, size - 1.0) if align else (-0.5, float(size))
        if not span:
            return place * 0.0
        apart = f.where(place < low, low - place, place - low)
        turns = f.floor(apart / span).detach()
        rest = apart - turns * span
        place = f.where(turns % 2 == 0, rest, span - rest) + low
    if padding_mode == "zeros":
        return place
    # no gradient at the edge itself, as in PyTorch
    place = f.where(place > 0.0, place, 0.0)
    return f.where(place < size - 1.0, place, size - 1.0)


def gather_pixels(x: Tensor, places: list[Tensor], padding_mode: str) -> Tensor:
    """Gather x at integer positions (N, ...), one tensor for each spatial axis: (N, C, L); 0 outside x."""
    n, c, *space = x.spec.shape
    flat: Any = None
    there: Any = None
    for place, size in zip(places, space):
        if padding_mode == "zeros":
            ok = f.logical_and(place >= 0.0, place <= size - 1.0)
            there = ok if there is None else f.logical_and(there, ok)
        index = place.detach().clamp(0, size - 1).to(int64)
        flat = index if flat is None else flat * size + index
    count = places[0].spec.size // max(n, 1)
    index = flat.reshape(n, 1, count).expand(n, c, count)
    pixels = gather(x.reshape(n, c, x.spec.size // max(n * c, 1)), index, dim=2)
    return pixels if there is None else f.where(there.reshape(n, 1, count), pixels, 0.0)


def check_arguments(input: Tensor, grid: Tensor, mode: str, padding_mode: str) -> None:
    check_tensor("grid_sample", input)
    check_tensor("grid_sample", grid, "grid")
    x, g, n = input.spec, grid.spec, input.spec.ndim - 2
    if mode not in MODES or padding_mode not in PADDINGS:
        what = f"grid_sample: mode is {mode!r}, padding_mode is {padding_mode!r}"
        fail(ShapeError, what, f"{', '.join(MODES)}; {', '.join(PADDINGS)}", input=input)
    if n not in (2, 3) or g.ndim != n + 2 or g.shape[-1] != n or g.shape[0] != x.shape[0]:
        what = f"grid_sample: an input of shape {x.shape} and a grid of shape {g.shape}"
        fail(
            ShapeError,
            what,
            "(N, C, H, W) and (N, H', W', 2), or (N, C, D, H, W) and (N, D', H', W', 3)",
            input=input,
            grid=grid,
        )
    if mode == "bicubic" and n == 3:
        fail(
            ShapeError,
            "grid_sample: mode 'bicubic' is for images, the input has 5 axes",
            'mode="bilinear"',
            input=input,
        )
    if not x.dtype.floating or g.dtype is not x.dtype or not all(x.shape[2:]):
        what = f"grid_sample: the input is {x}, the grid is {g}"
        fail(DTypeError, what, "both of one floating dtype, and images with pixels", input=input, grid=grid)


@composite("grid_sample")
def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """Sample the input at the positions of a grid: out[n,:,i,j] is input[n] at (x, y) = grid[n,i,j], from -1 to 1.

    input: float (N, C, H, W) or (N, C, D, H, W). grid: (N, H', W', 2) or (N, D', H', W', 3), coordinates of the last
    axis first. mode: "bilinear" (trilinear for volumes), "nearest", "bicubic". padding_mode: values outside are
    "zeros", the "border", or a "reflection". align_corners: -1 and 1 are the centers of the outer pixels, not their
    outer edges. NaN counts as -1. Returns (N, C, H', W') or (N, C, D', H', W').
    """
    check_arguments(input, grid, mode, padding_mode)
    space, align = input.spec.shape[2:], bool(align_corners)
    grid = f.where(f.isnan(grid), -1.0, grid)
    places = []
    for axis, size in enumerate(space):  # the coordinates of the grid start with the last axis
        g = grid.select(-1, len(space) - 1 - axis)
        place = (g + 1.0) * ((size - 1) / 2) if align else ((g + 1.0) * size - 1.0) / 2
        places.append(place if mode == "bicubic" else map_outside(place, size, padding_mode, align))
    shape = (*input.spec.shape[:2], *grid.spec.shape[1:-1])
    if mode == "nearest":
        return gather_pixels(input, [f.round(p) for p in places], padding_mode).reshape(shape)
    first = [f.floor(p).detach() for p in places]
    parts = [p - b for p, b in zip(places, first)]
    if mode == "bicubic":
        steps, weights = range(-1, 3), [cubic_weights(t) for t in parts]
    else:
        steps, weights = range(2), [[1.0 - t, t] for t in parts]
    out: Any = None
    for corner in product(range(len(steps)), repeat=len(space)):
        whole = [b + float(steps[k]) for b, k in zip(first, corner)]
        if mode == "bicubic":
            whole = [map_outside(p, size, padding_mode, align) for p, size in zip(whole, space)]
        weight: Any = None
        for w, k in zip(weights, corner):
            weight = w[k] if weight is None else weight * w[k]
        term = gather_pixels(input, whole, padding_mode) * weight.reshape(
            shape[0], 1, weight.spec.size // max(shape[0], 1)
        )
        out = term if out is None else out + term
    return out.reshape(shape)


@composite("affine_grid")
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """A grid of affine maps, for grid_sample: grid[n,i,j] = theta[n] @ (x, y, 1), where (x, y) is pixel (i, j).

    theta: float (N, 2, 3) and size (N, C, H, W), or (N, 3, 4) and (N, C, D, H, W). Returns (N, H, W, 2) or (N, D, H, W,
    3).
    """
    check_tensor("affine_grid", theta, "theta")
    shape, n = tuple(size), len(tuple(size)) - 2
    if n not in (2, 3) or theta.spec.shape != (shape[0], n, n + 1) or min(shape) < 1:
        what = f"affine_grid: theta of shape {theta.spec.shape} for size {shape}"
        fail(ShapeError, what, "(N, 2, 3) for (N, C, H, W), (N, 3, 4) for (N, C, D, H, W)", theta=theta)
    if not theta.spec.dtype.floating:
        fail(DTypeError, f"affine_grid: theta is {theta.spec.dtype.name}", "theta.float()", theta=theta)
    lines = []
    for m in shape[2:]:
        line = np.linspace(-1.0, 1.0, m) if m > 1 else np.zeros(1)
        lines.append(line if align_corners else line * (m - 1) / m)
    axes = np.meshgrid(*lines, indexing="ij")
    base = np.stack([*axes[::-1], np.ones(shape[2:])], -1).reshape(-1, n + 1)
    return (from_numpy(base.astype(theta.spec.dtype.np)) @ theta.transpose(1, 2)).reshape(shape[0], *shape[2:], n)
