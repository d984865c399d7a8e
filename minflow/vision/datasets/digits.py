"""The 1,797 digits that ship with minflow, as a dataset. Read next: `../../data/digits.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...core.functions.creation import from_numpy
from ...data.digits import digit_arrays
from ...utils.data.dataset import check_indices
from .base import ImageDataset


class Digits(ImageDataset):
    """1,497 handwritten digits to train on, 300 to test, with labels 0 to 9; needs no download.

    image_size: 8, the original, or 28, as in MNIST. Without a transform a sample is (`float32[1, size, size]` in
    [0, 1], label), as in `data.digits`; a transform gets the image as bytes, 0 to 255.
    """

    classes = [str(i) for i in range(10)]

    def __init__(
        self,
        train: bool = True,
        image_size: int = 8,
        transform: Callable | None = None,
        target_transform: Callable | None = None,
    ):
        self.train, self.image_size = train, image_size
        self.images, labels = digit_arrays(bool(train), image_size)
        super().__init__(np.rint(self.images * 255).astype("uint8"), labels, transform, target_transform)

    def __getitem__(self, index: int):
        if self.transform is not None:
            return super().__getitem__(index)
        label = int(self.targets[index])
        return from_numpy(
            self.images[index][None].copy()
        ), label if self.target_transform is None else self.target_transform(label)

    @property
    def whole_batch(self) -> Callable:
        if self.transform is not None or self.target_transform is not None:
            return super().whole_batch

        def make(indices: Sequence[int]) -> list:
            where = check_indices(indices, len(self))
            return [from_numpy(self.images[where][:, None]), from_numpy(self.targets[where].astype("int64"))]

        return make
