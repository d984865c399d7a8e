"""A tensor as images: `show(x, images=True, labels=y)`. A record of pixels, its picture, and shades of text.

Read next: `tensor.py`, a tensor as elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from ...core.base.errors import DTypeError, ShapeError
from ..draw.png import data_uri, enlarged, png
from ..html.page import CARD_STYLE, NO_MATH
from ..text.listing import clean, count
from ..text.sparkline import shaded, short_number
from ..text.tables import cut
from ..words import say
from .tensor import array_of

MAX_IMAGES = 32  # largest number of images
AXES = {  # what an axis was read as
    "images": "images",
    "channel": "channel",
    "colors": "colors",
    "height": "height",
    "width": "width",
    "each channel as an image": "each channel as an image",
}
MAX_BYTES = 36_000  # bytes of all pixels together: fits into 60 kB of HTML
PICTURE_WIDTH = 640  # approximate display width of the picture in pixels
TEXT_COLUMNS = 32  # of an image in text
GAP = 4  # pixels between images
MAX_LABEL_CHARS = 40  # characters of a label
NONFINITE_COLOR = (255, 0, 200)  # color of pixels that are NaN or infinite; the caption says how many there are


@dataclass(frozen=True)
class ImagesRecord:
    """Images of a tensor as pixels.

    pixels: uint8 of `shape`, (H, W, 2) or (H, W, 4): all images in rows, gray or RGB, and alpha; gaps are
    transparent.

    width: on the screen.  title: caption.  first: the first image in gray, for text.
    one: height and width of an image in the picture.  labels: labels of the images shown, row by row; empty, or one for
    each.
    """

    title: str
    pixels: bytes
    shape: tuple[int, ...]
    width: int
    first: tuple[tuple[float, ...], ...]
    one: tuple[int, int]
    labels: tuple[str, ...] = ()

    @property
    def nodes(self) -> tuple:
        return self.first


def images_of(array: np.ndarray) -> tuple[np.ndarray, str]:
    """(N, H, W) or (N, H, W, 3), and how the axes were interpreted.

    (H, W), (C, H, W), (N, H, W), (N, C, H, W) with C of 1 or 3, and the same with C last; with any other C, each
    channel is a gray image. Raises DTypeError for arrays of fewer than 2 or more than 4 axes.
    """
    if not 2 <= array.ndim <= 4 or not array.size:
        raise DTypeError(
            f"show(images=True): an array of shape {list(array.shape)} is not an image",
            hint="(height, width), (channels, height, width) or (images, channels, height, width)",
        )
    at = "images, " if array.ndim == 4 else ""
    if array.ndim == 2:
        return array[None], "height, width"
    first, last = array.ndim - 3, array.ndim - 1
    if array.shape[first] in (1, 3):
        array, axes = np.moveaxis(array, first, -1), (f"{at}channel, height, width", f"{at}colors, height, width")
    elif array.shape[last] in (1, 3):
        axes = (f"{at}height, width, channel", f"{at}height, width, colors")
    elif array.ndim == 3:
        return array, "images, height, width"
    else:
        return array.reshape(-1, *array.shape[2:]), "images, each channel as an image, height, width"
    array = array if array.ndim == 4 else array[None]
    return (array[..., 0], axes[0]) if array.shape[-1] == 1 else (array, axes[1])


def label_texts(labels: Any, total: int, shown: int) -> tuple[str, ...]:
    """Captions of the first `shown` images. Raises ShapeError unless there is one label for each of all `total` images,
    and DTypeError for an object without labels.
    """
    if hasattr(labels, "spec"):
        labels = array_of(labels)
    if isinstance(labels, np.ndarray) and labels.size == total:
        labels = labels.reshape(-1)  # targets of shape (N, 1)
    if (
        isinstance(labels, str)
        or not isinstance(labels, (Sequence, np.ndarray))
        or getattr(labels, "shape", None) == ()
    ):
        what = repr(labels) if isinstance(labels, str) else type(labels).__name__
        raise DTypeError(
            f"show(labels=): {clean(what)} is not a list of labels",
            hint="one label for each image, as in labels=targets",
        )
    if len(labels) != total:
        raise ShapeError(
            f"show(labels=): {count(len(labels), 'label')} for {count(total, 'image')}",
            hint="one label for each image, as in show(x[:10], images=True, labels=targets[:10])",
        )
    texts = []
    for label in labels[:shown]:
        if hasattr(label, "item") and math.prod(label.shape) == 1:
            label = label.item()
        text = clean(short_number(label) if isinstance(label, float) else str(label))
        texts.append(cut(text, MAX_LABEL_CHARS))
    return tuple(texts)


def images_record(tensor: Any, labels: Any = None) -> ImagesRecord:
    """The first images in a tensor (or an array), as many as fit. labels: a list or tensor with one for each."""
    array = array_of(tensor) if hasattr(tensor, "spec") else np.asarray(tensor)
    if array is None:
        raise DTypeError("show(images=True): a symbolic tensor has no numbers yet", hint="show what the graph returns")
    images, axes = images_of(array)
    total, height, width = images.shape[:3]
    depth = 3 if images.ndim == 4 else 1
    step = 1
    while -(-height // step) * -(-width // step) * depth > MAX_BYTES:
        step += 1
    images = images[:, ::step, ::step]
    shown = max(1, min(total, MAX_IMAGES, MAX_BYTES // (images.shape[1] * images.shape[2] * depth)))
    texts = () if labels is None else label_texts(labels, total, shown)
    pixels, scale, bad = to_uint8(images[:shown])
    rows, columns = pixels.shape[1:3]
    size = max(1, min(12, (96 if shown <= 6 else 64) // max(rows, columns)))
    across = max(1, min(shown, PICTURE_WIDTH // (columns * size + GAP)))
    tall, wide = -(-shown // across) * (rows * size + GAP) - GAP, across * (columns * size + GAP) - GAP
    sheet = np.zeros((tall, wide, 2 if pixels.ndim == 3 else 4), np.uint8)
    for k, image in enumerate(pixels):
        y, x = k // across * (rows * size + GAP), k % across * (columns * size + GAP)
        place = sheet[y : y + rows * size, x : x + columns * size]
        place[..., :-1], place[..., -1] = enlarged(image.reshape(rows, columns, -1), size), 255
        if bad and size >= 4:  # a cross, for readers who cannot distinguish the color
            for i, j in np.argwhere((image == NONFINITE_COLOR).all(axis=-1)).tolist():
                at = np.arange(size)
                square = place[i * size : (i + 1) * size, j * size : (j + 1) * size, :-1]
                square[at, at] = square[at, size - 1 - at] = 0
    size_text = f"{height} x {width}" + say(", color") * (depth == 3)
    read = ", ".join(say(AXES[axis]) for axis in axes.split(", "))
    text = say(
        "{n} image of {size} (axes read as {axes})" if total == 1 else "{n:,} images of {size} (axes read as {axes})",
        n=total,
        size=size_text,
        axes=read,
    )
    parts = [text]
    parts += [f"shown: the first {shown}, row by row"] if shown < total else []
    parts += [f"every {step}th pixel".replace("2th", "2nd").replace("3th", "3rd")] if step > 1 else []
    parts += [scale] + ([bad] if bad else [])
    gray = images[0].astype(np.float64).mean(axis=-1) if depth == 3 else images[0].astype(np.float64)
    gray = gray[:: -(-gray.shape[0] // TEXT_COLUMNS), :: -(-gray.shape[1] // TEXT_COLUMNS)]
    seen = min(PICTURE_WIDTH, sheet.shape[1] * (step if shown == 1 else 1))
    first = tuple(map(tuple, gray.tolist()))
    return ImagesRecord(
        "; ".join(parts), sheet.tobytes(), sheet.shape, seen, first, (rows * size, columns * size), texts
    )


def to_uint8(images: np.ndarray) -> tuple[np.ndarray, str, str]:
    """uint8 pixels, a description of the brightness scale, and of elements that are not finite."""
    if images.dtype == np.uint8:
        return images, scale_text(images, "0", "255"), ""
    numbers = images.astype(np.float64)
    finite = np.isfinite(numbers)
    some = numbers[finite]
    low, high = (float(some.min()), float(some.max())) if some.size else (0.0, 1.0)
    if (images.dtype.kind == "f" and low >= 0 and high <= 1) or images.dtype == bool:
        low, high = 0.0, 1.0
    span = (high - low) or 1.0
    with np.errstate(all="ignore"):
        pixels = np.nan_to_num((numbers - low) / span * 255, nan=0.0).clip(0, 255).round().astype(np.uint8)
    scale = scale_text(images, short_number(low), short_number(high))
    if finite.all():
        return pixels, scale, ""
    if pixels.ndim == 3:
        pixels = np.stack([pixels] * 3, axis=-1)
        wrong = ~finite
    else:
        wrong = ~finite.all(axis=-1)
    pixels[wrong] = NONFINITE_COLOR
    return pixels, scale, f"{int((~finite).sum()):,} elements are NaN or infinite, drawn magenta with a cross"


def scale_text(images: np.ndarray, low: str, high: str) -> str:
    """The meaning of the numbers `low` and `high`, for gray images, (n, h, w), or colored ones, (n, h, w, 3)."""
    return say(
        "{low} is dark, {high} bright in each color" if images.ndim == 4 else "{low} is black, {high} white",
        low=low,
        high=high,
    )


def images_text(record: ImagesRecord) -> str:
    """Caption, labels, and the first image in shades."""
    text = clean(record.title)
    if record.labels:
        text += f"; labeled {', '.join(record.labels)}"
    return "\n".join([text if text.startswith("1 ") else f"{text}; the first:", *shaded(record.first)])


def images_png(record: ImagesRecord) -> bytes:
    """The picture as a PNG file, without labels."""
    return png(drop_full_alpha(pixels_of(record)))


def pixels_of(record: ImagesRecord) -> np.ndarray:
    return np.frombuffer(record.pixels, np.uint8).reshape(record.shape)


def drop_full_alpha(pixels: np.ndarray) -> np.ndarray:
    """(H, W) or (H, W, 3) if no pixel is transparent: simpler, and expected by other programs."""
    if pixels[..., -1].min() < 255:
        return pixels
    return pixels[..., 0] if pixels.shape[2] == 2 else pixels[..., :3]


def images_html(record: ImagesRecord) -> str:
    """Card with the images, their labels and the caption."""
    title = escape(clean(record.title), True)
    images = labeled_html(record) if record.labels else image_tag(pixels_of(record), title, record.width)
    return f'<div {NO_MATH} style="{CARD_STYLE}">{images}<div style="font-size:12px">{title}</div></div>'


def image_tag(pixels: np.ndarray, alt: str, width: int) -> str:
    """An `<img>` with an embedded PNG.

    alt: escaped.  width: on the screen, in pixels.
    """
    data = data_uri(png(drop_full_alpha(pixels)))
    return f'<img alt="{alt}" width="{width}" style="max-width:100%" src="{data}">'


def labeled_html(record: ImagesRecord) -> str:
    """Each image separately with its label below; rows wrap on a narrow page."""
    tall, wide = record.one
    across = (record.shape[1] + GAP) // (wide + GAP)
    shown = record.width if len(record.labels) == 1 else wide  # a single image keeps its size
    look = (
        f"display:inline-block;vertical-align:top;text-align:center;margin:0 {GAP}px {GAP}px 0;overflow-wrap:anywhere"
    )
    pixels, parts = pixels_of(record), []
    for k, label in enumerate(record.labels):
        y, x = k // across * (tall + GAP), k % across * (wide + GAP)
        text = escape(label, True)
        image = image_tag(
            pixels[y : y + tall, x : x + wide], say("image {number}: {label}", number=k, label=text), shown
        )
        parts.append(f'<span style="{look};width:{max(shown, 28)}px">{image}<br>{text}</span>')
    return f'<div style="font-size:12px;line-height:1.3">{"".join(parts)}</div>'
