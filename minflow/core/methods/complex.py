"""Methods of complex tensors: `x.real`, `x.conj()`, `x.H`."""

from __future__ import annotations

from .. import functions as F
from ..messages.suggestions import hint_methods


@hint_methods
class Complex:
    """Parts, conjugates, angles."""

    @property
    def real(self):
        """The real part, in the same memory; a real tensor is returned unchanged."""
        return F.real(self)

    @real.setter
    def real(self, other):
        F.real(self).copy_(other)

    @property
    def imag(self):
        """The imaginary part, in the same memory."""
        return F.imag(self)

    @imag.setter
    def imag(self, other):
        F.imag(self).copy_(other)

    @property
    def H(self):
        """The conjugate transpose of a matrix."""
        return self.adjoint()

    mH = H

    def adjoint(self):
        return F.adjoint(self)

    def angle(self):
        return F.angle(self)

    def conj(self):
        return F.conj(self)

    conj_physical = conj

    def resolve_conj(self):
        return F.resolve_conj(self)

    def resolve_neg(self):
        return F.resolve_neg(self)

    def is_conj(self):
        return F.is_conj(self)
