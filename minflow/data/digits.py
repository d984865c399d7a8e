"""The 1,797 handwritten digits that ship with minflow: 8x8 pixels, 45 kB, no download.

Source: Alpaydin & Kaynak, "Optical Recognition of Handwritten Digits", UCI (doi 10.24432/C50P49); license in NOTICE.
Read next: `mnist.py`, whose batches have the same layout.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np

from ..core.base.errors import OutOfRangeError
from ..core.source_location import fail
from .files import read_npz

FILE = Path(__file__).with_name("digits.npz")
EXPECTED = {"images": ((1797, 8, 8), "uint8"), "labels": ((1797,), "uint8")}
TEST_STRIDE = 6  # every sixth image is a test image: 300 of them, and 1,497 for training


def digits(batch_size: int = 100, image_size: int = 8, data_format: str = "NCHW") -> Any:
    """Return the digits in batches, like load_mnist: `(train_images, train_labels), (test_images, test_labels)`.

    images: `float32[n, batch_size, 1, image_size, image_size]` in [0, 1]; labels: `int32[n, batch_size]`.
    1,497 images for training and 300 for testing; an incomplete batch is dropped (DataLoader over
    `vision.datasets.Digits` keeps it). image_size 28 gives LeNet's input: as in MNIST, a 20x20 digit in the middle. The
    same people wrote both parts. Raises OutOfRangeError for any other size.

    >>> (images, labels), _ = digits(50)
    >>> images.shape, labels.shape
    ((29, 50, 1, 8, 8), (29, 50))
    """
    if not isinstance(batch_size, int | np.integer) or isinstance(batch_size, bool) or not 1 <= batch_size <= 300:
        what = f"digits: batch_size must be from 1 to 300, the size of the test part, got {batch_size}"
        fail(OutOfRangeError, what, "batch_size=100")
    if data_format not in ("NCHW", "NHWC"):
        fail(OutOfRangeError, f"digits: data_format must be 'NCHW' or 'NHWC', got {data_format!r}", '"NCHW" or "NHWC"')
    parts = []
    for train in (True, False):
        images, labels = digit_arrays(train, image_size)
        count = len(images) // batch_size
        shape = (1, image_size, image_size) if data_format == "NCHW" else (image_size, image_size, 1)
        parts.append(
            (
                images[: count * batch_size].reshape(count, batch_size, *shape).copy(),
                labels[: count * batch_size].reshape(count, batch_size).astype("int32"),
            )
        )
    return parts[0], parts[1]


@functools.lru_cache(maxsize=4)
def digit_arrays(train: bool, image_size: int) -> tuple[np.ndarray, np.ndarray]:
    """Images `float32[n, image_size, image_size]` in [0, 1], labels `uint8[n]`. Shared: do not write to them."""
    if image_size not in (8, 28):
        what = f"digits: image_size must be 8 or 28, got {image_size}"
        fail(OutOfRangeError, what, "8, their own size, or 28, that of MNIST")
    arrays = read_npz(FILE, EXPECTED)
    chosen = (np.arange(1797) % TEST_STRIDE == 0) != train
    images, labels = arrays["images"][chosen].astype("float32") / 16, arrays["labels"][chosen]
    if image_size == 28:
        images = np.pad(resize_axis(resize_axis(images, 20, 1), 20, 2), ((0, 0), (4, 4), (4, 4)))
    images.flags.writeable = labels.flags.writeable = False
    return images, labels


def resize_axis(images: np.ndarray, size: int, axis: int) -> np.ndarray:
    """Resize one axis to `size` by linear interpolation between pixel centers; outside, the last pixel is repeated."""
    old = images.shape[axis]
    center = np.clip((np.arange(size) + 0.5) * old / size - 0.5, 0, old - 1)
    low = np.minimum(center.astype("int64"), old - 2)
    share = (center - low).astype("float32").reshape([-1 if a == axis else 1 for a in range(3)])
    return np.take(images, low, axis) * (1 - share) + np.take(images, low + 1, axis) * share
