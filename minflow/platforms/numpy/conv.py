"""Kernels of `../../core/ops/conv.py`: per tile of images, im2col into a small reused buffer and one matrix product.

1x1 filters need no im2col; depthwise ones are K*K shifted multiply-adds over tiles that stay in cache.
Source: Chellapilla et al. 2006 for im2col.
"""

from __future__ import annotations

import numpy as np

from ...core.host.blas import on_one_thread
from ...core.host.scratch import buffer
from ...core.kernels import kernel
from ...core.ops.conv import Pair, conv2d, conv2d_input_grad, conv2d_weight_grad, pixels_under, positions
from ...core.ops.rules import via_float32

TILE_BYTES = 1 << 20  # bytes that stay in the L2 cache; im2col uses four tiles, which measured best
MIN_PIXELS = 64  # images of fewer pixels are joined, since a product per image would be too small
TOLERANCE = 32  # a different order of summation


def padded(x, padding: Pair, purpose: str):
    """The images with a border of zeros, in scratch memory; the images themselves without padding."""
    ph, pw = padding
    if not (ph or pw):
        return x
    n, c, h, w = x.shape
    out = buffer(purpose, (n, c, h + 2 * ph, w + 2 * pw), x.dtype)
    out[:, :, :ph] = 0
    out[:, :, ph + h :] = 0
    out[:, :, ph : ph + h, :pw] = 0
    out[:, :, ph : ph + h, pw + w :] = 0
    out[:, :, ph : ph + h, pw : pw + w] = x
    return out


class Geometry:
    """The sizes of a convolution, and its tiles of images."""

    def __init__(self, x_shape, w_shape, stride: Pair, padding: Pair, dilation: Pair, groups: int, itemsize: int):
        self.n, self.c, self.h, self.w = x_shape
        self.f, self.cg, self.kh, self.kw = w_shape
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        self.size = positions(x_shape[2:], w_shape[2:], stride, padding, dilation)
        self.pixels = self.size[0] * self.size[1]
        self.fg = self.f // groups
        self.pointwise = self.kh == self.kw == 1 and padding == (0, 0)
        self.plain = self.pointwise and stride == (1, 1)
        self.depthwise = self.cg == 1 and groups > 1
        self.depth = self.cg * self.kh * self.kw
        column = self.depth * self.pixels * itemsize
        self.tile = max(1, min(self.n, 4 * TILE_BYTES // max(column, 1)))

    def tiles(self):
        return [slice(i, min(i + self.tile, self.n)) for i in range(0, self.n, self.tile)]

    def im2col(self, x, group: int):
        """The padded images of a tile as (CG*KH*KW, T*OH*OW): column t*OH*OW + p is the window of output pixel p."""
        t = x.shape[0]
        x = x[:, group * self.cg : (group + 1) * self.cg]
        columns = buffer("im2col", (self.cg, self.kh, self.kw, t, *self.size), x.dtype)
        for u in range(self.kh):
            for v in range(self.kw):
                columns[:, u, v] = pixels_under(x, u, v, self.size, self.stride, self.dilation).swapaxes(0, 1)
        return columns.reshape(self.depth, t * self.pixels)

    def col2im(self, columns, x) -> None:
        """Add (CG*KH*KW, T*OH*OW) back to the images; the transpose of `im2col`."""
        t = x.shape[0]
        columns = columns.reshape(self.cg, self.kh, self.kw, t, *self.size)
        for u in range(self.kh):
            for v in range(self.kw):
                place = pixels_under(x, u, v, self.size, self.stride, self.dilation)
                np.add(place, columns[:, u, v].swapaxes(0, 1), out=place)

    def joined(self, g, group: int, purpose: str):
        """The cotangent of a tile as (FG, T*OH*OW)."""
        g = g[:, group * self.fg : (group + 1) * self.fg]
        t = g.shape[0]
        if t == 1:
            return g.reshape(self.fg, self.pixels)
        out = buffer(purpose, (self.fg, t, *self.size), g.dtype)
        out[...] = g.swapaxes(0, 1)
        return out.reshape(self.fg, t * self.pixels)


# ---- the kernels -------------------------------------------------------------------------------------------------


@kernel(conv2d, platform="numpy", tolerance=TOLERANCE)
@via_float32
@on_one_thread
def _(xp, x, weight, stride, padding, dilation, groups, out=None):
    geo = Geometry(x.shape, weight.shape, stride, padding, dilation, groups, x.itemsize)
    out = xp.empty((geo.n, geo.f, *geo.size), x.dtype) if out is None else out
    if not out.size:
        return out
    if geo.depthwise:
        return depthwise(xp, geo, x, weight, out)
    filters = weight.reshape(groups, geo.fg, geo.depth)
    if geo.plain and groups == 1 and geo.pixels >= MIN_PIXELS:
        xp.matmul(filters[0], x.reshape(geo.n, geo.c, geo.pixels), out=out.reshape(geo.n, geo.f, geo.pixels))
        return out
    for tile in geo.tiles():
        images = padded(x[tile], padding, "padded")
        t = images.shape[0]
        for group in range(groups):
            columns = geo.im2col(images, group)
            if t == 1:
                place = out[tile.start, group * geo.fg : (group + 1) * geo.fg].reshape(geo.fg, geo.pixels)
                xp.dot(filters[group], columns, out=place)
            else:
                product = buffer("product", (geo.fg, t * geo.pixels), x.dtype)
                xp.dot(filters[group], columns, out=product)
                out[tile, group * geo.fg : (group + 1) * geo.fg] = product.reshape(geo.fg, t, *geo.size).swapaxes(0, 1)
    return out


@kernel(conv2d_input_grad, platform="numpy", tolerance=TOLERANCE)
@via_float32
@on_one_thread
def _(xp, grad, weight, shape, stride, padding, dilation, groups, out=None):
    geo = Geometry(shape, weight.shape, stride, padding, dilation, groups, grad.itemsize)
    out = xp.empty(shape, grad.dtype) if out is None else out
    if not grad.size:
        out.fill(0)
        return out
    if geo.depthwise:
        return depthwise_input_grad(xp, geo, grad, weight, out)
    filters = weight.reshape(groups, geo.fg, geo.depth)
    if geo.plain and groups == 1 and geo.pixels >= MIN_PIXELS:
        xp.matmul(filters[0].T, grad.reshape(geo.n, geo.f, geo.pixels), out=out.reshape(shape[0], shape[1], geo.pixels))
        return out
    (ph, pw), (h, w) = padding, shape[2:]
    for tile in geo.tiles():
        t = min(tile.stop, geo.n) - tile.start
        images = buffer("padded", (t, geo.c, h + 2 * ph, w + 2 * pw), grad.dtype)
        images.fill(0)
        for group in range(groups):
            columns = buffer("im2col", (geo.depth, t * geo.pixels), grad.dtype)
            xp.dot(filters[group].T, geo.joined(grad[tile], group, "cotangent"), out=columns)
            geo.col2im(columns, images[:, group * geo.cg : (group + 1) * geo.cg])
        out[tile] = images[:, :, ph : ph + h, pw : pw + w]
    return out


@kernel(conv2d_weight_grad, platform="numpy", tolerance=TOLERANCE)
@via_float32
@on_one_thread
def _(xp, grad, x, shape, stride, padding, dilation, groups, out=None):
    geo = Geometry(x.shape, shape, stride, padding, dilation, groups, grad.itemsize)
    out = xp.empty(shape, grad.dtype) if out is None else out
    if geo.depthwise:
        return depthwise_weight_grad(xp, geo, grad, x, out)
    out.fill(0)
    sums = out.reshape(groups, geo.fg, geo.depth)
    if not grad.size:
        return out
    part = buffer("product", (geo.fg, geo.depth), grad.dtype)
    for tile in geo.tiles():
        images = padded(x[tile], padding, "padded")
        for group in range(groups):
            columns = (
                images.reshape(geo.c, geo.pixels)
                if geo.plain and groups == 1 and len(images) == 1
                else geo.im2col(images, group)
            )
            xp.dot(geo.joined(grad[tile], group, "cotangent"), columns.T, out=part)
            xp.add(sums[group], part, out=sums[group])
    return out


# ---- depthwise ---------------------------------------------------------------------------------------------------
# Tiles of images are transposed to (H, W, T, C): then each filter position is one long multiply-add over a window of
# (H, W), with a contiguous inner run of T * C elements even for small images, and without padding.


def depthwise_tiles(geo: Geometry, itemsize: int):
    """Tiles of images that stay in cache with their results."""
    step = max(1, TILE_BYTES // max(geo.c * (geo.h * geo.w + 2 * geo.pixels) * itemsize, 1))
    return [slice(i, min(i + step, geo.n)) for i in range(0, geo.n, step)]


def transposed_tile(x, purpose: str):
    """Copy (T, C, H, W) into scratch memory as (H, W, T, C)."""
    t, c, h, w = x.shape
    out = buffer(purpose, (h, w, t, c), x.dtype)
    out[...] = x.transpose(2, 3, 0, 1)
    return out


def windows(geo: Geometry):
    """(u, v, slices of the output, slices of the input) for each filter position, without pixels of the padding."""
    for u in range(geo.kh):
        for v in range(geo.kw):
            outs, ins = [], []
            for k, n, m, s, p, d in zip((u, v), (geo.h, geo.w), geo.size, geo.stride, geo.padding, geo.dilation):
                offset = k * d - p
                first, last = max(0, -(offset // s)), min(m, (n - 1 - offset) // s + 1)
                outs.append(slice(first, max(last, first)))
                ins.append(slice(first * s + offset, max((last - 1) * s + offset + 1, first * s + offset), s))
            if outs[0].stop > outs[0].start and outs[1].stop > outs[1].start:
                yield u, v, tuple(outs), tuple(ins)


def buffered_product(xp, a, b):
    return xp.multiply(a, b, out=buffer("product", a.shape, a.dtype))


def depthwise(xp, geo: Geometry, x, weight, out):
    many = geo.f // geo.c  # filters per channel
    for tile in depthwise_tiles(geo, x.itemsize):
        images = transposed_tile(x[tile], "turned")
        sums = buffer("sums", (*geo.size, images.shape[2], geo.c), x.dtype)
        for m in range(many):
            sums.fill(0)
            for u, v, outs, ins in windows(geo):
                place = sums[outs]
                xp.add(place, buffered_product(xp, images[ins], weight[m::many, 0, u, v]), out=place)
            out[tile, m::many] = sums.transpose(2, 3, 0, 1)
    return out


def depthwise_input_grad(xp, geo: Geometry, grad, weight, out):
    many = geo.f // geo.c
    for tile in depthwise_tiles(geo, grad.itemsize):
        sums = buffer("sums", (geo.h, geo.w, tile.stop - tile.start, geo.c), grad.dtype)
        sums.fill(0)
        for m in range(many):
            g = transposed_tile(grad[tile, m::many], "turned")
            for u, v, outs, ins in windows(geo):
                place = sums[ins]
                xp.add(place, buffered_product(xp, g[outs], weight[m::many, 0, u, v]), out=place)
        out[tile] = sums.transpose(2, 3, 0, 1)
    return out


def depthwise_weight_grad(xp, geo: Geometry, grad, x, out):
    many = geo.f // geo.c
    out.fill(0)
    for tile in depthwise_tiles(geo, grad.itemsize):
        images = transposed_tile(x[tile], "turned")
        for m in range(many):
            g = transposed_tile(grad[tile, m::many], "sums")
            for u, v, outs, ins in windows(geo):
                product = buffered_product(xp, images[ins], g[outs]).reshape(-1, geo.c)
                out[m::many, 0, u, v] += xp.add.reduce(product, 0)
    return out
