"""Creating tensors: from data, from a rule, from random bits.

Eager code gets concrete tensors. In a trace, a rule (`zeros`, `randn`) becomes a node, and a tensor made from data is a
constant. The parts that do not need the Tensor class are in `fill.py`; this module handles arguments.
layout, pin_memory and memory_format are accepted and ignored: every tensor is strided, and `Tensor.pin_memory` pins.
placement, sbp: of a new global tensor, in place of a device. All ranks call the function with the same arguments.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

from .. import functions as F
from ..arrays import copy_keeping_strides, storage_of
from ..backend import Array, device_array, namespace, on_device, on_host
from ..base.errors import DTypeError, OutOfRangeError, ShapeError
from ..base.legacy_dispatch import overloaded
from ..functionalize import Alias, external_users_of, version_counter_of
from ..host import HostArray, host_array, python_number
from ..infer import check_memory
from ..kernels import kernel
from ..methods.sparse import SparseMethods
from ..mode import MODE
from ..ops import shape as s
from ..ops.rules import broadcast_shape
from ..source_location import fail
from ..spec import Device, DType, Spec, as_dtype, cpu, default_dtype, int64, spec_of
from ..symbolic_shapes import SymInt, plain
from ..tensor import Size, Tensor
from .arguments import common_shape, float_or_symbol, integer
from .fill import as_leaf, copy_of, empty_of, finish, full_of, ones_of, place_like, place_of, size_of, zeros_of
from .sparse import SPARSE_TYPES, as_sparse
from .windows import evenly_spaced

if TYPE_CHECKING:
    from ..base.dtypes import DTypeLike
    from ..base.placement import Placement, SbpLike
    from ..random import Generator
    from .memory_format import Layout


def is_tensor(x: Tensor) -> bool:
    """True if x is a Tensor."""
    return isinstance(x, Tensor)


def tensor(
    data: Any,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    *,
    placement: Placement | None = None,
    sbp: SbpLike | None = None,
    layout: Layout | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """A new tensor that copies `data`: a number, nested lists, a numpy array or a tensor.

    Floats become the default dtype (float32), integers int64; arrays keep their dtype.

    >>> tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]], dtype=minflow.int64)
    """
    return as_leaf(copy_of(data, dtype, place_of(device, placement, sbp)), requires_grad)


def as_tensor(data: Any, dtype: DTypeLike | None = None, device: Device | str | None = None) -> Tensor:
    """A tensor that shares the memory of `data` if possible: a tensor is returned unchanged, an array is wrapped."""
    if isinstance(data, Tensor):
        return data.to(dtype=dtype, device=device) if dtype is not None or device is not None else data
    if isinstance(data, HostArray) and (dtype is None or as_dtype(dtype).np == data.dtype):
        return finish(from_numpy(data), place_of(device), False)
    if (array := device_array(data)) is not None:
        return sharing(array).to(dtype=dtype, device=device)
    return tensor(data, dtype, device)


def from_numpy(array: HostArray) -> Tensor:
    """A tensor that shares the memory of a NumPy array: a write to one is visible in the other. In a trace it is a
    constant with the elements that the array holds at that time.
    """
    if not isinstance(array, HostArray):
        what = f"from_numpy() takes a NumPy array, not {type(array).__name__}"
        fail(DTypeError, what, "flow.tensor(...)", data=array)
    return sharing(array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("=")))


def sharing(array: Array) -> Tensor:
    """A tensor that shares the memory of an array of a backend, on any device; in a trace, a constant."""
    trace = MODE.get().trace
    if trace is not None:
        array = copy_keeping_strides(array) if on_host(array) else on_device(array, spec_of(array).device)
    result = Tensor(array, spec_of(array))
    if array.flags.c_contiguous:
        return constant_or_lent(result, result, trace)
    if any(n < 0 for n in array.strides):
        what = "a tensor cannot share the memory of an array with negative strides"
        fail(ShapeError, what, "array.copy()", strides=array.strides)
    # a strided array is a view of all elements from its first to its last; a field of a structured array, of its first
    whole = storage_of(array)
    base = Tensor(whole, Spec(whole.shape, as_dtype(array.dtype)))
    path = ((strided_look, {"shape": array.shape, "strides": array.strides}),)
    result._alias, result._version_counter = Alias(base, path, None), version_counter_of(base)
    return constant_or_lent(result, base, trace)


def constant_or_lent(result: Tensor, base: Tensor, trace: Any) -> Tensor:
    """A tensor of an array from outside; base: the tensor of its storage."""
    if trace is not None:
        if on_host(base.array):
            base.array.flags.writeable = result.array.flags.writeable = False
        trace.created[id(base.array)] = base.array
    else:
        external_users_of(base).lent = True
    return result


strided_look = s.define(
    "strided_look(x; shape, strides)",
    infer=lambda x, shape, strides: x.replace(shape=shape),
    is_view=True,
    storable=False,
    doc="View of a foreign NumPy array that is not contiguous, from its first element by its strides in bytes.",
)
kernel(strided_look, lambda xp, x, shape, strides: xp.lib.stride_tricks.as_strided(x, shape, strides))


def frombuffer(
    buffer: Any, *, dtype: DTypeLike, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A tensor over the memory of a bytearray, an array.array or similar: `count` elements of a dtype, from byte
    `offset` on. The tensor is read-only if the memory is, as for bytes.
    """
    dtype = as_dtype(dtype)
    try:
        array = namespace().frombuffer(buffer, dtype.np, count, offset)
    except (TypeError, ValueError, BufferError) as error:
        fail(
            ShapeError if isinstance(error, ValueError) else DTypeError,
            f"frombuffer of {type(buffer).__name__}: {error}",
            "a bytearray of a whole number of elements",
            dtype=dtype.name,
            count=count,
            offset=offset,
        )
    return finish(from_numpy(array), None, requires_grad)


DLPACK_CUDA = 2  # the type of GPUs: DLDeviceType of dlpack.h


class Capsule:
    """Wraps the capsule that another library's `to_dlpack` returned in an object with `__dlpack__`."""

    def __init__(self, capsule: Any):
        self.capsule = capsule
        address = ctypes.pythonapi.PyCapsule_GetPointer
        address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        # a DLTensor begins with the address of the elements, the type of the device and its number
        self.device = (ctypes.c_int32 * 2).from_address(address(capsule, b"dltensor") + ctypes.sizeof(ctypes.c_void_p))

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return tuple(self.device)


def from_dlpack(ext_tensor: Any, *, device: Device | str | None = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares the memory of another library's array, through DLPack; a copy if `copy=True`.

    ext_tensor: has `__dlpack__`, or is a capsule, which can be used once.  device: that of the result, by default that
    of `ext_tensor`.
    """
    theirs = Capsule(ext_tensor) if type(ext_tensor).__name__ == "PyCapsule" else ext_tensor
    kind, index = theirs.__dlpack_device__()
    here = Device("cuda", index) if kind == DLPACK_CUDA else cpu
    result = sharing(namespace(here).from_dlpack(theirs))
    return result.to(device=device, copy=bool(copy))


def full(
    size: int | Sequence[int],
    fill_value: Tensor | float,
    *,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    placement: Placement | None = None,
    sbp: SbpLike | None = None,
    layout: Layout | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor filled with one value. dtype: by default that of the value."""
    return as_leaf(full_of(size, fill_value, dtype, place_of(device, placement, sbp)), requires_grad)


@overloaded
def zeros(
    *shape: int | Sequence[int],
    size: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    placement: Placement | None = None,
    sbp: SbpLike | None = None,
    layout: Layout | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor of zeros; `zeros(2, 3)` or `zeros((2, 3))`."""
    place = place_of(device, placement, sbp)
    return as_leaf(zeros_of(size_of(shape, size), float if dtype is None else dtype, place), requires_grad)


@overloaded
def ones(
    *shape: int | Sequence[int],
    size: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    placement: Placement | None = None,
    sbp: SbpLike | None = None,
    layout: Layout | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor of ones."""
    place = place_of(device, placement, sbp)
    return as_leaf(ones_of(size_of(shape, size), float if dtype is None else dtype, place), requires_grad)


def empty(
    *shape: int | Sequence[int],
    size: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    placement: Placement | None = None,
    sbp: SbpLike | None = None,
    layout: Layout | None = None,
    pin_memory: bool = False,
    memory_format: Layout | None = None,
) -> Tensor:
    """An uninitialized tensor (zeros in a trace)."""
    place = place_of(device, placement, sbp)
    return as_leaf(empty_of(size_of(shape, size), float if dtype is None else dtype, place), requires_grad)


@overloaded
def zeros_like(
    input: Tensor,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    *,
    placement: Placement | None = None,
    sbp: SbpLike | None = None,
    layout: Layout | None = None,
    pin_memory: bool = False,
    memory_format: Layout | None = None,
) -> Tensor:
    """Zeros of the shape, dtype and device of `input`."""
    dtype = input.dtype if dtype is None else dtype
    place = place_like(input, device, placement, sbp)
    return as_leaf(zeros_of(size_of((input.shape,)), dtype, place), requires_grad)


@overloaded
def ones_like(
    input: Tensor,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    *,
    placement: Placement | None = None,
    sbp: SbpLike | None = None,
    layout: Layout | None = None,
    pin_memory: bool = False,
    memory_format: Layout | None = None,
) -> Tensor:
    """Ones of the shape, dtype and device of `input`."""
    dtype = input.dtype if dtype is None else dtype
    place = place_like(input, device, placement, sbp)
    return as_leaf(ones_of(size_of((input.shape,)), dtype, place), requires_grad)


def new_ones(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Ones of the dtype of `input`, and of its shape if size is None."""
    return input.new_ones(
        input.shape if size is None else size, dtype=dtype, device=device, requires_grad=requires_grad
    )


def broadcast_shapes(*shapes: int | Sequence[int]) -> Size:
    """The shape to which tensors of these shapes broadcast. Raises ShapeError if two sizes differ."""
    tuples = [size_of((n,)) for n in shapes]
    try:
        return Size(broadcast_shape("broadcast_shapes", dict(zip(map(str, range(len(tuples))), tuples))))
    except ShapeError:
        what = "broadcast_shapes: two sizes differ, and none of them is 1"
        fail(ShapeError, what, "axes are compared from the right and must be equal or 1", shapes=tuples)


def full_like(
    input: Tensor,
    fill_value: Tensor | float,
    *,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    placement: Placement | None = None,
    sbp: SbpLike | None = None,
    layout: Layout | None = None,
    pin_memory: bool = False,
    memory_format: Layout | None = None,
) -> Tensor:
    """A tensor filled with one value, with the shape, dtype and device of `input`."""
    dtype = input.dtype if dtype is None else dtype
    place = place_like(input, device, placement, sbp)
    return as_leaf(full_of(input.shape, fill_value, dtype, place), requires_grad)


def empty_like(
    input: Tensor,
    *,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    placement: Placement | None = None,
    sbp: SbpLike | None = None,
    layout: Layout | None = None,
    pin_memory: bool = False,
    memory_format: Layout | None = None,
) -> Tensor:
    """An uninitialized tensor with the shape, dtype and device of `input`."""
    dtype = input.dtype if dtype is None else dtype
    place = place_like(input, device, placement, sbp)
    return as_leaf(empty_of(size_of((input.shape,)), dtype, place), requires_grad)


def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    placement: Placement | None = None,
    sbp: SbpLike | None = None,
    layout: Layout | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """`(n, m)`: ones on the diagonal, zeros elsewhere."""
    n, m = integer(n, "n"), m if m is None else integer(m, "m")
    dtype = as_dtype(float if dtype is None else dtype)
    if n >= 0 and (m is None or m >= 0):
        check_memory("eye", [Spec((n, n if m is None else m), dtype)])
    return tensor(namespace().eye(n, m, dtype=dtype.np), None, device, requires_grad, placement=placement, sbp=sbp)


def check_steps(first: Any, last: Any, gap: Any) -> None:
    """Raise OutOfRangeError unless steps of `gap` lead from `first` to `last`."""
    if not all(math.isfinite(x) for x in (first, last, gap)):
        what = f"arange: start, end and step must be finite, got {first}, {last} and {gap}"
        fail(OutOfRangeError, what, "finite numbers", start=first, end=last, step=gap)
    if gap == 0 or (last - first) / gap < 0:
        what = f"arange: the step must lead from {first} to {last}, got {gap}"
        fail(OutOfRangeError, what, "a nonzero step with the sign of end - start", step=gap)


def arange(
    start: float | None = None,
    end: float | None = None,
    step: float = 1,
    *,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    placement: Placement | None = None,
    sbp: SbpLike | None = None,
    layout: Layout | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """Values from start (default 0) up to but not including end. int64 if all three are integers."""
    if start is end is None:
        fail(OutOfRangeError, "arange() needs an end", "arange(10), or arange(1, 10)", start=start, end=end)
    start, end = (0, start) if end is None else (0 if start is None else start, end)
    if any(getattr(x, "shape", ()) for x in (start, end, step)):
        what = "arange: start, end and step must be one number each"
        fail(ShapeError, what, "x.item()", start=start, end=end, step=step)
    bounds: list[Any] = [x.item() if isinstance(x, Tensor) else python_number(x) for x in (start, end, step)]
    first, last, gap = bounds
    if any([type(x) is SymInt for x in bounds]) and all([isinstance(x, int) for x in bounds]):
        result = symbolic_range(first, last, gap, int64 if dtype is None else as_dtype(dtype))
        return finish(result, place_of(device, placement, sbp), requires_grad)
    check_steps(first, last, gap)
    if dtype is None:
        dtype = int64 if all(isinstance(x, int) for x in bounds) else default_dtype()
    if any(isinstance(x, int) and not -(2**63) <= x < 2**63 for x in (first, last)):
        what = f"arange from {first} to {last} goes beyond int64"
        fail(OutOfRangeError, what, "numbers below 2**63", start=first, end=last)
    if as_dtype(dtype) is int64:  # fractions are truncated first, as in PyTorch
        if not int(gap):
            fail(OutOfRangeError, f"arange: a step of {gap} is 0 in int64", "flow.arange(...).long()", step=gap)
        first, last, gap = int(first), int(last), int(gap)
    check_memory("arange", [Spec((math.ceil(min((last - first) / gap, 2.0**63)),), as_dtype(dtype))])
    elements = namespace().arange(first, last, gap)
    if elements.dtype.kind == "f":  # NumPy accumulates a rounded step: -2.8e-14 for 0
        elements = first + gap * namespace().arange(len(elements))
    return tensor(elements, dtype, device, requires_grad, placement=placement, sbp=sbp)


def symbolic_range(first: int, last: int, gap: int, dtype: DType) -> Tensor:
    """`arange` of symbolic sizes: a constant whose elements follow from them."""
    numbers: tuple[Any, ...] = first, last, gap
    env = next(x.env for x in numbers if type(x) is SymInt)
    bounds = [*map(plain, numbers)]
    check_steps(*bounds)
    env.decide("<=", *((first, last) if bounds[2] > 0 else (last, first)))
    result = tensor(namespace().arange(*bounds), dtype)
    result.spec = result.spec.replace(shape=(-((first - last) // gap),))
    env.ranges[id(result.array)] = result.array, first, last, gap
    return result


def linspace(
    start: float,
    end: float,
    steps: int,
    *,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    placement: Placement | None = None,
    sbp: SbpLike | None = None,
    layout: Layout | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """`steps` equally spaced values from start to end, both included."""
    check_count("linspace", steps)
    dtype = as_dtype(default_dtype() if dtype is None else dtype)
    check_memory("linspace", [Spec((int(steps),), dtype)])
    if dtype.floating:
        elements = evenly_spaced(float_or_symbol(start), float_or_symbol(end), steps)
        return tensor(elements, dtype, device, requires_grad, placement=placement, sbp=sbp)
    for name, x in (("start", start), ("end", end)):
        if not math.isfinite(x):
            what = f"linspace: {name} is {x}, which {dtype.name} cannot hold"
            fail(OutOfRangeError, what, "finite ends", dtype=dtype)
    first, last = [int(host_array(int(x)).astype(dtype.np)) for x in (start, end)]  # the ends are truncated first
    xp = namespace()
    step, n = (last - first) / max(steps - 1, 1), xp.arange(steps)
    elements = xp.where(n < steps // 2, first + step * n, last - step * (steps - 1 - n))
    data = elements if steps != 1 else [first]
    return tensor(data, dtype, device, requires_grad, placement=placement, sbp=sbp)


def check_count(name: str, n: int) -> None:
    if not isinstance(n, Integral) or n is True or n is False or n < 0:
        what = f"{name}: the number of elements must be an integer of at least 0, got {n!r}"
        fail(OutOfRangeError, what, f"{name}(..., 10)", number=n)


# ---- random ------------------------------------------------------------------------------------------------------


def rand(
    *shape: int | Sequence[int],
    size: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    generator: Generator | None = None,
    requires_grad: bool = False,
    placement: Placement | None = None,
    sbp: SbpLike | None = None,
    layout: Layout | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """Uniform random values in [0, 1)."""
    dtype, place = as_dtype(float if dtype is None else dtype), place_of(device, placement, sbp)
    return finish(F.uniform(size_of(shape, size), 0.0, 1.0, dtype, generator, place), place, requires_grad)


def randn(
    *shape: int | Sequence[int],
    size: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    generator: Generator | None = None,
    requires_grad: bool = False,
    placement: Placement | None = None,
    sbp: SbpLike | None = None,
    layout: Layout | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """Normal random values with mean 0 and standard deviation 1."""
    dtype, place = as_dtype(float if dtype is None else dtype), place_of(device, placement, sbp)
    return finish(F.normal_of(size_of(shape, size), 0.0, 1.0, dtype, generator, place), place, requires_grad)


def randint(
    low: int = 0,
    high: int | None = None,
    size: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    generator: Generator | None = None,
    requires_grad: bool = False,
    *,
    placement: Placement | None = None,
    sbp: SbpLike | None = None,
    layout: Layout | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """Random integers in [low, high); `randint(high, size)` starts at 0."""
    if size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    dtype, place = as_dtype(int if dtype is None else dtype), place_of(device, placement, sbp)
    return finish(F.randint_of(size_of((size,)), low, high, dtype, generator, place), place, requires_grad)


def randperm(
    n: int,
    *,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    generator: Generator | None = None,
    requires_grad: bool = False,
    placement: Placement | None = None,
    sbp: SbpLike | None = None,
    layout: Layout | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """0 to n - 1 in random order."""
    check_count("randperm", n)
    dtype, place = as_dtype(int if dtype is None else dtype), place_of(device, placement, sbp)
    return finish(F.randperm_of(n, dtype, generator, place), place, requires_grad)


def normal(
    mean: Tensor | float,
    std: Tensor | float = 1.0,
    size: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    generator: Generator | None = None,
    requires_grad: bool = False,
    *,
    placement: Placement | None = None,
    sbp: SbpLike | None = None,
    layout: Layout | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """Normal random values; mean and std are numbers (then size is required) or tensors."""
    if isinstance(std, int | float) and not std >= 0:
        fail(OutOfRangeError, f"normal: the standard deviation must be at least 0, got {std}", "std=1.0", std=std)
    if size is None:
        shape = common_shape("normal", {name: x for name, x in (("mean", mean), ("std", std)) if isinstance(x, Tensor)})
        dtype = next((x.dtype for x in (mean, std) if isinstance(x, Tensor)), None) if dtype is None else dtype
    else:
        if (isinstance(mean, Tensor) and mean.ndim) or (isinstance(std, Tensor) and std.ndim):
            hint = "normal(mean, std): the tensors determine the size"
            what = "normal: size must not be given together with tensors"
            fail(ShapeError, what, hint, mean=mean, std=std, size=size)
        shape = size_of((size,))
    place = place_of(device, placement, sbp)
    like = next((x for x in (mean, std) if isinstance(x, Tensor) and x.ndim), None)
    beside = place if like is None else place_like(like, None)
    noise = F.normal_of(shape, 0.0, 1.0, as_dtype(float if dtype is None else dtype), generator, beside)
    noise = noise if like is None else finish(noise, beside, False)
    return finish(noise * std + mean, place, requires_grad)


def bernoulli(input: Tensor, p: float | None = None, *, generator: Generator | None = None) -> Tensor:
    """1 with the probability that the element of `input` (or p) gives, else 0."""
    return input.bernoulli(p, generator=generator)


def rand_like(
    input: Tensor,
    *,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    generator: Generator | None = None,
    requires_grad: bool = False,
    placement: Placement | None = None,
    sbp: SbpLike | None = None,
    layout: Layout | None = None,
    pin_memory: bool = False,
    memory_format: Layout | None = None,
) -> Tensor:
    """Uniform random values in [0, 1) with the shape, dtype and device of `input`."""
    dtype = input.dtype if dtype is None else as_dtype(dtype)
    place = place_like(input, device, placement, sbp)
    return finish(F.uniform(input.shape, 0.0, 1.0, dtype, generator, place), place, requires_grad)


def randn_like(
    input: Tensor,
    *,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    generator: Generator | None = None,
    requires_grad: bool = False,
    placement: Placement | None = None,
    sbp: SbpLike | None = None,
    layout: Layout | None = None,
    pin_memory: bool = False,
    memory_format: Layout | None = None,
) -> Tensor:
    """Normal random values with the shape, dtype and device of `input`."""
    dtype = input.dtype if dtype is None else as_dtype(dtype)
    place = place_like(input, device, placement, sbp)
    return finish(F.normal_of(input.shape, 0.0, 1.0, dtype, generator, place), place, requires_grad)


def randint_like(
    input: Tensor,
    low: int,
    high: int | None = None,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    generator: Generator | None = None,
    requires_grad: bool = False,
    *,
    placement: Placement | None = None,
    sbp: SbpLike | None = None,
    layout: Layout | None = None,
    pin_memory: bool = False,
    memory_format: Layout | None = None,
) -> Tensor:
    """Random integers in [low, high) with the shape, dtype and device of `input`; `randint_like(input, high)` starts at
    0.
    """
    low, high = (0, low) if high is None else (low, high)
    dtype = input.dtype if dtype is None else as_dtype(dtype)
    place = place_like(input, device, placement, sbp)
    return finish(F.randint_of(input.shape, low, high, dtype, generator, place), place, requires_grad)


# ---- the class of sparse tensors -------------------------------------------------------------------------------------

DENSE_DATA: Any = vars(Tensor)["data"]


class SparseTensor(SparseMethods, Tensor):  # type: ignore[misc]  # __repr__ of the first one
    """A tensor stored dense that remembers which elements were specified; `flow.sparse_coo_tensor` makes one."""

    @property
    def data(self) -> Tensor:
        """The same storage, outside the tape; it is sparse, too."""
        return self._like(DENSE_DATA.__get__(self), lambda values: values.detach())

    @data.setter
    def data(self, other: Tensor) -> None:
        """Use the storage and the specified elements of another tensor from now on."""
        DENSE_DATA.__set__(self, other)
        if other.is_sparse:
            as_sparse(self, other._coo.indices, other._coo.values)
        else:
            self.__class__ = Tensor  # type: ignore[assignment]  # on purpose


SPARSE_TYPES.append(SparseTensor)
