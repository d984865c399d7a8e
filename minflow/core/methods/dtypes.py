"""Methods that convert to a dtype or ask for it: `x.half()`, `x.is_complex()`."""

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
    """The same numbers in another dtype; itself where it is that dtype."""

    def cast(self, dtype):
        """OneFlow's name of `to(dtype)`."""
        return self.to(dtype)

    def float(self):
        """In float32; itself if it is."""
        return self.to(float32)

    def double(self):
        """In float64; itself if it is."""
        return self.to(float64)

    def half(self):
        """In float16; itself if it is."""
        return self.to(float16)

    def bfloat16(self):
        """In bfloat16; itself if it is."""
        return self.to(bfloat16)

    def cfloat(self):
        """In complex64; itself if it is."""
        return self.to(complex64)

    def cdouble(self):
        """In complex128; itself if it is."""
        return self.to(complex128)

    def short(self):
        """In int16; itself if it is."""
        return self.to(int16)

    def int(self):
        """In int32; itself if it is."""
        return self.to(int32)

    def long(self):
        """In int64; itself if it is."""
        return self.to(int64)

    def char(self):
        """In int8."""
        return self.to(int8)

    def byte(self):
        """In uint8."""
        return self.to(uint8)

    def bool(self):
        """In bool: what is not 0; itself if it is."""
        return self.to(bool_)

    def is_floating_point(self):
        return self.spec.floating

    def is_complex(self):
        return self.spec.dtype.is_complex

    def is_signed(self):
        return self.spec.dtype.is_signed
