"""Argument handling shared by the functions: negative axes, NumPy's argument names, tensors or Python numbers.

Read next: `arithmetic.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

from ..base.errors import DTypeError, OutOfRangeError, ShapeError
from ..dispatch import special_method
from ..host import python_number
from ..ir import NUMBERS
from ..mode import MODE
from ..ops.rules import broadcast_shape
from ..ops.shape import cast, check_fits, in_float32 as in_float32, is_half
from ..source_location import explain, fail
from ..spec import DType, as_dtype, bool_, cpu, float32
from ..symbolic_shapes import SymInt

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from ..base.dtypes import DTypeLike
    from ..op import Op
    from ..tensor import Tensor


Function = TypeVar("Function", bound=Callable)  # a decorator returns a function of the same signature


def is_tensor(x: Any) -> TypeIs[Tensor]:
    return hasattr(x, "spec")


def ensure_tensor(x: Any) -> Tensor:
    """Return x as a tensor; x may be an array, a number or a list."""
    return x if is_tensor(x) else MODE.get().tensor_of(x)


def as_operand(x: Any) -> Any:
    """Return x in the form that an op takes: a tensor, or a Python number unchanged."""
    return x if x.__class__ in NUMBERS or is_tensor(x) else MODE.get().tensor_of(x)


def is_symbolic(x: Any) -> TypeIs[Tensor]:
    """True for a tensor of a trace, whose elements are not known."""
    return is_tensor(x) and x.array is None


def number_or_symbol(x: Any) -> Any:
    """A number that may be given as a 0-d tensor, as a Python number; a symbolic one stays a tensor, outside the tape
    as in PyTorch, and the op is computed by others.
    """
    return x if not is_tensor(x) else x.detach() if is_symbolic(x) else x.item()


def float_or_symbol(x: Any) -> Any:
    """`number_or_symbol`, as a float."""
    return x.detach() if is_symbolic(x) else float(x)


def with_numbers(op: Op, *inputs: Any, **attrs: Any) -> Any:
    """A composite op; its decomposition if one of the attrs is symbolic."""
    call: Any = op.decompose if any(map(is_symbolic, attrs.values())) else op
    return call(*inputs, **attrs)


def to(x: Any, dtype: DType) -> Tensor:
    """Convert x to this dtype; return x itself if it has that dtype."""
    return x if x.spec.dtype is dtype else cast(x, dtype=dtype)


def autocast_float32(x: Any) -> Any:
    """Convert a tensor in half precision to float32 under autocast, as it does for ops that declare so."""
    return cast(x, dtype=float32) if is_half(x) and MODE.get().low is not None else x


def cast_for_write(op: str, x: Any, dtype: DType, /, **values: Any) -> Any:
    """Convert x, a tensor or a number, for a write into this dtype.

    Refuses a higher kind (bool < integer < floating < complex), so that nothing is truncated silently.
    """
    own = x.spec.dtype if is_tensor(x) else as_dtype(x.__class__)
    if own.rank > dtype.rank:
        hint = f"values.to(flow.{dtype.name}) truncates them; or x = x.to(flow.{own.name}) first"
        fail(DTypeError, f"{op}: {own.name} cannot be written into {dtype.name}", hint, **values)
    return to(x, dtype) if is_tensor(x) else cast_number(op, x, dtype, **values)


def cast_fill_value(op: str, x: Any, dtype: DType, /, **values: Any) -> Any:
    """Convert a fill value, a number or a one-element tensor, to this dtype. Integer dtypes truncate floats."""
    x = python_number(x)
    if x.__class__ not in NUMBERS and not is_tensor(x):
        x = as_operand(x)
    if is_tensor(x):
        if x.spec.ndim:
            hint = "a function that takes a tensor of values: where, index_copy, scatter(src=...)"
            fail(ShapeError, f"{op}: the value has shape {x.spec.shape}, and must have one element", hint, **values)
        if x.array is None or x._needs or MODE.get().trace is not None or x.spec.device is not cpu or x.is_global:
            return to(x, dtype)
        x = x.array.item()
    return cast_number(op, x, dtype, **values)


def maybe_to(x: Any, dtype: DTypeLike | None) -> Any:
    """Convert x to dtype, or return it unchanged if dtype is None."""
    return x if dtype is None else to(x, as_dtype(dtype))


def integer(x: Any, name: str) -> int:
    """Return an int-like argument (a NumPy integer, a 0-d integer tensor) as a Python int. Bools are refused."""
    if type(x) is int:
        return x
    if type(x) is SymInt:
        return +x
    try:
        if type(x) is not bool and not (is_tensor(x) and x.spec.dtype is bool_):
            return x.__index__()
    except Exception as error:
        if not isinstance(error, AttributeError | TypeError) and special_method(error) is None:
            raise
    what = f"{name} must be an integer, not {type(x).__name__}"
    fail(DTypeError, what, f"{name}=1, or int({name}) of a whole number", **{name: x})


def is_sequence(x: Any) -> TypeIs[Sequence]:
    """True if x is a list, tuple or range where one number is also accepted. Bytes do not count, although they are
    sequences of ints.
    """
    kind = type(x)  # not x.__class__, which may raise
    return issubclass(kind, Sequence) and not issubclass(kind, str | bytes | bytearray | memoryview)


def normalize_axis(dim: Any, ndim: int, x: Any = None) -> int:
    """Return `dim` as an index in [0, ndim). A 0-d tensor counts as having one axis."""
    dim, limit = integer(dim, "dim"), ndim or 1
    if not -limit <= dim < limit:
        there_are = "there are" if x is None or x.spec.ndim == ndim else "the result has"
        what = f"dim {dim} is out of range: {there_are} {ndim} axes, so dim is from {-limit} to {limit - 1}"
        fail(OutOfRangeError, what, "x.shape tells the axes; dim=-1 is the last one", **{} if x is None else {"x": x})
    return dim % limit


def normalize_axes(dim: int | Sequence[int] | None, x: Tensor) -> tuple[int, ...] | None:
    """Return the sorted axes for a `dim` argument: an int, several, or None for all axes, which stays None."""
    ndim = x.spec.ndim
    if dim is None:
        return None
    if dim.__class__ is int and -ndim <= dim < ndim:
        return (dim % ndim,)
    axes = tuple(sorted(unique_axes(dim, x)))
    return axes if axes and ndim else None


def unique_axes(dim: int | Sequence[int], x: Tensor) -> list[int]:
    """Return the axes for a `dim` argument (an int or several), in its order. Raises if one is named twice."""
    dims: Sequence[int] = dim if is_sequence(dim) else (dim,)
    axes = [normalize_axis(d, x.spec.ndim, x) for d in dims]
    if len(set(axes)) < len(axes):
        fail(OutOfRangeError, f"dim {tuple(dims)} names an axis twice", "each axis once", x=x)
    return axes


def check_min_axes(op: str, x: Tensor, least: int = 1) -> None:
    """Refuse a tensor with fewer than `least` axes."""
    if x.spec.ndim < least:
        what = f"{op}: the tensor must have at least {least} axes, got {x.spec.ndim}"
        fail(ShapeError, what, "x.reshape(-1) or x.unsqueeze(0)", x=x)


def cast_number(op: str, number: Any, dtype: DType, **values: Any) -> Any:
    """Convert a Python number to this dtype, truncating floats for integer dtypes; refuse one that does not fit."""
    try:
        check_fits(number, dtype)
    except OutOfRangeError as error:
        fail(OutOfRangeError, f"{op}: {error.what}", error.hint, **values)
    if not dtype.rank:
        return bool(number)
    return int(number) if number.__class__ is float and dtype.rank == 1 else number


def common_shape(name: str, tensors: dict) -> tuple[int, ...]:
    """Return the shape to which these tensors broadcast; the error names them and shows their values."""
    try:
        return broadcast_shape(name, {mark: x.spec.shape for mark, x in tensors.items()})
    except ShapeError as error:
        raise explain(error, SimpleNamespace(inputs=tuple(tensors), variadic=False), tuple(tensors.values())) from None


def accept_axis(function: Function) -> Function:
    """Also accept NumPy's `axis` and `keepdims` for `dim` and `keepdim`, as PyTorch and OneFlow do."""

    @functools.wraps(function)
    def either(*args: Any, **options: Any) -> Any:
        if options:
            for name, ours in (("axis", "dim"), ("keepdims", "keepdim")):
                if name in options:
                    options[ours] = options.pop(name)
            if "out" in options and options["out"] is None:  # `numpy.sum(tensor)` passes it
                del options["out"]
        return function(*args, **options)

    return either  # type: ignore[return-value]  # `wraps` keeps the signature


def sizes(shape: Sequence) -> tuple[int, ...]:
    """Return the ints of f(2, 3) or f((2, 3))."""
    if len(shape) == 1 and is_sequence(shape[0]):
        shape = shape[0]
    return tuple([integer(n, "size") for n in shape])


def composite(name: str) -> Callable[[Function], Function]:
    """Run a function of several ops in its own scope, `model/gumbel_softmax`, so that views can collapse it to one row.

    For functions that draw random numbers, which the decomposition of a composite op must not do. All others are ops:
    `define(..., decompose=f)`.  name: the public name of the function.
    """
    part = "/" + name

    def decorated(function: Function) -> Function:
        @functools.wraps(function)
        def scoped(*args: Any, **kwargs: Any) -> Any:
            mode = MODE.get()
            try:
                MODE.set(mode.replace(scope=mode.scope + part))
                return function(*args, **kwargs)
            finally:
                MODE.set(mode)

        return scoped  # type: ignore[return-value]  # `wraps` keeps the signature

    return decorated
