"""Methods that convert to a dtype or query it: `x.half()`, `x.is_complex()`."""

from __future__ import annotations

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


@hint_methods
class DTypes:
    """Conversions to another dtype; a tensor that already has it is returned unchanged."""

    def cast(self, dtype):
        """OneFlow's name of `to(dtype)`."""
        return self.to(dtype)

    def float(self):
        """Convert to float32; see `to`."""
        return self.to(float32)

    def double(self):
        """Convert to float64; see `to`."""
        return self.to(float64)

    def half(self):
        """Convert to float16; see `to`."""
        return self.to(float16)

    def bfloat16(self):
        """Convert to bfloat16; see `to`."""
        return self.to(bfloat16)

    def cfloat(self):
        """Convert to complex64; see `to`."""
        return self.to(complex64)

    def cdouble(self):
        """Convert to complex128; see `to`."""
        return self.to(complex128)

    def short(self):
        """Convert to int16; see `to`."""
        return self.to(int16)

    def int(self):
        """Convert to int32; see `to`."""
        return self.to(int32)

    def long(self):
        """Convert to int64; see `to`."""
        return self.to(int64)

    def char(self):
        """Convert to int8; see `to`."""
        return self.to(int8)

    def byte(self):
        """Convert to uint8; see `to`."""
        return self.to(uint8)

    def bool(self):
        """Convert to bool: True for nonzero elements; see `to`."""
        return self.to(bool_)

    def is_floating_point(self):
        return self.spec.floating

    def is_complex(self):
        return self.spec.dtype.is_complex

    def is_signed(self):
        return self.spec.dtype.is_signed
