"""Specs: the shape, dtype and device of a tensor, without its elements; and type promotion as in PyTorch.

Specs are interned: equal specs are one object, so that they are compared by `is`.
Must not depend on tensors or ops; the dtypes are in `base/dtypes.py`.
Read next: `ir.py`, where Specs describe the outputs of Nodes.
"""

from __future__ import annotations

import functools
import math
import sys
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self, TypeVar

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
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
    wider,
)
from .base.errors import DeviceError, ShapeError
from .base.interrupts import StackEntry
from .context import CURRENT, PROCESS_CONTEXT
from .symbolic_shapes import SymInt, plain

if TYPE_CHECKING:
    from .base.placement import Placement, Sbp

LARGE = 1 << 14  # elements of a large array: launching a compiled kernel costs less than it saves


def rank_here() -> int:
    """The rank of this thread, in whose number OneFlow prints the CPU; 0 in a program without ranks."""
    return (CURRENT.get() or PROCESS_CONTEXT).rank


# The index that "cuda" means: `flow.cuda.set_device`.
CURRENT_GPU: ContextVar[int] = ContextVar("current GPU", default=0)
DEFAULT_DEVICES: ContextVar[tuple[Device, ...]] = ContextVar("default devices", default=())  # of open blocks
DEFAULT_DEVICE: ContextVar[Device | None] = ContextVar("default device", default=None)  # outside of these blocks


class Device:
    """A device that holds tensors: `device("cpu")`, `device("cuda:0")`, `device(0)`, a GPU; or `device("meta")`, whose
    tensors have a shape and a dtype, but no elements. One object per device.

    As a context, the device of new tensors for which the program names none: `with device("cuda"): zeros(3)`.
    """

    __slots__ = ("index", "type")
    index: int
    type: str
    table: dict[tuple[str, int], Device] = {}

    def __new__(cls, type: str | int | Device = "cpu", index: int | None = None) -> Device:
        if isinstance(type, Device):
            return type
        if type.__class__ is int and type >= 0:
            type = f"cuda:{type}"
        kind, _, number = str(type).partition(":")
        if kind not in ("cpu", "cuda", "meta") or (number and not number.isdigit()) or (number and index is not None):
            raise DeviceError(f"there is no device {type!r}", hint='"cpu", "cuda", "cuda:0" or "meta"')
        at = number or index
        key = kind, int(at if at not in ("", None) else CURRENT_GPU.get() if kind == "cuda" else 0)
        if key == ("cpu", rank_here()):
            key = "cpu", 0
        result = cls.table.get(key)
        if result is None:
            result = cls.table[key] = super().__new__(cls)
            result.type, result.index = key
        return result

    def __enter__(self) -> Self:
        before = DEFAULT_DEVICES.get()
        try:
            DEFAULT_DEVICES.set((*before, self))
            return self
        except BaseException:
            DEFAULT_DEVICES.set(before)
            raise

    __exit__: Callable = StackEntry(DEFAULT_DEVICES).__exit__

    def __reduce__(self):
        return Device, (self.type, self.index)

    def __deepcopy__(self, memo):
        return self

    def __str__(self) -> str:
        return self.type if self.type == "meta" else f"{self.type}:{rank_here() if self == cpu else self.index}"

    def __repr__(self) -> str:
        kind, _, index = str(self).partition(":")
        return f"device(type='{kind}', index={index})" if index else f"device(type='{kind}')"


cpu = Device("cpu")


class Spec:
    """Shape, dtype and device of a tensor; of a global tensor also placement and sbp. Equal specs are one object.

    size: number of elements.  as_tuple: `(self,)`.
    floating: True if the dtype is floating.  differentiable: True if it is floating or complex.
    plain: 0, or positive if it is a floating dtype of numpy on the CPU, not of shape (): then numpy's results are right
    without `out=`. 1 if it is large, otherwise 2.
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
    shape: tuple[int, ...]
    dtype: DType
    device: Device
    placement: Placement | None
    sbp: tuple[Sbp, ...] | None
    np: Any  # the dtype in the array libraries
    ndim: int
    size: int
    floating: bool
    differentiable: bool
    plain: int
    as_tuple: tuple[Spec, ...]
    table: dict[tuple, Spec] = {}
    limit = 50_000  # size of the table at which unused specs are removed

    def __new__(
        cls,
        shape: tuple[int, ...],
        dtype: DType,
        device: Device = cpu,
        placement: Placement | None = None,
        sbp: tuple[Sbp, ...] | None = None,
    ) -> Spec:
        spec = cls.table.get((shape, dtype, device, placement, sbp))
        if spec is None:
            if len(cls.table) >= cls.limit:
                cls.sweep()
            spec = super().__new__(cls)
            spec.shape = shape = tuple([n if type(n) is SymInt and n.env.active else int(n) for n in shape])
            spec.size = math.prod(shape)
            sizes = [*map(plain, shape)]
            if len(shape) > 64 or min(sizes, default=0) < 0 or math.prod(n or 1 for n in sizes) >= 1 << 59:
                raise ShapeError(
                    f"no tensor has the shape {shape}",
                    hint="at most 64 axes, sizes of at least 0, fewer than 2**59 elements",
                )
            spec.dtype, spec.device, spec.placement, spec.sbp = dtype, device, placement, sbp
            spec.np, spec.ndim, spec.floating = dtype.np, len(shape), dtype.floating
            spec.differentiable = dtype.rank > 1
            numpy = placement is None and dtype.floating and shape != () and dtype is not bfloat16 and device is cpu
            spec.plain = numpy + (numpy and plain(spec.size) < LARGE)
            spec.as_tuple = (spec,)
            spec = cls.table.setdefault((shape, dtype, device, placement, sbp), spec)
        return spec

    @classmethod
    def sweep(cls) -> None:
        """Remove unused specs from the table; used ones stay, so that equal specs are still identical."""
        promote.cache_clear()  # type: ignore[attr-defined]
        ours = 5  # references: the table, `as_tuple`, the list below, the loop variable, the argument of getrefcount
        for key, spec in list(cls.table.items()):
            if sys.getrefcount(spec) <= ours:
                del cls.table[key]
                spec.as_tuple = ()
        cls.limit = max(cls.limit, 2 * len(cls.table))

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.size * self.dtype.itemsize

    def replace(self, **changes: Any) -> Spec:
        """This spec with some fields replaced. With more or fewer axes, a global tensor is not split."""
        fields = {name: getattr(self, name) for name in ("shape", "dtype", "device", "placement", "sbp")}
        if self.sbp is not None and len(changes.get("shape", self.shape)) != self.ndim:
            fields["sbp"] = tuple([s.__class__("broadcast") if s.kind == "split" else s for s in self.sbp])
        return Spec(**(fields | changes))

    def but(self, **changes: Any) -> Spec:
        """The old name of `replace`, which shape rules of custom ops may still use."""
        warnings.warn("Spec.but is now Spec.replace", DeprecationWarning, stacklevel=2)
        return self.replace(**changes)

    def __reduce__(self):
        return Spec, (self.shape, self.dtype, self.device, self.placement, self.sbp)

    def __deepcopy__(self, memo):
        return self

    def __repr__(self) -> str:
        text = f"{self.dtype.name}{list(self.shape)}"
        return text if self.device is cpu else f"{text} on {self.device}"


Function = TypeVar("Function", bound=Callable)


def memoized(function: Function) -> Function:
    """`lru_cache` for functions whose arguments include classes, which its type annotations reject."""
    return functools.lru_cache(maxsize=4096)(function)  # type: ignore[return-value]


DEVICE_OF_ARRAY: dict[type, Callable] = {}  # class of arrays -> a function that returns their device; else the CPU


def spec_of(array: Any) -> Spec:
    """The Spec of an array."""
    find = DEVICE_OF_ARRAY.get(array.__class__)
    return Spec(array.shape, as_dtype(array.dtype), cpu if find is None else find(array))


@memoized
def promote(*specs: Spec | type) -> DType:
    """The promoted dtype of these operands, as in PyTorch.

    The higher kind (bool < integer < floating < complex) wins. Within a kind arrays take precedence over 0-d arrays,
    and those over Python numbers (passed as their types). A complex number takes the size of the floats that take
    precedence over it.
    """
    levels: list[DType | None] = [None, None, None]  # promoted dtypes of arrays, of 0-d arrays, of Python numbers
    for s in specs:
        level, dtype = (int(not s.ndim), s.dtype) if isinstance(s, Spec) else (2, BY_PYTHON[s])
        levels[level] = wider(levels[level] or dtype, dtype)
    result, *rest = [dtype for dtype in levels if dtype is not None]
    for dtype in rest:
        if dtype.rank > result.rank:
            result = result.to_complex() if result.floating else dtype
    return result


DEPENDS_ON_DEFAULT.append(promote.cache_clear)  # type: ignore[attr-defined]
