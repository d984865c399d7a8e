"""Transforms: modules without parameters that turn an image into an image or a tensor.

Random ones draw from the sample's generator: inside a DataLoader, the same sample of the same epoch is transformed in
the same way, whichever worker loads it. Elsewhere, they draw from flow's default generator. Read next: `images.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.base.errors import DTypeError, LoaderError, OutOfRangeError, ShapeError
from ...core.functions.creation import from_numpy
from ...core.source_location import fail
from ...core.spec import DType
from ...core.tensor import Tensor
from ...nn.module import Module
from ...utils.data.scalar_random import random_words, scale_to_range, with_probability
from . import images as F, warps


class Transform(Module):
    """Base class of transforms: a Module, so that `nn.Sequential` holds transforms and layers alike.

    takes_arrays: True if a plain array gives the same result as a PIL image, so that datasets need not make one.
    transform_batch: None, or a function that transforms a batch of equally large images `uint8[n, H, W]` or
    `[n, H, W, C]` (or the result of another `transform_batch`) at once, with bitwise equal results. A subclass with its
    own computation inherits neither.
    """

    takes_arrays = False
    transform_batch: Callable | None = None
    _repr_attributes: tuple[str, ...] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = vars(cls)
        if "forward" in own or "__call__" in own:
            ours = cls.__module__.startswith(__package__)
            cls.takes_arrays = own.get("takes_arrays", ours)
            cls.transform_batch = own.get("transform_batch")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.extra_repr()})"

    def extra_repr(self) -> str:
        """Return the options shown in the repr: by default the attributes in _repr_attributes."""
        return ", ".join([f"{name}={getattr(self, name)}" for name in self._repr_attributes])


def takes_arrays(transform: Any) -> bool:
    return getattr(transform, "takes_arrays", False)


class Compose(Transform):
    """Apply transforms in order: `Compose([Resize(32), ToTensor(), Normalize(0.5, 0.5)])`."""

    def __init__(self, transforms: Sequence[Callable]):
        super().__init__()
        self.transforms = list(transforms)
        for t in self.transforms:
            if not callable(t) or isinstance(t, type):
                name = getattr(t, "__name__", repr(t))
                what = f"Compose: {name} is not a transform"
                fail(LoaderError, what, f"{name}()" if isinstance(t, type) else "functions and transforms")

    def forward(self, image: Any) -> Any:
        for t in self.transforms:
            image = t(image)
        return image

    @property
    def takes_arrays(self) -> bool:
        return all(takes_arrays(t) for t in self.transforms)

    @property
    def transform_batch(self) -> Callable | None:
        """Function that transforms a whole batch at once, or None if a step cannot."""
        steps = [getattr(t, "transform_batch", None) for t in self.transforms]
        if not steps or None in steps:
            return None

        def all_steps(images):
            for step in steps:
                images = step(images)
            return images

        return all_steps

    def __repr__(self) -> str:
        return f"{type(self).__name__}(\n" + "".join(f"    {t}\n" for t in self.transforms) + ")"


class ToTensor(Transform):
    """Convert a PIL image or uint8 array `[H, W]` or `[H, W, C]` to a tensor `float32[C, H, W]` in [0, 1]."""

    def forward(self, image: Any) -> Tensor:
        return F.to_tensor(image)

    def transform_batch(self, images: np.ndarray) -> Tensor:
        """Convert a whole batch at once."""
        planes = images[:, None] if images.ndim == 3 else images.transpose(0, 3, 1, 2)
        return from_numpy(np.divide(planes, np.float32(255), dtype="float32", order="C"))


class ToPILImage(Transform):
    """Convert a tensor or array to a PIL image."""

    def __init__(self, mode: str | None = None):
        super().__init__()
        self.mode = mode

    def forward(self, image: Any) -> Any:
        return F.to_pil_image(image, self.mode)


class Normalize(Transform):
    """Normalize each channel of a floating tensor: (image - mean) / std. mean, std: one number, or one per channel."""

    _repr_attributes = ("mean", "std")

    def __init__(self, mean: float | Sequence[float], std: float | Sequence[float], inplace: bool = False):
        super().__init__()
        self.mean, self.std = ([float(v)] if isinstance(v, int | float) else [float(n) for n in v] for v in (mean, std))
        self.inplace = inplace
        if len(self.mean) != len(self.std):
            what = f"Normalize: {len(self.mean)} means and {len(self.std)} standard deviations"
            fail(ShapeError, what, "one of each per channel")
        if any(s <= 0 for s in self.std):
            what = f"Normalize: std must be positive, got {self.std}"
            fail(OutOfRangeError, what, "positive numbers: images are divided by std")

    def forward(self, image: Tensor) -> Tensor:
        return F.normalize(image, self.mean, self.std, self.inplace)

    def transform_batch(self, images: Tensor) -> Tensor:
        """Normalize a whole batch at once."""
        return F.normalize(images, self.mean, self.std, self.inplace)


class LinearTransformation(Transform):
    """Whiten a floating image: (image.flatten() - mean_vector) @ transformation_matrix, in the shape of the image.

    transformation_matrix: float (D, D), mean_vector: float (D,), where D = C * H * W. Images (..., C, H, W) of any
    number. Raises ShapeError unless the sizes agree.
    """

    _repr_attributes = ("transformation_matrix", "mean_vector")

    def __init__(self, transformation_matrix: Tensor, mean_vector: Tensor):
        super().__init__()
        self.transformation_matrix, self.mean_vector = transformation_matrix, mean_vector
        if tuple(transformation_matrix.shape) != (mean_vector.numel(),) * 2:
            what = f"LinearTransformation: a matrix {[*transformation_matrix.shape]}, a mean {[*mean_vector.shape]}"
            fail(ShapeError, what, "a matrix (D, D) and a mean (D,), where D = C * H * W")

    def forward(self, image: Tensor) -> Tensor:
        size = self.mean_vector.numel()
        if image.shape[-3:].numel() != size:
            what = f"LinearTransformation: images must have {size} numbers, got shape {[*image.shape]}"
            fail(ShapeError, what, "transforms.Resize or CenterCrop to the size that the matrix was made for")
        return ((image.reshape(-1, size) - self.mean_vector) @ self.transformation_matrix).reshape(image.shape)


class Resize(Transform):
    """Resize to (height, width), or one number for the shorter side; see `functional.resize`."""

    _repr_attributes = ("size", "interpolation")

    def __init__(
        self,
        size: int | Sequence[int],
        interpolation: Any = "bilinear",
        max_size: int | None = None,
        antialias: bool | None = True,
    ):
        super().__init__()
        self.size, self.interpolation, self.max_size, self.antialias = size, interpolation, max_size, antialias
        F.to_height_width("Resize", size)
        if max_size is not None and not (isinstance(size, int) and size < max_size):
            what = f"Resize: max_size must be larger than size, got max_size={max_size}, size={size}"
            fail(OutOfRangeError, what, "one number for the shorter side, and a larger max_size for the longer one")

    def forward(self, image: Any) -> Any:
        return F.resize(image, self.size, self.interpolation, self.max_size)


class CenterCrop(Transform):
    """Crop the center of an image; a smaller image gets a black border."""

    _repr_attributes = ("size",)

    def __init__(self, size: int | Sequence[int]):
        super().__init__()
        self.size = F.to_height_width("CenterCrop", size)

    def forward(self, image: Any) -> Any:
        return F.center_crop(image, self.size)


class RandomCrop(Transform):
    """Crop a part of the given size at a random position. padding: border that is added first.

    pad_if_needed: True to enlarge an image that is smaller than the part; otherwise raises ShapeError.
    """

    _repr_attributes = ("size", "padding")

    def __init__(
        self, size, padding=None, pad_if_needed: bool = False, fill: float = 0, padding_mode: str = "constant"
    ):
        super().__init__()
        self.size, self.padding, self.pad_if_needed = F.to_height_width("RandomCrop", size), padding, pad_if_needed
        self.fill, self.padding_mode = fill, padding_mode
        if padding is not None:
            F.to_four_sides(padding)

    def forward(self, image: Any) -> Any:
        F.check_image("RandomCrop", image)
        if self.padding is not None:
            image = F.pad(image, self.padding, self.fill, self.padding_mode)
        height, width = self.size
        h, w = F.image_size(image)
        if self.pad_if_needed and (h < height or w < width):
            image = F.pad(image, (max(width - w, 0), max(height - h, 0)), self.fill, self.padding_mode)
            h, w = F.image_size(image)
        if h < height or w < width:
            what = f"RandomCrop: a part of {height}x{width} pixels does not fit into an image of {h}x{w}"
            fail(ShapeError, what, "padding=..., or pad_if_needed=True")
        return F.crop(image, *self.get_params(image, self.size))

    @staticmethod
    def get_params(img: Any, output_size: Sequence[int]) -> tuple[int, int, int, int]:
        """Draw a random part, (top, left, height, width), to crop several images in the same way."""
        (height, width), (h, w) = output_size, F.image_size(img)
        first, second, _, _ = random_words()
        return scale_to_range(h - height + 1, first), scale_to_range(w - width + 1, second), height, width


class RandomChange(Transform):
    """Base class of transforms that apply `change` to an image with probability p."""

    _repr_attributes: tuple[str, ...] = ("p",)

    def __init__(self, p: float = 0.5):
        super().__init__()
        self.p = p
        if not 0 <= p <= 1:
            fail(OutOfRangeError, f"{type(self).__name__}: p must be in [0, 1], got {p}", "p=0.5")

    def forward(self, image: Any) -> Any:
        F.check_image(type(self).__name__, image)
        return self.change(image) if with_probability(self.p, random_words()[0]) else image

    def change(self, image: Any) -> Any:
        """Apply the change, whatever p is."""
        return image


class RandomHorizontalFlip(RandomChange):
    """Flip left and right with probability p."""

    change = staticmethod(F.hflip)


class RandomVerticalFlip(RandomChange):
    """Flip top and bottom with probability p."""

    change = staticmethod(F.vflip)


class Pad(Transform):
    """Add a border: padding pixels on all sides, (left and right, top and bottom), or (left, top, right, bottom)."""

    _repr_attributes = ("padding", "fill", "padding_mode")

    def __init__(self, padding: int | Sequence[int], fill: float = 0, padding_mode: str = "constant"):
        super().__init__()
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode
        F.to_four_sides(padding)

    def forward(self, image: Any) -> Any:
        return F.pad(image, self.padding, self.fill, self.padding_mode)


class FiveCrop(Transform):
    """Crop the four corners and the center: a tuple, to be followed by `Lambda(lambda crops: stack(...))`."""

    _repr_attributes = ("size",)

    def __init__(self, size: int | Sequence[int]):
        super().__init__()
        self.size = F.to_height_width("FiveCrop", size)

    def forward(self, image: Any) -> tuple:
        return warps.five_crop(image, self.size)


class TenCrop(FiveCrop):
    """FiveCrop of an image and of its mirror image."""

    def __init__(self, size: int | Sequence[int], vertical_flip: bool = False):
        super().__init__(size)
        self.vertical_flip = vertical_flip

    def forward(self, image: Any) -> tuple:
        return warps.ten_crop(image, self.size, self.vertical_flip)


class PILToTensor(Transform):
    """Convert a PIL image or an array to a tensor [C, H, W] of the same dtype and values."""

    def forward(self, image: Any) -> Tensor:
        return warps.pil_to_tensor(image)


class ConvertImageDtype(Transform):
    """Convert the colors of a tensor to another dtype: floats range from 0 to 1, bytes from 0 to 255."""

    _repr_attributes = ("dtype",)

    def __init__(self, dtype: DType):
        super().__init__()
        self.dtype = dtype

    def forward(self, image: Tensor) -> Tensor:
        return warps.convert_image_dtype(image, self.dtype)


class Lambda(Transform):
    """Apply any function."""

    takes_arrays = False

    def __init__(self, lambd: Callable):
        super().__init__()
        self.lambd = lambd
        if not callable(lambd):
            fail(DTypeError, f"Lambda: {lambd!r} cannot be called", "Lambda(lambda image: ...)")

    def forward(self, image: Any) -> Any:
        return self.lambd(image)
