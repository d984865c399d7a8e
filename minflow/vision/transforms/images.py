"""Kinds of images, and the basic transforms: crop, flip, resize, conversion to tensors.

An image is a PIL image, an array `[H, W]` or `[H, W, C]`, or a tensor `[..., H, W]`; each function returns the kind
that it got. Only `resize` and `to_pil_image` need pillow, for arrays and tensors too. Read next: `transforms.py`.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.base.errors import DTypeError, OutOfRangeError, ShapeError
from ...core.functions.creation import from_numpy
from ...core.source_location import fail, need
from ...core.spec import cpu
from ...core.tensor import Tensor

# pillow's constants; its "nearest" is called "nearest-exact" elsewhere
MODES = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5, "nearest-exact": 0}


class InterpolationMode(enum.Enum):
    """Interpolation of pixels, with torchvision's names; functions also accept the strings."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


def is_pil(image: Any) -> bool:
    return type(image).__module__.partition(".")[0] == "PIL"


def pillow(what_for: str):
    """Import PIL.Image, or raise an error that says how to install it."""
    return need("PIL.Image", what_for)


def check_image(name: str, image: Any) -> None:
    """Raise an error for any value that is not an image."""
    if is_pil(image):
        return
    if not isinstance(image, Tensor | np.ndarray):
        what = f"{name} takes an image (PIL, array or tensor), not {type(image).__name__}"
        fail(DTypeError, what, "the transform goes on the images of a dataset: transform=...", image=image)
    if image.ndim < 2 or (isinstance(image, np.ndarray) and image.ndim > 3):
        what = f"{name}: an image must have a height and a width, got shape {list(image.shape)}"
        fail(ShapeError, what, "an array [H, W] or [H, W, C], or a tensor [C, H, W]")


def spatial_axes(image: Any) -> tuple[int, int]:
    """Return the height and width axes of an array or tensor."""
    return (0, 1) if isinstance(image, np.ndarray) else (image.ndim - 2, image.ndim - 1)


def image_size(image: Any) -> tuple[int, int]:
    """Return the size of an image, (height, width) in pixels."""
    if is_pil(image):
        return image.height, image.width
    first, second = spatial_axes(image)
    return image.shape[first], image.shape[second]


def to_array(image: Any) -> np.ndarray:
    """Copy a PIL image to `uint8[H, W]` or `uint8[H, W, C]`; return an array unchanged."""
    return np.array(image) if is_pil(image) else image


def to_tensor(image: Any) -> Tensor:
    """Convert a PIL image or uint8 array `[H, W(, C)]` to `float32[C, H, W]` in [0, 1]; other dtypes keep values."""
    if isinstance(image, Tensor):
        fail(DTypeError, "to_tensor: this is already a tensor", "leave ToTensor() out", image=image)
    check_image("ToTensor", image)
    array = to_array(image)
    if array.dtype == np.bool_ and is_pil(image):  # a bilevel image
        array = array.astype("uint8") * np.uint8(255)
    array = array[None] if array.ndim == 2 else array.transpose(2, 0, 1)
    if array.dtype == np.uint8:
        return from_numpy(np.divide(array, np.float32(255), dtype="float32", order="C"))
    return from_numpy(np.array(array, order="C"))


def normalize(image: Any, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> Any:
    """Normalize each channel: (image - mean) / std. image: a floating tensor `[..., C, H, W]`."""
    check_normal(image, mean, std)
    dtype = image.dtype.np
    m, s = (np.array(v, dtype).reshape(-1, 1, 1) for v in (mean, std))
    if inplace or image.requires_grad or image.device is not cpu:
        subtrahend, divisor = from_numpy(m).to(image.device), from_numpy(s).to(image.device)
        return image.sub_(subtrahend).div_(divisor) if inplace else (image - subtrahend) / divisor
    out = image.detach().numpy() - m
    out /= s
    return from_numpy(out)


def check_normal(image: Any, mean: Sequence[float], std: Sequence[float]) -> None:
    if not isinstance(image, Tensor) or not image.dtype.floating:
        kind = f"a tensor of {image.dtype.name}" if isinstance(image, Tensor) else f"a {type(image).__name__}"
        what = f"Normalize takes a floating tensor, not {kind}"
        fail(DTypeError, what, "Compose([ToTensor(), Normalize(mean, std)]): ToTensor comes first")
    channels = image.shape[-3] if image.ndim >= 3 else None
    for name, values in (("mean", mean), ("std", std)):
        if channels is None or len(values) not in (1, channels):
            fail(
                ShapeError,
                f"Normalize: {name} must have one value per channel, got {len(values)} for {channels or 'no'} channels",
                "one value per channel",
                image=image,
                **{name: values},
            )


def to_height_width(name: str, size: int | Sequence[int]) -> tuple[int, int]:
    """(height, width) from one number or two."""
    pair = (size, size) if isinstance(size, int | np.integer) else tuple(size)
    if len(pair) == 1:
        pair = pair * 2
    if len(pair) != 2 or not all(isinstance(n, int | np.integer) and n > 0 for n in pair):
        what = f"{name}: size must be positive, got {size}"
        fail(OutOfRangeError, what, "a positive number of pixels, or (height, width)")
    return int(pair[0]), int(pair[1])


def pillow_mode(name: str, interpolation: Any) -> int:
    """pillow's constant for an InterpolationMode, a string, or the constant itself."""
    mode = interpolation if isinstance(interpolation, str) else getattr(interpolation, "value", interpolation)
    mode = mode.lower() if isinstance(mode, str) else mode
    if mode not in MODES and mode not in MODES.values():
        fail(OutOfRangeError, f"{name}: there is no interpolation {interpolation!r}", f"one of {', '.join(MODES)}")
    return MODES.get(mode, mode)


def resize(
    image: Any,
    size: int | Sequence[int],
    interpolation: Any = "bilinear",
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    """Resize the image. size: (height, width), or one number for the shorter side, keeping the aspect ratio.

    max_size: the limit of the longer side in that case. Uses pillow, for arrays and tensors too (channel by channel; a
    tensor on a GPU is copied there and back), and antialiases when shrinking, whatever `antialias` says.
    """
    check_image("Resize", image)
    height, width = image_size(image)
    if isinstance(size, int | np.integer) or len(size) == 1:
        short = to_height_width("Resize", size)[0]
        long = int(short * max(height, width) / min(height, width))
        if max_size is not None and long > max_size:
            short, long = int(max_size * short / long), max_size
        target = (long, short) if width <= height else (short, long)
    else:
        target = to_height_width("Resize", size)
    number = pillow_mode("Resize", interpolation)
    if is_pil(image):
        return image if (image.height, image.width) == target else image.resize(target[::-1], number)
    if (height, width) == target:
        return image
    Image = pillow("Resize")
    if isinstance(image, np.ndarray):
        planes = image[None] if image.ndim == 2 else image.transpose(2, 0, 1)
        out = resize_planes(Image, planes, target, number)
        return out[0] if image.ndim == 2 else np.ascontiguousarray(out.transpose(1, 2, 0))
    array = image.detach().cpu().numpy()
    out = resize_planes(Image, array.reshape(-1, height, width), target, number)
    return from_numpy(out.reshape(*array.shape[:-2], *target)).to(image.device)


def resize_planes(Image, planes: np.ndarray, target: tuple[int, int], mode: int) -> np.ndarray:
    """Resize planes `[n, H, W]` one by one with pillow: bytes directly, other dtypes as float32."""
    working = planes if planes.dtype == np.uint8 else planes.astype("float32")
    out = [np.asarray(Image.fromarray(np.ascontiguousarray(p)).resize(target[::-1], mode)) for p in working]
    out = np.stack(out) if out else np.empty((0, *target), planes.dtype)
    return (np.rint(out) if planes.dtype.kind in "iu" and out.dtype.kind == "f" else out).astype(
        planes.dtype, copy=False
    )


def crop(image: Any, top: int, left: int, height: int, width: int) -> Any:
    """Crop the part of the image that begins at (top, left); it is black outside the image."""
    check_image("crop", image)
    h, w = image_size(image)
    if top < 0 or left < 0 or top + height > h or left + width > w:
        around = (max(-left, 0), max(-top, 0), max(left + width - w, 0), max(top + height - h, 0))
        return crop(pad(image, around), max(top, 0), max(left, 0), height, width)
    if is_pil(image):
        return image.crop((left, top, left + width, top + height))
    if isinstance(image, np.ndarray):
        return image[top : top + height, left : left + width]
    return image[..., top : top + height, left : left + width]


def center_crop(image: Any, size: int | Sequence[int]) -> Any:
    """Crop the center of the image."""
    height, width = to_height_width("CenterCrop", size)
    h, w = image_size(image)
    return crop(image, round((h - height) / 2.0), round((w - width) / 2.0), height, width)


PAD_MODES = {"constant": "constant", "edge": "edge", "reflect": "reflect", "symmetric": "symmetric"}


def to_four_sides(padding: int | Sequence[int]) -> tuple[int, int, int, int]:
    """(left, top, right, bottom) from one number, (left and right, top and bottom), or all four."""
    p = (padding,) * 4 if isinstance(padding, int | np.integer) else tuple(padding)
    p = p * 4 if len(p) == 1 else p * 2 if len(p) == 2 else p
    if len(p) != 4 or not all(isinstance(n, int | np.integer) and n >= 0 for n in p):
        what = f"padding must be non-negative, got {padding}"
        fail(OutOfRangeError, what, "a number of pixels, (left and right, top and bottom), or all four")
    return p


def pad(image: Any, padding: int | Sequence[int], fill: float = 0, padding_mode: str = "constant") -> Any:
    """Add a border to the image. padding: as in `to_four_sides`."""
    check_image("pad", image)
    left, top, right, bottom = to_four_sides(padding)
    if padding_mode not in PAD_MODES:
        fail(OutOfRangeError, f"pad: there is no padding_mode {padding_mode!r}", f"one of {', '.join(PAD_MODES)}")
    if not any((left, top, right, bottom)):
        return image
    array = to_array(image) if not isinstance(image, Tensor) else image.detach().cpu().numpy()
    around = [(0, 0)] * array.ndim
    first, second = (0, 1) if not isinstance(image, Tensor) else spatial_axes(image)
    around[first], around[second] = (top, bottom), (left, right)
    if padding_mode == "constant":  # ten times faster than np.pad for one small image
        out = np.full([n + sum(a) for n, a in zip(array.shape, around)], fill, array.dtype)
        out[tuple(slice(a[0], a[0] + n) for n, a in zip(array.shape, around))] = array
    else:
        out = np.pad(array, around, padding_mode)
    if isinstance(image, Tensor):
        return from_numpy(out).to(image.device)
    return to_pil_image(out, image.mode) if is_pil(image) else out


def hflip(image: Any) -> Any:
    """Flip left and right."""
    return flip_axis(image, 1)


def vflip(image: Any) -> Any:
    """Flip top and bottom."""
    return flip_axis(image, 0)


def flip_axis(image: Any, axis: int) -> Any:
    check_image("flip", image)
    if is_pil(image):
        return image.transpose(0 if axis else 1)  # pillow's FLIP_LEFT_RIGHT and FLIP_TOP_BOTTOM
    if isinstance(image, np.ndarray):
        return np.ascontiguousarray(np.flip(image, axis))
    return image.flip(spatial_axes(image)[axis])


def to_pil_image(image: Any, mode: str | None = None) -> Any:
    """Convert a uint8 array `[H, W]`, `[H, W, C]` or a tensor `[C, H, W]` (floats in [0, 1]) to a PIL image."""
    check_image("ToPILImage", image)
    if is_pil(image):
        return image
    if isinstance(image, Tensor):
        array = image.detach().numpy(force=True)
        array = array[None] if array.ndim == 2 else array
        array = np.rint(np.clip(array, 0, 1) * 255).astype("uint8") if image.dtype.floating else array
        image = array.transpose(1, 2, 0)
    if image.ndim == 3 and image.shape[2] == 1:
        image = image[:, :, 0]
    picture = pillow("ToPILImage").fromarray(np.ascontiguousarray(image))
    return picture if mode is None or picture.mode == mode else picture.convert(mode)
