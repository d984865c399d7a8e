"""The device "meta": tensors with a shape, a dtype and strides, but without elements.

Every op runs there by its shape rule alone, so a model of any size costs no memory. Reading elements is a DeviceError.
Read next: `../core/backend.py`, the methods that a device has.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Hashable
from typing import Any, NoReturn

import numpy as np

from ..core.backend import Backend, Memory, register_backend
from ..core.base.errors import DeviceError
from ..core.kernels import REFERENCE, SELECTORS, Selection, call_on, use_platforms
from ..core.op import Op
from ..core.source_location import fail
from ..core.spec import DEVICE_OF_ARRAY, Device

META = Device("meta")


class MetaArray:
    """The shape, dtype and strides of an array. probe: a NumPy array that has them, over one element of memory: its
    other elements must never be read.  base: None, or the array of which this one is a view.
    """

    def __init__(self, probe: np.ndarray, base: MetaArray | None = None):
        self.probe, self.base = probe, base

    shape, dtype, ndim, size, itemsize, nbytes, strides, flags = [
        property(operator.attrgetter(f"probe.{name}"))
        for name in ("shape", "dtype", "ndim", "size", "itemsize", "nbytes", "strides", "flags")
    ]

    def reshape(self, *shape: Any) -> MetaArray:
        """A view if the elements are contiguous; else, where NumPy would copy elements, a new array."""
        base = self if self.flags.c_contiguous else contiguous(self.shape, self.dtype)
        return MetaArray(base.probe.reshape(*shape), base)

    def __getitem__(self, index: Any) -> MetaArray:
        return MetaArray(self.probe[index], self)

    def __setitem__(self, index: Any, value: Any) -> None:
        """Do nothing: elements do not exist."""

    def fill(self, value: Any) -> None:
        """Do nothing: elements do not exist."""

    def copy(self) -> MetaArray:
        return contiguous(self.shape, self.dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        refuse_read(self)


def contiguous(shape: tuple[int, ...], dtype: Any) -> MetaArray:
    """The array of a new tensor, in C order."""
    one = np.empty(1, dtype)
    steps = [one.itemsize]
    for size in shape[:0:-1]:
        steps.append(steps[-1] * max(size, 1))
    return MetaArray(np.lib.stride_tricks.as_strided(one, shape, steps[::-1] if shape else ()))


def refuse_read(array: MetaArray) -> NoReturn:
    what = f"elements of a tensor on the device meta are read, which has none: {array.dtype.name}{list(array.shape)}"
    fail(DeviceError, what, 'model.to_empty(device="cpu") and load_state_dict, or make the tensor on the CPU')


class MetaBackend(Backend):
    """Arrays without elements."""

    namespace = np
    array_type = MetaArray
    has_elements = False
    empty = unread = staticmethod(contiguous)
    to_host = staticmethod(refuse_read)

    @classmethod
    def count(cls) -> int:
        return 1

    def copy(self, array: Any) -> MetaArray:
        return contiguous(array.shape, array.dtype)

    from_host = copy

    def owner(self, array: MetaArray) -> object:
        while array.base is not None:
            array = array.base
        return array

    def storage_key(self, array: MetaArray) -> Hashable:
        return array.probe.__array_interface__["data"][0]

    def byte_bounds(self, array: MetaArray) -> tuple[int, int]:
        return np.lib.array_utils.byte_bounds(array.probe)

    def free_bytes_if_short(self, needed: int) -> None:
        return None

    def memory(self) -> Memory:
        return Memory(0, 0, 0, 0, 0)


def view_of(op: Op, x: MetaArray, *others: Any, **attrs: Any) -> MetaArray:
    """The result of a view op, whose reference kernel computes strides."""
    if op.checks:
        return x
    if op.name == "reshape":
        return x.reshape(attrs["shape"])
    return MetaArray(call_on(op, REFERENCE)(x.probe, *[getattr(y, "probe", y) for y in others], **attrs), x)


def no_kernel(*arrays: Any, out: Any = None, **attrs: Any) -> Any:
    """The kernel of all ops whose results the shape rule describes: there is nothing to compute."""
    if out is None:  # the shape depends on elements
        refuse_read(arrays[0])
    return out


def selection(op: Op) -> Selection:
    """The kernel of an op on this device."""
    if not op.is_view:
        return Selection(no_kernel, None, None, ("meta",))
    view = functools.partial(view_of, op)
    return Selection(view, lambda *specs, **attrs: functools.partial(view, **attrs), None, ("meta",))


def load() -> tuple[str, str]:
    """Register the device."""
    register_backend("meta", MetaBackend)
    DEVICE_OF_ARRAY[MetaArray] = lambda array: META
    SELECTORS["meta"] = selection
    use_platforms("meta", ("meta",))
    return "", ""
