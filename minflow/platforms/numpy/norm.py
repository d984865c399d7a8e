"""Fast kernels of batch normalization, `../../core/ops/norm.py`, on tiles of images that stay in cache."""

from __future__ import annotations

from ...core.host.scratch import buffer
from ...core.kernels import kernel
from ...core.ops.norm import batch_norm, batch_norm_grad, channel_shape

TILE_BYTES = 1 << 19  # bytes of a tile of images
TOLERANCE = 64  # a different order of summation


def tiles(x):
    """Slices of images of about TILE bytes."""
    step = max(1, TILE_BYTES // max(x[:1].nbytes, 1))
    return [slice(i, min(i + step, len(x))) for i in range(0, len(x), step)]


def per_channel(xp, a, b):
    """Sum of a * b over all axes but the channels, for a tile (T, C, ...)."""
    t, c = a.shape[:2]
    return xp.einsum("tcp,tcp->c", a.reshape(t, c, -1), b.reshape(t, c, -1))


def channel_sums(xp, x):
    """Sum over all axes but the channels, for a tile (T, C, ...)."""
    t, c = x.shape[:2]
    return xp.einsum("tcp->c", x.reshape(t, c, -1))


@kernel(batch_norm, platform="numpy", tolerance=TOLERANCE)
def _(xp, x, weight, bias, eps, out=None):
    if out is None:
        out = xp.empty(x.shape, x.dtype), xp.empty(weight.shape, x.dtype), xp.empty(weight.shape, x.dtype)
    y, mean, var = out
    shape = channel_shape(x.ndim)
    count = x.dtype.type(x.size // max(x.shape[1], 1))
    mean.fill(0)
    var.fill(0)
    if not x.size:
        return out
    parts = tiles(x)
    for tile in parts:
        mean += channel_sums(xp, x[tile])
    mean /= count
    center = mean.reshape(shape)
    for tile in parts:
        moved = xp.subtract(x[tile], center, out=y[tile])
        var += per_channel(xp, moved, moved)
    var /= count
    scale = (weight / xp.sqrt(var + x.dtype.type(eps))).reshape(shape)
    shift = bias.reshape(shape)
    for tile in parts:
        place = y[tile]
        xp.multiply(place, scale, out=place)
        xp.add(place, shift, out=place)
    return out


@kernel(batch_norm_grad, platform="numpy", tolerance=TOLERANCE)
def _(xp, grad, x, weight, mean, var, eps, out=None):
    if out is None:
        out = xp.empty(x.shape, x.dtype), xp.empty(weight.shape, x.dtype), xp.empty(weight.shape, x.dtype)
    gx, gweight, gbias = out
    gweight.fill(0)
    gbias.fill(0)
    if not x.size:
        return out
    shape = channel_shape(x.ndim)
    center = mean.reshape(shape)
    inverse = 1 / xp.sqrt(var + x.dtype.type(eps))
    for tile in tiles(x):
        g = grad[tile]
        moved = xp.subtract(x[tile], center, out=buffer("moved", g.shape, x.dtype))
        gbias += channel_sums(xp, g)
        gweight += per_channel(xp, g, moved)
    gweight *= inverse
    count = x.dtype.type(x.size // x.shape[1])
    scale = (weight * inverse).reshape(shape)
    slope = (-weight * inverse * inverse * gweight / count).reshape(shape)
    offset = (-weight * inverse * gbias / count).reshape(shape)
    for tile in tiles(x):
        moved = xp.subtract(x[tile], center, out=buffer("moved", grad[tile].shape, x.dtype))
        xp.multiply(moved, slope, out=moved)
        place = xp.multiply(grad[tile], scale, out=gx[tile])
        xp.add(place, moved, out=place)
        xp.add(place, offset, out=place)
    return out
