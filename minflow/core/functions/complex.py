"""Complex numbers by their parts: `complex`, `polar`, `real`, `imag`, `conj`, `angle`.

Read next: `../ops/complex.py`.
"""

from __future__ import annotations

import math

from ..base.errors import DTypeError
from ..ops import compare as c
from ..ops import complex as z
from ..ops import elementwise as e
from ..ops.shape import full
from ..functionalize import contiguous
from ..spec import bool_, default_dtype
from ..source_location import fail
from .arguments import to

complex = z.complex


def real(input):
    """The real part, a view; of a real tensor itself."""
    return z.real(input) if input.spec.dtype.is_complex else input


def imag(input):
    """The imaginary part, a view. Raises DTypeError for a real tensor, which has none."""
    return z.imag(input)


def conj(input):
    """The complex conjugate, computed at once; a real tensor is its own."""
    return z.conj(input) if input.spec.dtype.is_complex else input


def resolve_conj(input):
    """The tensor itself: `conj` computes its numbers at once."""
    return input


def resolve_neg(input):
    """The tensor itself: no view has its sign turned."""
    return input


def is_conj(input) -> bool:
    """Is the tensor a view whose conjugation is put off? Never: `conj` computes its numbers at once."""
    return False


def polar(abs, angle):
    """abs * exp(i * angle), of a length and an angle in radians."""
    return z.complex(e.mul(abs, e.cos(angle)), e.mul(abs, e.sin(angle)))


def angle(input):
    """The angle of a complex number in radians, from -pi to pi; of a real one 0, below 0 pi."""
    if input.spec.dtype.is_complex:
        return e.atan2(z.imag(input), z.real(input))
    x = input if input.spec.floating else to(input, default_dtype())
    return e.where(c.isnan(x), x, e.where(c.lt(x, 0), math.pi, full(shape=x.spec.shape, value=0, dtype=x.spec.dtype)))


def isreal(input):
    """Has x no imaginary part?"""
    if input.spec.dtype.is_complex:
        return c.eq(z.imag(input), 0)
    return full(shape=input.spec.shape, value=True, dtype=bool_)


def is_complex(input) -> bool:
    """Is the dtype complex (complex64 or complex128)?"""
    return input.is_complex()


def view_as_real(input):
    """Real and imaginary part along a new last axis of size 2, a view."""
    return z.view_as_real(input)


def view_as_complex(input):
    """Pairs along the last axis, of size 2, as complex numbers; a view, or a copy of what is not contiguous."""
    return z.view_as_complex(contiguous(input))


def adjoint(input):
    """The conjugate transpose of matrices: their last two axes swapped; of a tensor without axes its conjugate."""
    if not input.spec.ndim:
        return conj(input)
    if input.spec.ndim == 1:
        fail(DTypeError, "adjoint: a matrix has 2 axes, this tensor has 1", "x.conj()", input=input)
    return conj(input.mT)
