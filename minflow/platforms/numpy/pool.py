"""Fast kernels of pooling, `../../core/ops/pool.py`: maxima on tiles that stay in cache, means by shifted views."""

from __future__ import annotations

from ...core.kernels import kernel
from ...core.ops.checks import check_bounds
from ...core.ops.conv import pixels_under, positions
from ...core.ops.pool import (
    adaptive_avg_pool2d,
    argmax_of,
    avg_pool2d,
    avg_pool2d_grad,
    max_pool2d,
    max_pool2d_grad,
    padded_with,
)
from .reduce import sums

TILE_BYTES = 1 << 18  # bytes of a tile of images


@kernel(max_pool2d, platform="numpy", tolerance=0)
def _(xp, x, kernel_size, stride, padding, dilation, ceil_mode, out=None):
    size = positions(x.shape[2:], kernel_size, stride, padding, dilation, ceil_mode)
    if out is None:
        out = xp.empty((*x.shape[:2], *size), x.dtype), xp.empty((*x.shape[:2], *size), "int64")
    y, indices = out
    if not y.size:
        return out
    whole = kernel_size == x.shape[2:] and size == dilation == (1, 1) and not any(padding)
    if whole and write_largest_pixel(xp, x, y, indices):
        return out
    width = x.shape[3]
    top = xp.arange(size[0])[:, None] * stride[0] - padding[0]
    left = xp.arange(size[1]) * stride[1] - padding[1]
    steps = [(u, v) for u in range(kernel_size[0]) for v in range(kernel_size[1])]
    offsets = xp.asarray([u * dilation[0] * width + v * dilation[1] for u, v in steps])
    for tile in tiles(x):
        wide = padded_with(xp, x[tile], size, kernel_size, stride, padding, dilation, -xp.inf)
        seen = [pixels_under(wide, u, v, size, stride, dilation) for u, v in steps]
        chosen = write_largest(xp, seen, y[tile])
        xp.add(offsets.take(chosen, mode="clip"), top * width + left, out=indices[tile])
        if any(padding):  # in a window of -inf alone, the first position may be padding; take the first pixel instead
            xp.copyto(
                indices[tile],
                first_inside(xp, top, dilation[0]) * width + first_inside(xp, left, dilation[1]),
                where=chosen == 0,
            )
    return out


def write_largest_pixel(xp, x, y, indices) -> bool:
    """Write the largest pixel of whole images and its index; False if there is a NaN, whose index differs."""
    flat, number = x.reshape(*x.shape[:2], -1), indices[:, :, 0, 0]
    xp.argmax(flat, axis=-1, out=number)
    y[...] = xp.take_along_axis(flat, number[..., None], -1)[..., None]
    return not xp.isnan(y).any()


def first_inside(xp, start, dilation: int):
    """The position of the first pixel of each window that is inside the image."""
    return xp.where(start < 0, start % dilation, start)


def write_largest(xp, seen: list, y):
    """Write the largest of the views into y; return its index (the first of equal ones, or the last NaN)."""
    xp.copyto(y, seen[0])
    if len(seen) <= 255:  # a later view that is larger wins by its higher index, so no masked writes are needed
        number = xp.zeros(y.shape, "uint8")
        better = xp.empty(y.shape, bool)
        candidate = xp.empty(y.shape, "uint8")
        part = xp.empty(y.shape, y.dtype)
        for k, view in enumerate(seen[1:], 1):
            xp.copyto(part, view)  # read the strided view once, not twice
            xp.greater(part, y, out=better)
            xp.multiply(better, xp.uint8(k), out=candidate)
            xp.maximum(number, candidate, out=number)
            xp.maximum(y, part, out=y)
        if not xp.isnan(y).any():
            return number
    stacked = xp.stack(seen)
    number = argmax_of(xp, stacked)
    y[...] = xp.take_along_axis(stacked, number[None], 0)[0]
    return number


def tiles(x):
    """Slices of images of about TILE bytes."""
    step = max(1, TILE_BYTES // max(x[:1].nbytes, 1))
    return [slice(i, min(i + step, len(x))) for i in range(0, len(x), step)]


@kernel(max_pool2d_grad, platform="numpy", tolerance=0)
def _(xp, grad, indices, shape, apart, out=None):
    out = xp.empty(shape, grad.dtype) if out is None else out
    pixels = shape[2] * shape[3]
    if not out.size or not apart:  # otherwise numpy checks the bounds, except for negative indices
        check_bounds(xp, "max_pool2d_grad", indices, pixels, 2)
    if not out.size:
        return out
    offsets = xp.arange(shape[0] * shape[1]).reshape(shape[0], shape[1], 1, 1) * pixels
    flat = (indices + offsets).reshape(-1)
    if apart:
        out.fill(0)
        try:
            out.reshape(-1)[flat] = grad.reshape(-1)
        except IndexError:
            check_bounds(xp, "max_pool2d_grad", indices, pixels, 2)
            raise
        return out
    out[...] = xp.bincount(flat, weights=grad.reshape(-1), minlength=out.size).reshape(shape)
    return out


# ---- means -----------------------------------------------------------------------------------------------------------


def unpadded(dtype, padding, ceil_mode: bool) -> bool:
    """True if every window is completely inside the image, and the dtype is float32 or float64 (float16 is summed in
    float32).
    """
    return not any(padding) and not ceil_mode and dtype.char in "fd"


def divisor(dtype, kernel_size, override):
    """The divisor of the sums; multiplying by the reciprocal would round the mean of 9 times 13 to 13.000001."""
    return dtype.type(kernel_size[0] * kernel_size[1] if override is None else override)


@kernel(avg_pool2d, platform="numpy", tolerance=8, declines=True)
def _(xp, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, out=None):
    if not unpadded(x.dtype, padding, ceil_mode):
        return NotImplemented
    size = positions(x.shape[2:], kernel_size, stride, padding)
    seen = [pixels_under(x, u, v, size, stride, (1, 1)) for u in range(kernel_size[0]) for v in range(kernel_size[1])]
    found = xp.array(seen[0], order="C") if len(seen) == 1 else xp.add(seen[0], seen[1], out=out)
    for view in seen[2:]:
        xp.add(found, view, out=found)
    return xp.divide(found, divisor(x.dtype, kernel_size, divisor_override), out=found if out is None else out)


@kernel(avg_pool2d_grad, platform="numpy", tolerance=8, declines=True)
def _(xp, grad, shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, out=None):
    if not unpadded(grad.dtype, padding, ceil_mode) or stride[0] < kernel_size[0] or stride[1] < kernel_size[1]:
        return NotImplemented
    out = xp.empty(shape, grad.dtype) if out is None else out
    covered = [n * k == m and s == k for n, k, s, m in zip(grad.shape[2:], kernel_size, stride, shape[2:])]
    if not all(covered):
        out.fill(0)
    part = xp.divide(grad, divisor(grad.dtype, kernel_size, divisor_override))
    for u in range(kernel_size[0]):
        for v in range(kernel_size[1]):
            pixels_under(out, u, v, grad.shape[2:], stride, (1, 1))[...] = part
    return out


@kernel(adaptive_avg_pool2d, platform="numpy", tolerance=32, declines=True)
def _(xp, x, output_size, out=None):
    found = sums(x, (2, 3)) if output_size == (1, 1) else None
    if found is None:
        return NotImplemented
    found = found.reshape(*x.shape[:2], 1, 1)
    return xp.divide(found, found.dtype.type(x.shape[2] * x.shape[3]), out=found if out is None else out)
