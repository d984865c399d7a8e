"""Dense convolutions as tasks: their geometry, workspace, and images per chunk.

Only builds tasks: the instructions are in `conv.py` and `winograd.py`, the callers in `nchw_conv.py` and
`nchw16c_conv.py`. Read next: `conv.py`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ....core.ops.conv import positions
from ..codegen.llvm import LANES
from ..codegen.micro_kernels import PANEL
from ..codegen.vectors import BOUNDS
from ..runtime.tasks import Task, Workspace
from . import conv, winograd
from .conv import FilterPart, ImageInput
from .gemm_tiles import outer, product
from .grouped_conv import group_outer, group_product

FEW = 16  # channels; with fewer, all that a filter reads at a pixel become channels
DEEPEST = 512  # most of those
LEAST_TILES = 4  # fewest tiles of an image: with fewer, the transformed filters are loaded for too little work
FEWER = 1.5  # by how much Winograd's algorithm must reduce multiplications to make up for its transforms
CACHE = 700_000  # bytes of transformed tiles and their products that are processed together
CHUNK = 5  # images of a chunk; the gradient of filters is summed within chunks first, which also rounds less
SUMS = 32 << 20  # bytes of such sums
MOST_SUMS = 1 << 20  # elements of one
MOVED = 1 << 15  # elements that a memory-bound chunk reads
SPARE = LANES * LANES  # scratch elements for packing a panel
NOTHING = np.zeros(1, "i8")


@functools.cache
def codes(grouped: bool) -> tuple[int, int, int]:
    """Addresses of the two routines, and of the instruction, that instructions call."""
    multiply, back = (group_product, group_outer) if grouped else (product, outer)
    return multiply.address, back.address, conv.image_in.address


class Convolution(NamedTuple):
    """Sizes of a convolution of images of shape x.

    block_rows: rows of a block of input and output, or 0 for NCHW.  groups: 1, or groups with as many filters as
    channels, such that blocks hold whole groups.
    """

    x: tuple
    filters: int
    kernel: tuple
    stride: tuple
    padding: tuple
    dilation: tuple
    block_rows: tuple = (0, 0)
    groups: int = 1


class ConvGeometry:
    """Geometry of one convolution: sizes and tables that the instructions read."""

    def __init__(self, convolution: Convolution):
        x, filters, kernel, stride, padding, dilation, block_rows, groups = convolution
        (self.n, c, h, w), (kh, kw), (sh, sw) = x, kernel, stride
        self.size = oh, ow = positions(x[2:], kernel, stride, padding, dilation)
        self.few = int(block_rows[0] == 0 and c < FEW and groups == 1 and kh * kw > 1 and c * kh * kw <= DEEPEST)
        self.depth, self.taps = (c * kh * kw, 1) if self.few else (c, kh * kw)
        blocks = -(-self.depth // LANES)
        hq, wq = (oh, ow) if self.few else (-(-(h + 2 * padding[0]) // sh), -(-(w + 2 * padding[1]) // sw))
        self.block_rows, phases = block_rows, 1 if self.few else sh * sw
        length = length_of(self.depth) if self.few else LANES
        length, *panels = self.panels_of(groups, c, filters, length, blocks, phases * hq * wq * LANES)
        numbers = [c, h, w, filters, kh, kw, oh, ow, sh, sw, *padding, *dilation, blocks, hq, wq, *block_rows]
        numbers += [self.taps, self.few, length, *panels, *codes(groups > 1)]
        self.array = np.array([*numbers, *[0] * (blocks * LANES)], "i8")
        self.images = blocks * phases * hq * wq * LANES
        self.pixels, self.padded = oh * ow, -(-filters // LANES) * LANES
        self.results = -(-filters // PANEL) * PANEL * self.pixels
        self.multiplied = filters * self.depth * self.taps * self.pixels  # multiplications per image
        self.filters, self.rows = filters, LANES * max(self.pixels, h * w)
        if self.few:
            height, across = h + 2 * padding[0], -(-(w + 2 * padding[1]) // sw)  # of padded planes
            self.array[conv.COUNT : conv.COUNT + self.depth] = [
                ((k * sw + v * dilation[1] % sw) * height + u * dilation[0]) * across + v * dilation[1] // sw
                for k in range(c)
                for u in range(kh)
                for v in range(kw)
            ]
            self.rows = max(self.rows, c * sw * height * across + 4 * LANES)
            self.images += LANES * LANES  # for pixels beyond the last one
        taps = [(0, 0)] if self.few else [(u * dilation[0], v * dilation[1]) for u in range(kh) for v in range(kw)]
        sh, sw = (1, 1) if self.few else (sh, sw)
        table = [
            (((block * sh + u % sh) * sw + v % sw) * hq * wq + u // sh * wq + v // sw) * LANES
            for u, v in taps
            for block in range(1 if groups > 1 else blocks)
        ]
        self.offsets = np.array(table, "i8")
        self.table = lengths(self.offsets, self.depth, length) if self.few else self.offsets
        lines, width = (1, oh * ow) if self.few or wq == ow else (oh, ow)  # contiguous rows are one long row
        self.starts = np.arange(lines, dtype="i8") * (wq * LANES)
        self.split = np.array([FilterPart(0, len(self.table), lines, width, 0, 0, width * LANES)], "i8")
        self.order = np.arange(self.taps)
        self.tiles = t = (
            WinogradTiles(self, kh) if suits_winograd(c, filters, kernel, stride, dilation, groups, self.size) else None
        )
        # For the gradient of filters in blocks, sums that do not fit into the cache cost more than Winograd saves.
        self.grad_tiles = None if t is None or (any(block_rows) and t.sums > MOST_SUMS) else t
        rows = length if groups > 1 else LANES
        self.sums = len(table) * rows * self.padded if self.grad_tiles is None else self.grad_tiles.sums

    def panels_of(self, groups: int, channels: int, filters: int, length: int, blocks: int, stride: int) -> tuple:
        """Set the sizes of panels.

        Returns (channels per entry of the table, filters of a panel, elements of a panel, elements between the inputs
        of two).
        """
        self.groups, width = groups, LANES if groups > 1 else PANEL
        self.panels = -(-filters // width)
        if groups > 1:
            self.depth = length = channels // groups
        packed = self.taps * (length if groups > 1 else blocks * LANES) * width
        self.weights = self.panels * packed
        return length, width, packed, stride if groups > 1 else 0


class StridedInputGrad(ConvGeometry):
    """Gradient of the images of a strided convolution, without multiplying by zeros.

    Pixels of the image whose positions are equal modulo the stride read the same taps; each such phase is a convolution
    of its own.
    """

    def __init__(self, convolution: Convolution):
        x, filters, kernel, stride, padding, dilation, block_rows, groups = convolution
        (self.n, c, *size), several = x, positions(x[2:], kernel, stride, padding, dilation)
        axes = [phases(*numbers) for numbers in zip(size, several, kernel, stride, padding, dilation)]
        (down, top, hq), (across, left, wq) = axes
        blocks, (h, w), self.block_rows, self.few = -(-filters // LANES), size, block_rows, 0
        self.size, self.depth, self.taps, self.filters = (h, w), filters, kernel[0] * kernel[1], c
        numbers = [filters, *several, c, *kernel, h, w, 1, 1, top, left, *dilation, blocks, hq, wq, *block_rows]
        panels = self.panels_of(groups, filters, c, LANES, blocks, hq * wq * LANES)
        self.array = np.array([*numbers, self.taps, 0, *panels, *codes(groups > 1)], "i8")
        self.images, self.pixels, self.tiles = blocks * hq * wq * LANES, h * w, None
        self.results = -(-c // PANEL) * PANEL * h * w
        self.multiplied = c * self.depth * self.taps * several[0] * several[1]
        self.rows = LANES * max(h * w, several[0] * several[1])
        order: list[int] = []
        table: list[int] = []
        split = []
        for i, lines, q, rows in down:
            for j, width, p, columns in across:
                met = [
                    (u, v, (block * hq + q - a) * wq + p - b)
                    for u, a in rows
                    for v, b in columns
                    for block in range(1 if groups > 1 else blocks)
                ]
                split.append(
                    FilterPart(
                        len(table),
                        len(met),
                        lines,
                        width,
                        0,
                        (i * w + j) * LANES,
                        stride[0] * w * LANES,
                        stride[1] * LANES,
                    )
                )
                table += [place * LANES for *_, place in met]
                order += [u * kernel[1] + v for u, _ in rows for v, _ in columns]
        order += sorted({*range(self.taps)} - {*order})
        self.table, self.split, self.order = np.array(table, "i8"), np.array(split, "i8"), np.argsort(order)


def phases(size: int, several: int, kernel: int, stride: int, padding: int, dilation: int) -> tuple[list, int, int]:
    """Split one axis of the images into the phases of a strided convolution with `several` outputs.

    Returns (phases, padding before, padded length of the cotangent). A phase is (first pixel, number of pixels, offset
    of its input in the padded cotangent, [(tap, how much earlier the tap reads)]).
    """
    axis = []
    for first in range(min(size, stride)):
        q, rest = divmod(first + padding, stride)
        met = [(u, (u * dilation - rest) // stride) for u in range(kernel) if (u * dilation - rest) % stride == 0]
        axis.append((first, -(-(size - first) // stride), q, met))
    before = max([0, *[earlier - q for _, _, q, met in axis for _, earlier in met]])
    end = max([several, *[q + count - earlier for _, count, q, met in axis for _, earlier in met]])
    return [(first, count, q + before, met) for first, count, q, met in axis], before, before + end


def length_of(channels: int) -> int:
    """Channels to sum per table entry: the largest of 4, 8, 16 that pads the number of channels least."""
    return min((4, 8, LANES), key=lambda n: (-(-channels // n) * n, -n))


def lengths(blocks: np.ndarray, channels: int, length: int) -> np.ndarray:
    """Table entries for `length` channels each, from one for blocks of 16."""
    first = np.arange(0, channels, length)
    return blocks[first // LANES] + first % LANES


def suits_winograd(
    channels: int, filters: int, kernel: tuple, stride: tuple, dilation: tuple, groups: int, size: tuple
) -> bool:
    """True if Winograd's algorithm supports this convolution, and reduces its multiplications enough."""
    kh, kw = kernel
    if not (kh == kw in winograd.RESULTS and groups == 1 and min(channels, filters) >= FEW):
        return False
    if tuple(stride) != (1, 1) or tuple(dilation) != (1, 1):
        return False
    m, (oh, ow) = winograd.RESULTS[kh], size
    count = -(-oh // m) * -(-ow // m)
    return count >= LEAST_TILES and FEWER * count * (m + kh - 1) ** 2 <= oh * ow * kh * kw


class WinogradTiles:
    """Additional geometry of Winograd's algorithm, in tiles of m x m outputs."""

    def __init__(self, s: ConvGeometry, r: int):
        m = winograd.RESULTS[r]
        (oh, ow), points = s.size, m + r - 1
        down, across, blocks = -(-oh // m), -(-ow // m), int(s.array[conv.BLOCKS])
        self.array = s.array.copy()
        self.array[[conv.HQ, conv.WQ]] = hq, wq = down * m + r - 1, across * m + r - 1
        row = points**2 * (blocks * LANES + s.padded) * across * 4
        rows = max(1, min(down, CACHE // row))
        self.r, self.grid = r, winograd.TileGrid(m, points, down, across, rows)
        self.panels, self.each = -(-s.filters // PANEL), blocks * LANES * PANEL
        # Elements between rows, and between blocks, of outputs.
        self.strides = across * m * LANES, down * across * m * m * LANES
        self.strip = points * max(wq, points) * LANES
        self.table = np.arange(blocks, dtype="i8") * (rows * across * LANES)
        self.weights = self.panels * self.each * points**2  # elements of transformed filters
        self.sums = points**2 * blocks * LANES * s.padded
        parts = (
            blocks * hq * wq * LANES,
            points**2 * blocks * rows * across * LANES,
            points**2 * self.panels * PANEL * rows * across,
            self.panels * PANEL * down * across * m * m,
            self.strip,
        )
        *offsets, self.spare = itertools.accumulate(parts)  # of the parts of scratch memory
        self.offsets = winograd.TileScratch(*offsets)


@functools.lru_cache(256)
def sizes(*args, **named) -> ConvGeometry:
    """Geometry of a `Convolution` with these fields."""
    return ConvGeometry(Convolution(*args, **named))


@functools.lru_cache(256)
def back(*args, **named) -> ConvGeometry:
    """Geometry of the gradient of the images of a `Convolution`, as one of the cotangent with rotated filters."""
    c = Convolution(*args, **named)
    border = tuple([d * (k - 1) - p for d, k, p in zip(c.dilation, c.kernel, c.padding)])
    if tuple(c.stride) != (1, 1) or min(border) < 0:
        return StridedInputGrad(c)
    several = positions(c.x[2:], c.kernel, c.stride, c.padding, c.dilation)
    return ConvGeometry(c._replace(x=(c.x[0], c.filters, *several), filters=c.x[1], padding=border))


# ---- tasks; a chunk is some images -----------------------------------------------------------------------------------


def filtered(
    s: ConvGeometry,
    x: np.ndarray,
    weight: np.ndarray,
    bias: object,
    out: np.ndarray,
    workspace: Workspace,
    at_once: int,
    transposed: bool = False,
    act: str = "",
    after: Callable[[int, int], Task] | None = None,
) -> list[Task]:
    """Tasks of a convolution of images, or (transposed) of cotangents with rotated filters. bias: an array, or 0.

    after: returns the task for the output of each image in place of bias and activation, from the elements between its
    rows and between its blocks.
    """
    t, common = s.tiles, (s.n, at_once, *BOUNDS[act])
    packed, packing = packed_filters(s, weight, transposed, workspace)
    if t is not None:
        filtering = winograd.conv_images(
            -(-s.n // at_once),
            ImageInput(x, t.array, t.spare),
            packed,
            out,
            bias,
            t.table,
            *common,
            t.grid,
            t.offsets,
            after and after(*t.strides),
            scratch=t.spare + s.rows,
        )
        return [packing, filtering]
    spare = s.images + (0 if s.block_rows[1] else s.results)
    filtering = conv.conv_images(
        -(-s.n // at_once),
        ImageInput(x, s.array, spare),
        packed,
        out,
        bias,
        s.table,
        *common,
        clear=s.images,
        results_at=s.images,
        after=after and after(s.size[1] * LANES, s.pixels * LANES),
        split=s.split,
        parts=len(s.split),
        scratch=spare + s.rows,
    )
    return [packing, filtering]


def packed_filters(s: ConvGeometry, weight: np.ndarray, transposed: bool, workspace: Workspace) -> tuple[int, Task]:
    """Address of the packed, or transformed, filters, and the task that packs them."""
    t, order = s.tiles, s.order
    if transposed and not isinstance(s, StridedInputGrad):  # rotated: last tap first
        order = order[::-1].copy()
    packed = workspace.take(s.weights if t is None else t.weights)
    common = weight, packed, s.filters, s.depth
    if t is not None:
        numbers, scratch = (t.r, t.panels, t.each, t.grid.points), SPARE + s.taps * t.each + t.strip
        return packed, winograd.transform_filters(t.panels, *common, transposed, *numbers, order, scratch=scratch)
    if s.groups > 1:
        return packed, conv.pack_group_filters(s.panels, *common, s.taps, transposed, order)
    return packed, conv.pack_filters(s.panels, *common, s.taps, transposed, s.weights // s.panels, order, scratch=SPARE)


def filters_grad(
    s: ConvGeometry,
    grad: np.ndarray,
    x: np.ndarray,
    out: np.ndarray,
    workspace: Workspace,
    at_once: int,
    before: Callable[[int, int], Task] | None = None,
) -> list[Task]:
    """Tasks of the gradient of filters.

    Each chunk computes a partial sum; these are added in order, so the bits do not depend on the number of
    threads.  before: returns the task that computes the cotangent of each image, from the elements between its rows and
    between its blocks.
    """
    t, size, depth = s.grad_tiles, s.sums, s.depth if s.groups > 1 else -(-s.depth // LANES) * LANES
    parts = max(1, -(-s.n // at_once))
    target = workspace.take(parts * size)
    if t is not None:
        points, inner = t.grid.points, before and before(*t.strides)
        summing = winograd.conv_weight_grad(
            parts,
            ImageInput(x, t.array, t.spare),
            grad,
            target,
            NOTHING,
            size,
            s.n,
            at_once,
            t.grid,
            t.offsets,
            inner,
            scratch=t.spare + s.rows,
        )
        sizes, scratch = (s.filters, s.depth, s.padded, depth, t.r, points), 3 * points**2 * LANES
        return [summing, winograd.inverse_transform_filters(s.depth, target, out, parts, size, *sizes, scratch=scratch)]
    spare = s.images + (0 if s.block_rows[1] else s.padded * s.pixels)
    summing = conv.conv_weight_grad(
        parts,
        ImageInput(x, s.array, spare),
        grad,
        target,
        s.offsets,
        s.starts,
        s.n,
        at_once,
        size,
        clear=s.images,
        grads_at=s.images,
        before=before and before(s.size[1] * LANES, s.pixels * LANES),
        scratch=spare + s.rows,
    )
    return [summing, sum_of_parts(target, out, parts, size, s.depth, s.filters, s.padded, s.taps, depth)]


def sum_of_parts(
    parts: int,
    out: np.ndarray,
    count: int,
    part: int,
    rows: int,
    columns: int,
    row: int,
    taps: int = 0,
    part_rows: int = 0,
) -> Task:
    """Task that adds `count` parts: see `conv.add_conv_parts`."""
    at_once = max(1, MOVED // (count * row))
    return conv.add_conv_parts(
        -(-rows * max(taps, 1) // at_once),
        parts,
        out,
        count,
        part,
        rows,
        columns,
        row,
        at_once,
        taps,
        part_rows,
        scratch=LANES,
    )


def parts_of(s: ConvGeometry, least: int = 1) -> int:
    """Images of a chunk for the gradient of filters."""
    return max(CHUNK, -(-s.n * s.sums * 4 // SUMS), least)
