"""Base class of image datasets: an array of images, their labels, and transforms for both.

Transforms get a PIL image, as in torchvision; those of minflow also accept the plain array, which saves a conversion,
and transform whole batches if that gives the same bits. Read next: `mnist.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...core.base.errors import LoaderError
from ...core.functions.creation import from_numpy
from ...core.source_location import fail
from ...data.cache import cache_dir, find_file, folder
from ...data.download import fetch
from ...utils.data.dataset import Dataset, check_indices
from ..transforms.images import to_pil_image
from ..transforms.transforms import takes_arrays


def check_transforms(dataset: str, transform: Any, target_transform: Any) -> None:
    """Refuse transforms that cannot be called with an image or a label, such as a class."""
    for name, t in (("transform", transform), ("target_transform", target_transform)):
        if t is not None and (not callable(t) or isinstance(t, type)):
            hint = f"{name}={t.__name__}()" if isinstance(t, type) else "transforms.ToTensor()"
            fail(LoaderError, f"{dataset}: {name} cannot be called with an image", hint, **{name: t})


def transformed(dataset: Any, image: np.ndarray, label: int) -> tuple[Any, Any]:
    """The sample of a dataset: an image and its label, after the dataset's transforms."""
    result: Any = image if takes_arrays(dataset.transform) else to_pil_image(image)
    if dataset.transform is not None:
        result = dataset.transform(result)
    return result, label if dataset.target_transform is None else dataset.target_transform(label)


class ImageDataset(Dataset):
    """Images `uint8[n, H, W]` or `uint8[n, H, W, C]` with integer labels; sample i is (image, label).

    data, targets: the arrays.  classes: names.  Without a transform, an image is returned as a PIL image.
    """

    classes: Sequence[str] = ()

    def __init__(
        self,
        data: np.ndarray,
        targets: np.ndarray,
        transform: Callable | None = None,
        target_transform: Callable | None = None,
    ):
        check_transforms(type(self).__name__, transform, target_transform)
        self.data, self.targets, self.transform, self.target_transform = data, targets, transform, target_transform

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return transformed(self, self.data[index], int(self.targets[index]))

    @property
    def whole_batch(self) -> Callable:
        """Function that loads a whole batch. Raises AttributeError if a transform cannot; the loader falls back."""
        transform_batch = getattr(self.transform, "transform_batch", None)
        if transform_batch is None or self.target_transform is not None:
            raise AttributeError("whole_batch")

        def make(indices: Sequence[int]) -> list:
            where = check_indices(indices, len(self))
            return [transform_batch(self.data[where]), from_numpy(self.targets[where].astype("int64"))]

        return make

    def __repr__(self) -> str:
        return f"Dataset {type(self).__name__}\n    Number of datapoints: {len(self)}\n    Transform: {self.transform}"


class DownloadedImages(ImageDataset):
    """A dataset whose files are under `root` or are downloaded. Subclasses define `arrays`, which reads them."""

    def __init__(
        self,
        root: str | os.PathLike | None = None,
        train: bool = True,
        transform: Callable | None = None,
        target_transform: Callable | None = None,
        download: bool = False,
    ):
        self.root, self.train = root, train
        super().__init__(*self.arrays(download), transform, target_transform)

    def arrays(self, download: bool) -> tuple[np.ndarray, np.ndarray]:
        """Images and labels of the split `self.train`, from the files in `self.root`."""
        raise NotImplementedError(f"{type(self).__name__}.arrays")


def find_or_fetch(
    name: str, folders: Sequence[Path], urls: Sequence[str], sha256: str, limit: int, download: bool
) -> Path:
    """Path of the file `name` in one of the folders; if missing and `download`, fetch it into the first one."""
    path = find_file(name, list(folders))
    if path is not None:
        return path
    return fetch(
        urls if download else (),
        folders[0] / name,
        sha256,
        limit,
        "download=True" if not download else "use vision.datasets.Digits, which needs no file",
    )


def candidate_folders(root: str | os.PathLike | None, *below: str) -> list[Path]:
    """Folders that may hold the files: under `root` as in torchvision, `root` itself, and the cache."""
    own = None if root is None else folder(root, "root")
    passed = [] if own is None else [own.joinpath(*below), own]
    return [*passed, cache_dir().joinpath(*below), cache_dir()]
