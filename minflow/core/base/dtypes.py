"""The dtypes: `minflow.float32` and the others, their limits, and which of them a Python float becomes.

bfloat16 is a dtype of the library ml_dtypes, which is imported when the first tensor has it: that takes a tenth of
numpy's own time. Every other dtype is numpy's. Knows no shapes and no tensors. Read next: `../spec.py`.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .errors import DTypeError
from .optional import import_optional


class DType:
    """The type of a tensor's numbers: `minflow.float32` and the others. One object per dtype."""

    __slots__ = ("name", "itemsize", "floating", "rank", "numpy")
    table: dict[str, DType] = {}

    def __init__(self, name: str, rank: int, itemsize: int):
        self.name, self.itemsize = name, itemsize
        self.floating = rank == 2
        self.rank = rank  # the kind for promotion: 0 bool, 1 integer, 2 floating, 3 complex
        self.numpy = None if name == "bfloat16" else np.dtype(name)
        DType.table[name] = self

    @property
    def np(self) -> np.dtype:
        """numpy's dtype."""
        if self.numpy is None:
            self.numpy = np.dtype(import_optional("ml_dtypes", "bfloat16").bfloat16)
            _BY_NUMPY[self.numpy] = self
        return self.numpy

    @property
    def is_floating_point(self) -> bool:
        """Has it a fraction?"""
        return self.floating

    @property
    def is_complex(self) -> bool:
        """Has it an imaginary part?"""
        return self.rank == 3

    @property
    def is_signed(self) -> bool:
        """Has it numbers below 0?"""
        return self.rank > 0 and self.name != "uint8"

    def to_real(self) -> DType:
        """The dtype of the real part: float32 of complex64; a dtype without imaginary part is its own."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    def to_complex(self) -> DType:
        """The complex dtype whose parts have this one. Raises DTypeError for integers and bool."""
        if self.rank < 2:
            raise DTypeError(f"{self.name} has no complex dtype", hint="x.float(), which has complex64")
        return complex128 if self in (float64, complex128) else complex64

    def __reduce__(self):
        return dtype_named, (self.name,)

    def __deepcopy__(self, memo):
        return self

    def __repr__(self) -> str:
        return f"minflow.{self.name}"


def dtype_named(name: str) -> DType:
    return DType.table[name]


bool_ = DType("bool", 0, 1)
uint8 = DType("uint8", 1, 1)
int8 = DType("int8", 1, 1)
int16 = DType("int16", 1, 2)
int32 = DType("int32", 1, 4)
int64 = DType("int64", 1, 8)
float16 = DType("float16", 2, 2)
bfloat16 = DType("bfloat16", 2, 2)
float32 = DType("float32", 2, 4)
float64 = DType("float64", 2, 8)
complex64 = DType("complex64", 3, 8)
complex128 = DType("complex128", 3, 16)

HALVES = frozenset({float16, bfloat16})  # too short to add up in: what takes several steps takes them in float32
_BY_NUMPY = {d.numpy: d for d in DType.table.values() if d.numpy is not None}
BY_PYTHON = {bool: bool_, int: int64, float: float32, complex: complex64}


def as_dtype(x) -> DType:
    """The DType meant by a DType, a numpy dtype, a Python type (`float` is the default dtype) or a name."""
    if isinstance(x, DType):
        return x
    if x.__class__ is type and x in BY_PYTHON:
        return BY_PYTHON[x]
    try:
        # numpy takes all that has a dtype
        return _BY_NUMPY[np.dtype(x) if isinstance(x, str | type | np.dtype) else None]
    except (KeyError, TypeError, ValueError):
        name = getattr(x, "name", getattr(x, "__name__", x))
        if name == "bfloat16":
            return bfloat16
        raise DTypeError(
            f"minflow has no dtype {' '.join(str(getattr(x, 'name', x)).split())[:80]}",
            hint=f"one of {', '.join(DType.table)}: for example array.astype('float32')",
        ) from None


DEPENDS_ON_DEFAULT: list = []  # functions that clear what was remembered under the old default dtype


def default_dtype() -> DType:
    """The dtype of new tensors made from Python floats: float32 unless `set_default_dtype` changed it."""
    return BY_PYTHON[float]


def set_default_dtype(dtype) -> None:
    """Make `dtype` (floating) the dtype of new tensors made from Python floats, in the whole process; Python's complex
    numbers become the complex dtype that goes with it."""
    dtype = as_dtype(dtype)
    if not dtype.floating:
        raise DTypeError(f"the default dtype must be floating, not {dtype.name}", hint="flow.float32 or flow.float64")
    BY_PYTHON[float], BY_PYTHON[complex] = dtype, dtype.to_complex()
    for forget in DEPENDS_ON_DEFAULT:
        forget()


@functools.cache
def wider(a: DType, b: DType) -> DType:
    """The smallest dtype that holds both, as in PyTorch: an integer beside a float takes the float's dtype, float16
    beside bfloat16 is float32."""
    if a.rank < b.rank:
        a, b = b, a
    if a is b or b.rank < 2 and b.rank < a.rank:
        return a
    if a.rank == 3:
        return complex128 if complex128 in (a, wider(a.to_real(), b.to_real()).to_complex()) else complex64
    if a.rank == 2:
        return float32 if {a, b} == {float16, bfloat16} else max(a, b, key=lambda d: d.itemsize)
    return _BY_NUMPY[np.promote_types(a.np, b.np)]


def promote_types(type1, type2) -> DType:
    """The smallest dtype that holds what both hold."""
    return wider(as_dtype(type1), as_dtype(type2))


def can_cast(from_, to) -> bool:
    """May a result of one dtype be written into a tensor of another: is that one's kind (bool, integer, floating,
    complex) no lower? Its size counts for nothing."""
    return as_dtype(from_).rank <= as_dtype(to).rank


class finfo:
    """Limits of a floating dtype, of a complex one those of its parts: eps, min, max, tiny, smallest_normal,
    resolution, bits, and dtype, its name."""

    def __init__(self, type: Any = None):
        dtype = default_dtype() if type is None else as_dtype(type)
        if dtype.rank < 2:
            raise DTypeError(f"finfo is for floating dtypes, not {dtype.name}", hint="flow.iinfo")
        dtype = dtype.to_real()
        # bfloat16 is the upper half of float32: its exponents, and 7 bits behind the point
        info, short = np.finfo(np.float32 if dtype is bfloat16 else dtype.np), dtype is bfloat16
        self.dtype, self.bits = dtype.name, 8 * dtype.itemsize
        self.max = (2.0 - 2.0**-7) * 2.0**127 if short else float(info.max)
        self.min, self.eps = -self.max, 2.0**-7 if short else float(info.eps)
        self.tiny = self.smallest_normal = float(info.tiny)
        self.resolution = 0.01 if short else float(str(info.resolution))

    def __repr__(self) -> str:
        parts = [
            f"{name}={getattr(self, name):g}" for name in ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        ]
        return f"finfo({', '.join(parts)}, dtype={self.dtype})"


class iinfo:
    """Limits of an integer dtype: min, max, bits, and dtype, its name."""

    def __init__(self, type: Any):
        dtype = as_dtype(type)
        if dtype.rank != 1:
            raise DTypeError(f"iinfo is for integer dtypes, not {dtype.name}", hint="flow.finfo")
        info = np.iinfo(dtype.np)
        self.dtype, self.bits, self.min, self.max = dtype.name, info.bits, int(info.min), int(info.max)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
