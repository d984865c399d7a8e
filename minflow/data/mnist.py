"""MNIST from `mnist.npz`, in batches like those of OneFlow's `load_mnist`. Read next: `download.py`, `files.py`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from ..core.base.errors import DataError, ShapeError
from ..core.source_location import fail, here
from .cache import cache_dir, find_file, folder
from .download import fetch, sha256_of
from .files import check_labels, read_npz

SHA256 = "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1"
URLS = [
    "https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz",
    "https://s3.amazonaws.com/img-datasets/mnist.npz",
]
EXPECTED = {
    "x_train": ((60000, 28, 28), "uint8"),
    "y_train": ((60000,), "uint8"),
    "x_test": ((10000, 28, 28), "uint8"),
    "y_test": ((10000,), "uint8"),
}
LIMIT = 60_000_000  # bytes of the unpacked arrays; the usual file has 11,490,434

Batches = tuple[np.ndarray, np.ndarray]


def load_mnist(
    train_batch_size: int = 100,
    test_batch_size: int = 100,
    data_format: str = "NCHW",
    url: str | None = None,
    hash_check: str | None = SHA256,
    out_dir: str | os.PathLike | None = None,
) -> tuple[Batches, Batches]:
    """MNIST in batches: `(train_images, train_labels), (test_images, test_labels)`.

    images: `float32[60000 / B, B, 1, 28, 28]` in [0, 1], or `[60000 / B, B, 28, 28, 1]` with `data_format="NHWC"`;
    labels: `int32[60000 / B, B]`. The test part has 10000 images. B must divide the number of images.
    The file is `mnist.npz` in `out_dir` (default: the current folder), else in the cache, else it is downloaded.
    Raises ShapeError if B does not divide it, DataError for a file that is missing or damaged.
    """
    check_batch("train_batch_size", train_batch_size, EXPECTED["y_train"][0][0])
    check_batch("test_batch_size", test_batch_size, EXPECTED["y_test"][0][0])
    if data_format not in ("NCHW", "NHWC"):
        what = f"load_mnist: data_format must be 'NCHW' or 'NHWC', got {data_format!r}"
        fail(ShapeError, what, '"NCHW" (channels first) or "NHWC" (channels last)')
    arrays = mnist_arrays(url, hash_check, out_dir)
    train = split_batches(arrays["x_train"], arrays["y_train"], train_batch_size, data_format)
    return train, split_batches(arrays["x_test"], arrays["y_test"], test_batch_size, data_format)


def mnist_arrays(
    url: str | None = None, sha256: str | None = SHA256, out_dir: Any = None, say: bool = True
) -> dict[str, np.ndarray]:
    """The four arrays of `mnist.npz`, found or downloaded. Any file with the right arrays is accepted."""
    if sha256 is not None and (not isinstance(sha256, str) or len(sha256) != 64):
        what = "load_mnist: hash_check is not a sha256"
        fail(DataError, what, "64 hex digits; or None to skip the check", hash_check=sha256)
    if url is not None and not isinstance(url, str):
        fail(DataError, "load_mnist: url is not a string", 'url="https://..."', url=url)
    own = None if out_dir is None else folder(out_dir, "load_mnist")
    folders = [own or Path("."), cache_dir()]
    path = find_file("mnist.npz", folders)
    if path is None:
        target = (own or cache_dir()) / "mnist.npz"
        path = fetch([url] if url else URLS, target, sha256, LIMIT, "use flow.data.digits(), which needs no file")
    elif say:
        shown = path if path.is_absolute() else f".{os.sep}{path}"
        print(f"File mnist.npz already exist, path: {shown}")
        if sha256 is not None and (result := sha256_of(path)) != sha256:
            print(
                f"{shown} does not have the checksum of the usual file (sha256 {result[:12]}..., not {sha256[:12]}...)"
            )
    arrays = read_npz(path, EXPECTED)
    check_labels(path, arrays["y_train"], 10)
    check_labels(path, arrays["y_test"], 10)
    return arrays


def check_batch(name: str, size: int, images: int) -> None:
    if not isinstance(size, int | np.integer) or isinstance(size, bool) or size < 1 or images % size:
        near = [n for n in range(1, images + 1) if images % n == 0]
        below = max((n for n in near if isinstance(size, int | np.integer) and n <= size), default=1)
        above = min((n for n in near if isinstance(size, int | np.integer) and n >= size), default=images)
        raise ShapeError(
            f"load_mnist: {name} must divide {images} images into whole batches, got {size}",
            values={name: size, "images": images},
            where=here(),
            hint=f"{below} or {above}; a DataLoader over vision.datasets.MNIST takes any batch size",
        )


def split_batches(images: np.ndarray, labels: np.ndarray, size: int, data_format: str) -> Batches:
    """Split uint8 images `[n, H, W]` and labels `[n]` into batches; an incomplete batch is dropped."""
    count, (height, width) = len(images) // size, images.shape[1:]
    if count == 0:
        raise DataError(
            f"a batch of {size} is larger than the {len(images)} images", where=here(), hint="a smaller batch_size"
        )
    scaled = np.divide(images[: count * size], np.float32(255), dtype="float32")
    shape = (1, height, width) if data_format == "NCHW" else (height, width, 1)
    return scaled.reshape(count, size, *shape), labels[: count * size].reshape(count, size).astype("int32")
