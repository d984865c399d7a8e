"""Grid sampling: images sampled at positions given by a tensor, and grids of affine maps.

A spatial transformer is grid_sample(x, affine_grid(theta, x.shape)). Jaderberg et al. 2015 (arXiv:1506.02025), 3.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from ..backend import namespace
from ..base.errors import DTypeError, ShapeError
from ..op import define
from ..spec import Spec, int64
from .compare import logical_and
from .elementwise import where
from .examples import case, floats, strided
from .index import gather
from .interpolation import cubic_weights
from .shape import constant_beside

SAMPLING_MODES, PADDING_MODES = ("linear", "nearest", "cubic"), ("zeros", "border", "reflection")


def map_outside(place, size: int, padding_mode: str, align: bool):
    """Clamp positions outside an axis to its edge, or reflect them; leave them unchanged with "zeros"."""
    if padding_mode == "reflection":
        low, span = (0.0, size - 1.0) if align else (-0.5, float(size))
        if not span:
            return place * 0.0
        apart = where(place < low, low - place, place - low)
        turns = (apart / span).floor().detach()
        rest = apart - turns * span
        place = where(turns % 2 == 0, rest, span - rest) + low
    if padding_mode == "zeros":
        return place
    # no gradient at the edge itself, as in PyTorch
    place = where(place > 0.0, place, 0.0)
    return where(place < size - 1.0, place, size - 1.0)


def gather_pixels(x, places: list, padding_mode: str):
    """Gather x at integer positions (N, ...), one tensor for each spatial axis: (N, C, L); 0 outside x."""
    n, c, *space = x.spec.shape
    flat: Any = None
    there: Any = None
    for place, size in zip(places, space):
        if padding_mode == "zeros":
            ok = logical_and(place >= 0.0, place <= size - 1.0)
            there = ok if there is None else logical_and(there, ok)
        index = place.detach().clamp(0, size - 1).to(int64)
        flat = index if flat is None else flat * size + index
    count = places[0].spec.size // max(n, 1)
    index = flat.reshape(n, 1, count).expand(n, c, count)
    pixels = gather(x.reshape(n, c, x.spec.size // max(n * c, 1)), index, dim=2)
    return pixels if there is None else where(there.reshape(n, 1, count), pixels, 0.0)


def grid_sample_spec(x: Spec, grid: Spec, mode: str, padding_mode: str, align_corners: bool) -> Spec:
    n = x.ndim - 2
    if mode not in SAMPLING_MODES or (mode == "cubic" and n == 3) or padding_mode not in PADDING_MODES:
        hint = f"{', '.join(SAMPLING_MODES)}; {', '.join(PADDING_MODES)}; cubic for images only"
        raise ShapeError(f"grid_sample: mode {mode!r} with padding {padding_mode!r}", hint=hint)
    if n not in (2, 3) or grid.ndim != n + 2 or grid.shape[-1] != n or grid.shape[0] != x.shape[0]:
        raise ShapeError(
            f"grid_sample: {{x}} of shape {x.shape} and {{grid}} of shape {grid.shape}",
            hint="(N, C, H, W) and (N, H', W', 2), or (N, C, D, H, W) and (N, D', H', W', 3)",
        )
    if not x.dtype.floating or grid.dtype is not x.dtype or not all(x.shape[2:]):
        raise DTypeError(
            f"grid_sample: {{x}} is {x}, {{grid}} is {grid}", hint="both of one floating dtype, and images with pixels"
        )
    return x.replace(shape=(*x.shape[:2], *grid.shape[1:-1]))


def grid_sample_parts(x, grid, mode, padding_mode, align_corners):
    space = x.spec.shape[2:]
    grid = where(grid.isnan(), -1.0, grid)
    places = []
    for axis, size in enumerate(space):  # the coordinates of the grid start with the last axis
        g = grid.select(-1, len(space) - 1 - axis)
        place = (g + 1.0) * ((size - 1) / 2) if align_corners else ((g + 1.0) * size - 1.0) / 2
        places.append(place if mode == "cubic" else map_outside(place, size, padding_mode, align_corners))
    shape = (*x.spec.shape[:2], *grid.spec.shape[1:-1])
    if mode == "nearest":
        return gather_pixels(x, [p.round() for p in places], padding_mode).reshape(shape)
    first = [p.floor().detach() for p in places]
    parts = [p - b for p, b in zip(places, first)]
    if mode == "cubic":
        steps, weights = range(-1, 3), [cubic_weights(t) for t in parts]
    else:
        steps, weights = range(2), [[1.0 - t, t] for t in parts]
    out: Any = None
    for corner in product(range(len(steps)), repeat=len(space)):
        whole = [b + float(steps[k]) for b, k in zip(first, corner)]
        if mode == "cubic":
            whole = [map_outside(p, size, padding_mode, align_corners) for p, size in zip(whole, space)]
        weight: Any = None
        for w, k in zip(weights, corner):
            weight = w[k] if weight is None else weight * w[k]
        weight = weight.reshape(shape[0], 1, weight.spec.size // max(shape[0], 1))
        term = gather_pixels(x, whole, padding_mode) * weight
        out = term if out is None else out + term
    return out.reshape(shape)


IMAGES, GRID = floats(2, 3, 4, 5), floats(2, 3, 2, 2, low=-1.7, high=1.7)

grid_sample = define(
    "grid_sample(x, grid; mode, padding_mode, align_corners)",
    grid_sample_spec,
    decompose=grid_sample_parts,
    examples=[  # not "nearest", whose result does not depend on the grid for autograd
        case(IMAGES, GRID, mode="linear", padding_mode="zeros", align_corners=False),
        case(IMAGES, GRID, mode="linear", padding_mode="border", align_corners=True),
        case(IMAGES, GRID, mode="linear", padding_mode="reflection", align_corners=False),
        case(IMAGES, GRID, mode="cubic", padding_mode="reflection", align_corners=True),
        case(
            floats(1, 2, 2, 3, 4),
            floats(1, 2, 1, 3, 3, low=-1.5, high=1.5),
            mode="linear",
            padding_mode="border",
            align_corners=False,
        ),
        case(strided(1, 2, 4, 5), floats(1, 0, 2, 2), mode="linear", padding_mode="zeros", align_corners=False),
        case(
            floats(1, 1, 3, 4, dtype="float32"),
            floats(1, 2, 2, 2, dtype="float32"),
            mode="cubic",
            padding_mode="zeros",
            align_corners=False,
        ),
    ],
    doc=(
        "Sample x at the positions of a grid: out[n, :, i, j] is x[n] at (x, y) = grid[n, i, j], from -1 to 1. "
        'mode: "linear", "nearest" or "cubic".'
    ),
)


def affine_grid_spec(theta: Spec, output_size: tuple[int, ...], align_corners: bool) -> Spec:
    n = len(output_size)
    if n not in (2, 3) or theta.ndim != 3 or theta.shape[1:] != (n, n + 1) or min(output_size) < 1:
        raise ShapeError(
            f"affine_grid: {{theta}} of shape {theta.shape} for size {output_size}",
            hint="(N, 2, 3) for (H, W), (N, 3, 4) for (D, H, W)",
        )
    if not theta.dtype.floating:
        raise DTypeError(f"affine_grid: {{theta}} is {theta.dtype.name}", hint="{theta}.float()")
    return theta.replace(shape=(theta.shape[0], *output_size, n))


def affine_grid_parts(theta, output_size, align_corners):
    xp, lines = namespace(), []
    for m in output_size:
        line = xp.linspace(-1.0, 1.0, m) if m > 1 else xp.zeros(1)
        lines.append(line if align_corners else line * (m - 1) / m)
    axes = xp.meshgrid(*lines, indexing="ij")
    base = xp.stack([*axes[::-1], xp.ones(output_size)], -1).reshape(-1, len(output_size) + 1)
    grid = constant_beside(theta, base.astype(theta.spec.dtype.np)) @ theta.transpose(1, 2)
    return grid.reshape(theta.spec.shape[0], *output_size, len(output_size))


affine_grid = define(
    "affine_grid(theta; output_size, align_corners)",
    affine_grid_spec,
    decompose=affine_grid_parts,
    autocast="lower",
    unread=["theta"],
    examples=[
        case(floats(2, 2, 3), output_size=(3, 4), align_corners=False),
        case(floats(1, 3, 4), output_size=(2, 1, 3), align_corners=True),
        case(strided(2, 2, 3), output_size=(1, 2), align_corners=True),
        case(floats(1, 2, 3, dtype="float32"), output_size=(2, 2), align_corners=False),
    ],
    doc="A grid of affine maps: out[n, i, j] = theta[n] @ (x, y, 1), where (x, y) is pixel (i, j), from -1 to 1.",
)
