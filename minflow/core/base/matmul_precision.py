"""The precision of float32 matrix products on GPUs, which the user sets; the CPU computes them in float32.

Its names are PyTorch's: "highest" is float32; "high" and "medium" round the factors to TF32, with 10 bits of fraction.
"""

from __future__ import annotations

PRECISIONS = ("highest", "high", "medium")


class MatmulPrecision:
    """The setting of this process."""

    float32 = "highest"

    @classmethod
    def tf32(cls) -> bool:
        """True if factors may be rounded to TF32."""
        return cls.float32 != "highest"
