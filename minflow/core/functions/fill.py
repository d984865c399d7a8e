"""New tensors from data or from one value, without importing the Tensor class.

The creation functions and `x.new_zeros(2)` call these. Data is passed to the mode; a rule is an op. Read next:
`creation.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..arrays import array_of
from ..backend import backend_of, empty
from ..base.errors import DTypeError, ShapeError
from ..host import python_number
from ..infer import check_memory
from ..mode import MODE
from ..ops.shape import full
from ..source_location import fail
from ..spec import Device, Spec, as_dtype, cpu
from .arguments import integer, is_sequence, is_tensor

if TYPE_CHECKING:
    from ..base.dtypes import DTypeLike
    from ..tensor import Tensor


def finish(result: Tensor, device: Device | str | None, requires_grad: bool) -> Tensor:
    """Return a new tensor on its device, as a leaf if requires_grad."""
    return as_leaf(result if device is None else result.to(device=device), requires_grad)


def as_leaf(result: Tensor, requires_grad: bool) -> Tensor:
    return result.requires_grad_() if requires_grad else result


def place_of(device: Device | str | None) -> Device | None:
    """The device that a program names for a new tensor. Raises DeviceError if it is not available."""
    return None if device is None else backend_of(Device(device)).device


def size_of(sizes: tuple, size: Any = None) -> tuple[int, ...]:
    """The shape of `zeros(2, 3)`, `zeros((2, 3))` or `zeros(size=(2, 3))`."""
    size = sizes if size is None else (size,)
    if len(size) == 1 and is_sequence(size[0]):
        size = tuple(size[0])
    shape = tuple([integer(n, "size") for n in size])
    if any(n < 0 for n in shape):
        fail(ShapeError, f"sizes must be at least 0, got {shape}", "sizes are 0 or more", shape=shape)
    return shape


def number_of(number: Any, by: str, name: str, example: str) -> Any:
    """Return a fill value, given as a number or a one-element tensor, as a number."""
    if is_tensor(number):
        return number.item()
    if not isinstance(python_number(number), int | float | complex):
        fail(DTypeError, f"{by}: {name} must be a number, got {number!r}", example, **{name: number})
    return number


def full_of(size: Any, number: Any, dtype: DTypeLike | None = None, device: Device | None = None) -> Tensor:
    """A tensor filled with one value, of the value's own dtype if dtype is None."""
    number = number_of(number, "full", "fill_value", "full((2, 3), 1.5)")
    if is_tensor(size) and size.ndim:
        what = "full: the size must be integers, got a tensor"
        fail(ShapeError, what, "full_like(tensor, ...), or tensor.shape", size=size)
    return full_on(device, size_of((size,)), number, dtype if dtype is not None else type(number))


def zeros_of(shape: tuple[int, ...], dtype: DTypeLike, device: Device | None = None) -> Tensor:
    return full_on(device, shape, 0, dtype)


def ones_of(shape: tuple[int, ...], dtype: DTypeLike, device: Device | None = None) -> Tensor:
    return full_on(device, shape, 1, dtype)


def full_on(device: Device | None, shape: tuple[int, ...], value: Any, dtype: DTypeLike) -> Tensor:
    place = {} if device is None or device is cpu else {"device": device}  # a graph for the CPU names no device
    return full(shape=shape, value=value, dtype=as_dtype(dtype), **place)


def empty_of(shape: tuple[int, ...], dtype: DTypeLike, device: Device | None = None) -> Tensor:
    """An uninitialized tensor; zeros in a trace, which has no memory."""
    if MODE.get().trace:
        return zeros_of(shape, dtype, device)
    spec = Spec(shape, as_dtype(dtype), device or cpu)
    check_memory("empty", [spec])
    return MODE.get().constant(empty(spec), spec.device)


def copy_of(data: Any, dtype: DTypeLike | None = None, device: Device | None = None) -> Tensor:
    """A tensor with its own copy of `data`."""
    dtype = None if dtype is None else as_dtype(dtype)
    if is_tensor(data):
        return data.detach().clone().to(dtype=dtype, device=device)
    return MODE.get().constant(array_of(data, dtype), device or cpu)
