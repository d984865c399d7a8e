"""Ints, floats and constants that depend on dynamic axes; each has its value at the sizes of a call.

Read next: `size_relations.py`, which finds them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.backend import namespace
from ...core.base.errors import OutOfMemoryError, ShapeError
from ...core.host import HostArray
from ...core.memory import free_bytes
from .axes import refuse


@dataclass(frozen=True)
class SizeFormula:
    """An int that depends on dynamic axes. terms: ((8, ("batch", "time")), (3, ())) is 8*batch*time + 3."""

    terms: tuple[tuple[int, tuple[str, ...]], ...]

    @property
    def axes(self) -> frozenset[str]:
        """The names of the axes that it depends on."""
        return frozenset(name for _, names in self.terms for name in names)

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        """The value at these sizes."""
        return sum(factor * math.prod([sizes[name] for name in names]) for factor, names in self.terms)

    def __str__(self) -> str:
        text = " + ".join(["*".join([str(factor), *names]) for factor, names in self.terms])
        return re.sub(r"\b1\*", "", text).replace("+ -", "- ") or "0"


@dataclass(frozen=True)
class SizeRatio:
    """A float that depends on dynamic axes, `scale * (top / bottom)`: 1 / batch, or the factor of an unbiased
    variance.
    """

    scale: float
    top: SizeFormula
    bottom: SizeFormula

    @property
    def axes(self) -> frozenset[str]:
        """The names of the axes that it depends on."""
        return self.top.axes | self.bottom.axes

    def evaluate(self, sizes: Mapping[str, int]) -> float:
        """The value at these sizes; inf or NaN for a division by 0."""
        top, bottom = self.top.evaluate(sizes), self.bottom.evaluate(sizes)
        return self.scale * (top / bottom) if bottom else math.copysign(math.inf, top) if top else math.nan

    def __str__(self) -> str:
        return f"{'' if self.scale == 1 else f'{self.scale} * '}({self.top}) / ({self.bottom})"


@dataclass(frozen=True)
class SizedConstant:
    """A constant that depends on dynamic axes: filled with one value, or along one axis `first`, `first + step`, ..."""

    shape: tuple[int | SizeFormula, ...]
    first: Any
    step: int = 0

    def evaluate(self, sizes: Mapping[str, int], dtype: Any) -> HostArray:
        """The array at these sizes. dtype: a NumPy dtype."""
        shape, first = evaluate_sizes(self.shape, sizes), evaluate_sizes(self.first, sizes)
        check_sizes("a constant", shape, sizes)
        needed, free = math.prod(shape) * (24 if self.step else dtype.itemsize), free_bytes()
        if free is not None and needed > free:
            what = f"a constant of the shape {tuple(shape)} needs {needed:,} bytes of memory, and {free:,} are free"
            refuse(what, "smaller inputs along these axes", sizes, kind=OutOfMemoryError)
        try:
            if not self.step:
                return namespace().full(shape, first, dtype)
            return (first + self.step * namespace().arange(shape[0])).astype(dtype)
        except (OverflowError, TypeError, ValueError) as error:  # valid at the saved sizes, but not at these
            what = f"no {dtype} is a constant that begins with {first} and has the shape {tuple(shape)} ({error})"
            refuse(what, "smaller inputs along these axes", sizes, kind=ShapeError)


def evaluate_sizes(x: Any, sizes: Mapping[str, int], check: Callable | None = None) -> Any:
    """Replace all dependent values in a structure by their values at these sizes. check: called before, with the
    dependent value and the sizes.
    """
    if isinstance(x, SizeFormula | SizeRatio):
        if check is not None:
            check(x, sizes)
        return x.evaluate(sizes)
    if isinstance(x, dict):
        return {key: evaluate_sizes(value, sizes, check) for key, value in x.items()}
    return type(x)([evaluate_sizes(value, sizes, check) for value in x]) if type(x) in (tuple, list) else x


def check_sizes(what: str, shape: Any, sizes: Mapping[str, int]) -> None:
    """Raise ShapeError for a shape that is impossible at these sizes of the dynamic axes."""
    if any(n < 0 for n in shape):
        refuse(f"{what} would have the shape {tuple(shape)}", "larger inputs along these axes", sizes, kind=ShapeError)


def same_array(a: HostArray, b: HostArray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
