"""Vectors and matrices defined by a formula: signal windows, logspace, indices of triangles, Vandermonde matrices.

Source of the windows: Harris 1978, "On the use of windows for harmonic analysis with the discrete Fourier transform".
Read next: `creation.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..backend import namespace
from ..base.errors import DTypeError, OutOfRangeError, ShapeError
from ..host import HostArray
from ..host.float_warnings import silent
from ..infer import check_memory
from ..mode import MODE
from ..ops import compare as c, elementwise as e
from ..ops.rules import widen_integers
from ..ops.shape import filled, zeros_of
from ..source_location import fail
from ..spec import Spec, as_dtype, default_dtype, float64
from .arguments import float_or_symbol, integer, is_symbolic, is_tensor, number_or_symbol, to
from .fill import as_leaf, copy_of, place_of
from .shape import stack

if TYPE_CHECKING:
    from ..base.dtypes import DTypeLike
    from ..spec import Device
    from ..tensor import Tensor


def window(
    name: str,
    length: int,
    periodic: bool,
    shape: Callable,
    dtype: DTypeLike | None,
    device: Device | str | None,
    requires_grad: bool,
) -> Tensor:
    """Evaluate `shape(xp, t)` at points t in [0, 1]. periodic: a window of one element more, without its last one."""
    n, dtype = integer(length, "window_length"), as_dtype(default_dtype() if dtype is None else dtype)
    if n < 0:
        fail(OutOfRangeError, f"{name}: window_length must be at least 0, got {n}", "0 or more", window_length=n)
    if not dtype.floating:
        fail(DTypeError, f"{name}: the dtype must be floating, got {dtype.name}", "dtype=flow.float32", dtype=dtype)
    check_memory(name, [Spec((n,), dtype)])
    xp = namespace()
    elements = xp.ones(n) if n < 2 else shape(xp, xp.arange(n) / (n if periodic else n - 1))
    return as_leaf(copy_of(elements, dtype, place_of(device)), requires_grad)


def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`(window_length,)`: (1 - cos(2 pi t)) / 2 for t from 0 to 1; periodic: without the last of one more element."""
    formula = lambda xp, t: xp.square(xp.sin(math.pi * t))
    return window("hann_window", window_length, periodic, formula, dtype, device, requires_grad)


def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`(window_length,)`: alpha - beta * cos(2 pi t), for t from 0 to 1; periodic: see `hann_window`."""
    formula = lambda xp, t: alpha - beta * xp.cos(2 * math.pi * t)
    return window("hamming_window", window_length, periodic, formula, dtype, device, requires_grad)


def blackman_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`(window_length,)`: 0.42 - 0.5 cos(2 pi t) + 0.08 cos(4 pi t), for t from 0 to 1; periodic: see `hann_window`."""
    formula = lambda xp, t: 0.42 - 0.5 * xp.cos(2 * math.pi * t) + 0.08 * xp.cos(4 * math.pi * t)
    return window("blackman_window", window_length, periodic, formula, dtype, device, requires_grad)


def bartlett_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`(window_length,)`: a triangle, 1 - |2t - 1| for t from 0 to 1; periodic: see `hann_window`."""
    formula = lambda xp, t: 1 - xp.abs(2 * t - 1)
    return window("bartlett_window", window_length, periodic, formula, dtype, device, requires_grad)


def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`(window_length,)`: I0(beta * sqrt(1 - (2t - 1)**2)) / I0(beta), for t from 0 to 1; periodic: see `hann_window`.

    I0 is the modified Bessel function of the first kind of order 0. Source: Kaiser & Schafer 1980.
    """
    formula = lambda xp, t: xp.i0(beta * xp.sqrt(xp.maximum(1 - xp.square(2 * t - 1), 0))) / xp.i0(beta)
    return window("kaiser_window", window_length, periodic, formula, dtype, device, requires_grad)


def evenly_spaced(start: float | Tensor, end: float | Tensor, steps: int) -> HostArray | Tensor:
    """`steps` equally spaced float64 from start to end; all NaN if an end is infinite or NaN. A symbolic end gives a
    symbolic tensor.
    """
    if is_symbolic(start) or is_symbolic(end):
        first, last = [to(x, float64) if is_tensor(x) else x for x in (start, end)]
        n = MODE.get().constant(namespace().arange(steps, dtype="float64"))
        if steps < 2:
            return n * 0 + first
        return e.where(c.eq(n, steps - 1), last, n * ((last - first) / (steps - 1)) + first)
    if steps > 1 and math.isfinite(end - start):
        return namespace().linspace(start, end, steps)
    return namespace().full(steps, start if steps == 1 else math.nan)


def logspace(
    start: float,
    end: float,
    steps: int,
    base: float = 10.0,
    *,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`steps` values from base**start to base**end, with a constant ratio."""
    start, end, base = map(number_or_symbol, (start, end, base))
    steps, dtype = integer(steps, "steps"), as_dtype(default_dtype() if dtype is None else dtype)
    if steps < 0:
        fail(OutOfRangeError, f"logspace: steps must be at least 0, got {steps}", "0 or more", steps=steps)
    check_memory("logspace", [Spec((steps,), dtype)])
    powers = evenly_spaced(float_or_symbol(start), float_or_symbol(end), steps)
    with silent():
        return as_leaf(copy_of(float_or_symbol(base) ** powers, dtype, place_of(device)), requires_grad)


def triangle_of(
    name: str, row: int, col: int, offset: int, dtype: DTypeLike | None, device: Device | str | None
) -> Tensor:
    """`(2, n)`: rows and columns, in row order, of the elements of a triangle. name: the function of the namespace."""
    row, col, offset = integer(row, "row"), integer(col, "col"), integer(offset, "offset")
    if row < 0 or col < 0:
        fail(ShapeError, f"{name}: {row} rows and {col} columns", "0 or more", row=row, col=col)
    check_memory(name, [Spec((row, col), as_dtype(bool))])
    places = namespace().stack(getattr(namespace(), name)(row, offset, col))
    return copy_of(places, int if dtype is None else dtype, place_of(device))


def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: DTypeLike | None = None, device: Device | str | None = None
) -> Tensor:
    """`int64 (2, n)`: the row and column of each element of the lower triangle, in row order."""
    return triangle_of("tril_indices", row, col, offset, dtype, device)


def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: DTypeLike | None = None, device: Device | str | None = None
) -> Tensor:
    """`int64 (2, n)`: the row and column of each element of the upper triangle, in row order."""
    return triangle_of("triu_indices", row, col, offset, dtype, device)


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """`(n, N)`: the powers of the elements of a vector, from N - 1 down to 0; increasing: from 0 up to N - 1."""
    if x.spec.ndim != 1:
        fail(ShapeError, f"vander: x must be a vector, got {x.spec.ndim} axes", "x.flatten()", x=x)
    n = x.spec.size if N is None else integer(N, "N")
    if n < 0:
        fail(OutOfRangeError, f"vander: N must be at least 0, got {n}", "0 or more columns", x=x)
    x = to(x, widen_integers(x.spec).dtype)
    if not n:
        return zeros_of(x.spec.replace(shape=(x.spec.size, 0)))
    check_memory("vander", [Spec((x.spec.size, n), x.spec.dtype)])
    powers = [filled(x.spec, 1), x][:n]
    while len(powers) < n:
        powers.append(powers[-1] * x)
    return stack(powers if increasing else powers[::-1], 1)
