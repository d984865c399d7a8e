"""Shape and dtype rules shared by many ops, and helpers of kernels.

A rule gets the Spec of each tensor input, or the Python type of a number. It returns the Spec of the result, or raises
an error in which `{a}` is the placeholder for the learner's name of input `a` (filled in by `op.explain`).
Must not import tensors. Read next: `elementwise.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from ..backend import on_host
from ..base.errors import DTypeError, OutOfRangeError, ShapeError
from ..host.float_warnings import silent
from ..kernels import IN_OWN_DTYPE
from ..spec import DType, Spec, bool_, int64, promote


def mark(name: str) -> str:
    return "{" + name + "}"


def broadcast_shape(op: str, shapes: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The shape to which these shapes (by input name) broadcast, as in NumPy, or a ShapeError that names two sizes."""
    result: list[tuple[int, str, int]] = []  # from the right: size, and the input and axis that it comes from
    for name, shape in shapes.items():
        for back, size in enumerate(reversed(shape)):
            axis = len(shape) - 1 - back
            if back == len(result):
                result.append((size, name, axis))
            elif result[back][0] == 1:
                result[back] = size, name, axis
            elif size not in (1, result[back][0]):
                other, first, first_axis = result[back]
                raise ShapeError(
                    f"{op}: sizes differ, {other} (axis {first_axis} of {mark(first)}) and "
                    f"{size} (axis {axis} of {mark(name)})",
                    hint=broadcast_hint(first, shapes[first], name, shape),
                )
    return tuple(size for size, _, _ in reversed(result))


def broadcast_hint(a: str, left: tuple[int, ...], b: str, right: tuple[int, ...]) -> str:
    """A hint for two shapes that do not broadcast."""
    if len(left) == len(right) == 2 and left == right[::-1]:
        return f"{mark(b)}.T, if its axes are swapped"
    for name, small, large in ((b, right, left), (a, left, right)):
        if small and len(small) < len(large) and small == large[: len(small)]:
            index = ", ".join([":"] * len(small) + ["None"] * (len(large) - len(small)))
            return f"{mark(name)}[{index}], which puts its axes on the left"
    return "axes are compared from the right and must be equal or 1: reshape, unsqueeze or index one of the two"


def broadcast(
    op: str, *names: str, refuse_bool: str = "", integers: bool = False, out: DType | None = None
) -> Callable:
    """The rule of an elementwise op with inputs `names`.

    refuse_bool: the hint for bool tensors.  integers: only bool and integer dtypes.  out: dtype of the result.
    """

    def rule(*specs):
        arrays = {name: s for name, s in zip(names, specs) if isinstance(s, Spec)}
        first = next(iter(arrays.values()), None) or Spec((), promote(*specs))
        if refuse_bool and first.dtype is bool_:
            raise DTypeError(f"{op}: not defined for bool", hint=refuse_bool)
        if integers and first.dtype.floating:
            hint = "x ** 2 is a power; ^ combines bits" if op == "bitwise_xor" else "x.int(), or x > 0"
            raise DTypeError(f"{op}: bitwise ops are not defined for {first.dtype.name}", hint=hint)
        if any(s is not first for s in arrays.values()):
            first = first.replace(shape=broadcast_shape(op, {name: s.shape for name, s in arrays.items()}))
        return first if out is None else first.replace(dtype=out)

    return rule


def same_spec(x):
    """The result has the spec of the input."""
    return x if isinstance(x, Spec) else Spec((), promote(x))


def is_number(x, number: int) -> bool:
    """True if an input of a composite op is this int, which means that it is not given."""
    return isinstance(x, int) and x == number


def need_floating(op: str, x: Spec, name: str = "x") -> Spec:
    if not x.dtype.floating:
        raise DTypeError(f"{op}: {mark(name)} must be floating, got {x.dtype.name}", hint=f"{mark(name)}.float()")
    return x


def need_index(op: str, index: Spec, name: str = "index") -> Spec:
    if index.dtype.rank != 1:
        hint = f"{mark(name)}.long()" if index.dtype.floating else f"{mark(name)}.nonzero(), or a mask as x[mask]"
        raise DTypeError(f"{op}: {mark(name)} must hold integers, got {index.dtype.name}", hint=hint)
    return index


def need_axis(op: str, x: Spec, axis: int) -> None:
    if not 0 <= axis < x.ndim:
        raise OutOfRangeError(f"{op}: axis {axis} is out of range for {{x}}, which has {x.ndim} axes")


def need_axes(op: str, x: Spec, axes: tuple[int, ...]) -> None:
    for axis in axes:
        need_axis(op, x, axis)


def need_spec(op: str, wanted: Spec | tuple[int, ...] | None, **specs) -> None:
    """Refuse inputs, by name, that do not have this Spec, or shape, or (None) are not tensors."""
    for name, x in specs.items():
        found = x.shape if isinstance(wanted, tuple) and isinstance(x, Spec) else x
        if not isinstance(x, Spec) or (found != wanted and wanted is not None):
            raise ShapeError(
                f"{op}: {mark(name)} must be {wanted or 'a tensor'}, got {x}",
                hint="a tensor that matches the other inputs",
            )


def keepdims_shape(shape: tuple[int, ...], axis: tuple[int, ...] | None) -> tuple[int, ...]:
    """`shape` with the reduced axes (None: all) replaced by 1."""
    return tuple(1 if axis is None or i in axis else n for i, n in enumerate(shape))


def reduced(x: Spec, axis: tuple[int, ...] | None, keepdims: bool) -> Spec:
    """The Spec of a reduction over the sorted axes (None: all)."""
    if isinstance(keepdims, int) and keepdims not in (False, True):
        raise DTypeError(
            f"keepdim must be True or False, got {keepdims!r}", hint="several axes are a tuple: dim=(0, 1)"
        )
    if axis is not None and [*axis] != sorted({i for i in axis if 0 <= i < x.ndim}):
        raise OutOfRangeError(
            f"axes {axis} of {{x}}, which has {x.ndim} axes", hint="each axis once, in ascending order"
        )
    if keepdims:
        return x.replace(shape=keepdims_shape(x.shape, axis))
    return x.replace(shape=() if axis is None else tuple(n for i, n in enumerate(x.shape) if i not in axis))


def count(shape: tuple[int, ...], axis: tuple[int, ...] | None) -> int:
    """The number of elements that are reduced to one."""
    return math.prod(shape) if axis is None else math.prod(shape[i] for i in axis)


def widen_integers(x: Spec) -> Spec:
    """The rule for sums and products, which are int64 for integers, as in PyTorch."""
    return x if x.dtype.rank > 1 else x.replace(dtype=int64)


def cumulative_rule(op: str):
    """The shape rule of a cumulative sum or product along an axis."""

    def infer(x: Spec, axis: int) -> Spec:
        need_axis(op, x, axis)
        return widen_integers(x)

    return infer


# ---- kernels -----------------------------------------------------------------------------------------------------


def write_out(xp, found, out):
    """Return a result that a kernel already has, or copy it into `out`."""
    if out is None or out is found:
        return found
    xp.copyto(out, found)
    return out


@functools.cache
def constant(xp, dtype, value: float):
    """A number as an array, which ufuncs read in half the time that converting a Python number takes."""
    return xp.asarray(value, dtype)


def as_arrays(xp, *inputs):
    """The inputs as arrays of one dtype: functions other than ufuncs may treat Python numbers as float64."""
    dtype = next((x.dtype for x in inputs if hasattr(x, "dtype")), "float64")
    return [xp.asarray(x, dtype) for x in inputs]


def accumulate(xp, ufunc: str, x, axis: int):
    """The results of applying a binary ufunc cumulatively along an axis, in order."""
    if on_host(x):
        return getattr(xp, ufunc).accumulate(x, axis)
    out = x.copy()  # other array libraries accumulate sums and products only
    rows = xp.moveaxis(out, axis, 0)
    for i in range(1, len(rows)):
        getattr(xp, ufunc)(rows[i - 1], rows[i], out=rows[i])
    return out


def via_float32(function: Callable) -> Callable:
    """Wrap a kernel so that it computes float16 in float32 and rounds its results once."""

    @functools.wraps(function)
    def wider(xp, *arrays, out=None, **attrs):
        for a in arrays:
            if hasattr(a, "dtype") and a.dtype.char == "e":
                break
        else:
            return function(xp, *arrays, **attrs) if out is None else function(xp, *arrays, out=out, **attrs)
        result = function(
            xp, *[a.astype("float32") if getattr(a, "dtype", None) == "float16" else a for a in arrays], **attrs
        )
        many = result.__class__ is tuple
        with silent():
            result = [f.astype("float16") for f in (result if many else (result,))]
        if many:
            return tuple([write_out(xp, f, o) for f, o in zip(result, out or (None,) * len(result))])
        return write_out(xp, result[0], out)

    IN_OWN_DTYPE[wider] = function
    return wider
