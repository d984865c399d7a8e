"""Random tensors: each call takes the next counter of its Generator (by default the global one)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..base.errors import OutOfRangeError
from ..base.placement import Placement, broadcast
from ..mode import MODE
from ..op import Op
from ..ops import complex as c, random as r
from ..ops.compare import lt
from ..ops.elementwise import log1p, where
from ..ops.global_tensors import share
from ..ops.shape import filled
from ..random import Generator, generator_or_default
from ..source_location import fail
from ..spec import DType, Spec, float32
from .arguments import cast_number, integer, is_tensor, to
from .fill import Place, Ranks, device_attr, finish, global_of, place_like

if TYPE_CHECKING:
    from ..tensor import Tensor


def draw(generator: Generator | None, placement: Placement | None = None) -> Any:
    """The tensor of key and counter, and the attr that every random op takes.

    placement: of a global result. All its ranks take the key and counter of the first one.
    """
    counter, offset = MODE.get().draw(generator_or_default(generator))
    if placement is not None:
        counter = share(counter, target=(placement, (broadcast,) * len(placement.hierarchy)))
    return counter, {"offset": offset}


def drawn(op: Op, shape: tuple[int, ...], dtype: DType, generator: Generator | None, place: Place, **law: Any) -> Any:
    """Random elements by an op without other inputs. place: that of the result; if it is global, a rank draws its part
    only.
    """
    if not isinstance(place, Ranks):
        counter, attrs = draw(generator)
        return op(counter, shape=tuple(shape), dtype=dtype, **law, **attrs, **device_attr(place))
    counter, attrs = draw(generator, place.placement)

    def part(index: tuple[slice, ...]) -> Any:
        sizes, starts = zip(*[(s.stop - s.start, s.start) for s in index]) if index else ((), ())
        return op(counter, shape=sizes, dtype=dtype, part=(tuple(shape), starts), **law, **attrs)

    return global_of(place, Spec(tuple(shape), dtype), part)


def uniform(
    shape: tuple[int, ...],
    low: float,
    high: float,
    dtype: DType,
    generator: Generator | None = None,
    place: Place = None,
) -> Tensor:
    """Uniform random values in [low, high), both parts of a complex number. place: see `drawn`."""
    if dtype.is_complex:
        return c.complex(*[uniform(shape, low, high, dtype.to_real(), generator, place) for _ in range(2)])
    low, high = float(low), float(high)
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        what = f"uniform: low and high must be finite and in order, got [{low}, {high})"
        fail(OutOfRangeError, what, "two finite numbers, the lower one first")
    return drawn(r.uniform, shape, dtype, generator, place, low=low, high=high)


def normal_of(
    shape: tuple[int, ...],
    mean: float,
    std: float,
    dtype: DType,
    generator: Generator | None = None,
    place: Place = None,
) -> Tensor:
    """Normal random values. place: see `drawn`."""
    if not std >= 0:
        fail(OutOfRangeError, f"normal: the standard deviation must be at least 0, got {std}", "std=1.0")
    if dtype.is_complex:  # std is that of the whole number: each part has half of the variance
        parts = [normal_of(shape, 0.0, std / math.sqrt(2), dtype.to_real(), generator, place) for _ in range(2)]
        return c.complex(*parts) + mean
    return drawn(r.normal, shape, dtype, generator, place, mean=float(mean), std=float(std))


def randint_of(
    shape: tuple[int, ...],
    low: int,
    high: int,
    dtype: DType,
    generator: Generator | None = None,
    place: Place = None,
) -> Tensor:
    """Random integers in [low, high). place: see `drawn`."""
    low, high = integer(low, "low"), integer(high, "high")
    for number in (low, high - 1) if low < high else ():
        cast_number("randint", number, dtype, low=low, high=high)
    return drawn(r.randint, shape, dtype, generator, place, low=low, high=high)


def randperm_of(n: int, dtype: DType, generator: Generator | None = None, place: Place = None) -> Tensor:
    """0 to n - 1 in random order, whole on each rank. place: that of the result."""
    counter, attrs = draw(generator, place.placement if isinstance(place, Ranks) else None)
    return r.randperm(counter, n=int(n), dtype=dtype, **attrs)


def bernoulli(input: Tensor, *, generator: Generator | None = None) -> Tensor:
    """1 with the probability that the element of `input` gives, else 0."""
    counter, attrs = draw(generator, input.spec.placement)
    return r.bernoulli(input, counter, **attrs)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, *, generator: Generator | None = None) -> Tensor:
    """0 with probability p, else input / (1 - p); input itself unless training. p: a number, or a 0-d tensor.

    Source: Srivastava et al. 2014, "Dropout: a simple way to prevent neural networks from overfitting".
    """
    if not training or (not is_tensor(p) and p == 0):
        return input
    if is_tensor(p):  # its element may be unknown, in a graph, so it cannot be a number of the kernel
        p = p.detach().to(input.spec.dtype)
        kept = bernoulli((1 - p).expand(input.spec.shape), generator=generator)
        return input * kept * where(lt(p, 1), 1 / (1 - p), 0.0)
    counter, attrs = draw(generator, input.spec.placement)
    return r.dropout(input, counter, p=float(p), **attrs)[0]


# ---- values for in-place methods ---------------------------------------------------------------------------------


def uniform_like(input: Tensor, low: float = 0.0, high: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    place = place_like(input, None)
    return finish(uniform(input.spec.shape, low, high, input.spec.dtype, generator, place), place, False)


def exponential_like(input: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    if not lambd > 0:
        fail(OutOfRangeError, f"exponential: lambd must be above 0, got {lambd}", "lambd=1.0")
    return log1p(-uniform_like(input, generator=generator)) / -lambd


def normal_like(input: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    place = place_like(input, None)
    return finish(normal_of(input.spec.shape, mean, std, input.spec.dtype, generator, place), place, False)


def randint_like(input: Tensor, low: Any, high: int, *, generator: Generator | None = None) -> Tensor:
    place = place_like(input, None)
    return finish(randint_of(input.spec.shape, low, high, input.spec.dtype, generator, place), place, False)


def bernoulli_like(input: Tensor, p: Tensor | float = 0.5, *, generator: Generator | None = None) -> Tensor:
    """p: a number, or a tensor of probabilities."""
    if is_tensor(p):
        return to(bernoulli(p, generator=generator), input.spec.dtype)
    if not 0 <= p <= 1:
        fail(OutOfRangeError, f"bernoulli: p must be from 0 to 1, got {p}", "p=0.5")
    dtype = input.spec.dtype
    chance = filled(input.spec.replace(dtype=dtype if dtype.floating else float32), p)
    return to(bernoulli(chance, generator=generator), dtype)
