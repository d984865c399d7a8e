"""Fast kernels beside the reference ones: how an op gets one, and how to do without them.

The reference kernel of an op, which stands in its block, says what the op does. A fast one says the same within its
tolerance; nothing but speed depends on it. Which of the two run is one choice for the whole process.
Read next: `fast/__init__.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ..mode import touch
from ..op import Op, kernel


class Kernels(NamedTuple):
    """The two kernels of an op.  tolerance: the largest difference between their results, in units of the dtype's eps
    times the largest number of the result; 0 is exact."""

    reference: Callable
    fast: Callable
    tolerance: float


KERNELS: dict[Op, Kernels] = {}  # of every op that has a fast one
CHOSEN = ["fast"]  # a field of Kernels; the last one counts


def fast(op: Op, tolerance: float):
    """Give an op the decorated function as its fast kernel, which runs unless reference kernels are asked for."""

    def register(function):
        reference = op.kernel
        kernel(op, function)
        KERNELS[op] = Kernels(reference, op.kernel, tolerance)
        op.kernel = getattr(KERNELS[op], CHOSEN[-1])
        return function

    return register


def choose() -> None:
    """Put the chosen kernels in place; the epoch moves, since a plan holds the kernels that it was compiled with."""
    for op, kernels in KERNELS.items():
        op.kernel = getattr(kernels, CHOSEN[-1])
    touch()


@contextmanager
def reference_kernels() -> Iterator[None]:
    """Run the block on reference kernels alone, in the whole process; graphs called in it are compiled for them."""
    CHOSEN.append("reference")
    choose()
    try:
        yield
    finally:
        CHOSEN.pop()
        choose()
