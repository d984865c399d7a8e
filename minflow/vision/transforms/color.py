"""Changes of color: brightness, contrast, saturation, hue, sharpness, tones, gray.

A PIL image, or a uint8 array `[H, W]` or `[H, W, 3]`, is processed by pillow; a tensor `[..., C, H, W]` of bytes, or
of floats in [0, 1], here, by the same formulas in floats. Read next: `images.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.base.errors import DTypeError, OutOfRangeError, ShapeError
from ...core.functions.creation import from_numpy
from ...core.source_location import fail, need
from .images import check_image, is_pil, pillow, to_array, to_pil_image

LUMA = np.array([0.2989, 0.587, 0.114], "float32").reshape(3, 1, 1)  # perceived brightness of R, G, B: ITU-R 601


def dispatch_image(name: str, image: Any, pil: Callable, planes: Callable[[np.ndarray], np.ndarray]) -> Any:
    """Process the image with `pil`, for a PIL image, or with `planes`, for an array `[..., C, H, W]`."""
    check_image(name, image)
    if is_pil(image):
        return pil(image)
    if isinstance(image, np.ndarray):
        if image.dtype != np.uint8:
            what = f"{name} takes an array of bytes, not of {image.dtype}"
            fail(DTypeError, what, "transforms.ToTensor() first: tensors may be floats", image=image)
        out = to_array(pil(to_pil_image(image)))
        return out[:, :, None] if image.ndim == 3 and out.ndim == 2 else out
    if image.ndim < 3 or image.shape[-3] not in (1, 3):
        what = f"{name}: the image must have 1 or 3 channels, got shape {list(image.shape)}"
        fail(ShapeError, what, "a tensor [C, H, W] of 1 or 3 channels", image=image)
    return from_numpy(np.ascontiguousarray(planes(image.detach().cpu().numpy()))).to(image.device)


def check_factor(name: str, factor: float, low: float = 0, high: float = float("inf")) -> float:
    if not low <= factor <= high:
        fail(OutOfRangeError, f"{name}: the factor must be in [{low}, {high}], got {factor}", "a factor in that range")
    return float(factor)


def blend(image: np.ndarray, other: Any, factor: float) -> np.ndarray:
    """factor * image + (1 - factor) * other, clipped to the range of its dtype; bytes are truncated."""
    top = 1.0 if image.dtype.kind == "f" else 255.0
    work = image.astype("float32") if image.dtype.kind != "f" else image
    return np.clip(factor * work + (1 - factor) * np.asarray(other, work.dtype), 0, top).astype(image.dtype)


def luma(planes: np.ndarray) -> np.ndarray:
    """Brightness of each pixel, as one channel `[..., 1, H, W]`."""
    if planes.shape[-3] == 1:
        return planes
    return (planes * LUMA).sum(-3, keepdims=True, dtype=np.result_type(planes, "float32")).astype(planes.dtype)


def pillow_enhancer(kind: str, name: str, factor: float) -> Callable:
    def through(image: Any) -> Any:
        return getattr(need("PIL.ImageEnhance", name), kind)(image).enhance(factor)

    return through


def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    """Scale the brightness: 0 is black, 1 the image itself, 2 twice as bright."""
    f = check_factor("adjust_brightness", brightness_factor)
    pil = pillow_enhancer("Brightness", "adjust_brightness", f)
    return dispatch_image("adjust_brightness", img, pil, lambda planes: blend(planes, 0, f))


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    """Scale the contrast: 0 is the mean gray everywhere, 1 the image itself."""
    f = check_factor("adjust_contrast", contrast_factor)

    def planes(x: np.ndarray) -> np.ndarray:
        return blend(x, luma(x).mean((-3, -2, -1), keepdims=True, dtype=np.result_type(x, "float32")), f)

    return dispatch_image("adjust_contrast", img, pillow_enhancer("Contrast", "adjust_contrast", f), planes)


def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    """Scale the saturation: 0 is gray, 1 the image itself."""
    f = check_factor("adjust_saturation", saturation_factor)
    pil = pillow_enhancer("Color", "adjust_saturation", f)
    return dispatch_image("adjust_saturation", img, pil, lambda x: x if x.shape[-3] == 1 else blend(x, luma(x), f))


def adjust_hue(img: Any, hue_factor: float) -> Any:
    """Rotate the hue of all colors by hue_factor turns, from -0.5 to 0.5. Gray stays gray."""
    f = check_factor("adjust_hue", hue_factor, -0.5, 0.5)

    def pil(image: Any) -> Any:
        if image.mode in ("L", "1", "I", "F"):
            return image
        hsv = np.array(image.convert("HSV"))
        hsv[:, :, 0] += np.array(f * 255).astype("int32").astype("uint8")  # one turn is 256 steps
        return pillow("adjust_hue").frombytes("HSV", image.size, hsv.tobytes()).convert(image.mode)

    def planes(x: np.ndarray) -> np.ndarray:
        if x.shape[-3] == 1:
            return x
        work = x if x.dtype.kind == "f" else x.astype("float32") / np.float32(255)
        out = rotate_hue(work, f)
        return out if x.dtype.kind == "f" else (out * np.float32(255.999)).astype(x.dtype)

    return dispatch_image("adjust_hue", img, pil, planes)


def rotate_hue(rgb: np.ndarray, turn: float) -> np.ndarray:
    """Rotate the hue of RGB in [0, 1]. Smith 1978, "Color gamut transform pairs"."""
    r, g, b = np.moveaxis(rgb, -3, 0)
    v, low = rgb.max(-3), rgb.min(-3)
    span = v - low
    safe = np.where(span == 0, 1, span)
    hue = np.where(v == r, (g - b) / safe, np.where(v == g, 2 + (b - r) / safe, 4 + (r - g) / safe)) / 6 + turn
    k = (np.array([5, 3, 1]).reshape(3, *[1] * hue.ndim) + hue % 1 * 6) % 6
    return np.moveaxis(v - span * np.clip(np.minimum(k, 4 - k), 0, 1), 0, -3).astype(rgb.dtype)


def adjust_gamma(img: Any, gamma: float, gain: float = 1) -> Any:
    """gain * img ** gamma, for colors in [0, 1]; gamma above 1 darkens dark parts."""
    g = check_factor("adjust_gamma", gamma)

    def planes(x: np.ndarray) -> np.ndarray:
        if x.dtype.kind == "f":
            return np.clip(gain * x**g, 0, 1).astype(x.dtype)
        return (np.clip(gain * (x / np.float32(255)) ** g, 0, 1) * np.float32(255.999)).astype(x.dtype)

    def pil(image: Any) -> Any:
        table = [int(min(255 * gain * (i / 255) ** g, 255)) for i in range(256)]
        return image.point(table * len(image.getbands()))

    return dispatch_image("adjust_gamma", img, pil, planes)


def invert(img: Any) -> Any:
    """Invert all colors: white becomes black."""
    return dispatch_image(
        "invert",
        img,
        lambda image: image.point([255 - i for i in range(256)] * len(image.getbands())),
        inverted,
    )


def inverted(x: np.ndarray) -> np.ndarray:
    return (1 if x.dtype.kind == "f" else np.uint8(255)) - x


def pillow_operation(kind: str, name: str, *options: Any) -> Callable:
    def through(image: Any) -> Any:
        return getattr(need("PIL.ImageOps", name), kind)(image, *options)

    return through


def check_bytes(name: str, planes: np.ndarray) -> None:
    if planes.dtype != np.uint8:
        hint = "convert_image_dtype(image, flow.uint8) first"
        fail(DTypeError, f"{name} takes a tensor of bytes, got {planes.dtype}", hint)


def posterize(img: Any, bits: int) -> Any:
    """Keep the `bits` highest bits of each color, from 0 to 8. A tensor must have bytes."""
    mask = 256 - (1 << 8 - int(check_factor("posterize", bits, 0, 8)))

    def planes(x: np.ndarray) -> np.ndarray:
        check_bytes("posterize", x)
        return x & np.uint8(mask)

    def pil(image: Any) -> Any:
        return image.point([i & mask for i in range(256)] * len(image.getbands()))

    return dispatch_image("posterize", img, pil, planes)


def solarize(img: Any, threshold: float) -> Any:
    """Invert the colors that are at least `threshold`: 0 inverts all, 256 (1 for floats) hardly any."""
    pil = pillow_operation("solarize", "solarize", threshold)
    return dispatch_image("solarize", img, pil, lambda x: np.where(x >= threshold, inverted(x), x))


def autocontrast(img: Any) -> Any:
    """Stretch each channel so that its darkest color becomes black and its brightest white; a flat one stays."""

    def planes(x: np.ndarray) -> np.ndarray:
        work = x if x.dtype.kind == "f" else x.astype("float32")
        low, high = (f(work, (-2, -1), keepdims=True) for f in (np.min, np.max))
        top = np.array(1 if x.dtype.kind == "f" else 255, work.dtype)
        stretched = (work - low) * (top / np.where(high == low, 1, high - low))
        return np.where(high == low, x, np.clip(stretched, 0, top).astype(x.dtype))

    return dispatch_image("autocontrast", img, pillow_operation("autocontrast", "autocontrast"), planes)


def equalize(img: Any) -> Any:
    """Spread the colors of each channel so that all occur about equally often. A tensor must have bytes."""

    def planes(x: np.ndarray) -> np.ndarray:
        check_bytes("equalize", x)
        return np.stack([equalize_plane(plane) for plane in x.reshape(-1, *x.shape[-2:])]).reshape(x.shape)

    return dispatch_image("equalize", img, pillow_operation("equalize", "equalize"), planes)


def equalize_plane(plane: np.ndarray) -> np.ndarray:
    counts = np.bincount(plane.reshape(-1), minlength=256)
    step = (plane.size - counts[plane.max()]) // 255
    if step == 0:
        return plane
    below = np.concatenate([[0], np.cumsum(counts)[:-1]])
    return np.minimum((below + step // 2) // step, 255).astype("uint8")[plane]


def adjust_sharpness(img: Any, sharpness_factor: float) -> Any:
    """Scale the sharpness: 0 is smoothed by a filter of 3x3 pixels, 1 the image itself, 2 twice as sharp."""
    f = check_factor("adjust_sharpness", sharpness_factor)

    def planes(x: np.ndarray) -> np.ndarray:
        if min(x.shape[-2:]) <= 2:
            return x
        work = x if x.dtype.kind == "f" else x.astype("float32")
        parts = np.lib.stride_tricks.sliding_window_view(work, (3, 3), (-2, -1))
        inner = (parts.sum((-2, -1)) + 4 * work[..., 1:-1, 1:-1]) / 13
        smooth = work.copy()
        smooth[..., 1:-1, 1:-1] = inner if x.dtype.kind == "f" else np.rint(inner)
        return blend(x, smooth, f)

    return dispatch_image("adjust_sharpness", img, pillow_enhancer("Sharpness", "adjust_sharpness", f), planes)


def rgb_to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """Convert to gray, in one channel or three equal ones."""
    n = num_output_channels
    if n not in (1, 3):
        fail(OutOfRangeError, f"rgb_to_grayscale: num_output_channels must be 1 or 3, got {n}", "num_output_channels=1")

    def planes(x: np.ndarray) -> np.ndarray:
        return np.repeat(luma(x), n, -3)

    def pil(image: Any) -> Any:
        gray = image.convert("L")
        return gray if n == 1 else to_pil_image(np.repeat(np.array(gray)[:, :, None], 3, 2))

    return dispatch_image("rgb_to_grayscale", img, pil, planes)


to_grayscale = rgb_to_grayscale  # the name that torchvision uses for PIL images
