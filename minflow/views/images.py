"""A tensor as the images that it holds: `show(x, images=True)`. A record of pixels, its picture and its shades of text.

Read next: `tensor_card.py`, a tensor as numbers.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from ..core.errors import DTypeError
from .html import CARD, NO_MATH
from .png import png
from .sparkline import shaded, short_number
from .tensor_card import array_of
from .text import clean, count

MANY = 32  # images, at most
BYTES = 36_000  # of all pixels together: what 60 kB of HTML can hold
WIDE = 640  # pixels of the picture on the screen, about
COLUMNS = 32  # of an image in text
NO_NUMBER = (255, 0, 200)  # a pixel that is NaN or infinite; how many there are is said in words


@dataclass(frozen=True)
class ImagesRecord:
    """pixels: uint8 of `shape`, (H, W) or (H, W, 3): all images in rows, a light line between them.
    width: on the screen.  title: what is shown, in words.  first: the first image in grey, for text.
    """

    title: str
    pixels: bytes
    shape: tuple[int, ...]
    width: int
    first: tuple[tuple[float, ...], ...]

    @property
    def nodes(self) -> tuple:
        return self.first


def images_of(array: np.ndarray) -> tuple[np.ndarray, str]:
    """(N, H, W) or (N, H, W, 3), and how the axes were read.

    (H, W), (C, H, W), (N, H, W), (N, C, H, W) with C of 1 or 3, and the same with C last; any other C counts as grey
    images of their own. Raises DTypeError for arrays of fewer than 2 or more than 4 axes.
    """
    if not 2 <= array.ndim <= 4 or not array.size:
        raise DTypeError(
            f"show(images=True): an array of shape {list(array.shape)} is no image",
            hint="(height, width), (channels, height, width) or (images, channels, height, width)",
        )
    at = "images, " if array.ndim == 4 else ""
    if array.ndim == 2:
        return array[None], "height, width"
    first, last = array.ndim - 3, array.ndim - 1
    if array.shape[first] in (1, 3):
        array, axes = np.moveaxis(array, first, -1), (f"{at}channel, height, width", f"{at}colours, height, width")
    elif array.shape[last] in (1, 3):
        axes = (f"{at}height, width, channel", f"{at}height, width, colours")
    elif array.ndim == 3:
        return array, "images, height, width"
    else:
        return array.reshape(-1, *array.shape[2:]), "images, channels as images of their own, height, width"
    array = array if array.ndim == 4 else array[None]
    return (array[..., 0], axes[0]) if array.shape[-1] == 1 else (array, axes[1])


def images_record(tensor: Any) -> ImagesRecord:
    """The images in a tensor (or an array): the first of them, as many as fit."""
    array = array_of(tensor) if hasattr(tensor, "spec") else np.asarray(tensor)
    if array is None:
        raise DTypeError("show(images=True): a symbolic tensor has no numbers yet", hint="show what the graph returns")
    images, axes = images_of(array)
    total, height, width = images.shape[:3]
    depth = 3 if images.ndim == 4 else 1
    step = 1
    while -(-height // step) * -(-width // step) * depth > BYTES:
        step += 1
    images = images[:, ::step, ::step]
    shown = max(1, min(total, MANY, BYTES // (images.shape[1] * images.shape[2] * depth)))
    pixels, scale, bad = as_bytes(images[:shown])
    rows, columns = pixels.shape[1:3]
    size = max(1, min(12, (96 if shown <= 6 else 64) // max(rows, columns)))
    across = max(1, min(shown, WIDE // (columns * size + 4)))
    sheet = np.full((-(-shown // across) * (rows * size + 4) - 4, across * (columns * size + 4) - 4, *pixels.shape[3:]), 255, np.uint8)
    for k, image in enumerate(pixels):
        y, x = k // across * (rows * size + 4), k % across * (columns * size + 4)
        sheet[y : y + rows * size, x : x + columns * size] = image.repeat(size, 0).repeat(size, 1)
        if bad and size >= 4:  # a cross, for who does not tell this colour from others
            for i, j in np.argwhere((image == NO_NUMBER).all(axis=-1)).tolist():
                at = np.arange(size)
                sheet[y + i * size + at, x + j * size + at] = sheet[y + i * size + at, x + j * size + size - 1 - at] = 0
    parts = [f"{count(total, 'image')} of {height} x {width}{', colour' if depth == 3 else ''} (axes read as {axes})"]
    parts += [f"shown: the first {shown}, row by row"] if shown < total else []
    parts += [f"every {step}th pixel".replace("2th", "2nd").replace("3th", "3rd")] if step > 1 else []
    parts += [scale] + ([bad] if bad else [])
    grey = images[0].astype(np.float64).mean(axis=-1) if depth == 3 else images[0].astype(np.float64)
    grey = grey[:: -(-grey.shape[0] // COLUMNS), :: -(-grey.shape[1] // COLUMNS)]
    seen = min(WIDE, sheet.shape[1] * (step if shown == 1 else 1))
    return ImagesRecord("; ".join(parts), sheet.tobytes(), sheet.shape, seen, tuple(map(tuple, grey.tolist())))


def as_bytes(images: np.ndarray) -> tuple[np.ndarray, str, str]:
    """uint8 pixels, how numbers became brightness, and what was no number."""
    if images.dtype == np.uint8:
        return images, "0 is black, 255 white", ""
    numbers = images.astype(np.float64)
    finite = np.isfinite(numbers)
    some = numbers[finite]
    low, high = (float(some.min()), float(some.max())) if some.size else (0.0, 1.0)
    if images.dtype.kind == "f" and 0 <= low and high <= 1 or images.dtype == bool:
        low, high = 0.0, 1.0
    span = (high - low) or 1.0
    with np.errstate(all="ignore"):
        pixels = np.nan_to_num((numbers - low) / span * 255, nan=0.0).clip(0, 255).round().astype(np.uint8)
    scale = f"{short_number(low)} is black, {short_number(high)} white"
    if finite.all():
        return pixels, scale, ""
    if pixels.ndim == 3:
        pixels = np.stack([pixels] * 3, axis=-1)
        wrong = ~finite
    else:
        wrong = ~finite.all(axis=-1)
    pixels[wrong] = NO_NUMBER
    return pixels, scale, f"{int((~finite).sum()):,} numbers are NaN or infinite, drawn magenta with a cross"


def images_text(record: ImagesRecord) -> str:
    """What is shown, and the first image in shades."""
    told = clean(record.title) if record.title.startswith("1 image ") else f"{clean(record.title)}; the first:"
    return "\n".join([told, *shaded(record.first)])


def images_png(record: ImagesRecord) -> bytes:
    return png(np.frombuffer(record.pixels, np.uint8).reshape(record.shape))


def images_html(record: ImagesRecord) -> str:
    """The card with the images and, below, what they are."""
    data = base64.b64encode(images_png(record)).decode()
    title = escape(clean(record.title), True)
    image = f'<img alt="{title}" width="{record.width}" style="max-width:100%" src="data:image/png;base64,{data}">'
    return f'<div {NO_MATH} style="{CARD}">{image}<div style="font-size:12px">{title}</div></div>'
