"""Discrete Fourier transforms, built on the op `fft` along one axis; real transforms cut or mirror its spectrum.

norm: the divisor of a transform of n elements. "backward" (None): the inverse by n; "forward": the forward one by n;
"ortho": both by sqrt(n). n, s: sizes to which axes are cut or zero-padded first.
Read next: `../ops/complex.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from ..base.dtypes import HALF_DTYPES
from ..base.errors import DTypeError, OutOfRangeError, ShapeError
from ..ops import complex as z
from ..ops.shape import cat, zeros_of
from ..source_location import fail
from ..spec import as_dtype, default_dtype
from .arguments import ensure_tensor, integer, is_sequence, normalize_axis, to, unique_axes
from .complex import conj
from .fill import finish
from .gather import index_select
from .shape import narrow, roll

if TYPE_CHECKING:
    from ..base.dtypes import DTypeLike
    from ..spec import Device
    from ..tensor import Tensor


def as_transformable(name: str, input: Tensor, real: bool = False) -> Tensor:
    """Return the input in a dtype that has a transform."""
    input = ensure_tensor(input)
    dtype = input.spec.dtype
    if dtype in HALF_DTYPES:
        fail(DTypeError, f"{name}: not defined for {dtype.name}", "x.float()", input=input)
    if real and dtype.is_complex:
        fail(DTypeError, f"{name}: the input must be real, got {dtype.name}", "flow.fft.fft(x), or x.real", input=input)
    return to(input, default_dtype()) if dtype.rank < 2 else input


def resize_axis(name: str, input: Tensor, n: int | None, axis: int) -> Tensor:
    """Cut or zero-pad the input to n elements along an axis."""
    here = input.spec.shape[axis]
    n = here if n is None or n == -1 else integer(n, "n")
    if n < 1:
        fail(OutOfRangeError, f"{name}: axis {axis} must have at least 1 element, got {n}", "n=8", input=input)
    if n < here:
        return narrow(input, axis, 0, n)
    shape = list(input.spec.shape)
    shape[axis] = n - here
    return input if n == here else cat(input, zeros_of(input.spec.replace(shape=tuple(shape))), dim=axis)


def scale(name: str, norm: str | None, inverse: bool, n: int) -> float:
    """The factor of a transform of n elements."""
    if norm not in (None, "backward", "forward", "ortho"):
        fail(DTypeError, f"{name}: norm is {norm!r}", '"backward", "forward" or "ortho"', norm=norm)
    if norm == "ortho":
        return 1 / math.sqrt(n)
    return 1 / n if inverse is (norm != "forward") else 1.0


def complex_transform(name: str, input: Tensor, n: int | None, dim: int, norm: str | None, inverse: bool) -> Tensor:
    """The complex transform along one axis."""
    input = as_transformable(name, input)
    axis = normalize_axis(dim, input.spec.ndim, input) if input.spec.ndim else refuse_no_axes(name, input)
    input = resize_axis(name, input, n, axis)
    result = z.fft(to(input, input.spec.dtype.to_complex()), axis=axis, inverse=inverse)
    factor = scale(name, norm, inverse, input.spec.shape[axis])
    return result if factor == 1 else result * factor


def refuse_no_axes(name: str, input: Tensor) -> NoReturn:
    """Raise the error of a tensor without axes."""
    fail(ShapeError, f"{name}: the tensor has no axes to transform along", "x.reshape(1)", input=input)


def half_spectrum(name: str, input: Tensor, n: int | None, dim: int, norm: str | None, inverse: bool = False) -> Tensor:
    """The first n // 2 + 1 elements of the spectrum of a real signal, which determine the others."""
    result = complex_transform(name, as_transformable(name, input, real=True), n, dim, norm, inverse)
    axis = normalize_axis(dim, result.spec.ndim)
    return narrow(result, axis, 0, result.spec.shape[axis] // 2 + 1)


def real_signal(name: str, input: Tensor, n: int | None, dim: int, norm: str | None, inverse: bool = True) -> Tensor:
    """The real signal of n elements whose spectrum begins with input. Imaginary parts that a real signal cannot have
    are ignored.
    """
    input = as_transformable(name, input)
    input = to(input, input.spec.dtype.to_complex())
    axis = normalize_axis(dim, input.spec.ndim, input) if input.spec.ndim else refuse_no_axes(name, input)
    n = 2 * (input.spec.shape[axis] - 1) if n is None or n == -1 else integer(n, "n")
    if n < 1:
        fail(OutOfRangeError, f"{name}: axis {axis} must have at least 1 element, got {n}", "n=8", input=input)
    first = resize_axis(name, input, n // 2 + 1, axis)
    mirrored = index_select(first, axis, ensure_tensor(list(range((n - 1) // 2, 0, -1)))) if n > 2 else None
    spectrum = first if mirrored is None else cat(first, conj(mirrored), dim=axis)
    return z.real(complex_transform(name, spectrum, n, axis, norm, inverse))


def axes_sizes(
    name: str, input: Tensor, s: Sequence[int] | None, dim: int | Sequence[int] | None
) -> tuple[list[int], list]:
    """Axes and their sizes; None for an axis that keeps its size."""
    ndim = input.spec.ndim
    if dim is not None:
        axes = unique_axes(dim, input)
    elif s is not None:
        axes = list(range(ndim - len(s), ndim))
    else:
        axes = list(range(ndim))
    sizes = [None] * len(axes) if s is None else [*s] if is_sequence(s) else [s]
    if len(sizes) != len(axes) or (axes and axes[0] < 0):
        what = f"{name}: {len(sizes)} sizes for {len(axes)} axes of a tensor with {ndim} axes"
        fail(ShapeError, what, "a size for each axis", input=input, s=s, dim=dim)
    return axes, sizes


def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """out[k] = sum over j of input[j] * exp(-2 pi i j k / n) along `dim`; complex."""
    return complex_transform("fft", input, n, dim, norm, False)


def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of fft: out[j] = sum over k of input[k] * exp(2 pi i j k / n), divided by n."""
    return complex_transform("ifft", input, n, dim, norm, True)


def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """fft of real input: the first n // 2 + 1 elements of the spectrum; the others are their conjugates."""
    return half_spectrum("rfft", input, n, dim, norm)


def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of rfft: n real elements; by default n is 2 * (size - 1)."""
    return real_signal("irfft", input, n, dim, norm)


def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The real fft of a signal with conjugate symmetry, of which input is the first half; n elements."""
    return real_signal("hfft", input, n, dim, norm, False)


def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of hfft: the first n // 2 + 1 elements of the ifft of a real signal."""
    return half_spectrum("ihfft", input, n, dim, norm, True)


def fftn(
    input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: str | None = None
) -> Tensor:
    """fft along several axes: all, those of `dim`, or the last len(s)."""
    return along("fftn", input, s, dim, norm, False)


def ifftn(
    input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: str | None = None
) -> Tensor:
    """ifft along several axes."""
    return along("ifftn", input, s, dim, norm, True)


def along(
    name: str, input: Tensor, s: Sequence[int] | None, dim: int | Sequence[int] | None, norm: str | None, inverse: bool
) -> Tensor:
    input = as_transformable(name, input)
    axes, sizes = axes_sizes(name, input, s, dim)
    for axis, n in zip(reversed(axes), reversed(sizes)):
        input = complex_transform(name, input, n, axis, norm, inverse)
    return to(input, input.spec.dtype.to_complex())


def rfftn(
    input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: str | None = None
) -> Tensor:
    """rfft along the last of several axes, then fft along the others."""
    input = as_transformable("rfftn", input, real=True)
    axes, sizes = axes_sizes("rfftn", input, s, dim)
    input = half_spectrum("rfftn", input, sizes[-1], axes[-1], norm) if axes else refuse_no_axes("rfftn", input)
    return along("rfftn", input, sizes[:-1], axes[:-1], norm, False) if axes[1:] else input


def irfftn(
    input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: str | None = None
) -> Tensor:
    """The inverse of rfftn: ifft along all but the last of several axes, then irfft along that one."""
    input = as_transformable("irfftn", input)
    axes, sizes = axes_sizes("irfftn", input, s, dim)
    if not axes:
        refuse_no_axes("irfftn", input)
    input = along("irfftn", input, sizes[:-1], axes[:-1], norm, True) if axes[1:] else input
    return real_signal("irfftn", input, sizes[-1], axes[-1], norm)


def hfftn(
    input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: str | None = None
) -> Tensor:
    """fft along all but the last of several axes, then hfft along that one."""
    input = as_transformable("hfftn", input)
    axes, sizes = axes_sizes("hfftn", input, s, dim)
    if not axes:
        refuse_no_axes("hfftn", input)
    input = along("hfftn", input, sizes[:-1], axes[:-1], norm, False) if axes[1:] else input
    return hfft(input, sizes[-1], axes[-1], norm)


def ihfftn(
    input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: str | None = None
) -> Tensor:
    """The inverse of hfftn: ihfft along the last of several axes, then ifft along the others."""
    input = as_transformable("ihfftn", input, real=True)
    axes, sizes = axes_sizes("ihfftn", input, s, dim)
    input = ihfft(input, sizes[-1], axes[-1], norm) if axes else refuse_no_axes("ihfftn", input)
    return along("ihfftn", input, sizes[:-1], axes[:-1], norm, True) if axes[1:] else input


def fft2(
    input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = (-2, -1), norm: str | None = None
) -> Tensor:
    """fftn along the last two axes."""
    return fftn(input, s, dim, norm)


def ifft2(
    input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = (-2, -1), norm: str | None = None
) -> Tensor:
    """ifftn along the last two axes."""
    return ifftn(input, s, dim, norm)


def rfft2(
    input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = (-2, -1), norm: str | None = None
) -> Tensor:
    """rfftn along the last two axes."""
    return rfftn(input, s, dim, norm)


def irfft2(
    input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = (-2, -1), norm: str | None = None
) -> Tensor:
    """irfftn along the last two axes."""
    return irfftn(input, s, dim, norm)


def hfft2(
    input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = (-2, -1), norm: str | None = None
) -> Tensor:
    """hfftn along the last two axes."""
    return hfftn(input, s, dim, norm)


def ihfft2(
    input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = (-2, -1), norm: str | None = None
) -> Tensor:
    """ihfftn along the last two axes."""
    return ihfftn(input, s, dim, norm)


def fftfreq(
    n: int,
    d: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The frequencies of the elements of fft, for samples d apart: 0, 1, ..., -2, -1, divided by n * d."""
    n = check_count("fftfreq", n)
    return frequencies([*range((n + 1) // 2), *range(-(n // 2), 0)], n * d, dtype, device, requires_grad)


def rfftfreq(
    n: int,
    d: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The frequencies of the elements of rfft, for samples d apart: 0, 1, ..., n // 2, divided by n * d."""
    n = check_count("rfftfreq", n)
    return frequencies([*range(n // 2 + 1)], n * d, dtype, device, requires_grad)


def check_count(name: str, n: int) -> int:
    if integer(n, "n") < 1:
        fail(OutOfRangeError, f"{name}: n must be at least 1, got {n}", "n=8", n=n)
    return integer(n, "n")


def frequencies(
    numbers: list, scale: float, dtype: DTypeLike | None, device: Device | str | None, requires_grad: bool
) -> Tensor:
    dtype = default_dtype() if dtype is None else as_dtype(dtype)
    return finish(to(ensure_tensor(numbers), dtype) * (1.0 / scale), device, requires_grad)


def roll_half(input: Tensor, dim: int | Sequence[int] | None, sign: int) -> Tensor:
    input = ensure_tensor(input)
    axes = list(range(input.spec.ndim)) if dim is None else unique_axes(dim, input)
    return roll(input, [input.spec.shape[a] // 2 * sign for a in axes], axes) if axes else input


def fftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Move frequency 0 to the middle: each axis is rolled by half its size."""
    return roll_half(input, dim, 1)


def ifftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of fftshift."""
    return roll_half(input, dim, -1)
