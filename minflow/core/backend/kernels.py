"""Fast kernels beside the reference ones: how an op gets one.

The reference kernel of an op, which stands in its block, says what the op does. A fast one says the same within its
tolerance; nothing but speed depends on it.
Read next: `fast/__init__.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..op import Op, kernel


class Kernels(NamedTuple):
    """The two kernels of an op.  tolerance: the largest difference between their results, in units of the dtype's eps
    times the largest number of the result; 0 is exact."""

    reference: Callable
    fast: Callable
    tolerance: float


KERNELS: dict[Op, Kernels] = {}  # of every op that has a fast one


def fast(op: Op, tolerance: float):
    """Give an op the decorated function as its fast kernel, which runs from then on."""

    def register(function):
        reference = op.kernel
        kernel(op, function, specialize=op.specialize)
        KERNELS[op] = Kernels(reference, op.kernel, tolerance)
        return function

    return register
