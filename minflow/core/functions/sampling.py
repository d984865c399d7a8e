"""Random values of distributions that tensors parametrize, and values for in-place methods. See also `random.py`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..base.errors import DTypeError, OutOfRangeError
from ..ops import elementwise as e, sampling as d
from ..ops.shape import detach
from ..random import Generator
from ..source_location import fail
from ..spec import float32, float64
from .arguments import integer, to
from .fill import finish, place_like
from .random import draw, normal_like, uniform

if TYPE_CHECKING:
    from ..tensor import Tensor


def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """`int64 (..., num_samples)`: indices drawn with the probabilities in a vector, or in each row of a matrix.

    Rows need not sum to 1. replacement: an index may be drawn more than once.
    Source: without replacement the smallest of exponential times, Efraimidis & Spirakis 2006.
    """
    counter, attrs = draw(generator, input.spec.placement)
    return d.multinomial(
        input, counter, num_samples=integer(num_samples, "num_samples"), replacement=bool(replacement), **attrs
    )


def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Poisson counts with the rates in input, in its dtype: the inverse cdf of a uniform value."""
    counter, attrs = draw(generator, input.spec.placement)
    return d.poisson(detach(input), counter, **attrs)


def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """The number of successes in `count` trials with probability `prob` each; the two broadcast."""
    for name, x in (("count", count), ("prob", prob)):
        if not x.spec.dtype.floating:
            what = f"binomial: {name} must be floating, got {x.spec.dtype.name}"
            fail(DTypeError, what, f"{name}.float()", **{name: x})
    if count.spec.dtype is not prob.spec.dtype:
        what = f"binomial: count is {count.spec.dtype.name}, prob is {prob.spec.dtype.name}"
        fail(DTypeError, what, f"prob.to({count.spec.dtype})", count=count, prob=prob)
    counter, attrs = draw(generator, count.spec.placement)
    return d.binomial(detach(count), detach(prob), counter, **attrs)


# ---- values for in-place methods ---------------------------------------------------------------------------------


def unit_like(input: Tensor, generator: Generator | None) -> Tensor:
    """Uniform values in (0, 1]."""
    dtype = float64 if input.spec.dtype is float64 else float32
    place = place_like(input, None)
    return e.sub(1, finish(uniform(input.spec.shape, 0.0, 1.0, dtype, generator, place), place, False))


def geometric_like(input: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """The number of trials up to the first success, each with probability p."""
    if not 0 < p < 1:
        fail(OutOfRangeError, f"geometric_: p must be between 0 and 1, got {p}", "p=0.5", x=input)
    return to(e.maximum(e.ceil(e.log(unit_like(input, generator)) / math.log1p(-p)), 1), input.spec.dtype)


def cauchy_like(
    input: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Values of the Cauchy distribution: median + sigma * tan(pi * (u - 1/2))."""
    floating("cauchy_", input)
    if not sigma > 0:
        fail(OutOfRangeError, f"cauchy_: sigma must be above 0, got {sigma}", "sigma=1.0", x=input)
    return to(e.tan((unit_like(input, generator) - 0.5) * math.pi) * sigma + median, input.spec.dtype)


def log_normal_like(
    input: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None
) -> Tensor:
    """Values whose logarithm is normal with this mean and standard deviation."""
    if not std > 0:
        fail(OutOfRangeError, f"log_normal_: std must be above 0, got {std}", "std=2.0", x=input)
    if not input.spec.size:
        return input
    floating("log_normal_", input)
    return e.exp(normal_like(input, mean, std, generator=generator))


def floating(name: str, x: Tensor) -> None:
    if not x.spec.dtype.floating:
        fail(DTypeError, f"{name}: the tensor must be floating, got {x.spec.dtype.name}", "x.float()", x=x)
