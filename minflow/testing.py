"""Comparison of tensors in tests (`flow.testing`), with PyTorch's tolerances per dtype.

    flow.testing.assert_close(actual, expected)

The error shows the index of the largest difference.
"""

from __future__ import annotations

import math as _math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .core.backend import namespace as _namespace
from .core.base.errors import DTypeError
from .core.functions.creation import as_tensor as _as_tensor, tensor as _tensor
from .core.host import HostArray as _HostArray
from .core.host.float_warnings import silent as _silent
from .core.messages.suggestions import missing_names as _missing_names
from .core.source_location import fail as _fail
from .core.spec import as_dtype as _as_dtype
from .core.tensor import Tensor as _Tensor

# dtype -> (rtol, atol). For two dtypes the larger values apply; other dtypes are compared exactly.
TOLERANCES = {
    "bfloat16": (1.6e-2, 1e-5),
    "float16": (1e-3, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Assert that |actual - expected| <= atol + rtol * |expected| for every element.

    actual, expected: tensors, arrays, numbers, or sequences and mappings of them.
    rtol, atol: both or neither; by default those of the dtypes.
    Raises AssertionError with the number of elements that differ and the largest difference.
    """
    if (rtol is None) != (atol is None):
        what = "assert_close: rtol and atol must be given together"
        _fail(DTypeError, what, "rtol=1e-5, atol=1e-8", rtol=rtol, atol=atol)
    for place, a, b in leaf_pairs(actual, expected, "", msg):
        why = describe_difference(a, b, rtol, atol, equal_nan, check_dtype, check_stride)
        if why:
            fail_assertion(f"{why}{place}", msg)


def leaf_pairs(actual: Any, expected: Any, place: str, msg: Any) -> list[tuple[str, Any, Any]]:
    """Flatten nested sequences and mappings into (location, actual, expected), one per leaf."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            fail_assertion(f"The keys differ: {sorted(map(str, actual))} and {sorted(map(str, expected))}{place}", msg)
        entries: Any = [(key, actual[key], expected[key]) for key in actual]
    elif all(isinstance(x, Sequence) and not isinstance(x, str) for x in (actual, expected)):
        if len(actual) != len(expected):
            fail_assertion(f"The lengths differ: {len(actual)} and {len(expected)}{place}", msg)
        entries = zip(range(len(actual)), actual, expected)
    else:
        return [(place, actual, expected)]
    return [pair for key, a, b in entries for pair in leaf_pairs(a, b, f"{place}\n  in the entry {key!r}", msg)]


def fail_assertion(text: str, msg: Any) -> None:
    raise AssertionError(msg(text) if callable(msg) else msg or text)


def describe_difference(
    actual: Any,
    expected: Any,
    rtol: float | None,
    atol: float | None,
    equal_nan: bool,
    check_dtype: bool,
    check_stride: bool,
) -> str:
    """Describe the difference of two leaves in a few lines; "" if they are close."""
    numbers = not isinstance(actual, _Tensor | _HostArray) and not isinstance(expected, _Tensor | _HostArray)
    if isinstance(actual, _Tensor) != isinstance(expected, _Tensor) and not numbers:
        return f"The types differ: {type(actual).__name__} and {type(expected).__name__}"
    x, y = [_as_tensor(value).detach() for value in (actual, expected)]
    if x.shape != y.shape:
        return f"The shapes differ: {list(x.shape)} and {list(y.shape)}"
    if check_dtype and not numbers and x.dtype is not y.dtype:
        return f"The dtypes differ: {x.dtype.name} and {y.dtype.name}"
    if check_stride and x.stride() != y.stride():
        return f"The strides differ: {x.stride()} and {y.stride()}"
    if rtol is None:
        rtol, atol = map(max, zip(*[TOLERANCES.get(t.dtype.name, (0.0, 0.0)) for t in (x, y)]))
    compute_dtype = "complex128" if "complex" in x.dtype.name + y.dtype.name else "float64"
    if "int" in x.dtype.name and "int" in y.dtype.name:
        compute_dtype = "int64"
    xp = _namespace()
    a, b = [t.numpy(force=True).astype(compute_dtype) for t in (x, y)]
    with _silent():
        distance = abs(a - b)
        close = (a == b) | (xp.isfinite(b) & (distance <= atol + rtol * abs(b)))
    if equal_nan:
        close |= (a != a) & (b != b)
    if close.all():
        return ""
    excess = xp.where(close, -1.0, xp.nan_to_num(distance, nan=_math.inf))
    place = tuple(int(i) for i in xp.unravel_index(excess.argmax(), excess.shape))
    relative = distance[place] / abs(b[place]) if 0 < abs(b[place]) < _math.inf else _math.inf
    wrong, where = int((~close).sum()), f" at index {place}" if place else ""
    return (
        f"{wrong} of {a.size} elements differ ({100 * wrong / a.size:.1f} %)\n  the worst{where}  actual "
        f"{a[place]}, expected {b[place]}\n  absolute  {distance[place]:.4g} (up to {atol:g} allowed)\n  relative  "
        f"{relative:.4g} (up to {rtol:g} allowed)"
    )


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Older form of `assert_close`: the dtypes may differ, and NaN equals NaN."""
    assert_close(
        actual,
        _as_tensor(expected) if isinstance(actual, _Tensor) else expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_dtype=False,
        msg=msg or None,
    )


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any = None,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> _Tensor:
    """Random tensor with elements from low to high, drawn from numpy's generator.

    shape: ints or one sequence. By default low is -9 (0 for uint8) and high is 9; bool draws both values.
    noncontiguous: return a view with stride 2 in the last axis. exclude_zero: replace zeros by ones.
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    dtype = _as_dtype(dtype)
    kind, unsigned = dtype.np.kind, dtype.np.kind == "u"
    lowest, highest = (0 if unsigned else -9) if low is None else low, (9 if high is None else high)
    drawn_shape = (*sizes[:-1], 2 * sizes[-1]) if noncontiguous and sizes else sizes
    data = (
        np.random.uniform(lowest, highest, drawn_shape)
        if kind not in "biu"
        else (
            np.random.randint(0, 2, drawn_shape)
            if kind == "b"
            else np.random.randint(int(lowest), int(highest), drawn_shape)
        )
    )
    data = _namespace().asarray(data).astype(dtype.np)
    if exclude_zero:
        data[data == 0] = 1
    result = _tensor(data, None, device, False)
    result = result[..., ::2] if drawn_shape != sizes else result
    return result.requires_grad_() if requires_grad else result


__all__ = ["assert_allclose", "assert_close", "make_tensor"]
__getattr__ = _missing_names("flow.testing", globals())
