"""What is known of a tensor without its numbers: dtype, device, and the Spec that holds both with the shape.

Specs are interned: equal specs are one object, so that comparing two costs one `is`. Promotion is PyTorch's.
Knows nothing of tensors or ops; the dtypes are those of `base/dtypes.py`.
Read next: `ir.py`, where Specs describe the outputs of Nodes.
"""

from __future__ import annotations

import functools
import math
import sys
import warnings

import numpy as np

from .base.dtypes import (
    BY_PYTHON,
    DEPENDS_ON_DEFAULT as DEPENDS_ON_DEFAULT,
    DType,
    as_dtype,
    bfloat16 as bfloat16,
    bool_ as bool_,
    complex64 as complex64,
    complex128 as complex128,
    default_dtype as default_dtype,
    dtype_named as dtype_named,
    finfo as finfo,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    iinfo as iinfo,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    set_default_dtype as set_default_dtype,
    uint8 as uint8,
    wider,
)
from .base.errors import DeviceError, ShapeError
from .base.placement import Placement, Sbp


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

    size: number of elements.  floating: the dtype is floating.  differentiable: it is floating or complex.
    plain: numpy computes in it, it is floating and not 0-d, so numpy's own result is right without `out=`.
    """

    __slots__ = (
        "shape",
        "dtype",
        "device",
        "placement",
        "sbp",
        "np",
        "ndim",
        "size",
        "floating",
        "differentiable",
        "plain",
        "as_tuple",
        "__weakref__",
    )
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
            spec.size = math.prod(shape)
            if len(shape) > 64 or min(shape, default=0) < 0 or math.prod(n or 1 for n in shape) >= 1 << 59:
                raise ShapeError(f"no tensor has the shape {shape}", hint="64 axes, sizes from 0, below 2**59 numbers")
            spec.dtype, spec.device, spec.placement, spec.sbp = dtype, device, placement, sbp
            spec.np, spec.ndim, spec.floating = dtype.np, len(shape), dtype.floating
            spec.differentiable = dtype.rank > 1
            spec.plain = dtype.floating and shape != () and dtype is not bfloat16
            spec.as_tuple = (spec,)
            spec = cls.table.setdefault((shape, dtype, device, placement, sbp), spec)
        return spec

    @classmethod
    def sweep(cls) -> None:
        """Forget the specs that nobody uses; the others stay, so identity keeps meaning equality."""
        promote.cache_clear()
        alone = 4  # the table, the spec's own `as_tuple`, the loop variable, and the argument of getrefcount
        for key, spec in list(cls.table.items()):
            if sys.getrefcount(spec) <= alone + 1:  # and the list being walked
                del cls.table[key]
                spec.as_tuple = ()
        cls.limit = max(cls.limit, 2 * len(cls.table))

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.size * self.dtype.itemsize

    def replace(self, **changes) -> Spec:
        """This spec with some fields replaced."""
        fields = {name: getattr(self, name) for name in ("shape", "dtype", "device", "placement", "sbp")}
        return Spec(**(fields | changes))

    def but(self, **changes) -> Spec:
        """The old name of `replace`, which shape rules of custom ops may still use."""
        warnings.warn("Spec.but is now Spec.replace", DeprecationWarning, stacklevel=2)
        return self.replace(**changes)

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
    """The dtype in which these meet, as in PyTorch: the higher kind (bool < integer < floating < complex) wins; within
    it arrays decide before 0-d arrays, and Python numbers (given by their type) decide nothing. A complex number takes
    the size of the floats that decide before it."""
    levels: list[DType | None] = [None, None, None]  # what arrays, 0-d arrays and numbers meet in among themselves
    for s in specs:
        level, dtype = (int(not s.ndim), s.dtype) if isinstance(s, Spec) else (2, BY_PYTHON[s])
        levels[level] = wider(levels[level] or dtype, dtype)
    result, *rest = [dtype for dtype in levels if dtype is not None]
    for dtype in rest:
        if dtype.rank > result.rank:
            result = result.to_complex() if result.floating else dtype
    return result


DEPENDS_ON_DEFAULT.append(promote.cache_clear)
