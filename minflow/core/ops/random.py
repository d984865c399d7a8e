"""Random tensors from counter-based bits: element i of a tensor depends only on (key, counter, i).

So any part of a tensor can be drawn alone, with the same bits. `counter` is an int64[2] tensor, the Generator's key
and counter: a trace reads it as a state at each call, so a new seed needs no new graph; `offset` distinguishes the
random ops of one call. Each function documents how bits become values.
Read next: `core/random.py`; `functions/random.py`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from ..base.errors import DTypeError, OutOfRangeError
from ..kernels import LARGE_CALLS, kernel
from ..op import define
from ..random import bits
from ..sharding import Labels
from ..spec import LARGE, DType, Spec, bfloat16, cpu, float16, float32, float64, int64
from .checks import check_unit
from .examples import case, floats, ints
from .rules import need_floating, need_spec

Part = tuple[tuple[int, ...], tuple[int, ...]]  # the shape of a global tensor, and the first index of a rank's part
COUNTER_EXAMPLE = ints(2, high=100)
SOME = 1 << 8  # elements for which a call of a faster kernel pays, if those are loaded


def words(xp, counter, offset: int, size: int, start: int = 0):
    """`uint32[size]` for the elements that begin at `start`."""
    key, first = counter.tolist()
    return bits(xp, key % 2**64, (first + offset) % 2**64, size, start)


def uniform_floats(xp, counter, offset: int, size: int, dtype: DType, start: int = 0):
    """Uniform values in [0, 1) from 24 bits of a word (float16: 11), or for float64 53 bits of two words."""
    if dtype is float64:
        pair = words(xp, counter, offset, 2 * size, 2 * start).reshape(-1, 2).astype("uint64")
        return ((pair[:, 0] << xp.uint64(21)) | (pair[:, 1] >> xp.uint64(11))) * 2.0**-53
    unused = {float16: 21, bfloat16: 24}.get(dtype, 8)  # bits that could make a value round up to 1 in the dtype
    return (words(xp, counter, offset, size, start) >> xp.uint32(unused)).astype("float32") * xp.float32(
        2.0 ** (unused - 32)
    )


def normal_floats(xp, counter, offset: int, size: int, dtype: DType, start: int = 0):
    """Standard normal values in float64 by the Box-Muller transform: elements 2j and 2j+1 are the cosine and sine of
    one pair.

    Float64 tensors use 53 bits per uniform value, others 32 (their tails end at 6.7).
    Source: Box & Muller 1958, "A note on the generation of random normal deviates".
    """
    first, last = start // 2, (start + size + 1) // 2
    if dtype is float64:
        u = uniform_floats(xp, counter, offset, 2 * (last - first), float64, 2 * first) + 2.0**-54
    else:
        u = (words(xp, counter, offset, 2 * (last - first), 2 * first) + 0.5) * 2.0**-32
    u = u.reshape(-1, 2)
    radius, angle = xp.sqrt(-2.0 * xp.log(u[:, 0])), u[:, 1] * (2 * math.pi)
    pairs = xp.empty(u.shape, "float64")
    xp.multiply(radius, xp.cos(angle), out=pairs[:, 0])
    xp.multiply(radius, xp.sin(angle), out=pairs[:, 1])
    return pairs.reshape(-1)[start % 2 : start % 2 + size]


def of_elements(xp, draw: Callable, shape, part: Part | None):
    """Draw the elements of a tensor of this shape, or of a part of a larger one, by `draw(size, start)`."""
    if part is None or not math.prod(shape):
        return draw(math.prod(shape), 0).reshape(shape)
    start, size, steps = span_of(shape, part)
    drawn = draw(size, start)
    if size == math.prod(shape):
        return drawn.reshape(shape)
    places = xp.zeros((1,) * len(shape), "int64")
    for axis, (n, step) in enumerate(zip(shape, steps)):
        places = places + xp.arange(0, n * step, step).reshape([-1 if d == axis else 1 for d in range(len(shape))])
    return drawn[places]


def span_of(shape: tuple[int, ...], part: Part) -> tuple[int, int, list[int]]:
    """(first element, number of elements up to the last one, strides) of a part of this shape, in the whole tensor."""
    whole, first = part
    steps = [math.prod(whole[axis + 1 :]) for axis in range(len(whole))]
    return sum(map(operator.mul, first, steps)), sum([(n - 1) * step for n, step in zip(shape, steps)]) + 1, steps


def as_result(xp, numbers, shape, dtype: DType, out):
    """Return `numbers` as the result, in its shape and dtype, and in `out` if that is given."""
    out = xp.empty(shape, dtype.np) if out is None else out
    xp.copyto(out, numbers.reshape(shape), casting="unsafe")
    return out


def drawn_labels(x: Spec, results: int = 1) -> list[Labels]:
    """Labels of a tensor, of key and counter, and of results, whose elements are drawn one by one."""
    axes = tuple(range(x.ndim))
    return [axes, (None,), *[axes] * results]


def need_counter(op: str, counter) -> None:
    need_spec(op, Spec((2,), int64), counter=counter)


def draws(least: int) -> Callable:
    """`slow_on_numpy` of ops whose kernels agree bit for bit, so that the choice may depend on what is loaded.

    least: elements for which loading faster kernels pays.
    """
    return lambda inputs, outputs: outputs[0].size >= (SOME if LARGE_CALLS else least)


def random_spec(op: str):
    def infer(counter, shape, dtype, device=cpu, **_) -> Spec:
        need_counter(op, counter)
        if not dtype.floating:
            raise DTypeError(f"{op}: the dtype must be floating, got {dtype.name}", hint="flow.randint for integers")
        return Spec(shape, dtype, device)

    return infer


uniform = define(
    "uniform(counter; shape, low, high, dtype, offset, device)",
    random_spec("uniform"),
    host_inputs=("counter",),
    examples=[
        case(COUNTER_EXAMPLE, shape=(3, 5), low=0.0, high=1.0, dtype=float32, offset=0),
        case(COUNTER_EXAMPLE, shape=(), low=-2.0, high=3.0, dtype=float64, offset=1),
    ],
    doc="Uniform random values in [low, high).",
    slow_on_numpy=draws(1 << 18),
)


@kernel(uniform)
def _(xp, counter, shape, low, high, dtype, offset, device=cpu, part=None, out=None):
    u = of_elements(xp, lambda size, start: uniform_floats(xp, counter, offset, size, dtype, start), shape, part)
    if (low, high) != (0, 1):
        u = u * u.dtype.type(high - low) + u.dtype.type(low)
        last = xp.nextafter(dtype.np.type(high), dtype.np.type(low))  # rounding may have produced `high`
        u = xp.minimum(u, last.astype(u.dtype)) if high > low else u
    return as_result(xp, u, shape, dtype, out)


normal = define(
    "normal(counter; shape, mean, std, dtype, offset, device)",
    random_spec("normal"),
    host_inputs=("counter",),
    examples=[
        case(COUNTER_EXAMPLE, shape=(3, 5), mean=0.0, std=1.0, dtype=float32, offset=0),
        case(COUNTER_EXAMPLE, shape=(), mean=-2.0, std=3.0, dtype=float64, offset=1),
    ],
    doc="Normally distributed random values.",
    slow_on_numpy=draws(1 << 18),
)


@kernel(normal)
def _(xp, counter, shape, mean, std, dtype, offset, device=cpu, part=None, out=None):
    z = of_elements(xp, lambda size, start: normal_floats(xp, counter, offset, size, dtype, start), shape, part)
    return as_result(xp, z * std + mean, shape, dtype, out)


def randint_spec(counter, shape, low, high, dtype, device=cpu, **_) -> Spec:
    need_counter("randint", counter)
    if low >= high:
        raise OutOfRangeError(f"randint: there is no integer in [{low}, {high})", hint="the second number is excluded")
    if high - low > 2**32:
        raise OutOfRangeError(f"randint: the range [{low}, {high}) is wider than 2**32", hint="two draws of 32 bits")
    return Spec(shape, dtype, device)


randint = define(
    "randint(counter; shape, low, high, dtype, offset, device)",
    randint_spec,
    attr_kinds={"low": "integer", "high": "integer"},
    host_inputs=("counter",),
    examples=[
        case(COUNTER_EXAMPLE, shape=(3, 5), low=0, high=10, dtype=int64, offset=0),
        case(COUNTER_EXAMPLE, shape=(4,), low=-3, high=3, dtype=float32, offset=2),
    ],
    doc="Integers in [low, high): the high half of a 32-bit word times the width (Lemire 2019).",
)


@kernel(randint)
def _(xp, counter, shape, low, high, dtype, offset, device=cpu, part=None, out=None):
    drawn = of_elements(xp, lambda size, start: words(xp, counter, offset, size, start), shape, part)
    wide = drawn.astype("uint64") * xp.uint64(high - low)
    return as_result(xp, (wide >> xp.uint64(32)).astype("int64") + low, shape, dtype, out)


def randperm_spec(counter, n: int, dtype: DType, offset: int) -> Spec:
    need_counter("randperm", counter)
    return Spec((n,), dtype)


randperm = define(
    "randperm(counter; n, dtype, offset)",
    randperm_spec,
    host_inputs=("counter",),
    examples=[case(COUNTER_EXAMPLE, n=10, dtype=int64, offset=0), case(COUNTER_EXAMPLE, n=0, dtype=int64, offset=0)],
    doc="0 to n - 1 in the order of n random words of 64 bits.",
)


@kernel(randperm)
def _(xp, counter, n, dtype, offset, out=None):
    pair = words(xp, counter, offset, 2 * n).reshape(-1, 2).astype("uint64")
    return as_result(xp, xp.argsort((pair[:, 0] << xp.uint64(32)) | pair[:, 1], kind="stable"), (n,), dtype, out)


def bernoulli_spec(p: Spec, counter, **_) -> Spec:
    need_floating("bernoulli", p, "p")
    need_counter("bernoulli", counter)
    return p


bernoulli = define(
    "bernoulli(p, counter; offset)",
    bernoulli_spec,
    host_inputs=("counter",),
    sharding=lambda p, counter, **_: drawn_labels(p),
    local_attrs="part",
    examples=[
        case(floats(3, 4, low=0.1, high=0.9), COUNTER_EXAMPLE, offset=0),
        case(floats((), low=0.1, high=0.9), COUNTER_EXAMPLE, offset=1),
    ],
    doc="1 with probability p, else 0: a 32-bit word below p * 2**32.",
)


@kernel(bernoulli)
def _(xp, p, counter, offset, part=None, out=None):
    check_unit(xp, "bernoulli", "p", p, "p.sigmoid()")
    drawn = of_elements(xp, lambda size, start: words(xp, counter, offset, size, start), p.shape, part)
    hit = drawn < p.astype("float64") * 2.0**32
    return hit.astype(p.dtype) if out is None else as_result(xp, hit, p.shape, None, out)


def dropout_spec(x: Spec, counter, p: float, **_):
    need_floating("dropout", x)
    need_counter("dropout", counter)
    if not 0 <= p <= 1:
        raise OutOfRangeError(
            f"dropout: p must be in [0, 1], got {p}",
            hint="the fraction of elements to drop, such as 0.5",
        )
    return x, x


dropout = define(
    "dropout(x, counter; p, offset) -> y, mask",
    dropout_spec,
    dict(x=lambda g, out1: None if g[0] is None else g[0] * out1),  # the mask itself has no gradient
    flops=1,
    host_inputs=("counter",),
    sharding=lambda x, counter, **_: drawn_labels(x, results=2),
    local_attrs="part",
    examples=[
        case(floats(3, 5), COUNTER_EXAMPLE, p=0.5, offset=0),
        case(floats(()), COUNTER_EXAMPLE, p=0.25, offset=0),
        case(floats(4, dtype="float32"), COUNTER_EXAMPLE, p=1.0, offset=1),
        case(floats(0, 3), COUNTER_EXAMPLE, p=0.5, offset=0),
    ],
    doc="0 with probability p, else x / (1 - p): an element is dropped if 16 random bits are below p * 2**16.",
    slow_on_numpy=draws(LARGE),
)


@kernel(dropout)
def _(xp, x, counter, p, offset, part=None, out=None):
    y, mask = (xp.empty(x.shape, x.dtype), xp.empty(x.shape, x.dtype)) if out is None else out

    def halves(size: int, start: int):
        first, last = start // 2, (start + size + 1) // 2
        return words(xp, counter, offset, last - first, first).view("uint16")[start % 2 : start % 2 + size]

    keep = of_elements(xp, halves, x.shape, part) >= round(p * 2**16)
    xp.multiply(keep, x.dtype.type(1 / (1 - p) if p < 1 else 0), out=mask)
    xp.multiply(x, mask, out=y)
    return y, mask
