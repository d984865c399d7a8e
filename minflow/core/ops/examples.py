"""Example inputs of ops, for tests and for learners to try.

An example is a `Case`: makers of arrays (or numbers), and attrs. Each maker draws from its own seeded generator, so a
case gives the same arrays each time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ..backend import namespace
from ..base.dtypes import as_dtype
from ..host import HostArray


class Maker(NamedTuple):  # a NamedTuple, because 1,800 are created at import: five times faster than a frozen dataclass
    """Makes one array. kind: "float", "int" or "bool".  layout: a function that returns a view of the array."""

    shape: tuple[int, ...]
    low: float = -2.0
    high: float = 2.0
    dtype: str = "float64"
    layout: Callable | None = None
    distinct: bool = False

    def make(self, seed: int) -> HostArray:
        xp = namespace()
        rng = xp.random.default_rng(seed)
        if self.distinct:  # far enough apart that a step of a numeric gradient does not change their order
            array = rng.permutation(xp.linspace(self.low, self.high, math.prod(self.shape))).reshape(self.shape)
        elif self.dtype == "bool":
            array = rng.random(self.shape) < 0.5
        elif as_dtype(self.dtype).rank == 1:
            array = rng.integers(int(self.low), int(self.high), self.shape)
        else:
            array = rng.uniform(self.low, self.high, self.shape)
            array = xp.where(abs(array) < 0.05, 0.05 + array, array)  # kinks at 0 have no numeric gradient
        array = xp.asarray(array, as_dtype(self.dtype).np)
        return self.layout(array) if self.layout else array

    @property
    def floating(self) -> bool:
        return as_dtype(self.dtype).floating

    def __call__(self, **changes: Any) -> Maker:
        return self._replace(**changes)


class Case:
    """One call of an op: makers or numbers for its inputs, and its attrs."""

    def __init__(self, inputs: tuple[Any, ...], attrs: dict[str, Any] | None = None):
        self.inputs, self.attrs = inputs, attrs or {}

    def arrays(self) -> list:
        return [x.make(17 + i) if isinstance(x, Maker) else x for i, x in enumerate(self.inputs)]


def floats(*shape: Any, low: float = -2.0, high: float = 2.0, dtype: str = "float64") -> Maker:
    """Uniform floats; `floats(3, 4)`, or `floats(())` for a 0-d array."""
    return Maker(() if shape == ((),) else shape, low, high, dtype)


def positive(*shape: Any, low: float = 0.2, high: float = 3.0) -> Maker:
    """Floats well above zero."""
    return floats(*shape, low=low, high=high)


def distinct(*shape: Any) -> Maker:
    """Floats that are far apart, for ops that depend on the order (max, sort, pooling)."""
    return Maker(shape, distinct=True)


def ints(*shape: Any, low: int = 0, high: int = 5, dtype: str = "int64") -> Maker:
    """Integers in [low, high)."""
    return Maker(() if shape == ((),) else shape, low, high, dtype)


def bools(*shape: Any) -> Maker:
    return Maker(() if shape == ((),) else shape, dtype="bool")


def strided(*shape: int, **options: Any) -> Maker:
    """A non-contiguous array of this shape: every other column of a transposed array."""
    *outer, last = shape
    return Maker((2 * last, *outer), layout=lambda a: a.transpose(*range(1, a.ndim), 0)[..., ::2], **options)


def case(*inputs: Maker | float, **attrs: Any) -> Case:
    """A call with several inputs or with attrs."""
    return Case(inputs, attrs)


def cases(op) -> list[Case]:
    """The examples of an op; a bare maker is a call with that one input."""
    return [x if isinstance(x, Case) else Case((x,)) for x in op.examples]


def unary(**options: Any) -> list:
    """Examples for an elementwise op of one float input: plain, 0-d, 0-size, strided, float32, integer."""
    low, high = options.get("low", -2.0), options.get("high", 2.0)
    return [
        floats(3, 4, **options),
        floats((), **options),
        floats(0, 3, **options),
        strided(4, 5, low=low, high=high),
        floats(5, dtype="float32", **options),
        ints(4, low=max(0, int(low)), high=max(3, int(high))),
    ]


def binary(**options: Any) -> list:
    """Examples for an elementwise op of two inputs: equal shapes, broadcasting both ways, 0-d, literals, mixed
    dtypes.
    """
    low, high = options.get("low", -2.0), options.get("high", 2.0)
    number = (low + high) / 2 or 1.5
    return [
        case(floats(3, 4, **options), floats(3, 4, **options)),
        case(floats(3, 4, **options), floats(4, **options)),
        case(floats(3, 1, **options), floats(2, 1, 4, **options)),
        case(floats((), **options), floats(3, **options)),
        case(floats(0, 3, **options), floats(3, **options)),
        case(strided(4, 5, low=low, high=high), floats(5, **options)),
        case(floats(3, **options), number),
        case(number, floats(3, **options)),
        case(floats(3, dtype="float32", **options), ints(3, low=1)),
        case(ints(3, low=1), ints(3, low=1)),
    ]
