"""The dtypes, `minflow.float32` and the others; their limits; the default dtype, which Python floats become.

bfloat16 is a dtype of the library ml_dtypes, imported when a tensor first needs it, since that takes a tenth of
numpy's import time. All other dtypes are those of numpy, on every device. Must not depend on shapes or tensors.
Read next: `../spec.py`.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .errors import DTypeError
from .optional import import_optional

ArrayDType: TypeAlias = np.dtype  # the dtype of an array

if TYPE_CHECKING:
    DTypeLike: TypeAlias = "DType | ArrayDType | type | str"  # types that `as_dtype` converts


class DType:
    """The data type of a tensor's elements: `minflow.float32` and the others. One object per dtype."""

    __slots__ = ("name", "itemsize", "floating", "rank", "numpy")
    table: dict[str, DType] = {}

    def __init__(self, name: str, rank: int, itemsize: int):
        self.name, self.itemsize = name, itemsize
        self.floating = rank == 2
        self.rank = rank  # the kind for promotion: 0 bool, 1 integer, 2 floating, 3 complex
        self.numpy = None if name == "bfloat16" else ArrayDType(name)
        DType.table[name] = self

    @property
    def np(self) -> ArrayDType:
        """The dtype of numpy."""
        if self.numpy is None:
            self.numpy = ArrayDType(import_optional("ml_dtypes", "bfloat16").bfloat16)
            _BY_NUMPY[self.numpy] = self
        return self.numpy

    @property
    def is_floating_point(self) -> bool:
        """True for float16, bfloat16, float32 and float64."""
        return self.floating

    @property
    def is_complex(self) -> bool:
        """True for complex64 and complex128."""
        return self.rank == 3

    @property
    def is_signed(self) -> bool:
        """True if it can hold numbers below 0."""
        return self.rank > 0 and not self.name.startswith("uint")

    def to_real(self) -> DType:
        """The dtype of the real part, such as float32 for complex64; itself for dtypes that are not complex."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    def to_complex(self) -> DType:
        """The complex dtype whose parts have this dtype. Raises DTypeError for integers and bool."""
        if self.rank < 2:
            raise DTypeError(f"{self.name} has no complex dtype", hint="x.float(), which has complex64")
        return complex128 if self in (float64, complex128) else complex64

    def __reduce__(self):
        return dtype_named, (self.name,)

    def __deepcopy__(self, memo):
        return self

    def __repr__(self) -> str:
        return f"minflow.{self.name}"


class UnsupportedDType:
    """A dtype of PyTorch that no tensor here has. Programs compare with it: `x.dtype == torch.complex32` is False.

    `as_dtype` refuses it.
    """

    __slots__ = ("is_complex", "is_floating_point", "is_signed", "itemsize", "name")

    def __init__(self, name: str, itemsize: int):
        self.name, self.itemsize = name, itemsize
        self.is_floating_point, self.is_complex = name.startswith("float"), name.startswith("complex")
        self.is_signed = not name.startswith("quint")

    def __repr__(self) -> str:
        return f"minflow.{self.name}"


def dtype_named(name: str) -> DType:
    """The dtype of this name, such as "float32"."""
    return DType.table[name]


bool_ = DType("bool", 0, 1)
uint8 = DType("uint8", 1, 1)
uint16 = DType("uint16", 1, 2)
uint32 = DType("uint32", 1, 4)
uint64 = DType("uint64", 1, 8)
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

LONG_UNSIGNED = frozenset({uint16, uint32, uint64})  # without promotion to other integers, as in PyTorch
HALF_DTYPES = frozenset({float16, bfloat16})  # too short for sums: ops of several steps compute in float32
_BY_NUMPY = {d.numpy: d for d in DType.table.values() if d.numpy is not None}
BY_PYTHON = {bool: bool_, int: int64, float: float32, complex: complex64}


def is_dtype(x) -> bool:
    """True if `as_dtype` takes x, unless it is a name."""
    return isinstance(x, DType | type | ArrayDType | UnsupportedDType)


def as_dtype(x) -> DType:
    """Convert a DType, a numpy dtype, a Python type (`float` is the default dtype) or a name to a DType."""
    if isinstance(x, DType):
        return x
    if x.__class__ is type and x in BY_PYTHON:
        return BY_PYTHON[x]
    try:
        # numpy would also accept any object with an attribute `dtype`
        return _BY_NUMPY[ArrayDType(x) if isinstance(x, str | type | ArrayDType) else None]
    except (KeyError, TypeError, ValueError):
        name = getattr(x, "name", getattr(x, "__name__", x))
        if name == "bfloat16":
            return bfloat16
        raise DTypeError(
            f"minflow has no dtype {' '.join(str(getattr(x, 'name', x)).split())[:80]}",
            hint=f"one of {', '.join(DType.table)}: for example array.astype('float32')",
        ) from None


DEPENDS_ON_DEFAULT: list = []  # functions that clear caches which depend on the default dtype


def default_dtype() -> DType:
    """The dtype of tensors made from Python floats: float32 unless `set_default_dtype` changed it."""
    return BY_PYTHON[float]


def set_default_dtype(dtype) -> None:
    """Set the dtype of tensors made from Python floats, for the process. Python's complex numbers become the complex
    dtype with parts of this dtype. Raises DTypeError for a dtype that is not floating.
    """
    dtype = as_dtype(dtype)
    if not dtype.floating:
        raise DTypeError(f"the default dtype must be floating, got {dtype.name}", hint="flow.float32 or flow.float64")
    BY_PYTHON[float], BY_PYTHON[complex] = dtype, dtype.to_complex()
    for forget in DEPENDS_ON_DEFAULT:
        forget()


@functools.cache
def wider(a: DType, b: DType) -> DType:
    """The promoted dtype of two, as in PyTorch: an integer and a float give the float's dtype, float16 and bfloat16
    give float32.
    """
    if a.rank < b.rank:
        a, b = b, a
    if a is b or (b.rank < 2 and b.rank < a.rank):
        return a
    if a.rank == 3:
        return complex128 if complex128 in (a, wider(a.to_real(), b.to_real()).to_complex()) else complex64
    if {a, b} == {float16, bfloat16}:
        return float32
    if a in LONG_UNSIGNED or b in LONG_UNSIGNED:
        what = f"{a.name} and {b.name} have no common dtype"
        raise DTypeError(what, hint="convert one of them first, x.to(flow.int64) or x.float()")
    return int16 if {a, b} == {uint8, int8} else max(a, b, key=lambda d: d.itemsize)


def promote_types(type1, type2) -> DType:
    """The dtype in which values of both dtypes are combined."""
    return wider(as_dtype(type1), as_dtype(type2))


def can_cast(from_, to) -> bool:
    """True if results of the first dtype may be written into a tensor of the second: its kind (bool < integer <
    floating < complex) must not be lower. Sizes do not matter.
    """
    return as_dtype(from_).rank <= as_dtype(to).rank


FLOAT_BITS = {float16: (5, 10), bfloat16: (8, 7), float32: (8, 23), float64: (11, 52)}  # of exponent and fraction


class finfo:
    """Limits of a floating dtype, or of the parts of a complex one: eps, min, max, tiny, smallest_normal, resolution,
    bits; and dtype, its name. Also of PyTorch's float8 dtypes, which no tensor here has.
    """

    def __init__(self, type: Any = None):
        if isinstance(type, UnsupportedDType) and type.name.startswith("float8"):
            limits = import_optional("ml_dtypes", "finfo").finfo(type.name)
            self.dtype, self.bits, self.resolution = type.name, 8, 1.0
            for name in ("eps", "max", "min", "tiny", "smallest_normal"):
                setattr(self, name, float(getattr(limits, name)))
            return
        dtype = default_dtype() if type is None else as_dtype(type)
        if dtype.rank < 2:
            raise DTypeError(f"finfo is for floating dtypes, not {dtype.name}", hint="flow.iinfo")
        dtype = dtype.to_real()
        self.dtype, self.bits = dtype.name, 8 * dtype.itemsize
        exponent, fraction = FLOAT_BITS[dtype]
        highest = 2 ** (exponent - 1) - 1  # exponent of the largest number
        self.eps = 2.0**-fraction
        self.max = (2.0 - self.eps) * 2.0**highest
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - highest)
        self.resolution = 10.0 ** -int(fraction * math.log10(2))

    def __repr__(self) -> str:
        parts = [
            f"{name}={getattr(self, name):g}" for name in ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        ]
        return f"finfo({', '.join(parts)}, dtype={self.dtype})"


class iinfo:
    """Limits of an integer dtype: min, max, bits; and dtype, its name."""

    def __init__(self, type: Any):
        dtype = as_dtype(type)
        if dtype.rank != 1:
            raise DTypeError(f"iinfo is for integer dtypes, not {dtype.name}", hint="flow.finfo")
        self.dtype, self.bits = dtype.name, 8 * dtype.itemsize
        self.min = -(2 ** (self.bits - 1)) if dtype.is_signed else 0
        self.max = self.min + 2**self.bits - 1

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


PRECISIONS = ("highest", "high", "medium")


class MatmulPrecision:
    """The precision of float32 matrix products on GPUs in this process, by PyTorch's names.

    "highest" is float32; "high" and "medium" round the factors to TF32, which has 10 bits of fraction.
    convolutions_in_tf32: True if convolutions round theirs.
    """

    float32 = "highest"
    convolutions_in_tf32 = False

    @classmethod
    def tf32(cls) -> bool:
        return cls.float32 != "highest"
