"""Methods that convert to a dtype or query it: `x.half()`, `x.is_complex()`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.dtypes import (
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from ..messages.suggestions import hint_methods

if TYPE_CHECKING:
    import builtins

    from ..base.dtypes import DTypeLike
    from ..tensor import Tensor


@hint_methods
class DTypes:
    """Conversions to another dtype; a tensor that already has it is returned unchanged."""

    def cast(self: Tensor, dtype: DTypeLike) -> Tensor:
        """OneFlow's name for `to(dtype)`."""
        return self.to(dtype)

    def float(self: Tensor) -> Tensor:
        """Convert to float32; see `to`."""
        return self.to(float32)

    def double(self: Tensor) -> Tensor:
        """Convert to float64; see `to`."""
        return self.to(float64)

    def half(self: Tensor) -> Tensor:
        """Convert to float16; see `to`."""
        return self.to(float16)

    def bfloat16(self: Tensor) -> Tensor:
        """Convert to bfloat16; see `to`."""
        return self.to(bfloat16)

    def cfloat(self: Tensor) -> Tensor:
        """Convert to complex64; see `to`."""
        return self.to(complex64)

    def cdouble(self: Tensor) -> Tensor:
        """Convert to complex128; see `to`."""
        return self.to(complex128)

    def short(self: Tensor) -> Tensor:
        """Convert to int16; see `to`."""
        return self.to(int16)

    def int(self: Tensor) -> Tensor:
        """Convert to int32; see `to`."""
        return self.to(int32)

    def long(self: Tensor) -> Tensor:
        """Convert to int64; see `to`."""
        return self.to(int64)

    def char(self: Tensor) -> Tensor:
        """Convert to int8; see `to`."""
        return self.to(int8)

    def byte(self: Tensor) -> Tensor:
        """Convert to uint8; see `to`."""
        return self.to(uint8)

    def bool(self: Tensor) -> Tensor:
        """Convert to bool: True for nonzero elements; see `to`."""
        return self.to(bool_)

    def is_floating_point(self: Tensor) -> builtins.bool:
        return self.spec.floating

    def is_complex(self: Tensor) -> builtins.bool:
        return self.spec.dtype.is_complex

    def is_signed(self: Tensor) -> builtins.bool:
        return self.spec.dtype.is_signed
