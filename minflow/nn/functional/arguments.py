"""Helpers shared by the functions: checks of arguments, common dtypes, and the scope of a composite function.

Read next: `linear.py` for a function that uses them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...core.base.errors import DTypeError, ShapeError
from ...core.functions.arguments import Function, composite as composite, integer
from ...core.messages.wrong_arguments import Unquoted as Unquoted, not_a_tensor
from ...core.source_location import fail, warn
from ...core.spec import float32, float64, wider
from ...core.tensor import Tensor


def check_tensor(name: str, input: Any, argument: str = "input") -> None:
    """Refuse a value that is not a tensor, with a hint at the probable intention."""
    if not isinstance(input, Tensor):
        raise not_a_tensor(name, argument, input)


def check_scalar(name: str, **values: Any) -> None:
    """Refuse tensors and arrays with axes as arguments that must be a single number: they would broadcast."""
    for argument, value in values.items():
        if getattr(value, "shape", ()):
            what = f"{name}: {argument} must be one number, got shape {tuple(value.shape)}"
            fail(ShapeError, what, f"{argument}={argument}.item()", **values)


def same_dtype(name: str, input: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Convert input and weight to one floating dtype. Warns about a float64 input with float32 parameters."""
    have, want = input.spec.dtype, weight.spec.dtype
    if have is want:
        return input, weight
    if not have.floating:
        what = f"{name}: the input is {have.name}, the parameters are {want.name}"
        hint = "x.float() / 255 for images of bytes, x.float() for other data; nn.Embedding takes indices"
        hint = f"module.to(flow.{have.name}), or weight.to(flow.{have.name})" if have.is_complex else hint
        fail(DTypeError, what, hint, input=input, weight=weight)
    if have is float64 and want is float32:
        warn(
            f"{name}: a float64 input meets float32 parameters, so this layer computes in float64, twice as slow",
            "x.float() before the model (numpy makes float64 by default), or model.double() if that is meant",
            input=input,
            weight=weight,
        )
    dtype = wider(have, want)
    return input.to(dtype), weight.to(dtype)


TUPLE_FORMS = {1: "or a tuple of one", 2: "or a pair of them", 3: "or three of them"}


def sizes(name: str, argument: str, value: Any, least: int, n: int) -> tuple[int, ...]:
    """Return n integers, one per axis, from an int or from n of them. least: the smallest allowed value."""
    values = tuple(value) if isinstance(value, tuple | list) else (value,)
    values = values * n if len(values) == 1 else values
    if len(values) != n or not all([is_size(k, least) for k in values]):
        what = f"{name}: {argument} must be an integer of at least {least}, {TUPLE_FORMS[n]}, got {value!r}"
        fail(ShapeError, what, f"{argument}=3 or {argument}=({'3, ' * (n - 1)}3{',' * (n == 1)})")
    return tuple([k.__index__() for k in values])


def is_size(k: Any, least: int) -> bool:
    """True if k is an integer of at least `least`."""
    if k.__class__ is int:
        return k >= least
    return hasattr(k, "__index__") and k.__class__ is not bool and k.__index__() >= least


def pair(name: str, argument: str, value: Any, least: int) -> tuple[int, int]:
    """Return (height, width) from an int or a pair."""
    rows, columns = sizes(name, argument, value, least, 2)
    return rows, columns


def check_reduction(name: str, reduction: str) -> None:
    if reduction not in ("mean", "sum", "none"):
        fail(ShapeError, f"{name}: reduction is {reduction!r}", 'reduction="mean", "sum" or "none"')


def apply_reduction(losses: Tensor, reduction: str) -> Tensor:
    """Reduce the losses as requested: their mean, their sum, or unreduced."""
    return losses.mean() if reduction == "mean" else losses.sum() if reduction == "sum" else losses


def legacy_reduction(order: str) -> Callable[[Function], Function]:
    """Accept `size_average` and `reduce`, PyTorch's former arguments for `reduction`, by keyword or position.

    order: the names of the former arguments. A bool or None at the position of size_average shows that they are meant.
    """
    names = tuple(order.split())
    place = names.index("size_average")

    def decorator(function: Function) -> Function:
        @functools.wraps(function)
        def wrapper(*args: Any, **options: Any) -> Any:
            if len(args) > place and (args[place] is None or args[place].__class__ is bool):
                options, args = options | dict(zip(names, args)), args[len(names) :]
            if "size_average" in options or "reduce" in options:
                average, each = options.pop("size_average", None), options.pop("reduce", None)
                if average is not None or each is not None:
                    summed = each is None or each
                    options["reduction"] = "none" if not summed else "mean" if average is None or average else "sum"
                    meant = f'reduction="{options["reduction"]}"'
                    warn("size_average and reduce are the old names of reduction", meant)
            return function(*args, **options)

        return wrapper  # type: ignore[return-value]  # `wraps` keeps the signature

    return decorator


def normalize_axis(name: str, dim: int, ndim: int) -> int:
    """Return dim counted from the front. Raises ShapeError if there is no such axis."""
    dim, limit = integer(dim, "dim"), ndim or 1
    if not -limit <= dim < limit:
        fail(ShapeError, f"{name}: dim is {dim}, and the input has {ndim} axes", f"{-ndim} to {ndim - 1}")
    return dim % limit


def norm_order(p: Any) -> Any:
    """Return the order of a norm as a float; an unknown name is returned as it is, for `norm` to refuse."""
    return 2.0 if p is None or p == "fro" else p if isinstance(p, str) else float(p)
