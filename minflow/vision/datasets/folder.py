"""Images in folders, one folder per class. Read next: `base.py`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ...core.base.errors import DataError, LoaderError, OutOfRangeError
from ...core.source_location import fail
from ...data.cache import folder
from ...data.files import file_error
from ...utils.data.dataset import Dataset
from ..transforms.images import pillow
from .base import check_transforms

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def default_loader(path: str | os.PathLike) -> Any:
    """Read a file as an RGB PIL image. Raises DataError if it is damaged or not an image."""
    Image = pillow("ImageFolder")
    try:
        with Image.open(path) as image:
            return image.convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        hint = "delete the file or copy a good one there; is_valid_file=... of the dataset leaves files out"
        raise file_error(Path(path), "is damaged or not an image", hint, reason=str(error)) from None


class DatasetFolder(Dataset):
    """Dataset of files `root/CLASS/.../NAME.EXTENSION`: sample i is (loader(path), class index).

    loader: a function of a path.  extensions: suffixes of the files to use, such as (".png", ".jpg"), case-insensitive;
    or is_valid_file: a function of a path that returns True for them.  allow_empty: True if a class may have no files.
    Classes are indexed in the order of their names. Attributes: classes, class_to_idx, samples (path, class index),
    targets. Raises DataError if the folder does not exist or has no class, or if a class has no file.
    """

    def __init__(
        self,
        root: str | os.PathLike,
        loader: Callable[[str], Any],
        extensions: Sequence[str] | str | None = None,
        transform: Callable | None = None,
        target_transform: Callable | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ):
        name = type(self).__name__
        check_transforms(name, transform, target_transform)
        if (extensions is None) == (is_valid_file is None):
            what = f"{name}: give either extensions or is_valid_file"
            fail(LoaderError, what, 'extensions=(".png", ".jpg")', extensions=extensions, is_valid_file=is_valid_file)
        self.root, self.loader, self.extensions = root, loader, extensions
        self.transform, self.target_transform, self.is_valid_file = transform, target_transform, is_valid_file
        self.classes, self.class_to_idx = self.find_classes(folder(root, "root"))
        self.samples = self.found_files(folder(root, "root"), allow_empty)
        self.targets = [target for _, target in self.samples]

    def find_classes(self, directory: str | os.PathLike) -> tuple[list[str], dict[str, int]]:
        """(names of the folders in `directory`, sorted; name -> index). Subclasses may override it."""
        where = Path(directory)
        if not where.is_dir():
            what = f"{type(self).__name__}: there is no folder {where}"
            hint = "root is the folder above those of the classes: root/cat/1.png, root/dog/2.png"
            fail(DataError, what, hint, root=self.root, absolute=where.absolute())
        names = sorted(entry.name for entry in os.scandir(where) if entry.is_dir())
        if not names:
            what = f"{type(self).__name__}: there are no folders in {where}"
            hint = "one folder for each class: root/cat/1.png, root/dog/2.png"
            fail(DataError, what, hint, root=self.root, absolute=where.absolute())
        return names, {name: i for i, name in enumerate(names)}

    def found_files(self, root: Path, allow_empty: bool) -> list[tuple[str, int]]:
        """(path, class index) of each file in the dataset, sorted by name."""
        ends = (self.extensions,) if isinstance(self.extensions, str) else tuple(self.extensions or ())
        ends = tuple(end.lower() for end in ends)
        valid = self.is_valid_file or (lambda path: path.lower().endswith(ends))
        samples: list[tuple[str, int]] = []
        empty = []
        for name, number in sorted(self.class_to_idx.items()):
            walk = sorted(os.walk(root / name, followlinks=True))
            paths = [os.path.join(place, file) for place, _, files in walk for file in sorted(files)]
            files = [(path, number) for path in paths if valid(path)]
            samples += files
            empty += [] if files else [name]
        if empty and not allow_empty:
            what = f"{type(self).__name__}: no matching file in the folder of {', '.join(empty)}"
            hint = "allow_empty=True; or other extensions"
            fail(DataError, what, hint, root=root, extensions=", ".join(ends) or "is_valid_file")
        return samples

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        if not -len(self) <= index < len(self):
            what = f"there is no sample {index} in a dataset of {len(self)}"
            fail(OutOfRangeError, what, "a number below len(dataset)")
        path, target = self.samples[index]
        sample = self.loader(path)
        if self.transform is not None:
            sample = self.transform(sample)
        return sample, target if self.target_transform is None else self.target_transform(target)

    def __repr__(self) -> str:
        rows = [f"Number of datapoints: {len(self)}", f"Root location: {self.root}", f"Transform: {self.transform}"]
        return "\n    ".join([f"Dataset {type(self).__name__}", *rows])


class ImageFolder(DatasetFolder):
    """Dataset of image files `root/CLASS/NAME.png`: sample i is (RGB PIL image, class index).

    Without is_valid_file, uses all files with the suffix of an image format. `imgs` is an alias of `samples`.
    """

    def __init__(
        self,
        root: str | os.PathLike,
        transform: Callable | None = None,
        target_transform: Callable | None = None,
        loader: Callable[[str], Any] = default_loader,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ):
        extensions = IMG_EXTENSIONS if is_valid_file is None else None
        super().__init__(root, loader, extensions, transform, target_transform, is_valid_file, allow_empty)
        self.imgs = self.samples
