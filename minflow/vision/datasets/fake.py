"""Random images, for trying out a program without files."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...core.base.errors import OutOfRangeError
from ...core.random import bits, derive_key
from ...core.source_location import fail
from ...utils.data.dataset import Dataset
from ...utils.data.scalar_random import scale_to_range
from .base import transformed


class FakeData(Dataset):
    """`size` images of random bytes with random labels, the same in each run.

    image_size: (channels, height, width), with 1 or 3 channels.  random_offset: selects different images. Without a
    transform, an image is returned as a PIL image.
    """

    def __init__(
        self,
        size: int = 1000,
        image_size: tuple[int, int, int] = (3, 224, 224),
        num_classes: int = 10,
        transform: Callable | None = None,
        target_transform: Callable | None = None,
        random_offset: int = 0,
    ):
        self.size, self.image_size, self.num_classes = size, tuple(image_size), num_classes
        self.transform, self.target_transform, self.random_offset = transform, target_transform, random_offset
        self.key = derive_key(random_offset, "FakeData")
        if len(self.image_size) != 3 or self.image_size[0] not in (1, 3) or size < 0 or num_classes < 1:
            what = f"FakeData: {size} images of {image_size} in {num_classes} classes"
            fail(OutOfRangeError, what, "image_size=(3, 32, 32)")

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int):
        number = index + self.size if index < 0 else index
        if not 0 <= number < self.size:
            what = f"there is no sample {index} in a dataset of {self.size}"
            fail(OutOfRangeError, what, "a number below len(dataset)")
        channels, height, width = self.image_size
        count = math.prod(self.image_size)
        random_words = bits(np, self.key, int(number), 1 + -(-count // 4))
        image = random_words[1:].view("uint8")[:count].reshape(height, width, channels)
        label = scale_to_range(self.num_classes, int(random_words[0]))
        return transformed(self, image, label)
