"""New tensors from data or from one value, without importing the Tensor class.

The creation functions and `x.new_zeros(2)` call these. Data is passed to the mode; a rule is an op. Read next:
`creation.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..arrays import array_of, leaf_dtypes, promote_types
from ..backend import backend_of, backend_of_array, device_array, empty, on_device
from ..base.errors import DTypeError, SbpError, ShapeError
from ..base.placement import Placement, SbpLike, broadcast, parse_sbp
from ..context import world
from ..host import python_number
from ..infer import check_memory
from ..mode import MODE
from ..ops.global_tensors import as_global, share
from ..ops.shape import cat, clone, expand, full
from ..overrides import DisableTorchFunctionSubclass
from ..sharding import coordinates, local_slices, local_spec
from ..source_location import fail
from ..spec import DEFAULT_DEVICE, DEFAULT_DEVICES, Device, DType, Spec, as_dtype, cpu
from .arguments import integer, is_sequence, is_symbolic, is_tensor

if TYPE_CHECKING:
    from ..base.dtypes import DTypeLike
    from ..tensor import Tensor


class Ranks(NamedTuple):
    """The placement and the sbp that a program names for new global tensors."""

    placement: Placement
    sbp: SbpLike


Place: TypeAlias = Device | Ranks | None  # of a new tensor; None for the CPU
GLOBAL_MODE: ContextVar[Ranks | None] = ContextVar("global_mode", default=None)  # see `utils/global_view.py`


def finish(result: Tensor, place: Place | str, requires_grad: bool) -> Tensor:
    """Return a new tensor in its place, as a leaf if requires_grad."""
    if isinstance(place, Ranks) and result.spec.placement is not None:
        result = result.to_global(place.placement, place.sbp)
    elif isinstance(place, Ranks):
        whole = result
        result = global_of(place, whole.spec, lambda part: clone(whole[part]), differs=True)
    elif place is not None:
        result = result.to(device=place)
    return as_leaf(result, requires_grad)


def as_leaf(result: Tensor, requires_grad: bool) -> Tensor:
    return result.requires_grad_() if requires_grad else result


def place_of(
    device: Device | str | int | None, placement: Placement | None = None, sbp: SbpLike | None = None
) -> Place:
    """The place that a program names for a new tensor: that of the current `global_mode`, the device, or the default
    device. Raises DeviceError for a device that is not available, and SbpError for a placement without sbp or with a
    device.
    """
    if placement is None and sbp is None:
        if device is None:
            blocks = DEFAULT_DEVICES.get()
            device = blocks[-1] if blocks else DEFAULT_DEVICE.get()
        return GLOBAL_MODE.get() or (None if device is None else backend_of(Device(device)).device)
    if placement is None or sbp is None or device is not None:
        what = "a new global tensor needs a placement and an sbp, and no device"
        hint = 'placement=flow.placement("cpu", ranks=[0, 1]), sbp=flow.sbp.broadcast'
        fail(SbpError, what, hint, placement=placement, sbp=sbp, device=device)
    return Ranks(placement, sbp)


def set_default_device(device: Device | str | int | None) -> None:
    """Make `device` that of new tensors for which the program names none, in this thread; None is the CPU. A block
    `with flow.device(...)` takes precedence. Raises DeviceError for a device that is not available.
    """
    DEFAULT_DEVICE.set(None if device is None else backend_of(Device(device)).device)


def get_default_device() -> Device:
    """Return the device of new tensors for which the program names none."""
    place = place_of(None)
    return place if isinstance(place, Device) else cpu


def place_like(input: Tensor, device: Any, placement: Placement | None = None, sbp: SbpLike | None = None) -> Place:
    """The place of a new tensor, by default that of another tensor."""
    own = input.spec
    if device is None and own.placement is not None:
        return place_of(None, placement or own.placement, own.sbp if sbp is None else sbp)
    if placement is None and sbp is None:
        return Device(input.device) if device is None else backend_of(Device(device)).device
    return place_of(device, placement, sbp)


def global_of(ranks: Ranks, spec: Spec, part_of: Callable[[tuple[slice, ...]], Any], differs: bool = False) -> Tensor:
    """A global tensor of which each rank computes its part. The parts of partial sums are 0 but for the first one.

    spec: its shape and dtype.  part_of: a function of the part as an index, which returns the elements.
    differs: True if ranks may compute different elements for one part; then those of the first one count.
    """
    placement, sbp = ranks.placement, parse_sbp(ranks.sbp, ranks.placement, spec.ndim)
    placement.check_world()
    rank, device = world().rank, backend_of(Device(placement.type)).device
    spec = spec.replace(device=device, placement=placement, sbp=sbp)
    index, at = local_slices(spec, rank), coordinates(placement, rank)
    if index is None or at is None or any(i and s.kind == "partial_sum" for i, s in zip(at, sbp)):
        part = full_on(device, local_spec(spec, rank).shape, 0, spec.dtype)
    else:
        part = part_of(index).to(device=device)
    target = placement, sbp
    part = share(part, target=target) if differs and broadcast in sbp else part
    return as_global(part, shape=spec.shape, target=target, rank=rank)


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


def full_of(size: Any, number: Any, dtype: DTypeLike | None = None, place: Place = None) -> Tensor:
    """A tensor filled with one value, of the value's own dtype if dtype is None."""
    if not is_symbolic(number):
        number = number_of(number, "full", "fill_value", "full((2, 3), 1.5)")
    if is_tensor(size) and size.ndim:
        what = "full: the size must be integers, got a tensor"
        fail(ShapeError, what, "full_like(tensor, ...), or tensor.shape", size=size)
    if is_symbolic(number) and not isinstance(place, Ranks):
        spec = Spec(size_of((size,)), number.spec.dtype if dtype is None else as_dtype(dtype))
        return clone(expand(number.detach().reshape(()).to(dtype=spec.dtype, device=place), shape=spec.shape))
    return full_on(place, size_of((size,)), number, dtype if dtype is not None else number.__class__)


def zeros_of(shape: tuple[int, ...], dtype: DTypeLike, place: Place = None) -> Tensor:
    return full_on(place, shape, 0, dtype)


def ones_of(shape: tuple[int, ...], dtype: DTypeLike, place: Place = None) -> Tensor:
    return full_on(place, shape, 1, dtype)


def full_on(place: Place, shape: tuple[int, ...], value: Any, dtype: DTypeLike) -> Tensor:
    dtype = as_dtype(dtype)
    if isinstance(place, Ranks):
        return global_of(place, Spec(shape, dtype), lambda part: full_on(None, sizes_of(part), value, dtype))
    return full(shape=shape, value=value, dtype=dtype, **device_attr(place))


def device_attr(place: Device | None) -> dict[str, Any]:
    """The attr of an op that creates a tensor on a device. A graph for the CPU names no device."""
    return {} if place is None or place is cpu else {"device": place}


def sizes_of(index: tuple[slice, ...]) -> tuple[int, ...]:
    return tuple([part.stop - part.start for part in index])


def empty_of(shape: tuple[int, ...], dtype: DTypeLike, place: Place = None) -> Tensor:
    """An uninitialized tensor; zeros in a trace, which has no memory, and on several ranks."""
    if MODE.get().trace or isinstance(place, Ranks):
        return zeros_of(shape, dtype, place)
    spec = Spec(shape, as_dtype(dtype), place or cpu)
    check_memory("empty", [spec])
    return MODE.get().constant(empty(spec), spec.device)


def copy_of(data: Any, dtype: DTypeLike | None = None, place: Place = None) -> Tensor:
    """A tensor with its own copy of `data`; on several ranks, of its part of it."""
    dtype = None if dtype is None else as_dtype(dtype)
    if isinstance(place, Ranks):
        return finish(copy_of(data, dtype), place, False)
    if is_tensor(data):
        with DisableTorchFunctionSubclass():  # a plain tensor, as in PyTorch
            return data.detach().clone().to(dtype=dtype, device=place)
    if (array := device_array(data)) is not None:
        target = place or backend_of_array(array).device
        return MODE.get().constant(on_device(array, target), target).to(dtype=dtype)
    if MODE.get().trace is not None and has_symbols(data):
        return stacked(data, functools.reduce(promote_types, leaf_dtypes(data)) if dtype is None else dtype, place)
    return MODE.get().constant(array_of(data, dtype), place or cpu)


def has_symbols(data: Any) -> bool:
    """True if nested lists contain a symbolic tensor."""
    return any(map(has_symbols, data)) if issubclass(type(data), list | tuple) else is_symbolic(data)


def stacked(data: Any, dtype: DType, place: Device | None) -> Tensor:
    """A tensor of nested lists that contain symbolic tensors of one element."""
    if isinstance(data, list | tuple):
        return cat(*[stacked(x, dtype, place).unsqueeze(0) for x in data], dim=0)
    if not is_symbolic(data):
        return copy_of(data, dtype, place)
    if data.spec.size != 1:
        what = f"tensor() of lists: a tensor in them must have one element, got shape {data.spec.shape}"
        fail(ShapeError, what, "flow.stack([...]) or flow.cat([...]) of tensors", element=data)
    return data.detach().reshape(()).to(dtype=dtype, device=place)
