"""New tensors of numbers or of one number, without their class: the mode makes one of an array, a rule is an op.

The creation functions and `x.new_zeros(2)` call these. Read next: `creation.py`.
"""

from __future__ import annotations

import numpy as np

from ..arrays import array_of
from ..base.errors import DTypeError, ShapeError
from ..infer import check_memory
from ..mode import MODE
from ..ops.shape import full
from ..spec import Spec, as_dtype
from ..source_location import fail
from .arguments import integer, is_tensor, several


def finish(result, device, requires_grad: bool):
    """A new tensor on its device, and as a leaf if it is to have a gradient."""
    if device is not None:
        result = result.to(device=device)
    return result.requires_grad_() if requires_grad else result


def size_of(sizes: tuple, size=None) -> tuple[int, ...]:
    """The shape that `zeros(2, 3)`, `zeros((2, 3))` and `zeros(size=(2, 3))` mean."""
    size = sizes if size is None else (size,)
    if len(size) == 1 and several(size[0]):
        size = tuple(size[0])
    shape = tuple([integer(n, "size") for n in size])
    if any(n < 0 for n in shape):
        fail(ShapeError, f"a shape with a negative size: {shape}", "sizes are 0 or more", shape=shape)
    return shape


def number_of(number, by: str, name: str, example: str):
    """What is filled in: a number, or a tensor of one."""
    if is_tensor(number):
        return number.item()
    if not isinstance(number, int | float | complex | np.number | np.bool_):
        fail(DTypeError, f"{by}: {name} is {number!r}, where a number is wanted", example, **{name: number})
    return number


def full_of(size, number, dtype=None):
    """A tensor of one number, in its own dtype if none is asked for."""
    number = number_of(number, "full", "fill_value", "full((2, 3), 1.5)")
    if is_tensor(size) and size.ndim:
        what = "full: the size is a tensor, where integers are wanted"
        fail(ShapeError, what, "full_like(tensor, ...), or tensor.shape", size=size)
    return full(shape=size_of((size,)), value=number, dtype=as_dtype(dtype if dtype is not None else type(number)))


def zeros_of(shape: tuple[int, ...], dtype):
    return full(shape=shape, value=0, dtype=as_dtype(dtype))


def ones_of(shape: tuple[int, ...], dtype):
    return full(shape=shape, value=1, dtype=as_dtype(dtype))


def empty_of(shape: tuple[int, ...], dtype):
    """Whatever lay in the memory; zeros while tracing, where there is none."""
    if MODE.get().trace:
        return zeros_of(shape, dtype)
    check_memory("empty", [Spec(shape, as_dtype(dtype))])
    return MODE.get().constant(np.empty(shape, as_dtype(dtype).np))


def copy_of(data, dtype=None):
    """A tensor of its own with the numbers of `data`."""
    dtype = None if dtype is None else as_dtype(dtype)
    if is_tensor(data):
        copy = data.detach().clone()
        return copy if dtype is None else copy.to(dtype)
    return MODE.get().constant(array_of(data, dtype))
