"""Dropout with the random bits of `core/random.py`: 16 blocks of Philox at a time, a vector for each word.

Source: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3", section 3.3. Read next: `elementwise.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....core.op import OPS
from ....core.ops.random import Part, span_of
from ..codegen import llvm
from ..codegen.jit import emits, ir, types
from ..codegen.llvm import INT, LANES, WORD, function
from ..codegen.vectors import BYTES, filled, load_some, store_some, vector
from ..lowering import lowers
from ..runtime.instructions import instruction, word_at
from ..runtime.tasks import Task, Workspace
from .elementwise import flat

DRAWN = 8 * LANES  # 16-bit numbers in 16 blocks of four words
CHUNK = 64 * DRAWN  # elements of a chunk
WORDS = ir.VectorType(WORD, LANES)
HALVES = ir.VectorType(ir.IntType(16), LANES)
LOW = (1 << 32) - 1


def constant(numbers: Sequence[int]) -> ir.Constant:
    return ir.Constant(WORDS, list(numbers))


@function("draw", 4, inline=False)
def draw(builder, target, block, key, counter):
    """Compute 16 blocks of random bits from `block` on: 64 words of 32 bits."""
    low, half = constant([LOW] * LANES), constant([32] * LANES)

    def parts(word):
        """Low and high half of a word, broadcast."""
        same = llvm.spread(builder, word)
        return builder.and_(same, low), builder.lshr(same, half)

    first = parts(block)
    c0, c1, c2, c3 = builder.add(first[0], constant(range(LANES))), first[1], *parts(counter)
    keys = list(parts(key))
    for _ in range(10):
        a = builder.mul(c0, constant([0xD2511F53] * LANES))
        b = builder.mul(c2, constant([0xCD9E8D57] * LANES))
        c0, c1, c2, c3 = (
            builder.xor(builder.xor(builder.lshr(b, half), c1), keys[0]),
            builder.and_(b, low),
            builder.xor(builder.xor(builder.lshr(a, half), c3), keys[1]),
            builder.and_(a, low),
        )
        keys = [
            builder.and_(builder.add(k, constant([step] * LANES)), low)
            for k, step in zip(keys, (0x9E3779B9, 0xBB67AE85))
        ]
    words = [builder.trunc(c, ir.VectorType(INT, LANES)) for c in (c0, c1, c2, c3)]
    pairs = [side_by_side(builder, *words[i : i + 2], 1) for i in (0, 2)]
    bits = side_by_side(builder, *pairs, 2)
    builder.store(bits, builder.inttoptr(target, bits.type.as_pointer()), align=4)


def side_by_side(builder, a, b, group: int):
    """Interleave lanes of a and b, `group` at a time."""
    count = a.type.count
    order = [i + j + other for i in range(0, count, group) for other in (0, count) for j in range(group)]
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(INT, 2 * count), order))


@emits(vector, types.int64, types.int64)
def not_below(builder, base, bound):
    """1 in lanes where the 16-bit number in memory is at least `bound`, else 0."""
    numbers = builder.load(builder.inttoptr(base, HALVES.as_pointer()), align=2)
    few = builder.zext(numbers, ir.VectorType(INT, LANES))
    bounds = llvm.spread(builder, builder.trunc(bound, INT))
    return builder.select(builder.icmp_unsigned(">=", few, bounds), llvm.filled(1), llvm.filled(0))


@instruction
def dropout_elements(chunk, scratch, x, state, offset, start, y, mask, size, bound, factor: float):
    """Drop elements of x at random: mask = 0 or factor, y = x * mask.

    state: int64 (2,): the key and the counter, to which `offset` is added.  start: the first block of 8 draws.
    bound: random 16-bit integers below it drop an element.  scratch: DRAWN 16-bit integers.
    """
    key, counter = word_at(state, 0), word_at(state, 1) + offset
    factor, zero = filled(np.float32(factor)), filled(np.float32(0))
    for first in range(chunk * CHUNK, min((chunk + 1) * CHUNK, size), DRAWN):
        draw(scratch, start + first // 8, key, counter)
        for i in range(first, min(first + DRAWN, size), LANES):
            some = min(LANES, size - i)
            keep = not_below(scratch + 2 * (i - first), bound) * factor
            store_some(mask + BYTES * i, some, keep)
            store_some(y + BYTES * i, some, load_some(x + BYTES * i, some, zero) * keep)


def dropout(
    arrays: Sequence, outs: Sequence, workspace: Workspace, p: float, offset: int, part: Part | None = None
) -> list[Task] | None:
    x, counter = arrays
    start, size, _ = span_of(x.shape, part) if part is not None and x.size else (0, x.size, ())
    if size != x.size or start % 8:  # a part that is not contiguous, or begins within a block
        return None
    if not flat(x, *outs) or not isinstance(counter, np.ndarray) or counter.dtype != np.int64:
        return None
    if counter.shape != (2,) or not counter.flags.c_contiguous or not 0 <= offset < 1 << 62:
        return None
    return [
        dropout_elements(
            -(-x.size // CHUNK),
            x,
            counter,
            offset,
            start // 8,
            *outs,
            x.size,
            round(p * 2**16),
            float(1 / (1 - p) if p < 1 else 0),
            scratch=DRAWN // 2,
        )
    ]


lowers(OPS["dropout"], dropout, tolerance=0)
