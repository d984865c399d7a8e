"""grid_sample and affine_grid: images sampled at positions given by a tensor.

Read next: `../../core/ops/grid_sampling.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.base.errors import DTypeError, ShapeError
from ...core.ops import grid_sampling as ops
from ...core.source_location import fail
from ...core.tensor import Tensor
from .arguments import check_tensor

MODES, PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def check_arguments(input: Tensor, grid: Tensor, mode: str, padding_mode: str) -> None:
    check_tensor("grid_sample", input)
    check_tensor("grid_sample", grid, "grid")
    x, g, n = input.spec, grid.spec, input.spec.ndim - 2
    if mode not in MODES or padding_mode not in PADDINGS:
        what = f"grid_sample: mode is {mode!r}, padding_mode is {padding_mode!r}"
        fail(ShapeError, what, f"{', '.join(MODES)}; {', '.join(PADDINGS)}", input=input)
    if n not in (2, 3) or g.ndim != n + 2 or g.shape[-1] != n or g.shape[0] != x.shape[0]:
        what = f"grid_sample: an input of shape {x.shape} and a grid of shape {g.shape}"
        hint = "(N, C, H, W) and (N, H', W', 2), or (N, C, D, H, W) and (N, D', H', W', 3)"
        fail(ShapeError, what, hint, input=input, grid=grid)
    if mode == "bicubic" and n == 3:
        what = "grid_sample: mode 'bicubic' is for images, the input has 5 axes"
        fail(ShapeError, what, 'mode="bilinear"', input=input)
    if not x.dtype.floating or g.dtype is not x.dtype or not all(x.shape[2:]):
        what = f"grid_sample: the input is {x}, the grid is {g}"
        fail(DTypeError, what, "both of one floating dtype, and images with pixels", input=input, grid=grid)


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
    return ops.grid_sample(
        input, grid, mode=mode.removeprefix("bi"), padding_mode=padding_mode, align_corners=bool(align_corners)
    )


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
    return ops.affine_grid(theta, output_size=shape[2:], align_corners=bool(align_corners))
