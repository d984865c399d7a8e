"""Uniform and normal float32 from the random bits of `core/random.py`, bit for bit as the reference kernels.

NumPy computes normal values in float64, and rounds them. So does this kernel, with other functions: where the error of
both might change a rounded value, a chunk is drawn again by the reference kernel. That is one chunk of some hundred.
Sources: Muller, Elementary Functions, 3rd edition, chapter 11; Ziv 1991, "Fast evaluation of elementary mathematical
functions with correctly rounded last bit". Read next: `dropout.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ....core.kernels import kernel
from ....core.op import OPS
from ....core.ops.random import Part, normal_floats, span_of
from ....core.spec import DType, cpu, float32
from ..codegen.jit import emits, ir, types
from ..codegen.llvm import INT, LANES, WORD, called, multiply_add
from ..codegen.vectors import BYTES, VECTOR, WIDE_VECTOR, filled, store_some, vector, wide
from ..config import COMPILED
from ..lowering import lowers
from ..runtime.instructions import instruction, word_at
from ..runtime.tasks import PreparedTasks, Task, Workspace
from .dropout import WORDS, constant, draw
from .elementwise import flat
from .elementwise_loops import put_word

DRAWN = 4 * LANES  # words in 16 blocks of four
CHUNK = 64 * DRAWN  # elements of a chunk
FRACTION, ROOT_HALF = 52, int(np.float64(math.sqrt(0.5)).view("i8"))
ROUNDER = 1.5 * 2.0**FRACTION  # adding it rounds to an integer
ERROR = 4e-15  # bound of the difference between both kernels' normal values, relative to their radius and mean
# (log(1 + f) - 2 s) / s**3 for s = f / (2 + f);  sin(2 pi t) / t: Taylor series in the square
LOG = [2 / (2 * k + 3) for k in range(10)]
SINE = [(-1) ** k * math.tau ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(11)]


def double(number: float) -> ir.Constant:
    return ir.Constant(WIDE_VECTOR, [number] * LANES)


def polynomial(builder, factors: list[float], x):
    total = double(factors[-1])
    for factor in reversed(factors[:-1]):
        total = multiply_add(builder, total, x, double(factor))
    return total


def every_second(builder, base, first: int):
    """The first or second word of 16 pairs in memory, as (word + 1/2) / 2**32."""
    kind = ir.VectorType(INT, 2 * LANES)
    words = builder.load(builder.inttoptr(base, kind.as_pointer()), align=4)
    places = ir.Constant(ir.VectorType(INT, LANES), [*range(first, 2 * LANES, 2)])
    numbers = builder.uitofp(builder.shuffle_vector(words, words, places), WIDE_VECTOR)
    return builder.fmul(builder.fadd(numbers, double(0.5)), double(2.0**-32))


@emits(wide, types.int64)
def radius(builder, base):
    """sqrt(-2 log(u)) for the first u of 16 pairs of words: log(u) = log(m) + n log(2), 1/2 <= m * m < 2."""
    u = every_second(builder, base, 0)
    bits = builder.sub(builder.bitcast(u, WORDS), constant([ROOT_HALF] * LANES))
    n = builder.sitofp(builder.ashr(bits, constant([FRACTION] * LANES)), WIDE_VECTOR)
    m = builder.add(builder.and_(bits, constant([(1 << FRACTION) - 1] * LANES)), constant([ROOT_HALF] * LANES))
    f = builder.fsub(builder.bitcast(m, WIDE_VECTOR), double(1))
    s = builder.fdiv(f, builder.fadd(f, double(2)))
    square = builder.fmul(s, s)
    tail = builder.fmul(builder.fmul(s, square), polynomial(builder, LOG, square))
    value = multiply_add(builder, n, double(math.log(2)), multiply_add(builder, s, double(2), tail))
    return called(builder, f"llvm.sqrt.v{LANES}f64", WIDE_VECTOR, builder.fmul(value, double(-2)))


def sine(builder, turns):
    """sin(2 pi x), by the distance of x from the nearest half turn, which is exact."""
    added = multiply_add(builder, turns, double(2), double(ROUNDER))
    odd = builder.shl(builder.bitcast(added, WORDS), constant([63] * LANES))
    t = multiply_add(builder, builder.fsub(added, double(ROUNDER)), double(-0.5), turns)
    t_signed = builder.bitcast(builder.xor(builder.bitcast(t, WORDS), odd), WIDE_VECTOR)
    return builder.fmul(t_signed, polynomial(builder, SINE, builder.fmul(t, t)))


@emits(wide, types.int64)
def cosines(builder, base):
    """cos(2 pi u) for the second u of 16 pairs of words."""
    return sine(builder, builder.fadd(every_second(builder, base, 1), double(0.25)))


@emits(wide, types.int64)
def sines(builder, base):
    """sin(2 pi u) for the second u of 16 pairs of words."""
    return sine(builder, every_second(builder, base, 1))


@emits(types.int64, wide, wide)
def ambiguous(builder, y, error):
    """1 if an element of y might round to another float32, were it computed with this error; else 0."""
    low, high = [builder.fptrunc(change(y, error), VECTOR) for change in (builder.fsub, builder.fadd)]
    lanes = builder.bitcast(builder.fcmp_unordered("!=", low, high), ir.IntType(LANES))
    return builder.zext(builder.icmp_unsigned("!=", lanes, ir.Constant(lanes.type, 0)), WORD)


def interleaved(half: int):
    """Emit the 16 float32 of the first or second eight pairs of lanes of x and y."""

    @emits(vector, wide, wide)
    def code(builder, x, y):
        order = [lane + other for lane in range(half * LANES // 2, (half + 1) * LANES // 2) for other in (0, LANES)]
        mixed = builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(INT, LANES), order))
        return builder.fptrunc(mixed, VECTOR)

    return code


first_pairs, last_pairs = interleaved(0), interleaved(1)


@emits(vector, types.int64)
def unit_floats(builder, base):
    """The upper 24 bits of 16 words in memory, as float32 in [0, 1)."""
    kind = ir.VectorType(INT, LANES)
    words = builder.load(builder.inttoptr(base, kind.as_pointer()), align=4)
    numbers = builder.uitofp(builder.lshr(words, ir.Constant(kind, [8] * LANES)), VECTOR)
    return builder.fmul(numbers, ir.Constant(VECTOR, [2.0**-24] * LANES))


@emits(vector, vector, vector)
def lower_of(builder, x, bound):
    return builder.select(builder.fcmp_ordered("<", bound, x), bound, x)


@instruction
def uniform_elements(chunk, scratch, state, offset, block, out, size, width: float, low: float, last: float):
    """Draw elements of low + width * u, at most `last`, for u in [0, 1).

    state: int64 (2,): the key and the counter, to which `offset` is added.  block: the first block of 4 words.
    scratch: DRAWN words.
    """
    key, counter = word_at(state, 0), word_at(state, 1) + offset
    wide_, low_, last_ = filled(np.float32(width)), filled(np.float32(low)), filled(np.float32(last))
    for first in range(chunk * CHUNK, min((chunk + 1) * CHUNK, size), DRAWN):
        draw(scratch, block + first // 4, key, counter)
        for i in range(first, min(first + DRAWN, size), LANES):
            u = unit_floats(scratch + BYTES * (i - first))
            store_some(out + BYTES * i, min(LANES, size - i), lower_of(u * wide_ + low_, last_))


@instruction
def normal_elements(chunk, scratch, state, offset, block, out, size, mean: float, std: float, error: float, refused):
    """Draw normal elements by the Box-Muller transform, as `normal_floats`; see `uniform_elements`.

    error: bound of the error of both kernels, relative to the radius.  refused: int64 (chunks,), 1 where it matters.
    """
    key, counter, doubt = word_at(state, 0), word_at(state, 1) + offset, 0
    mean_, std_, error_, least = filled(mean), filled(std), filled(error * std), filled(error * abs(mean))
    for first in range(chunk * CHUNK, min((chunk + 1) * CHUNK, size), DRAWN):
        draw(scratch, block + first // 4, key, counter)
        for i in range(first, min(first + DRAWN, size), 2 * LANES):
            pairs = scratch + BYTES * (i - first)
            r = radius(pairs)
            x, y, e = r * cosines(pairs) * std_ + mean_, r * sines(pairs) * std_ + mean_, r * error_ + least
            doubt |= ambiguous(x, e) | ambiguous(y, e)
            store_some(out + BYTES * i, min(LANES, size - i), first_pairs(x, y))
            store_some(out + BYTES * (i + LANES), min(LANES, size - i - LANES), last_pairs(x, y))
    put_word(refused, chunk, doubt)


def drawn_in_order(counter, offset: int, out, dtype: DType, part: Part | None) -> int | None:
    """The first block of words that the elements take; None if the kernels do not support the arrays."""
    start, size, _ = span_of(out.shape, part) if part is not None and out.size else (0, out.size, ())
    if size != out.size or start % 4 or dtype is not float32 or not flat(out):
        return None
    if not isinstance(counter, np.ndarray) or counter.dtype != np.int64 or not counter.flags.c_contiguous:
        return None
    return start // 4 if 0 <= offset < 1 << 62 else None


def uniform(
    arrays: Sequence, outs: Sequence, workspace: Workspace, shape, low, high, dtype, offset, device=cpu, part=None
) -> list[Task] | None:
    (counter,), (out,) = arrays, outs
    block = drawn_in_order(counter, offset, out, dtype, part)
    if block is None:
        return None
    last = np.nextafter(np.float32(high), np.float32(low)) if high > low and (low, high) != (0, 1) else math.inf
    law = float(np.float32(high - low)), low, float(last)
    return [uniform_elements(-(-out.size // CHUNK), counter, offset, block, out, out.size, *law, scratch=DRAWN)]


lowers(OPS["uniform"], uniform, tolerance=0)


@kernel(OPS["normal"], platform=COMPILED, declines=True)
def _(xp, counter, shape, mean, std, dtype, offset, device=cpu, part=None, out=None):
    out = np.empty(shape, dtype.np) if out is None else out
    block = drawn_in_order(counter, offset, out, dtype, part)
    if block is None:
        return NotImplemented
    refused = np.zeros(-(-out.size // CHUNK), np.int64)
    law = mean, std, ERROR
    task = normal_elements(len(refused), counter, offset, block, out, out.size, *law, refused, scratch=DRAWN)
    PreparedTasks(lambda workspace: [task])()
    elements = out.reshape(-1)
    for first in (np.flatnonzero(refused) * CHUNK).tolist():
        again = elements[first : first + CHUNK]
        again[...] = normal_floats(xp, counter, offset, len(again), dtype, 4 * block + first) * std + mean
    return out
