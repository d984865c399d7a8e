"""Arrays in the memory of the host, NumPy's: what programs pass in and read out. Arrays of tensors: `core/backend.py`.

Its modules know NumPy well: the threads of its BLAS, its floating-point warnings, scratch memory for its kernels.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy

HostArray: TypeAlias = numpy.ndarray
HostScalar: TypeAlias = numpy.generic  # a number that was read from a HostArray


def python_number(x: Any) -> Any:
    """A number that was read from an array of the host, as a Python number; other values unchanged."""
    return x.item() if isinstance(x, HostScalar) else x


def host_array(data: Any, dtype: Any = None) -> HostArray:
    """A new C-contiguous array on the host, of numbers, sequences of them, or another array of the host."""
    return numpy.array(data, dtype, order="C")
