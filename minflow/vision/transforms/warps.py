"""Rotation, shear, blur, crops and erasing of images, and conversion to other dtypes.

Tensors are sampled as by `F.grid_sample`; PIL images and uint8 arrays are processed by pillow.
Read next: `images.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.base.errors import DTypeError, OutOfRangeError, ShapeError
from ...core.functions.creation import from_numpy
from ...core.source_location import fail
from ...core.spec import DType, float32
from ...core.tensor import Tensor
from ...nn.functional import grid_sample
from .color import dispatch_image
from .images import (
    center_crop,
    check_image,
    crop,
    hflip,
    image_size,
    is_pil,
    pillow_mode,
    resize,
    to_array,
    to_height_width,
    to_pil_image,
    vflip,
)

SAMPLED = {0: "nearest", 2: "bilinear"}  # interpolation modes of tensors


def inverse_matrix(
    center: Sequence[float], angle: float, translate: Sequence[float], scale: float, shear: Sequence[float]
) -> list[float]:
    """Coefficients from output to input coordinates: x = m0 * X + m1 * Y + m2, y = m3 * X + m4 * Y + m5.

    The image is sheared, rotated by `angle` degrees (clockwise) and scaled about `center`, then moved by `translate`.
    """
    turn, sx, sy = (math.radians(v) for v in (angle, *shear))
    matrix = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
    matrix = matrix @ [[1, 0], [-math.tan(sy), 1]] @ [[1, -math.tan(sx)], [0, 1]]
    inverse = np.linalg.inv(matrix) / scale
    offset = np.array(center) - inverse @ (np.array(center) + np.array(translate))
    return [*inverse[0], offset[0], *inverse[1], offset[1]]


def sample_affine(name: str, image: np.ndarray, matrix: Sequence[float], size: tuple[int, int], mode: int, fill: Any):
    """Sample planes `[..., C, H, W]` at the positions given by `matrix`, in pixels from the center; `fill` outside."""
    (height, width), (h, w) = size, image.shape[-2:]
    x, y = np.meshgrid(np.arange(width) - (width - 1) / 2, np.arange(height) - (height - 1) / 2)
    a, b, c, d, e, f = matrix
    grid = np.stack([(a * x + b * y + c) / (0.5 * w), (d * x + e * y + f) / (0.5 * h)], -1)
    return sample_grid(name, image, grid, mode, fill)


def sample_grid(name: str, image: np.ndarray, grid: np.ndarray, mode: int, fill: Any) -> np.ndarray:
    """Sample planes `[..., C, H, W]` at positions `[height, width, 2]` (x, y), from -1 to 1; `fill` outside."""
    if mode not in SAMPLED:
        fail(OutOfRangeError, f"{name}: tensors do not support this interpolation", "nearest or bilinear")
    kind = image.dtype
    planes = image.reshape(1, -1, *image.shape[-2:]).astype(kind if kind.kind == "f" else "float32")
    fills = np.resize(np.asarray(0 if fill is None else fill, planes.dtype).reshape(-1), image.shape[-3])
    fills = np.resize(fills, planes.shape[1]).reshape(1, -1, 1, 1)
    shifted = from_numpy(np.ascontiguousarray(planes - fills))  # samples outside are 0, plus the fill later
    places = from_numpy(grid[None].astype("float32").astype(planes.dtype))
    out = grid_sample(shifted, places, SAMPLED[mode], "zeros", False).numpy()
    out = (out + fills).reshape(*image.shape[:-2], *grid.shape[:2])
    return np.rint(out).astype(kind) if kind.kind != "f" else out


def pillow_color(fill: Any, image: Any) -> Any:
    """Convert the fill color to pillow's form for this image."""
    if fill is None or isinstance(fill, int | float):
        return int(fill or 0) if len(image.getbands()) == 1 else (int(fill or 0),) * len(image.getbands())
    return tuple(int(v) for v in fill)


def rotate(
    img: Any,
    angle: float,
    interpolation: Any = "nearest",
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: Any = None,
) -> Any:
    """Rotate by `angle` degrees, counter-clockwise. expand: True to enlarge the image so that nothing is cut off.

    center: (x, y) in pixels, default: the center.  fill: color of the corners, black by default.
    """
    mode = pillow_mode("rotate", interpolation)

    def pil(image: Any) -> Any:
        return image.rotate(angle, mode, expand, center, fillcolor=pillow_color(fill, image))

    def planes(x: np.ndarray) -> np.ndarray:
        size = h, w = x.shape[-2:]
        matrix = inverse_matrix(relative_to_center(center, w, h), -angle, (0, 0), 1.0, (0.0, 0.0))
        if expand:
            ways = np.linalg.inv(np.array(matrix).reshape(2, 3)[:, :2])
            corners = ways @ (np.array([[-w, w, w, -w], [-h, -h, h, h]]) / 2)
            wide, high = (
                math.ceil(round(n / 2 + m, 4)) - math.floor(round(n / 2 - m, 4))
                for n, m in zip((w, h), np.abs(corners).max(1))
            )
            size = high, wide
        return sample_affine("rotate", x, matrix, size, mode, fill)

    return dispatch_image("rotate", img, pil, planes)


def relative_to_center(center: Sequence[float] | None, w: int, h: int) -> tuple[float, float]:
    """Convert pixel coordinates relative to the upper left corner to ones relative to the center."""
    return (0.0, 0.0) if center is None else (center[0] - w * 0.5, center[1] - h * 0.5)


def affine(
    img: Any,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: float | Sequence[float],
    interpolation: Any = "nearest",
    fill: Any = None,
    center: Sequence[float] | None = None,
) -> Any:
    """Shear and rotate (degrees, clockwise), scale, and move by `translate` pixels (x, y); keeps the size."""
    if scale <= 0:
        fail(OutOfRangeError, f"affine: scale must be positive, got {scale}", "scale=1 keeps the size")
    mode, both = pillow_mode("affine", interpolation), (shear, 0.0) if isinstance(shear, int | float) else (*shear, 0.0)

    def pil(image: Any) -> Any:
        middle = center if center is not None else (image.width * 0.5, image.height * 0.5)
        matrix = inverse_matrix(middle, angle, translate, scale, both[:2])
        return image.transform(image.size, 0, matrix, mode, fillcolor=pillow_color(fill, image))  # 0: pillow's AFFINE

    def planes(x: np.ndarray) -> np.ndarray:
        h, w = x.shape[-2:]
        matrix = inverse_matrix(relative_to_center(center, w, h), angle, translate, scale, both[:2])
        return sample_affine("affine", x, matrix, (h, w), mode, fill)

    return dispatch_image("affine", img, pil, planes)


def perspective(
    img: Any,
    startpoints: Sequence[Sequence[float]],
    endpoints: Sequence[Sequence[float]],
    interpolation: Any = "bilinear",
    fill: Any = None,
) -> Any:
    """Map four corners (x, y) of the image, `startpoints`, to `endpoints`, as seen at an angle; keeps the size."""
    mode, rows = pillow_mode("perspective", interpolation), []
    for (x, y), (u, v) in zip(endpoints, startpoints, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
    a, b, c, d, e, f, g, h = np.linalg.lstsq(np.array(rows, "float64"), np.ravel(startpoints).astype("float64"))[0]

    def pil(image: Any) -> Any:
        kind, color = 2, pillow_color(fill, image)  # 2: pillow's PERSPECTIVE
        return image.transform(image.size, kind, (a, b, c, d, e, f, g, h), mode, fillcolor=color)

    def planes(image: np.ndarray) -> np.ndarray:
        high, wide = image.shape[-2:]
        x, y = np.meshgrid(np.arange(wide) + 0.5, np.arange(high) + 0.5)
        across, down, depth = a * x + b * y + c, d * x + e * y + f, g * x + h * y + 1
        grid = np.stack([across / depth / (0.5 * wide) - 1, down / depth / (0.5 * high) - 1], -1)
        return sample_grid("perspective", image, grid, mode, fill)

    return dispatch_image("perspective", img, pil, planes)


def gaussian_blur(img: Any, kernel_size: int | Sequence[int], sigma: float | Sequence[float] | None = None) -> Any:
    """Replace each pixel by a weighted mean of its neighbors, weights exp(-d^2 / (2 sigma^2)), borders mirrored.

    kernel_size: odd, in pixels (of x, of y).  sigma: in pixels; default: 0.15 * kernel_size + 0.35.
    """
    check_image("gaussian_blur", img)
    sizes = (kernel_size,) * 2 if isinstance(kernel_size, int) else tuple(kernel_size)
    if len(sizes) != 2 or any(k < 1 or k % 2 == 0 for k in sizes):
        what = f"gaussian_blur: kernel_size must be odd, got {kernel_size}"
        fail(OutOfRangeError, what, "an odd number, or two: 3, 5, ...")
    widths = (
        [0.15 * k + 0.35 for k in sizes]
        if sigma is None
        else ((float(sigma),) * 2 if isinstance(sigma, int | float) else (*sigma, *sigma)[:2])
    )
    if min(widths) <= 0:
        fail(OutOfRangeError, f"gaussian_blur: sigma must be positive, got {sigma}", "one or two numbers, in pixels")
    array = to_array(img) if not isinstance(img, Tensor) else img.detach().cpu().numpy()
    work = array if array.dtype.kind == "f" else array.astype("float32")
    spatial = (array.ndim - 2, array.ndim - 1) if isinstance(img, Tensor) else (0, 1)
    for axis, k, s in zip(spatial[::-1], sizes, widths):
        if k // 2 >= array.shape[axis]:
            what = f"gaussian_blur: {array.shape[axis]} pixels cannot be mirrored {k // 2} wide"
            fail(ShapeError, what, "a smaller kernel_size", image=img)
        weights = np.exp(-0.5 * ((np.arange(k) - (k - 1) / 2) / s) ** 2).astype(work.dtype)
        around = [(0, 0)] * work.ndim
        around[axis] = (k // 2, k // 2)
        places = np.lib.stride_tricks.sliding_window_view(np.pad(work, around, "reflect"), k, axis)
        work = places @ (weights / weights.sum())
    out = work if array.dtype.kind == "f" else np.rint(work).astype(array.dtype)
    if is_pil(img):
        return to_pil_image(out, img.mode)
    return from_numpy(np.ascontiguousarray(out)).to(img.device) if isinstance(img, Tensor) else out


def resized_crop(
    img: Any,
    top: int,
    left: int,
    height: int,
    width: int,
    size: Any,
    interpolation: Any = "bilinear",
    antialias: bool | None = True,
) -> Any:
    """Crop the part that begins at (top, left), and resize it."""
    return resize(crop(img, top, left, height, width), size, interpolation)


def five_crop(img: Any, size: int | Sequence[int]) -> tuple:
    """Crop the four corners and the center: top left, top right, bottom left, bottom right, center."""
    check_image("FiveCrop", img)
    (height, width), (h, w) = to_height_width("FiveCrop", size), image_size(img)
    if height > h or width > w:
        fail(ShapeError, f"FiveCrop: {height}x{width} pixels do not fit into an image of {h}x{w}", "a smaller size")
    corners = [(0, 0), (0, w - width), (h - height, 0), (h - height, w - width)]
    return (*(crop(img, top, left, height, width) for top, left in corners), center_crop(img, (height, width)))


def ten_crop(img: Any, size: int | Sequence[int], vertical_flip: bool = False) -> tuple:
    """Crop the corners and the center of the image and of its mirror image, see `five_crop`."""
    return five_crop(img, size) + five_crop(vflip(img) if vertical_flip else hflip(img), size)


def erase(img: Any, i: int, j: int, h: int, w: int, v: Any, inplace: bool = False) -> Any:
    """Write `v` (a number, or a tensor that broadcasts to [C, h, w]) into the part of a tensor at (i, j)."""
    if not isinstance(img, Tensor):
        fail(DTypeError, f"RandomErasing takes a tensor, got {type(img).__name__}", "ToTensor() comes first")
    out = img if inplace else img.clone()
    out[..., i : i + h, j : j + w] = v
    return out


def get_dimensions(img: Any) -> list[int]:
    """Dimensions of an image: [channels, height, width]."""
    check_image("get_dimensions", img)
    if is_pil(img):
        return [len(img.getbands()), img.height, img.width]
    return [1 if img.ndim == 2 else img.shape[-1 if isinstance(img, np.ndarray) else -3], *image_size(img)]


def get_image_num_channels(img: Any) -> int:
    """Number of channels of an image."""
    return get_dimensions(img)[0]


def get_image_size(img: Any) -> list[int]:
    """Size of an image: [width, height]."""
    check_image("get_image_size", img)
    return [*image_size(img)[::-1]]


def pil_to_tensor(pic: Any) -> Tensor:
    """Convert a PIL image or an array `[H, W(, C)]` to a tensor `[C, H, W]` of the same dtype and values."""
    if isinstance(pic, Tensor):
        fail(DTypeError, "PILToTensor: this is already a tensor", "leave PILToTensor() out", image=pic)
    check_image("PILToTensor", pic)
    array = to_array(pic)
    array = array.astype("uint8") if array.dtype == np.bool_ else array
    return from_numpy(np.array(array[None] if array.ndim == 2 else array.transpose(2, 0, 1), order="C"))


def convert_image_dtype(image: Tensor, dtype: DType = float32) -> Tensor:
    """Convert the colors of a tensor: floats range from 0 to 1, integers from 0 to their maximum."""
    if not isinstance(image, Tensor):
        fail(DTypeError, f"ConvertImageDtype takes a tensor, got {type(image).__name__}", "PILToTensor() comes first")
    if image.dtype is dtype or (image.dtype.floating and dtype.floating):
        return image.to(dtype)
    if dtype.floating:
        return image.to(dtype) / float(np.iinfo(image.dtype.np).max)
    top = np.iinfo(dtype.np).max
    if image.dtype.floating:
        return (image * (top + 1.0 - 1e-3)).to(dtype)
    had = np.iinfo(image.dtype.np).max
    return (image // ((had + 1) // (top + 1))).to(dtype) if had > top else image.to(dtype) * ((top + 1) // (had + 1))
