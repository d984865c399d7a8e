"""What is known of a tensor without its numbers: dtype, device, and the Spec that holds both with the shape.

Specs are interned: equal specs are one object, so that comparing two costs one `is`. Promotion is PyTorch's.
Knows nothing of tensors or ops. Read next: `ir.py`, where Specs describe the outputs of Nodes.
"""

from __future__ import annotations

import functools
import math
import sys

import numpy as np

from .base.errors import DeviceError, DTypeError
from .base.placement import Placement, Sbp


class DType:
    """The type of a tensor's numbers: `minflow.float32` and the others. One object per dtype."""

    __slots__ = ("name", "np", "itemsize", "floating", "rank")
    table: dict[str, DType] = {}

    def __init__(self, name: str, rank: int):
        self.name = name
        self.np = np.dtype(name)
        self.itemsize = self.np.itemsize
        self.floating = self.np.kind == "f"
        self.rank = rank  # the kind for promotion: 0 bool, 1 integer, 2 floating
        DType.table[name] = self

    @property
    def is_floating_point(self) -> bool:
        return self.floating

    @property
    def is_signed(self) -> bool:
        return self.np.kind in "if"

    def __reduce__(self):
        return dtype_named, (self.name,)

    def __deepcopy__(self, memo):
        return self

    def __repr__(self) -> str:
        return f"minflow.{self.name}"


def dtype_named(name: str) -> DType:
    return DType.table[name]


bool_ = DType("bool", 0)
uint8 = DType("uint8", 1)
int8 = DType("int8", 1)
int32 = DType("int32", 1)
int64 = DType("int64", 1)
float16 = DType("float16", 2)
float32 = DType("float32", 2)
float64 = DType("float64", 2)

_BY_NUMPY = {d.np: d for d in DType.table.values()}
_BY_PYTHON = {bool: bool_, int: int64, float: float32}


def as_dtype(x) -> DType:
    """The DType meant by a DType, a numpy dtype, a Python type (`float` is the default dtype) or a name."""
    if isinstance(x, DType):
        return x
    if x is float:
        return default_dtype()
    if x is bool or x is int:
        return _BY_PYTHON[x]
    try:
        # numpy takes all that has a dtype
        return _BY_NUMPY[np.dtype(x) if isinstance(x, str | type | np.dtype) else None]
    except (KeyError, TypeError, ValueError):
        raise DTypeError(f"minflow has no dtype {' '.join(str(getattr(x, 'name', x)).split())[:80]}",
                         hint=f"one of {', '.join(DType.table)}: for example array.astype('float32')") from None


_default = float32
DEPENDS_ON_DEFAULT: list = []  # functions that clear what was remembered under the old default dtype


def default_dtype() -> DType:
    """The dtype of new tensors made from Python floats: float32 unless `set_default_dtype` changed it."""
    return _default


def set_default_dtype(dtype) -> None:
    """Make `dtype` (floating) the dtype of new tensors made from Python floats, in the whole process."""
    global _default
    dtype = as_dtype(dtype)
    if not dtype.floating:
        raise DTypeError(f"the default dtype must be floating, not {dtype.name}", hint="flow.float32 or flow.float64")
    _default = _BY_PYTHON[float] = dtype
    promote.cache_clear()
    for forget in DEPENDS_ON_DEFAULT:
        forget()


class Device:
    """Where the numbers lie: `device("cpu")`, `device("cuda:0")`. One object per device."""

    __slots__ = ("type", "index")
    table: dict[tuple[str, int], Device] = {}

    def __new__(cls, type: str | Device = "cpu", index: int | None = None):
        if isinstance(type, Device):
            return type
        kind, _, number = str(type).partition(":")
        if kind not in ("cpu", "cuda") or (number and not number.isdigit()) or (number and index is not None):
            raise DeviceError(f"there is no device {type!r}", hint='"cpu", "cuda" or "cuda:0"')
        key = kind, int(number or index or 0)
        result = cls.table.get(key)
        if result is None:
            result = cls.table[key] = super().__new__(cls)
            result.type, result.index = key
        return result

    def __reduce__(self):
        return Device, (self.type, self.index)

    def __deepcopy__(self, memo):
        return self

    def __str__(self) -> str:
        return f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        return f"device(type='{self.type}', index={self.index})"


cpu = Device("cpu")


class Spec:
    """Shape, dtype, device and, on many ranks, placement and sbp of a tensor. Interned: equal specs are one object.

    floating: the dtype is floating.  plain: floating and not 0-d, so numpy's own result is right without `out=`.
    """

    __slots__ = ("shape", "dtype", "device", "placement", "sbp", "np", "ndim", "floating", "plain", "alone",
                 "__weakref__")
    table: dict[tuple, Spec] = {}
    limit = 50_000  # how many are kept before those that nobody uses are swept out

    def __new__(
        cls,
        shape: tuple[int, ...],
        dtype: DType,
        device: Device = cpu,
        placement: Placement | None = None,
        sbp: tuple[Sbp, ...] | None = None,
    ):
        spec = cls.table.get((shape, dtype, device, placement, sbp))
        if spec is None:
            if len(cls.table) >= cls.limit:
                cls.sweep()
            spec = super().__new__(cls)
            spec.shape = shape = tuple(map(int, shape))
            spec.dtype, spec.device, spec.placement, spec.sbp = dtype, device, placement, sbp
            spec.np, spec.ndim, spec.floating = dtype.np, len(shape), dtype.floating
            spec.plain = dtype.floating and shape != ()
            spec.alone = (spec,)
            spec = cls.table.setdefault((shape, dtype, device, placement, sbp), spec)
        return spec

    @classmethod
    def sweep(cls) -> None:
        """Forget the specs that nobody uses; the others stay, so identity keeps meaning equality."""
        promote.cache_clear()
        alone = 4  # the table, the spec's own `alone`, the loop variable, and the argument of getrefcount
        for key, spec in list(cls.table.items()):
            if sys.getrefcount(spec) <= alone + 1:  # and the list being walked
                del cls.table[key]
                spec.alone = ()
        cls.limit = max(cls.limit, 2 * len(cls.table))

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.size * self.dtype.itemsize

    def but(self, **changes) -> Spec:
        """This spec with some fields replaced."""
        fields = {name: getattr(self, name) for name in ("shape", "dtype", "device", "placement", "sbp")}
        return Spec(**(fields | changes))

    def __reduce__(self):
        return Spec, (self.shape, self.dtype, self.device, self.placement, self.sbp)

    def __deepcopy__(self, memo):
        return self

    def __repr__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)}"


def spec_of(array: np.ndarray) -> Spec:
    """The Spec of a numpy array."""
    return Spec(array.shape, as_dtype(array.dtype))


@functools.lru_cache(maxsize=4096)
def promote(*specs: Spec | type) -> DType:
    """The dtype in which these meet, as in PyTorch: the higher kind (bool < integer < floating) wins; within it
    arrays decide before 0-d arrays, and Python numbers (given by their type) decide nothing."""
    ranked = []
    for s in specs:
        if isinstance(s, Spec):
            ranked.append((s.dtype.rank, 2 if s.ndim else 1, s.dtype))
        else:
            ranked.append((_BY_PYTHON[s].rank, 0, _BY_PYTHON[s]))
    top = max(entry[:2] for entry in ranked)
    return functools.reduce(wider, [dtype for kind, level, dtype in ranked if (kind, level) == top])


def wider(a: DType, b: DType) -> DType:
    """The smallest dtype that holds both; uint8 with int8 gives int32 (there is no int16)."""
    if a is b:
        return a
    common = np.promote_types(a.np, b.np)
    return int32 if common == np.int16 else _BY_NUMPY[common]


class finfo:
    """Limits of a floating dtype: eps, min, max, tiny, smallest_normal, resolution, bits."""

    def __init__(self, dtype: DType | None = None):
        self.dtype = as_dtype(default_dtype() if dtype is None else dtype)
        if not self.dtype.floating:
            raise DTypeError(f"finfo is for floating dtypes, not {self.dtype.name}", hint="flow.iinfo")
        info = np.finfo(self.dtype.np)
        self.bits, self.eps, self.min, self.max = info.bits, float(info.eps), float(info.min), float(info.max)
        self.tiny = self.smallest_normal = float(info.tiny)
        self.resolution = float(info.resolution)

    def __repr__(self) -> str:
        return f"finfo(min={self.min}, max={self.max}, eps={self.eps}, tiny={self.tiny}, dtype={self.dtype.name})"


class iinfo:
    """Limits of an integer dtype: min, max, bits."""

    def __init__(self, dtype: DType):
        self.dtype = as_dtype(dtype)
        if self.dtype.rank != 1:
            raise DTypeError(f"iinfo is for integer dtypes, not {self.dtype.name}", hint="flow.finfo")
        info = np.iinfo(self.dtype.np)
        self.bits, self.min, self.max = info.bits, int(info.min), int(info.max)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype.name})"
