"""Batch norm of a matrix (a channel is a column), and its gradients, reading rows in memory order.

Three tasks: each chunk of rows computes partial statistics of all columns; these are combined in chunk order, and
turned into factors; then the factors are applied to the rows. A tile of rows stays in the first-level cache between its
means and its squared deviations. Read next: `nchw16c_norm.py`, which combines statistics.
"""

from __future__ import annotations

import numpy as np

from ..codegen.jit import float32
from ..codegen.llvm import LANES
from ..codegen.vectors import (
    BYTES,
    WIDE_BYTES,
    filled,
    load,
    load_some,
    load_wide,
    multiply_add,
    root,
    rounded,
    store,
    store_some,
    store_wide,
    widened,
)
from ..runtime.instructions import instruction
from ..runtime.tasks import Task, Workspace
from .nchw16c_norm import FOUND, add_to, clear, join

TILE = 16  # rows of a tile, which is read twice
WRITTEN = 8  # rows that are written together
CHUNK = 1 << 15  # elements of a chunk
STATE = 2 * WIDE_BYTES


@instruction
def column_moments(chunk, scratch, x, parts, rows, columns, chunk_rows):
    """Compute mean and squared deviations of each column in some rows of x (rows, columns).

    parts: (chunks, blocks of 16 columns), STATE bytes each.  scratch: STATE bytes.
    """
    mine = parts + chunk * ((columns + LANES - 1) // LANES) * STATE
    begin, end, stride = chunk * chunk_rows, min((chunk + 1) * chunk_rows, rows), columns * BYTES
    zeros = filled(float32(0))
    for first in range(begin, end, TILE):
        count = min(TILE, end - first)
        for c in range(0, columns, LANES):
            state, left, p = mine + c // LANES * STATE, columns - c, x + (first * columns + c) * BYTES
            if first == begin:
                clear(state)
            a = b = zeros
            whole = p + count // 2 * 2 * stride
            for q in range(p, whole, 2 * stride):
                a, b = a + load_some(q, left, zeros), b + load_some(q + stride, left, zeros)
            if count % 2:
                a = a + load_some(whole, left, zeros)
            mean = widened(a + b) * filled(1.0 / count)
            center, a, b = rounded(mean), zeros, zeros
            for q in range(p, whole, 2 * stride):
                u = load_some(q, left, zeros) - center
                v = load_some(q + stride, left, zeros) - center
                a, b = multiply_add(u, u, a), multiply_add(v, v, b)
            if count % 2:
                u = load_some(whole, left, zeros) - center
                a = multiply_add(u, u, a)
            store_wide(scratch, mean)
            store_wide(scratch + WIDE_BYTES, widened(a + b))
            join(state, first - begin, scratch, count)


@instruction
def join_column_moments(
    chunk, scratch, parts, weight, bias, factors, means, variances, eps: float, chunks, rows, columns, chunk_rows
):
    """Combine the statistics of 16 columns.

    parts: of `column_moments`, from `chunks` chunks.  factors: mean, 0, weight / sqrt(var + eps) and bias of all
    columns, padded to whole vectors.
    """
    eps, c, left = float32(eps), chunk * LANES, columns - chunk * LANES
    blocks, zeros = (columns + LANES - 1) // LANES, filled(float32(0))
    clear(scratch)
    for k in range(chunks):
        join(scratch, k * chunk_rows, parts + (k * blocks + chunk) * STATE, min(chunk_rows, rows - k * chunk_rows))
    mean = rounded(load_wide(scratch))
    var = rounded(load_wide(scratch + WIDE_BYTES) * filled(1.0 / rows))
    store_some(means + c * BYTES, left, mean)
    store_some(variances + c * BYTES, left, var)
    to, stride = factors + c * BYTES, blocks * LANES * BYTES
    store(to, mean)
    store(to + stride, zeros)
    store(to + 2 * stride, load_some(weight + c * BYTES, left, zeros) / root(var + filled(eps)))
    store(to + 3 * stride, load_some(bias + c * BYTES, left, zeros))


@instruction
def column_grad_sums(chunk, scratch, grad, x, means, parts, rows, columns, chunk_rows):
    """Compute partial sums of grad and of grad * (x - mean) in some rows. parts: as in `column_moments`."""
    mine = parts + chunk * ((columns + LANES - 1) // LANES) * STATE
    begin, end, stride = chunk * chunk_rows, min((chunk + 1) * chunk_rows, rows), columns * BYTES
    zeros = filled(float32(0))
    for first in range(begin, end, TILE):
        count = min(TILE, end - first)
        for c in range(0, columns, LANES):
            state, left, p = mine + c // LANES * STATE, columns - c, (first * columns + c) * BYTES
            if first == begin:
                clear(state)
            center, a, b = load_some(means + c * BYTES, left, zeros), zeros, zeros
            for q in range(p, p + count * stride, stride):
                g = load_some(grad + q, left, zeros)
                a, b = a + g, multiply_add(g, load_some(x + q, left, zeros) - center, b)
            add_to(state, widened(a), widened(b))


@instruction
def join_column_grad_sums(
    chunk, scratch, parts, weight, means, variances, factors, gweight, gbias, eps: float, chunks, rows, columns
):
    """Combine the sums of 16 columns.

    parts: of `column_grad_sums`, from `chunks` chunks.  factors: for `scale_columns`.
    """
    eps, c, left = float32(eps), chunk * LANES, columns - chunk * LANES
    blocks, zeros = (columns + LANES - 1) // LANES, filled(float32(0))
    sums = products = filled(0.0)
    for k in range(chunks):
        part = parts + (k * blocks + chunk) * STATE
        sums, products = sums + load_wide(part), products + load_wide(part + WIDE_BYTES)
    deviation = root(load_some(variances + c * BYTES, left, zeros) + filled(eps))
    size = load_some(weight + c * BYTES, left, zeros) / deviation
    products, share = products / widened(deviation), widened(size) * filled(-1.0 / rows)
    store_some(gweight + c * BYTES, left, rounded(products))
    store_some(gbias + c * BYTES, left, rounded(sums))
    to, stride = factors + c * BYTES, blocks * LANES * BYTES
    store(to, load_some(means + c * BYTES, left, zeros))
    store(to + stride, size)
    store(to + 2 * stride, rounded(share * (products / widened(deviation))))
    store(to + 3 * stride, rounded(share * sums))


@instruction
def scale_columns(chunk, scratch, grad, x, factors, out, rows, columns, chunk_rows):
    """Compute some rows of out = grad * size + (x - mean) * slope + offset.

    factors: mean, size, slope and offset of all columns, padded to whole vectors.
    """
    stride, row, zeros = (columns + LANES - 1) // LANES * LANES * BYTES, columns * BYTES, filled(float32(0))
    chunk = (rows - 1) // chunk_rows - chunk  # in reverse: the rows read last are still in the cache
    end = min((chunk + 1) * chunk_rows, rows)
    for first in range(chunk * chunk_rows, end, WRITTEN):
        count = min(WRITTEN, end - first)
        for c in range(0, columns, LANES):
            center, size = load(factors + c * BYTES), load(factors + stride + c * BYTES)
            slope, offset = load(factors + 2 * stride + c * BYTES), load(factors + 3 * stride + c * BYTES)
            p, left = (first * columns + c) * BYTES, columns - c
            if left >= LANES:
                for q in range(p, p + count * row, row):
                    moved = multiply_add(load(x + q) - center, slope, offset)
                    store(out + q, multiply_add(load(grad + q), size, moved))
                continue
            for q in range(p, p + count * row, row):
                moved = multiply_add(load_some(x + q, left, zeros) - center, slope, offset)
                store_some(out + q, left, multiply_add(load_some(grad + q, left, zeros), size, moved))


# ---- builders --------------------------------------------------------------------------------------------------------


def batch_norm(arrays, outs, workspace: Workspace, eps: float) -> list[Task]:
    (x, weight, bias), (y, mean, var) = arrays, outs
    (rows, columns), some, chunks, blocks, parts, factors = sizes(x, workspace)
    return [
        column_moments(chunks, x, parts, rows, columns, some, scratch=FOUND),
        join_column_moments(
            blocks, parts, weight, bias, factors, mean, var, eps, chunks, rows, columns, some, scratch=FOUND
        ),
        scale_columns(chunks, x, x, factors, y, rows, columns, some),
    ]  # with size 0, elements that are not finite become NaN


def batch_norm_grad(arrays, outs, workspace: Workspace, eps: float) -> list[Task]:
    (grad, x, weight, mean, var), (gx, gweight, gbias) = arrays, outs
    (rows, columns), some, chunks, blocks, parts, factors = sizes(x, workspace)
    return [
        column_grad_sums(chunks, grad, x, mean, parts, rows, columns, some),
        join_column_grad_sums(blocks, parts, weight, mean, var, factors, gweight, gbias, eps, chunks, rows, columns),
        scale_columns(chunks, grad, x, factors, gx, rows, columns, some),
    ]


def sizes(x: np.ndarray, workspace: Workspace) -> tuple:
    """Return (shape, rows of a chunk, chunks, blocks of 16 columns, address of parts, address of factors)."""
    rows, columns = x.shape
    some, blocks = max(TILE, CHUNK // columns // TILE * TILE), -(-columns // LANES)
    chunks = -(-rows // some)
    return x.shape, some, chunks, blocks, workspace.take(chunks * blocks * FOUND), workspace.take(4 * blocks * LANES)
