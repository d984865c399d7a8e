"""Arrange many images in one: `make_grid`, `save_image`. Read next: `transforms/images.py`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, Any

import numpy as np

from ..core.base.errors import DTypeError, OutOfRangeError, ShapeError
from ..core.functions.creation import from_numpy
from ..core.messages.suggestions import name_hints as _name_hints
from ..core.source_location import fail
from ..core.tensor import Tensor
from .transforms.images import to_pil_image


def make_grid(
    tensor: Tensor | Sequence[Tensor],
    nrow: int = 8,
    padding: int = 2,
    normalize: bool = False,
    value_range: tuple[float, float] | None = None,
    scale_each: bool = False,
    pad_value: float = 0.0,
) -> Tensor:
    """Arrange images (N, C, H, W) in a grid: (C', height, width); a single channel is repeated three times.

    tensor: also a list of images of one size, one image (C, H, W), or (H, W).  nrow: images per row.  padding: pixels
    between images, with the value pad_value.  normalize: map value_range, or [min, max], to [0, 1]; per image if
    scale_each. A single image is returned without a border.
    """
    several = isinstance(tensor, Sequence) and all(isinstance(t, Tensor) for t in tensor)
    if not isinstance(tensor, Tensor) and not (several and len(tensor)):
        what = f"make_grid takes a tensor or a list of tensors, not {type(tensor).__name__}"
        fail(DTypeError, what, "flow.stack(images); transforms.ToTensor() makes a tensor of an image", tensor=tensor)
    if nrow < 1 or padding < 0:
        what = f"make_grid: nrow must be positive, got nrow={nrow}, padding={padding}"
        fail(OutOfRangeError, what, "nrow=8, padding=2")
    parts = [tensor] if isinstance(tensor, Tensor) else tensor
    if any(part.shape != parts[0].shape for part in parts):
        what = f"make_grid: images must have one size, got shapes {sorted({tuple(p.shape) for p in parts})}"
        fail(ShapeError, what, "transforms.Resize((height, width)) for each image")
    arrays, device = [part.detach().numpy(force=True) for part in parts], parts[0].device
    images = arrays[0] if isinstance(tensor, Tensor) else np.stack(arrays)
    if images.ndim not in (2, 3, 4) or 0 in images.shape:
        fail(ShapeError, f"make_grid: images must have shape (N, C, H, W), got {list(images.shape)}", "(N, C, H, W)")
    images = images.reshape(-1, 1 if images.ndim == 2 else images.shape[-3], *images.shape[-2:])
    images = np.repeat(images, 3, 1) if images.shape[1] == 1 else images
    if normalize:
        images = (
            np.stack([to_unit_range(i, value_range) for i in images])
            if scale_each
            else to_unit_range(images, value_range)
        )
    if len(images) == 1:
        return from_numpy(images[0].copy()).to(device)
    n, channels, h, w = images.shape
    columns, high, wide = min(nrow, n), h + padding, w + padding
    shape = (channels, high * -(-n // columns) + padding, wide * columns + padding)
    grid = np.full(shape, pad_value, images.dtype)
    for i, image in enumerate(images):
        top, left = i // columns * high + padding, i % columns * wide + padding
        grid[:, top : top + h, left : left + w] = image
    return from_numpy(grid).to(device)


def to_unit_range(x: np.ndarray, value_range: tuple[float, float] | None) -> np.ndarray:
    """Map x to [0, 1]."""
    low, high = value_range or (x.min(), x.max())
    return (np.clip(x, low, high) - low) / np.asarray(max(high - low, 1e-5), x.dtype)


def save_image(
    tensor: Tensor | Sequence[Tensor], fp: str | os.PathLike | IO[bytes], format: str | None = None, **options: Any
) -> None:
    """Write images with values in [0, 1] to a file, as one picture. options: those of `make_grid`.

    fp: a path such as "images.png", or an open file with format="PNG". Requires pillow.
    """
    grid = make_grid(tensor, **options).numpy(force=True)
    pixels = np.clip(grid * 255 + 0.5, 0, 255).astype("uint8") if grid.dtype.kind == "f" else grid.astype("uint8")
    to_pil_image(pixels.transpose(1, 2, 0)).save(fp, format=format)


__all__ = ["make_grid", "save_image"]
__getattr__ = _name_hints("flow.vision.utils", globals())
