"""The kernels of conv2d and its gradients that run compiled where they win, and NumPy's where they do not fit."""

from __future__ import annotations

import functools
import math

import numpy as np

from ..core.ops.conv import positions
from . import conv, depthwise, winograd
from .activation import erf, relu6_grad
from .llvm import LANES
from .memory import at, chunks_of, scratch
from .micro import PANEL
from .norm import batch_norm, batch_norm_grad
from .pool import max_pool2d, max_pool2d_grad
from .threads import split

FEW = 16  # channels; below, what a filter meets at a pixel become its channels
DEEPEST = 512  # of those
LEAST, LEAST_FILTERS = 1 << 20, 8  # multiplications and filters; below, NumPy is as fast
LEAST_TILES = 4  # of an image: with fewer, the values of the filters are read for too little
FEWER = 1.5  # times fewer multiplications make up for what Winograd's algorithm does besides
CACHE = 700_000  # bytes of values and products of tiles at a time
CHUNK = 5  # images that a thread takes; gradients of filters are added up within them first: that rounds less, too
SUMS = 32 << 20  # bytes of such sums


class Sizes:
    """One convolution of this geometry: sizes and tables that the compiled functions read."""

    def __init__(self, x: tuple, filters: int, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple):
        (self.n, c, h, w), (kh, kw), (sh, sw) = x, kernel, stride
        self.size = oh, ow = positions(x[2:], kernel, stride, padding, dilation)
        self.few = c < FEW and kh * kw > 1 and c * kh * kw <= DEEPEST
        self.depth, self.taps = (c * kh * kw, 1) if self.few else (c, kh * kw)
        blocks = -(-self.depth // LANES)
        hq, wq = (oh, ow) if self.few else (-(-(h + 2 * padding[0]) // sh), -(-(w + 2 * padding[1]) // sw))
        self.array = np.array([c, h, w, filters, kh, kw, oh, ow, sh, sw, *padding, *dilation, blocks, hq, wq], "i8")
        phases = 1 if self.few else sh * sw
        self.images = blocks * phases * hq * wq * LANES
        self.pixels, self.padded = oh * ow, -(-filters // LANES) * LANES
        self.results = -(-filters // PANEL) * PANEL * self.pixels
        self.weights = -(-filters // PANEL) * self.taps * blocks * LANES * PANEL
        self.filters, self.rows = filters, LANES * max(self.pixels, h * w)
        taps = [(0, 0)] if self.few else [(u * dilation[0], v * dilation[1]) for u in range(kh) for v in range(kw)]
        sh, sw = (1, 1) if self.few else (sh, sw)
        self.table = np.array([
            (((block * sh + u % sh) * sw + v % sw) * hq * wq + u // sh * wq + v // sw) * LANES
            for u, v in taps for block in range(blocks)], "i8")
        joined = self.few or wq == ow
        self.starts = np.arange(1 if joined else oh, dtype="i8") * (wq * LANES)
        self.tiles = None
        if kh == kw in winograd.RESULTS and sh == sw == 1 and tuple(dilation) == (1, 1) and c >= FEW and filters >= FEW:
            m = winograd.RESULTS[kh]
            count = -(-oh // m) * -(-ow // m)
            if count >= LEAST_TILES and FEWER * count * winograd.N**2 <= oh * ow * kh * kw:
                self.tiles = Tiles(self, m, kh)


class Tiles:
    """What Winograd's algorithm needs besides."""

    def __init__(self, s: Sizes, m: int, r: int):
        oh, ow = s.size
        self.m, self.r, self.down, self.across = m, r, -(-oh // m), -(-ow // m)
        blocks, places = int(s.array[conv.BLOCKS]), winograd.N**2
        self.array = s.array.copy()
        self.array[[conv.HQ, conv.WQ]] = hq, wq = self.down * m + r - 1, self.across * m + r - 1
        row = places * (blocks * LANES + s.padded) * self.across * 4
        self.at_once = max(1, min(self.down, CACHE // row))
        room = self.at_once * self.across
        self.images = blocks * hq * wq * LANES
        self.seen, self.products = places * blocks * room * LANES, places * -(-s.filters // PANEL) * PANEL * room
        self.results = -(-s.filters // PANEL) * PANEL * self.down * self.across * m * m
        self.strip = winograd.N * max(wq, winograd.N) * LANES
        self.table = np.arange(blocks, dtype="i8") * (room * LANES)
        self.panels, self.each = -(-s.filters // PANEL), blocks * LANES * PANEL
        self.sums = places * blocks * LANES * s.padded


@functools.lru_cache(256)
def sizes(*geometry) -> Sizes:
    return Sizes(*geometry)


def fits(x: np.ndarray, weight: tuple, groups: int, others: tuple, *rest: np.ndarray | None) -> bool:
    """Is this a convolution that is quicker here? Those of 1x1 pixels are products that BLAS makes without a copy.

    weight, others: shapes of the filters and of the result, or its gradient.  rest: the other arrays of the call."""
    f, c, kh, kw = weight
    return (groups == 1 and kh * kw > 1 and f >= LEAST_FILTERS and x.dtype == np.float32
            and math.prod(others) * c * kh * kw >= LEAST
            and all(array is None or array.flags.c_contiguous for array in (x, *rest)))


# ---- by chunks of images --------------------------------------------------------------------------------------------

def forward(s: Sizes, x: np.ndarray, weight: np.ndarray, out: np.ndarray, turned: bool = False) -> np.ndarray:
    packed, t = scratch("filters", s.weights, zeros=True), s.tiles
    conv.pack(at(weight), s.filters, s.depth, s.taps, turned, at(packed))
    values = packed
    if t is not None:
        values, strip = scratch("values", t.panels * t.each * winograd.N**2), scratch("strip", t.strip)
        winograd.filters_values(at(packed), t.r, t.panels, t.each, at(values), at(strip))
    chunks = chunks_of(s.n, CHUNK)

    def one(k: int) -> None:
        rows = scratch("rows", s.rows)
        if t is None:
            images, results = scratch("images", s.images, True), scratch("results", s.results)
            conv.forward(at(x), at(values), at(out), *chunks[k], s.array, s.taps, at(s.table), s.few, at(images),
                         at(results), at(rows))
            return
        images, seen, strip = scratch("images", t.images, True), scratch("seen", t.seen), scratch("strip", t.strip)
        products, results = scratch("products", t.products), scratch("results", t.results)
        winograd.forward(at(x), at(values), at(out), *chunks[k], t.array, t.m, t.down, t.across, t.at_once, at(t.table),
                         at(images), at(seen), at(products), at(results), at(strip), at(rows))

    split(len(chunks), one)
    return out


def filters_grad(s: Sizes, x: np.ndarray, grad: np.ndarray, out: np.ndarray) -> np.ndarray:
    """A sum for each chunk, which are added in order: the same bits at any number of threads."""
    t = s.tiles
    size = len(s.table) * LANES * s.padded if t is None else t.sums
    chunks = chunks_of(s.n, max(CHUNK, -(-s.n * size * 4 // SUMS)))
    parts = np.empty((len(chunks), size), "f4")

    def one(k: int) -> None:
        rows = scratch("rows", s.rows)
        if t is None:
            images, grads = scratch("images", s.images, True), scratch("grads", s.padded * s.pixels, True)
            conv.filters_grad(at(x), at(grad), at(parts[k]), *chunks[k], s.array, s.taps, s.table, at(s.starts),
                              s.few, at(images), at(grads), at(rows))
            return
        images, grads = scratch("images", t.images, True), scratch("grads", t.results, True)
        seen, spread, strip = scratch("seen", t.seen), scratch("products", t.products), scratch("strip", t.strip)
        winograd.filters_grad(at(x), at(grad), at(parts[k]), *chunks[k], t.array, t.m, t.down, t.across, t.at_once,
                              at(t.table), at(images), at(seen), at(grads), at(spread), at(strip), at(rows))

    split(len(chunks), one)
    total = parts[0]
    for part in parts[1:]:
        total += part
    if t is not None:
        found, strip = np.empty(s.taps * size // winograd.N**2, "f4"), scratch("strip", t.strip)
        winograd.filters_back(at(total), t.r, size // winograd.N**2, at(found), at(strip))
        total = found
    total = total.reshape(s.taps, -1, s.padded)[:, :s.depth, :s.filters]
    out.reshape(s.filters, s.depth, s.taps)[...] = total.transpose(2, 1, 0)
    return out


# ---- what the ops call: out, or None where it does not fit -----------------------------------------------------------

def conv2d(x, weight, stride, padding, dilation, groups, out=None):
    if groups > 1:
        return depthwise.conv2d(x, weight, stride, padding, dilation, groups, out)
    s = sizes(x.shape, len(weight), weight.shape[2:], stride, padding, dilation)
    shape = (s.n, s.filters, *s.size)
    if not fits(x, weight.shape, groups, shape, weight, out):
        return None
    return forward(s, x, weight, np.empty(shape, "f4") if out is None else out)


def conv2d_input_grad(grad, weight, shape, stride, padding, dilation, groups, out=None):
    if groups > 1:
        return depthwise.conv2d_input_grad(grad, weight, shape, stride, padding, dilation, groups, out)
    border = tuple(d * (k - 1) - p for d, k, p in zip(dilation, weight.shape[2:], padding))
    if (max(stride) > 1 or min(border) < 0 or min(weight.shape[:2]) < FEW
            or not fits(grad, weight.shape, groups, grad.shape, weight, out)):
        return None
    s = sizes(grad.shape, shape[1], weight.shape[2:], stride, border, dilation)
    return forward(s, grad, weight, np.empty(shape, "f4") if out is None else out, turned=True)


def conv2d_weight_grad(grad, x, shape, stride, padding, dilation, groups, out=None):
    if groups > 1:
        return depthwise.conv2d_weight_grad(grad, x, shape, stride, padding, dilation, groups, out)
    if not fits(x, shape, groups, grad.shape, grad, out):
        return None
    s = sizes(x.shape, shape[0], shape[2:], stride, padding, dilation)
    return filters_grad(s, x, grad, np.empty(shape, "f4") if out is None else out)


__all__ = ["batch_norm", "batch_norm_grad", "conv2d", "conv2d_input_grad", "conv2d_weight_grad", "erf", "max_pool2d",
           "max_pool2d_grad", "relu6_grad"]
