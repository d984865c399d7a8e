"""The filters of a convolution as images: `filters(model.conv1)`. Read next: `activations.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from minflow.core.base.errors import ShapeError
from minflow.views.words import say

from .drawing import DEFAULT_TILES, axes, check_first, draw_tiles, numbers_of


def filters(layer: Any, *, shape: tuple[int, ...] | None = None, first: int = DEFAULT_TILES, ax: Any = None) -> Any:
    """Draw the filters of a convolution as images; returns the Axes.

    layer: a module with a `weight`, or the weights: (F, C, H, W) or (F, H, W). With one channel or three (RGB) each
    filter is an image; otherwise a row of images, one per channel.  shape: shows each row of a Linear's weights as an
    image, such as (28, 28).  first: limit of filters, and of channels.
    """
    hint, first = "a layer with a weight, such as model.conv1, or its weights", check_first(first, "filters")
    weights = numbers_of(getattr(layer, "weight", layer), "filters", hint)
    if isinstance(shape, int):
        shape = (1, shape)
    if shape is not None and weights.ndim == 2:
        if int(np.prod(shape)) != weights.shape[1]:
            what = f"filters: rows of {weights.shape[1]} elements do not fit images of shape {list(shape)}"
            raise ShapeError(what, hint="shape=(height, width) or (channels, height, width)")
        weights = weights.reshape(-1, *shape)
    weights = weights[:, None] if weights.ndim == 3 else weights
    if weights.ndim != 4 or not weights.size:
        hint = "(filters, channels, height, width); of a Linear: filters(layer, shape=(28, 28))"
        raise ShapeError(f"filters: weights must have 3 or 4 axes, got shape {list(weights.shape)}", hint=hint)
    many, channels, height, width = weights.shape
    shown = weights[:first]
    title = say("weights: {n} filters of {shape}", n=many, shape=f"{channels} x {height} x {width}")
    title += say(", the first {n}", n=first) if many > first else ""
    if channels in (1, 3):
        tiles = shown[:, 0] if channels == 1 else shown.transpose(0, 2, 3, 1)
        columns = int(np.ceil(np.sqrt(len(tiles))))
        title += "; its three channels as colors" if channels == 3 else ""
    else:
        shown = weights[: min(first, 24), : min(first, 24)]
        title = say(
            "weights: {n} filters (rows) of {channels} channels (columns), {shape} each",
            n=many,
            channels=channels,
            shape=f"{height} x {width}",
        )
        title += (
            say(", the first {rows} and {columns}", rows=shown.shape[0], columns=shown.shape[1])
            if shown.shape[:2] != weights.shape[:2]
            else ""
        )
        tiles, columns = shown.reshape(-1, height, width), shown.shape[1]
    return draw_tiles(axes(ax, "filters()", (6.0, 5.0)), tiles, columns, title, say("weight"))
