"""Random application, choice and order of transforms. Read next: `transforms.py`, for Compose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.base.errors import OutOfRangeError
from ...core.source_location import fail
from ...utils.data.scalar_random import random_words, scale_to_range, with_probability
from .augment import probability, scale_word
from .transforms import Compose


class RandomApply(Compose):
    """With probability p, apply all transforms in order; else none."""

    def __init__(self, transforms: Sequence[Callable], p: float = 0.5):
        super().__init__(transforms)
        self.p = probability("RandomApply", p)

    def forward(self, image: Any) -> Any:
        return super().forward(image) if with_probability(self.p, random_words()[0]) else image


class RandomOrder(Compose):
    """Apply all transforms in random order."""

    def forward(self, image: Any) -> Any:
        left = list(self.transforms)
        while left:
            image = left.pop(scale_to_range(len(left), random_words()[0]))(image)
        return image


class RandomChoice(Compose):
    """Apply one of the transforms. p: their probabilities, equal by default."""

    def __init__(self, transforms: Sequence[Callable], p: Sequence[float] | None = None):
        super().__init__(transforms)
        self.p = [1.0] * len(self.transforms) if p is None else [float(v) for v in p]
        if not self.p or len(self.p) != len(self.transforms) or min(self.p) < 0 or sum(self.p) <= 0:
            what = f"RandomChoice: p must be weights of {len(self.transforms)} transforms, got {p}"
            fail(OutOfRangeError, what, "a non-negative number for each transform, and at least one transform")

    def forward(self, image: Any) -> Any:
        left = scale_word(0, sum(self.p), random_words()[0])
        for transform, weight in zip(self.transforms, self.p):
            if left < weight:
                break
            left -= weight
        return transform(image)
