"""Layers: Dropout.

Read next: `../functional/dropout.py`.
"""

from __future__ import annotations

from ...core.base.errors import OutOfRangeError
from ...core.tensor import Tensor
from ...core.where import fail
from .. import functional as F
from ..module import Module


class Dropout(Module):
    """In training mode each number becomes 0 with probability p, the others grow by 1 / (1 - p); else out = x.

    Srivastava et al. 2014, section 4.
    """

    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        if isinstance(p, bool) or not isinstance(p, int | float) or not 0 <= p <= 1:
            fail(
                OutOfRangeError,
                f"Dropout: p is {p!r}, where a probability between 0 and 1 is wanted",
                "nn.Dropout(0.5)",
            )
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"
