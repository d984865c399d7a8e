"""Properties of complex tensors: `x.real`, `x.imag`, `x.H`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import functions as F
from ..base.errors import ShapeError
from ..source_location import fail

if TYPE_CHECKING:
    from ..tensor import Tensor


class Complex:
    """Parts and the conjugate transpose."""

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
        if self.spec.ndim > 2:
            fail(ShapeError, f"H: the tensor must be a matrix, got {self.spec.ndim} axes", "x.mH", x=self)
        return self.adjoint()

    @property
    def mH(self: Tensor) -> Tensor:
        """The conjugate transpose of the last two axes."""
        return self.adjoint()

    def conj_physical(self: Tensor) -> Tensor:
        """The complex conjugate; see `conj`."""
        return F.conj(self)
