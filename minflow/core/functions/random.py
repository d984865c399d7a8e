"""Random tensors: each call takes the next counter of its Generator (by default the global one)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..base.errors import OutOfRangeError
from ..base.placement import broadcast
from ..mode import MODE
from ..ops import complex as c, random as r
from ..ops.elementwise import log1p
from ..ops.global_tensors import share
from ..ops.shape import filled
from ..random import Generator, generator_or_default
from ..source_location import fail
from ..spec import DType, float32
from .arguments import cast_number, integer, is_tensor, to
from .fill import placed_like

if TYPE_CHECKING:
    from ..tensor import Tensor


def draw(generator: Generator | None, input: Tensor | None = None) -> Any:
    """The tensor of key and counter, and the attr that every random op takes.

    input: that of the op. If it is a global tensor, all ranks take the key and counter of the first one.
    """
    counter, offset = MODE.get().draw(generator_or_default(generator))
    if input is not None and (placement := input.spec.placement) is not None:
        counter = share(counter, target=(placement, (broadcast,) * len(placement.hierarchy)))
    return counter, {"offset": offset}


def uniform(
    shape: tuple[int, ...], low: float, high: float, dtype: DType, generator: Generator | None = None
) -> Tensor:
    """Uniform random values in [low, high)."""
    low, high = float(low), float(high)
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        what = f"uniform: low and high must be finite and in order, got [{low}, {high})"
        fail(OutOfRangeError, what, "two finite numbers, the lower one first")
    counter, attrs = draw(generator)
    return r.uniform(counter, shape=tuple(shape), low=low, high=high, dtype=dtype, **attrs)


def normal_of(
    shape: tuple[int, ...], mean: float, std: float, dtype: DType, generator: Generator | None = None
) -> Tensor:
    """Normal random values."""
    if not std >= 0:
        fail(OutOfRangeError, f"normal: the standard deviation must be at least 0, got {std}", "std=1.0")
    if dtype.is_complex:  # std is that of the whole number: each part has half of the variance
        parts = [normal_of(shape, 0.0, std / math.sqrt(2), dtype.to_real(), generator) for _ in range(2)]
        return c.complex(*parts) + mean
    counter, attrs = draw(generator)
    return r.normal(counter, shape=tuple(shape), mean=float(mean), std=float(std), dtype=dtype, **attrs)


def randint_of(shape: tuple[int, ...], low: int, high: int, dtype: DType, generator: Generator | None = None) -> Tensor:
    """Random integers in [low, high)."""
    low, high = integer(low, "low"), integer(high, "high")
    for number in (low, high - 1) if low < high else ():
        cast_number("randint", number, dtype, low=low, high=high)
    counter, attrs = draw(generator)
    return r.randint(counter, shape=tuple(shape), low=low, high=high, dtype=dtype, **attrs)


def randperm_of(n: int, dtype: DType, generator: Generator | None = None) -> Tensor:
    """0 to n - 1 in random order."""
    counter, attrs = draw(generator)
    return r.randperm(counter, n=int(n), dtype=dtype, **attrs)


def bernoulli(input: Tensor, *, generator: Generator | None = None) -> Tensor:
    """1 with the probability that the element of `input` gives, else 0."""
    counter, attrs = draw(generator, input)
    return r.bernoulli(input, counter, **attrs)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, *, generator: Generator | None = None) -> Tensor:
    """0 with probability p, else input / (1 - p); input itself unless training.

    Source: Srivastava et al. 2014, "Dropout: a simple way to prevent neural networks from overfitting".
    """
    if not training or p == 0:
        return input
    counter, attrs = draw(generator, input)
    return r.dropout(input, counter, p=float(p), **attrs)[0]


# ---- values for in-place methods ---------------------------------------------------------------------------------


def uniform_like(input: Tensor, low: float = 0.0, high: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    return placed_like(uniform(input.spec.shape, low, high, input.spec.dtype, generator), input)


def exponential_like(input: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    if not lambd > 0:
        fail(OutOfRangeError, f"exponential: lambd must be above 0, got {lambd}", "lambd=1.0")
    return log1p(-uniform_like(input, generator=generator)) / -lambd


def normal_like(input: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    return placed_like(normal_of(input.spec.shape, mean, std, input.spec.dtype, generator), input)


def randint_like(input: Tensor, low: Any, high: int, *, generator: Generator | None = None) -> Tensor:
    return placed_like(randint_of(input.spec.shape, low, high, input.spec.dtype, generator), input)


def bernoulli_like(input: Tensor, p: Tensor | float = 0.5, *, generator: Generator | None = None) -> Tensor:
    """p: a number, or a tensor of probabilities."""
    if is_tensor(p):
        return to(bernoulli(p, generator=generator), input.spec.dtype)
    if not 0 <= p <= 1:
        fail(OutOfRangeError, f"bernoulli: p must be from 0 to 1, got {p}", "p=0.5")
    dtype = input.spec.dtype
    chance = filled(input.spec.replace(dtype=dtype if dtype.floating else float32), p)
    return to(bernoulli(chance, generator=generator), dtype)
