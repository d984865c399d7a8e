"""Making tensors: from numbers, from a rule, from random bits.

Concrete while eager. While tracing, a rule (`zeros`, `randn`) becomes a node, and a tensor made of numbers is a
constant.
"""

from __future__ import annotations

import math

import numpy as np

from .. import functions as F
from ..base.errors import DTypeError, OutOfRangeError, ShapeError
from ..base.two_meanings import two_meanings
from ..mode import MODE
from ..ops import shape as s
from ..ops.shape import check_fits
from ..ops.shape import full as fill
from ..rebind import cell_of
from ..spec import DType, Spec, as_dtype, bool_, default_dtype, int64, promote, spec_of
from ..tensor import Tensor
from ..where import fail


def is_tensor(x) -> bool:
    """Is x a Tensor?"""
    return isinstance(x, Tensor)


def finish(result: Tensor, device, requires_grad: bool) -> Tensor:
    if device is not None:
        result = result.to(device=device)
    return result.requires_grad_() if requires_grad else result


def array_of(data, dtype: DType | None) -> np.ndarray:
    """A new numpy array of numbers, nested lists, arrays or tensors in them; Python floats get the default dtype."""
    if isinstance(data, np.ndarray | np.generic):
        data = np.asarray(data)
        wanted = as_dtype(data.dtype.newbyteorder("=")) if dtype is None else dtype
        return np.array(fitting(data, wanted), wanted.np, order="C")
    try:
        array = np.array(untensored(data), order="C")
    except ValueError as error:
        fail(ShapeError, "tensor() of lists whose lengths differ", "every row needs as many numbers as the others", reason=error)
    if array.dtype.kind == "O" and not all(isinstance(x, int | float) for x in array.flat) or array.dtype.kind not in "biufO":
        hint = "numbers, bools, or nested lists of them"
        fail(DTypeError, f"tensor() cannot hold {type(data).__name__} of {array.dtype}", hint, data=data)
    if dtype is None:
        floating = array.dtype.kind == "f"
        if not has_arrays(data):
            dtype = default_dtype() if floating else bool_ if array.dtype.kind == "b" else int64
        else:
            dtype = promote(*leaf_specs(data))
    if array.dtype.kind == "O" and any(isinstance(x, float) for x in array.flat):
        dtype, array = dtype if dtype.floating else default_dtype(), array.astype("float64")
    return np.asarray(fitting(array, dtype, "iuOf"), dtype.np, order="C")


def fitting(array: np.ndarray, dtype: DType, kinds: str = "iuO") -> np.ndarray:
    """The array, if an integer dtype can hold its numbers; numpy would wrap some around and refuse others."""
    if array.dtype.kind in kinds and dtype.rank == 1 and array.size:
        low, high = array.min(), array.max()  # NaN, if there is one
        try:
            check_fits(low, dtype)
            check_fits(high, dtype)
        except OutOfRangeError as error:
            fail(OutOfRangeError, error.what, error.hint, smallest=low, largest=high)
    return array


def leaf_specs(data) -> list:
    """What decides the dtype of lists with tensors in them: the Spec of each tensor, the type of each number."""
    if isinstance(data, list | tuple):
        return [spec for x in data for spec in leaf_specs(x)]
    if isinstance(data, Tensor):
        return [data.spec]
    return [spec_of(data)] if isinstance(data, np.ndarray | np.generic) else [type(data)]


def untensored(data):
    if isinstance(data, Tensor):
        return data.numbers("tensor")
    return [untensored(x) for x in data] if isinstance(data, list | tuple) else data


def has_arrays(data) -> bool:
    if isinstance(data, list | tuple):
        return any(has_arrays(x) for x in data)
    return isinstance(data, Tensor | np.ndarray | np.generic)


def tensor(data, dtype=None, device=None, requires_grad: bool = False) -> Tensor:
    """A new tensor that copies `data`: a number, nested lists, a numpy array or a tensor.

    Floats become the default dtype (float32), integers int64; arrays keep their dtype.

    >>> tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]], dtype=minflow.int64)
    """
    dtype = None if dtype is None else as_dtype(dtype)
    if isinstance(data, Tensor):
        copy = data.detach().clone()
        return finish(copy if dtype is None else copy.to(dtype), device, requires_grad)
    array = array_of(data, dtype)
    if (trace := MODE.get().trace) is not None:
        trace.made[id(array)] = array
    return finish(Tensor(array, spec_of(array)), device, requires_grad)


def as_tensor(data, dtype=None, device=None) -> Tensor:
    """A tensor of `data` that shares its memory where it can: a tensor is given back, an array is looked at."""
    if isinstance(data, Tensor):
        return data.to(dtype=dtype, device=device) if dtype is not None or device is not None else data
    if isinstance(data, np.ndarray) and (dtype is None or as_dtype(dtype).np == data.dtype):
        return finish(from_numpy(data), device, False)
    return tensor(data, dtype, device)


def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor that shares the memory of a numpy array: a write to one is seen in the other."""
    if not isinstance(array, np.ndarray):
        fail(DTypeError, f"from_numpy() takes a numpy array, not {type(array).__name__}", "flow.tensor(...)", data=array)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.flags.c_contiguous:
        return Tensor(array, spec_of(array))
    if any(n < 0 for n in array.strides):
        fail(ShapeError, "from_numpy() of an array with negative strides", "array.copy()", strides=array.strides)
    whole = np.lib.stride_tricks.as_strided(array, (), ())  # a strided array is a view: its base is the first element
    base = Tensor(whole, Spec((), as_dtype(array.dtype)))
    result = Tensor(array, spec_of(array))
    from ..rebind import Alias

    result.alias, result.cell = Alias(base, ((strided_look, {"shape": array.shape, "strides": array.strides}),), None), cell_of(base)
    return result


strided_look = s.define(
    "strided_look(x; shape, strides)",
    infer=lambda x, shape, strides: x.but(shape=shape),
    is_view=True,
    examples=[],
    doc="A foreign numpy array that is not contiguous: looked at from its first element by its strides (bytes).",
)
s.kernel(strided_look, lambda xp, x, shape, strides: xp.lib.stride_tricks.as_strided(x, shape, strides))


def from_dlpack(x) -> Tensor:
    """A tensor that shares the memory of another library's array, through DLPack."""
    return from_numpy(np.from_dlpack(x))


def size_of(given: tuple, size=None) -> tuple[int, ...]:
    """The shape that `zeros(2, 3)`, `zeros((2, 3))` and `zeros(size=(2, 3))` mean."""
    size = given if size is None else (size,)
    if len(size) == 1 and F.several(size[0]):
        size = tuple(size[0])
    try:
        shape = tuple([n.__index__() for n in size])
    except (AttributeError, TypeError):
        fail(DTypeError, f"a shape is integers, not {size!r}", "flow.zeros(2, 3) or flow.zeros((2, 3))", shape=size)
    if any(n < 0 for n in shape):
        fail(ShapeError, f"a shape with a negative size: {shape}", "sizes are 0 or more", shape=shape)
    return shape


def full(size, fill_value, dtype=None, device=None, requires_grad: bool = False) -> Tensor:
    """A tensor of one number. dtype: that of the number if not given."""
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    elif not isinstance(fill_value, int | float | np.number | np.bool_):
        fail(DTypeError, f"full: fill_value is {fill_value!r}, where a number is wanted", "full((2, 3), 1.5)", fill_value=fill_value)
    dtype = as_dtype(dtype if dtype is not None else type(fill_value))
    if isinstance(size, Tensor) and size.ndim:
        fail(ShapeError, "full: the size is a tensor, where integers are wanted", "full_like(tensor, ...), or tensor.shape", size=size)
    return finish(fill(shape=size_of((size,)), value=fill_value, dtype=dtype), device, requires_grad)


@two_meanings
def zeros(*shape, size=None, dtype=None, device=None, requires_grad: bool = False) -> Tensor:
    """A tensor of zeros; `zeros(2, 3)` or `zeros((2, 3))`."""
    return finish(fill(shape=size_of(shape, size), value=0, dtype=as_dtype(dtype or float)), device, requires_grad)


@two_meanings
def ones(*shape, size=None, dtype=None, device=None, requires_grad: bool = False) -> Tensor:
    """A tensor of ones."""
    return finish(fill(shape=size_of(shape, size), value=1, dtype=as_dtype(dtype or float)), device, requires_grad)


def empty(*shape, size=None, dtype=None, device=None, requires_grad: bool = False) -> Tensor:
    """A tensor whose numbers are whatever lay in the memory (zeros while tracing)."""
    dtype = as_dtype(dtype or float)
    if MODE.get().trace:
        return zeros(*shape, size=size, dtype=dtype, device=device, requires_grad=requires_grad)
    array = np.empty(size_of(shape, size), dtype.np)
    return finish(Tensor(array, spec_of(array)), device, requires_grad)


@two_meanings
def zeros_like(input: Tensor, dtype=None, device=None, requires_grad: bool = False) -> Tensor:
    return zeros(input.shape, dtype=dtype or input.dtype, device=device, requires_grad=requires_grad)


@two_meanings
def ones_like(input: Tensor, dtype=None, device=None, requires_grad: bool = False) -> Tensor:
    return ones(input.shape, dtype=dtype or input.dtype, device=device, requires_grad=requires_grad)


def full_like(input: Tensor, fill_value, dtype=None, device=None, requires_grad: bool = False) -> Tensor:
    return full(input.shape, fill_value, dtype or input.dtype, device, requires_grad)


def empty_like(input: Tensor, dtype=None, device=None, requires_grad: bool = False) -> Tensor:
    return empty(input.shape, dtype=dtype or input.dtype, device=device, requires_grad=requires_grad)


def eye(n: int, m: int | None = None, dtype=None, device=None, requires_grad: bool = False) -> Tensor:
    """`(n, m)`: ones on the diagonal, zeros elsewhere."""
    return tensor(np.eye(n, m, dtype=as_dtype(dtype or float).np), None, device, requires_grad)


def arange(start=None, end=None, step=1, dtype=None, device=None, requires_grad: bool = False) -> Tensor:
    """Numbers from start (0 if only one is given) up to but without end. Integers if all three are."""
    if start is end is None:
        fail(OutOfRangeError, "arange() needs its end", "arange(10), or arange(1, 10)", start=start, end=end)
    start, end = (0, start) if end is None else (0 if start is None else start, end)
    start, end, step = [x.item() if isinstance(x, Tensor | np.generic) else x for x in (start, end, step)]
    if not all(math.isfinite(x) for x in (start, end, step)):
        fail(OutOfRangeError, f"arange from {start} to {end} by {step} has no end", "finite numbers", start=start, end=end, step=step)
    if step == 0 or (end - start) / step < 0:
        fail(OutOfRangeError, f"arange from {start} to {end} by {step} never arrives", "a step of the other sign", step=step)
    if dtype is None:
        dtype = int64 if all(isinstance(x, int) for x in (start, end, step)) else default_dtype()
    if any(isinstance(x, int) and not -(2**63) <= x < 2**63 for x in (start, end)):
        fail(OutOfRangeError, f"arange from {start} to {end} goes beyond int64", "numbers below 2**63", start=start, end=end)
    if as_dtype(dtype) is int64 and int(step):  # the ends lose their fractions first, as in PyTorch
        start, end, step = int(start), int(end), int(step)
    return tensor(np.arange(start, end, step), dtype, device, requires_grad)


def linspace(start: float, end: float, steps: int, dtype=None, device=None, requires_grad: bool = False) -> Tensor:
    """`steps` numbers from start to end, both included."""
    count("linspace", steps)
    dtype = as_dtype(dtype or default_dtype())
    if dtype.floating:
        return tensor(np.linspace(float(start), float(end), steps), dtype, device, requires_grad)
    first, last = [int(np.array(int(x)).astype(dtype.np)) for x in (start, end)]  # the ends lose their fractions first
    step, n = (last - first) / max(steps - 1, 1), np.arange(steps)
    numbers = np.where(n < steps // 2, first + step * n, last - step * (steps - 1 - n))
    return tensor(numbers if steps != 1 else [first], dtype, device, requires_grad)


def count(name: str, n: int) -> None:
    if not isinstance(n, int | np.integer) or n < 0:
        fail(OutOfRangeError, f"{name}: how many is an integer of 0 or more, not {n!r}", "", number=n)


# ---- random ------------------------------------------------------------------------------------------------------


def rand(*shape, size=None, dtype=None, device=None, generator=None, requires_grad: bool = False) -> Tensor:
    """Uniform in [0, 1)."""
    return finish(F.uniform(size_of(shape, size), 0.0, 1.0, as_dtype(dtype or float), generator), device, requires_grad)


def randn(*shape, size=None, dtype=None, device=None, generator=None, requires_grad: bool = False) -> Tensor:
    """Normal with mean 0 and standard deviation 1."""
    return finish(F.normal_of(size_of(shape, size), 0.0, 1.0, as_dtype(dtype or float), generator), device, requires_grad)


def randint(low=0, high=None, size=None, dtype=None, device=None, generator=None, requires_grad: bool = False) -> Tensor:
    """Integers in [low, high); `randint(high, size)` starts at 0."""
    if size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    return finish(F.randint_of(size_of((size,)), low, high, as_dtype(dtype or int), generator), device, requires_grad)


def randperm(n: int, dtype=None, device=None, generator=None, requires_grad: bool = False) -> Tensor:
    """0 to n - 1 in random order."""
    count("randperm", n)
    return finish(F.randperm_of(n, as_dtype(dtype or int), generator), device, requires_grad)


def normal(mean, std=1.0, size=None, dtype=None, device=None, generator=None, requires_grad: bool = False) -> Tensor:
    """Normal numbers with mean and std given as numbers (then with a size) or tensors."""
    if isinstance(std, int | float) and not std >= 0:
        fail(OutOfRangeError, f"normal: a standard deviation is 0 or more, not {std}", "std=1.0", std=std)
    if size is None:
        shape = np.broadcast_shapes(*[x.shape for x in (mean, std) if isinstance(x, Tensor)])
        dtype = dtype or next((x.dtype for x in (mean, std) if isinstance(x, Tensor)), None)
    else:
        if isinstance(mean, Tensor) and mean.ndim or isinstance(std, Tensor) and std.ndim:
            hint = "normal(mean, std) alone: the tensors tell the size"
            fail(ShapeError, "normal: a size beside tensors", hint, mean=mean, std=std, size=size)
        shape = size_of((size,))
    noise = F.normal_of(shape, 0.0, 1.0, as_dtype(dtype or float), generator)
    return finish(noise * std + mean, device, requires_grad)


def bernoulli(input: Tensor, p: float | None = None, *, generator=None) -> Tensor:
    """1 with the probability that each number of `input` (or p) says, else 0."""
    return input.bernoulli(p, generator=generator)


def rand_like(input: Tensor, dtype=None, device=None, generator=None, requires_grad: bool = False) -> Tensor:
    return rand(input.shape, dtype=dtype or input.dtype, device=device, generator=generator, requires_grad=requires_grad)


def randn_like(input: Tensor, dtype=None, device=None, generator=None, requires_grad: bool = False) -> Tensor:
    return randn(input.shape, dtype=dtype or input.dtype, device=device, generator=generator, requires_grad=requires_grad)


def randint_like(input: Tensor, low: int, high=None, dtype=None, device=None, generator=None, requires_grad: bool = False) -> Tensor:
    low, high = (0, low) if high is None else (low, high)
    return randint(low, high, input.shape, dtype or input.dtype, device, generator, requires_grad)
