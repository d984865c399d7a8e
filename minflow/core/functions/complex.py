"""Complex numbers and their parts: `complex`, `polar`, `real`, `imag`, `conj`, `angle`.

Read next: `../ops/complex.py`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..base.errors import DTypeError
from ..functionalize import contiguous
from ..ops import compare as c, complex as z, elementwise as e
from ..ops.shape import filled, zeros_of
from ..source_location import fail
from ..spec import bool_, default_dtype
from .arguments import to

if TYPE_CHECKING:
    from ..tensor import Tensor


complex = z.complex


def real(input: Tensor) -> Tensor:
    """The real part, a view; a real tensor is returned unchanged."""
    return z.real(input) if input.spec.dtype.is_complex else input


def imag(input: Tensor) -> Tensor:
    """The imaginary part, a view. Raises DTypeError for a real tensor."""
    return z.imag(input)


def conj(input: Tensor) -> Tensor:
    """The complex conjugate, computed eagerly; a real tensor is returned unchanged."""
    return z.conj(input) if input.spec.dtype.is_complex else input


def resolve_conj(input: Tensor) -> Tensor:
    """Return input: `conj` is never lazy here."""
    return input


def resolve_neg(input: Tensor) -> Tensor:
    """Return input: negation is never lazy here."""
    return input


def is_conj(input: Tensor) -> bool:
    """Always False: `conj` is never lazy here."""
    return False


def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """abs * exp(i * angle), from an absolute value and an angle in radians."""
    return z.complex(e.mul(abs, e.cos(angle)), e.mul(abs, e.sin(angle)))


def angle(input: Tensor) -> Tensor:
    """The angle of a complex number in radians, from -pi to pi; for a real number 0, or pi if it is negative."""
    if input.spec.dtype.is_complex:
        return e.atan2(z.imag(input), z.real(input))
    x = input if input.spec.floating else to(input, default_dtype())
    return e.where(c.isnan(x), e.mul(x, 0), e.where(c.lt(x, 0), math.pi, zeros_of(x.spec)))


def sgn(input: Tensor) -> Tensor:
    """x / |x| of a complex number, 0 at 0; the sign of a real one."""
    return e.complex_sign(input, e.abs(input)) if input.spec.dtype.is_complex else e.sign(input)


def isreal(input: Tensor) -> Tensor:
    """True where the imaginary part is 0."""
    if input.spec.dtype.is_complex:
        return c.eq(z.imag(input), 0)
    return filled(input.spec.replace(dtype=bool_), True)


def is_complex(input: Tensor) -> bool:
    """True if the dtype is complex (complex64 or complex128)."""
    return input.is_complex()


def view_as_real(input: Tensor) -> Tensor:
    """A view with the real and imaginary parts along a new last axis of size 2."""
    return z.view_as_real(input)


def view_as_complex(input: Tensor) -> Tensor:
    """Pairs along the last axis, of size 2, as complex numbers; a view, or a copy if input is not contiguous."""
    return z.view_as_complex(contiguous(input))


def adjoint(input: Tensor) -> Tensor:
    """The conjugate transpose of the last two axes; for a 0-d tensor the conjugate."""
    if not input.spec.ndim:
        return conj(input)
    if input.spec.ndim == 1:
        fail(DTypeError, "adjoint: input must have at least 2 axes, got 1", "x.conj()", input=input)
    return conj(input.mT)
