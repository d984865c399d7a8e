"""Layer norm, group norm and their gradients, with one read of each element from memory.

A row of layer norm stays in the first-level cache between its mean, its variance and the output; the gradient
recomputes both. Each chunk of rows leaves its part of the gradients of weight and bias, and a second task adds these in
chunk order. A group of channels runs like a channel of batch norm, with a scale per plane. Semantics:
`core/ops/norm.py`. Read next: `column_norms.py`.
"""

from __future__ import annotations

import math

import numpy as np

from ....core.ops import norm as norms
from ....core.spec import Spec, float32 as float32_dtype
from ..codegen.jit import compiled, float32, float64
from ..codegen.llvm import LANES, number_at, put
from ..codegen.vectors import BYTES, filled, load, load_some, multiply_add, store, store_some, sum_by_halves
from ..lowering import lowers
from ..runtime.instructions import instruction
from ..runtime.tasks import Task, Workspace
from .conv_geometry import sum_of_parts
from .norm import fits, squares_of, sum_of, sums_of

STEP = LANES * BYTES
CHUNK = 1 << 15  # elements of a chunk of rows


# ---- rows ------------------------------------------------------------------------------------------------------------


@compiled
def mean_of(x, columns):
    a = b = filled(float32(0))
    whole, left = columns // (2 * LANES) * 2 * STEP, columns % (2 * LANES)
    for i in range(0, whole, 2 * STEP):
        a, b = a + load(x + i), b + load(x + i + STEP)
    if left:
        zeros = filled(float32(0))
        a = a + load_some(x + whole, left, zeros)
        b = b + load_some(x + whole + STEP, left - LANES, zeros)
    return float32(sum_by_halves(a + b) / columns)


@compiled
def deviation_of(x, columns, mean, eps):
    """Compute sqrt(variance + eps)."""
    a = b = filled(float32(0))
    center, whole, left = filled(mean), columns // (2 * LANES) * 2 * STEP, columns % (2 * LANES)
    for i in range(0, whole, 2 * STEP):
        u, v = load(x + i) - center, load(x + i + STEP) - center
        a, b = multiply_add(u, u, a), multiply_add(v, v, b)
    if left:
        u = load_some(x + whole, left, center) - center
        v = load_some(x + whole + STEP, left - LANES, center) - center
        a, b = multiply_add(u, u, a), multiply_add(v, v, b)
    return np.sqrt(float32(sum_by_halves(a + b) / columns) + eps)


@instruction
def layer_norm_rows(chunk, scratch, x, weight, bias, y, eps: float, rows, columns, chunk_rows):
    """Normalize some rows of x (rows, columns)."""
    eps = float32(eps)
    whole, left, zeros = columns // LANES * STEP, columns % LANES, filled(float32(0))
    for row in range(chunk * chunk_rows, min((chunk + 1) * chunk_rows, rows)):
        x_row, y_row = x + row * columns * BYTES, y + row * columns * BYTES
        mean = mean_of(x_row, columns)
        center, scale = filled(mean), filled(float32(1) / deviation_of(x_row, columns, mean, eps))
        for i in range(0, whole, STEP):
            hat = (load(x_row + i) - center) * scale
            store(y_row + i, multiply_add(hat, load(weight + i), load(bias + i)))
        if left:
            hat = (load_some(x_row + whole, left, zeros) - center) * scale
            store_some(
                y_row + whole,
                left,
                multiply_add(hat, load_some(weight + whole, left, zeros), load_some(bias + whole, left, zeros)),
            )


@instruction
def layer_norm_grad_rows(chunk, scratch, grad, x, weight, gx, parts, eps: float, rows, columns, chunk_rows, part_bytes):
    """Compute gx for some rows, and the gradients of weight and bias summed over these.

    parts: (chunks, 2 vectors of `part_bytes` bytes): those of weight, those of bias.
    """
    eps = float32(eps)
    part = parts + 2 * chunk * part_bytes
    whole, left, zeros = columns // LANES * STEP, columns % LANES, filled(float32(0))
    for i in range(0, 2 * part_bytes, STEP):
        store(part + i, zeros)
    for row in range(chunk * chunk_rows, min((chunk + 1) * chunk_rows, rows)):
        place = row * columns * BYTES
        grad_row, x_row, gx_row = grad + place, x + place, gx + place
        mean = mean_of(x_row, columns)
        inverse = float32(1) / deviation_of(x_row, columns, mean, eps)
        center, scale, sums, products = filled(mean), filled(inverse), zeros, zeros
        for i in range(0, whole, STEP):
            g, hat = load(grad_row + i), (load(x_row + i) - center) * scale
            store(part + i, multiply_add(g, hat, load(part + i)))
            store(part + part_bytes + i, g + load(part + part_bytes + i))
            g = g * load(weight + i)
            sums, products = sums + g, multiply_add(g, hat, products)
        if left:
            g = load_some(grad_row + whole, left, zeros)
            hat = (load_some(x_row + whole, left, center) - center) * scale
            store(part + whole, multiply_add(g, hat, load(part + whole)))
            store(part + part_bytes + whole, g + load(part + part_bytes + whole))
            g = g * load_some(weight + whole, left, zeros)
            sums, products = sums + g, multiply_add(g, hat, products)
        slope = filled(float32(-sum_by_halves(products) / columns))
        offset = filled(float32(-sum_by_halves(sums) / columns))
        for i in range(0, whole, STEP):
            hat = (load(x_row + i) - center) * scale
            g = multiply_add(load(grad_row + i), load(weight + i), multiply_add(hat, slope, offset))
            store(gx_row + i, g * scale)
        if left:
            hat = (load_some(x_row + whole, left, center) - center) * scale
            g = multiply_add(
                load_some(grad_row + whole, left, zeros),
                load_some(weight + whole, left, zeros),
                multiply_add(hat, slope, offset),
            )
            store_some(gx_row + whole, left, g * scale)


# ---- groups of channels ----------------------------------------------------------------------------------------------


@instruction
def group_norm_groups(
    chunk, scratch, x, weight, bias, y, eps: float, groups, channels, pixels, all_groups, chunk_groups
):
    """Normalize some groups of channels of x (images, groups, channels, pixels). all_groups: images * groups."""
    eps = float32(eps)
    count, left, zeros = channels * pixels, pixels % LANES, filled(float32(0))
    for group in range(chunk * chunk_groups, min((chunk + 1) * chunk_groups, all_groups)):
        x_group, y_group = x + group * count * BYTES, y + group * count * BYTES
        mean = float32(sum_of(x_group, 1, 0, count) / count)
        var = float32(squares_of(x_group, 1, 0, count, mean) / count)
        center, inverse = filled(mean), float32(1) / np.sqrt(var + eps)
        for channel in range(channels):
            c = group % groups * channels + channel
            scale, shift = filled(number_at(weight, c) * inverse), filled(number_at(bias, c))
            p, q = x_group + channel * pixels * BYTES, y_group + channel * pixels * BYTES
            for i in range(0, pixels // LANES * STEP, STEP):
                store(q + i, multiply_add(load(p + i) - center, scale, shift))
            if left:
                i = pixels // LANES * STEP
                store_some(q + i, left, multiply_add(load_some(p + i, left, zeros) - center, scale, shift))


@instruction
def group_norm_grad_groups(
    chunk, scratch, grad, x, weight, gx, parts, eps: float, groups, channels, pixels, all_groups, chunk_groups
):
    """Compute gx for some groups, and the gradients of weight and bias for each image.

    parts: (images, 2, groups * channels padded to whole vectors): those of weight, those of bias.  Others: see
    `group_norm_groups`.
    """
    eps = float32(eps)
    count, left, end, zeros = channels * pixels, pixels % LANES, pixels // LANES * STEP, filled(float32(0))
    for group in range(chunk * chunk_groups, min((chunk + 1) * chunk_groups, all_groups)):
        grad_group, x_group = grad + group * count * BYTES, x + group * count * BYTES
        gx_group = gx + group * count * BYTES
        mean = float32(sum_of(x_group, 1, 0, count) / count)
        var = float32(squares_of(x_group, 1, 0, count, mean) / count)
        inverse = float32(1) / np.sqrt(var + eps)
        center, first = filled(mean), group % groups * channels
        stride = (groups * channels + LANES - 1) // LANES * LANES
        here = group // groups * 2 * stride + first
        sums = products = 0.0
        for channel in range(channels):
            place = channel * pixels * BYTES
            some_sums, some_products = sums_of(grad_group + place, x_group + place, pixels, center)
            gb, gw = sum_by_halves(some_sums), sum_by_halves(some_products) * float64(inverse)
            put(parts, here + channel, float32(gw))
            put(parts, here + stride + channel, float32(gb))
            factor = number_at(weight, first + channel)
            sums, products = sums + gb * factor, products + gw * factor
        slope = filled(float32(-products * inverse * inverse / count))
        offset = filled(float32(-sums * inverse / count))
        for channel in range(channels):
            scale = filled(number_at(weight, first + channel) * inverse)
            place = channel * pixels * BYTES
            for i in range(place, place + end, STEP):
                moved = multiply_add(load(x_group + i) - center, slope, offset)
                store(gx_group + i, multiply_add(load(grad_group + i), scale, moved))
            if left:
                i = place + end
                moved = multiply_add(load_some(x_group + i, left, zeros) - center, slope, offset)
                store_some(gx_group + i, left, multiply_add(load_some(grad_group + i, left, zeros), scale, moved))


# ---- builders --------------------------------------------------------------------------------------------------------


def layer_norm(arrays, outs, workspace: Workspace, axes, eps) -> list[Task] | None:
    x, columns = arrays[0], columns_of(arrays[0], axes)
    weight, bias = vectors(arrays[1:], columns)
    if not fits(x, weight, bias, *outs):
        return None
    rows, some = x.size // columns, max(1, CHUNK // columns)
    return [layer_norm_rows(-(-rows // some), x, weight, bias, *outs, eps, rows, columns, some)]


def layer_norm_grad(arrays, outs, workspace: Workspace, axes, eps, needs) -> list[Task] | None:
    (grad, x), columns = arrays[:2], columns_of(arrays[1], axes)
    (weight,) = vectors(arrays[2:3], columns)
    if not fits(grad, x, weight, *outs):
        return None
    rows, some, stride = x.size // columns, max(1, CHUNK // columns), padded(columns)
    chunks = -(-rows // some)
    parts = workspace.take(chunks * 2 * stride)
    return [
        layer_norm_grad_rows(chunks, grad, x, weight, outs[0], parts, eps, rows, columns, some, stride * BYTES),
        *added(parts, arrays[2:], outs[1:], chunks, columns, stride),
    ]


def columns_of(x: np.ndarray | Spec, axes: tuple[int, ...]) -> int:
    return math.prod([x.shape[axis] for axis in axes])


def vectors(numbers, count: int) -> list[np.ndarray]:
    return [a if isinstance(a, np.ndarray) else np.full(count, a, "f4") for a in numbers]


def padded(numbers: int) -> int:
    return -(-numbers // LANES) * LANES


def added(parts: int, inputs, outs, count: int, numbers: int, stride: int) -> list[Task]:
    """Tasks that add the parts, each of which holds `numbers` elements for each of `outs`, `stride` elements apart.

    inputs: the weight and the bias; one that is a number has no gradient.
    """
    return [
        sum_of_parts(parts + i * stride * BYTES, out, count, 2 * stride, 1, numbers, stride)
        for i, (x, out) in enumerate(zip(inputs, outs))
        if isinstance(x, np.ndarray)
    ]


def group_norm(arrays, outs, workspace: Workspace, groups, eps) -> list[Task] | None:
    arrays = [arrays[0], *vectors(arrays[1:], arrays[0].shape[1])]
    return by_groups(group_norm_groups, arrays[0], [*arrays, *outs], groups, eps) if fits(*arrays, *outs) else None


def group_norm_grad(arrays, outs, workspace: Workspace, groups, eps, needs) -> list[Task] | None:
    images, channels = outs[0].shape[:2]
    inputs = [*arrays[:2], *vectors(arrays[2:3], channels)]
    if not fits(*inputs, *outs):
        return None
    stride = padded(channels)
    parts = workspace.take(images * 2 * stride)
    return [
        *by_groups(group_norm_grad_groups, outs[0], [*inputs, outs[0], parts], groups, eps),
        *added(parts, arrays[2:], outs[1:], images, channels, stride),
    ]


def by_groups(make, x: np.ndarray, arrays: list, groups: int, eps: float) -> list[Task]:
    """Tasks by chunks of groups."""
    channels, pixels, every = x.shape[1] // groups, math.prod(x.shape[2:]), x.shape[0] * groups
    some = max(1, CHUNK // (channels * pixels))
    return [make(-(-every // some), *arrays, eps, groups, channels, pixels, every, some)]


def are_float32(*specs, **attrs) -> bool:
    return all(
        [isinstance(s, type) or (s.dtype is float32_dtype and s.size > 0 and s.placement is None) for s in specs]
    )


def are_images(*specs, **attrs) -> bool:
    """True if each plane fills a vector."""
    return are_float32(*specs) and specs[0].ndim > 2 and math.prod(specs[0].shape[2:]) >= LANES


lowers(norms.layer_norm, layer_norm, accepts=are_float32)
lowers(norms.layer_norm.gradient, layer_norm_grad, accepts=are_float32)
lowers(norms.group_norm, group_norm, accepts=are_images)
lowers(norms.group_norm.gradient, group_norm_grad, accepts=are_images)
