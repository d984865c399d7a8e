"""Methods of complex tensors: `x.real`, `x.conj()`, `x.H`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import functions as F
from ..messages.suggestions import hint_methods

if TYPE_CHECKING:
    from ..tensor import Tensor


@hint_methods
class Complex:
    """Parts, conjugates, angles."""

    @property
    def real(self: Tensor) -> Tensor:
        """The real part, in the same memory; a real tensor is returned unchanged."""
        return F.real(self)

    @real.setter
    def real(self: Tensor, other: Tensor | float) -> None:
        F.real(self).copy_(other)

    @property
    def imag(self: Tensor) -> Tensor:
        """The imaginary part, in the same memory."""
        return F.imag(self)

    @imag.setter
    def imag(self: Tensor, other: Tensor | float) -> None:
        F.imag(self).copy_(other)

    @property
    def H(self: Tensor) -> Tensor:
        """The conjugate transpose of a matrix."""
        return self.adjoint()

    mH = H

    def adjoint(self: Tensor) -> Tensor:
        return F.adjoint(self)

    def angle(self: Tensor) -> Tensor:
        return F.angle(self)

    def conj(self: Tensor) -> Tensor:
        return F.conj(self)

    conj_physical = conj

    def resolve_conj(self: Tensor) -> Tensor:
        return F.resolve_conj(self)

    def resolve_neg(self: Tensor) -> Tensor:
        return F.resolve_neg(self)

    def is_conj(self: Tensor) -> bool:
        return F.is_conj(self)
