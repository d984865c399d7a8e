"""Random choice and order of transforms, crops at several positions, dtype conversions. Read next: `transforms.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.base.errors import OutOfRangeError
from ...core.source_location import fail
from ...core.spec import DType
from ...core.tensor import Tensor
from ...utils.data.scalar_random import random_words, scale_to_range, with_probability
from . import images, warps
from .augment import probability, scale_word
from .transforms import Compose, Transform


class RandomApply(Compose):
    """With probability p, apply all transforms in order; else none."""

    many = None  # type: ignore[assignment]

    def __init__(self, transforms: Sequence[Callable], p: float = 0.5):
        super().__init__(transforms)
        self.p = probability("RandomApply", p)

    def __call__(self, image: Any) -> Any:
        return super().__call__(image) if with_probability(self.p, random_words()[0]) else image


class RandomOrder(Compose):
    """Apply all transforms in random order."""

    many = None  # type: ignore[assignment]

    def __call__(self, image: Any) -> Any:
        left = list(self.transforms)
        while left:
            image = left.pop(scale_to_range(len(left), random_words()[0]))(image)
        return image


class RandomChoice(Compose):
    """Apply one of the transforms. p: their probabilities, equal by default."""

    many = None  # type: ignore[assignment]

    def __init__(self, transforms: Sequence[Callable], p: Sequence[float] | None = None):
        super().__init__(transforms)
        self.p = [1.0] * len(self.transforms) if p is None else [float(v) for v in p]
        if not self.p or len(self.p) != len(self.transforms) or min(self.p) < 0 or sum(self.p) <= 0:
            fail(
                OutOfRangeError,
                f"RandomChoice: p must be weights of {len(self.transforms)} transforms, got {p}",
                "a non-negative number for each transform, and at least one transform",
            )

    def __call__(self, image: Any) -> Any:
        left = scale_word(0, sum(self.p), random_words()[0])
        for transform, weight in zip(self.transforms, self.p):
            if left < weight:
                break
            left -= weight
        return transform(image)


class Pad(Transform):
    """Add a border: padding pixels on all sides, (left and right, top and bottom), or (left, top, right, bottom)."""

    def __init__(self, padding: int | Sequence[int], fill: float = 0, padding_mode: str = "constant"):
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode
        images.to_four_sides(padding)

    def __call__(self, image: Any) -> Any:
        return images.pad(image, self.padding, self.fill, self.padding_mode)

    def text(self) -> str:
        return f"padding={self.padding}, fill={self.fill}, padding_mode={self.padding_mode}"


class FiveCrop(Transform):
    """Crop the four corners and the centre: a tuple, to be followed by `Lambda(lambda crops: stack(...))`."""

    def __init__(self, size: int | Sequence[int]):
        self.size = images.to_height_width("FiveCrop", size)

    def __call__(self, image: Any) -> tuple:
        return warps.five_crop(image, self.size)

    def text(self) -> str:
        return f"size={self.size}"


class TenCrop(FiveCrop):
    """FiveCrop of an image and of its mirror image."""

    def __init__(self, size: int | Sequence[int], vertical_flip: bool = False):
        super().__init__(size)
        self.vertical_flip = vertical_flip

    def __call__(self, image: Any) -> tuple:
        return warps.ten_crop(image, self.size, self.vertical_flip)


class PILToTensor(Transform):
    """Convert a PIL image or an array to a tensor [C, H, W] of the same dtype and values."""

    def __call__(self, image: Any) -> Tensor:
        return warps.pil_to_tensor(image)


class ConvertImageDtype(Transform):
    """Convert the colours of a tensor to another dtype: floats range from 0 to 1, bytes from 0 to 255."""

    def __init__(self, dtype: DType):
        self.dtype = dtype

    def __call__(self, image: Tensor) -> Tensor:
        return warps.convert_image_dtype(image, self.dtype)

    def text(self) -> str:
        return f"dtype={self.dtype}"
