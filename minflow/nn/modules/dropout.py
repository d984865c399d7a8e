"""Layers: Dropout of elements and of channels, and AlphaDropout, which preserves mean and variance.

Read next: `../functional/dropout.py`.
"""

from __future__ import annotations

from ...core.base.errors import OutOfRangeError
from ...core.functions.arguments import number_or_symbol
from ...core.random import Generator
from ...core.source_location import fail
from ...core.tensor import Tensor
from .. import functional as F
from ..module import Module


class DropoutNd(Module):
    """Base of the layers below, none of which is another one: programs choose them by `isinstance(m, nn.Dropout)`."""

    _repr_attributes = ("p", "inplace")

    def __init__(self, p: float = 0.5, inplace: bool = False, generator: Generator | None = None):
        super().__init__()
        p = number_or_symbol(p)
        if isinstance(p, bool) or not isinstance(p, int | float) or not 0 <= p <= 1:
            what = f"{type(self).__name__}: p must be a probability between 0 and 1, got {p!r}"
            fail(OutOfRangeError, what, f"nn.{type(self).__name__}(0.5)")
        self.p, self.inplace, self.generator = p, inplace, generator


class Dropout(DropoutNd):
    """In training set each element to 0 with probability p, else to x / (1 - p); in evaluation return x.

    Srivastava et al. 2014, section 4.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace, self.generator)


class Dropout1d(DropoutNd):
    """Dropout of whole channels of (N, C, L) or (C, L)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(DropoutNd):
    """Dropout of whole channels of (N, C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(DropoutNd):
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(DropoutNd):
    """Dropout for SELU, which preserves mean and variance. Klambauer et al. 2017, section 3."""

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(DropoutNd):
    """AlphaDropout of whole channels of (N, C, ...)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
