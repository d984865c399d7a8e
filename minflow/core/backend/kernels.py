"""Registration of fast kernels.

The reference kernel of an op, beside its definition, defines the results. A fast kernel gives the same results within
its tolerance; only speed depends on it. Read next: `fast/__init__.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..op import Op, kernel


class Kernels(NamedTuple):
    """The two kernels of an op.

    tolerance: largest difference of their results, in units of eps of the dtype times the largest element of the
    result; 0 is exact.
    """

    reference: Callable
    fast: Callable
    tolerance: float


KERNELS: dict[Op, Kernels] = {}  # the ops that have a fast kernel


def fast(op: Op, tolerance: float):
    """Decorator: register a function as the fast kernel of an op, which runs from then on."""

    def register(function):
        reference = op.kernel
        kernel(op, function, specialize=op.specialize)
        KERNELS[op] = Kernels(reference, op.kernel, tolerance)
        return function

    return register
