"""Outputs of a model's layers for an input, as ranges, as images, and as text: `activations(model, x)`."""

from __future__ import annotations

from typing import Any

import numpy as np

from minflow.core.base.errors import DTypeError, ShapeError
from minflow.views.draw import theme
from minflow.views.text.listing import clean
from minflow.views.text.tables import ruled_table
from minflow.views.words import say

from .drawing import (
    COLORS,
    DEFAULT_TILES,
    PLATE_STYLE,
    array_of,
    axes,
    check_first,
    describe,
    draw_tiles,
    evaluate,
    literal,
)

MAX_SAMPLE_SIZE = 100_000  # elements of an activation from which quantiles are computed


def outputs_of(model: Any, x: Any) -> dict[str, list[np.ndarray]]:
    """The outputs of each innermost layer by name, from one run in eval mode without gradients. Restores the model's
    mode.
    """
    if isinstance(model, type) or not hasattr(model, "named_modules"):
        hint = "activations(model, x), an nn.Module"
        raise DTypeError("activations: the model must be an nn.Module", values={"got": describe(model)}, hint=hint)
    outputs: dict[str, list[np.ndarray]] = {}
    modules = dict(model.named_modules())
    handles = []

    def keep(name: str):
        def hook(module, args, output):
            if hasattr(output, "numpy"):
                outputs.setdefault(name, []).append(array_of(output).copy())

        return hook

    try:
        for name, module in modules.items():
            if len(modules) == 1 or (name and not any(other.startswith(name + ".") for other in modules)):
                handles.append(module.register_forward_hook(keep(name or type(module).__name__)))
        evaluate(model, x)
    finally:
        for handle in handles:
            handle.remove()
    return outputs


def activations(model: Any, x: Any, layer: str | None = None, *, first: int = DEFAULT_TILES, ax: Any = None) -> Any:
    """Draw the outputs of a model's layers for `x`; returns the Axes.

    Without `layer`: the distribution for each innermost layer: a box for the middle half, a line from the 5th to the
    95th percentile, a stroke at the median, and the share of zeros in words. With the name of a layer ("features.0"):
    its channels for the first image, or (N, F) outputs as a matrix; if the layer ran several times, those of the last
    call.
    """
    first, outputs = check_first(first, "activations"), outputs_of(model, x)
    if layer is None:
        return draw_ranges(outputs, ax)
    layer = str(layer) if isinstance(layer, int) else layer
    layer = next((name for name, module in model.named_modules() if module is layer), layer)
    if layer not in outputs:
        hint = f"these did: {', '.join(map(clean, outputs)) or 'none'}"
        raise DTypeError(f"activations: no layer {layer!r} ran", hint=hint)
    numbers = outputs[layer][-1].astype(np.float64)
    if numbers.ndim == 4:
        tiles, what = (
            numbers[0, :first],
            say(
                "{n} channels of {height} x {width}",
                n=numbers.shape[1],
                height=numbers.shape[2],
                width=numbers.shape[3],
            ),
        )
        what += say(", the first {n}", n=first) if numbers.shape[1] > first else ""
        what += say(", for image 0 of {n}", n=numbers.shape[0])
        columns = int(np.ceil(np.sqrt(len(tiles))))
    elif numbers.ndim == 2:
        tiles, columns = numbers[None, :first], 1
        what = say(
            "{samples} samples (rows) x {features} features", samples=numbers.shape[0], features=numbers.shape[1]
        )
    else:
        hint = "(N, C, H, W) and (N, F) can be drawn"
        raise ShapeError(f"activations: {layer} gives shape {list(numbers.shape)}", hint=hint)
    what += f"; call {calls} of {calls}" if (calls := len(outputs[layer])) > 1 else ""
    return draw_tiles(
        axes(ax, "activations()", (6.0, 5.0)), tiles, columns, f"{literal(layer)}: {what}", say("activation")
    )


def ranges(outputs: dict[str, list[np.ndarray]]) -> list[tuple[str, np.ndarray, float, int]]:
    """(name, percentiles 5, 25, 50, 75, 95, share of zeros, count of elements that are not finite) for each layer."""
    rows = []
    for name, arrays in outputs.items():
        flat = np.concatenate([np.asarray(a).reshape(-1) for a in arrays]).astype(np.float64)
        finite = flat[np.isfinite(flat)]
        some = finite[:: max(1, -(-finite.size // MAX_SAMPLE_SIZE))]
        points = np.percentile(some, (5, 25, 50, 75, 95)) if some.size else np.full(5, np.nan)
        rows.append((name, points, float((finite == 0).mean()) if finite.size else 0.0, int(flat.size - finite.size)))
    return rows


def range_notes(zeros: float, bad: int) -> str:
    return ", ".join(
        ([say("{share:.0%} zeros", share=zeros)] if zeros >= 0.005 else [])
        + ([say("{n} NaN or inf", n=bad)] if bad else [])
    )


def layer_label(name: str, calls: int) -> str:
    """`relu (3 calls)`: elements of all calls are pooled."""
    return literal(name) + (f" ({calls} calls)" if calls > 1 else "")


def draw_ranges(outputs: dict[str, list[np.ndarray]], ax: Any) -> Any:
    rows = ranges(outputs)
    ax = axes(ax, "activations()", (7.2, min(1.2 + 0.3 * len(rows), 14.0)))
    for y, (_, points, zeros, bad) in enumerate(rows):
        if np.isfinite(points).all():
            ax.hlines(y, points[0], points[4], color=COLORS[0])
            ax.barh(y, points[3] - points[1], left=points[1], height=0.6, color=theme.PALE_BLUE, edgecolor=COLORS[0])
            ax.plot([points[2]] * 2, [y - 0.3, y + 0.3], color=COLORS[1], linewidth=2)
        if range_notes(zeros, bad):
            look = {"va": "center", "color": theme.RED_TEXT if bad else theme.MUTED, "fontsize": 9, "bbox": PLATE_STYLE}
            ax.annotate(range_notes(zeros, bad), (1.02, y), xycoords=("axes fraction", "data"), **look)
    ax.set_yticks(range(len(rows)), [layer_label(name, len(outputs[name])) for name, *_ in rows], parse_math=False)
    ax.set_title(say("what each layer gives"), fontsize=10)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.axvline(0, color=theme.LINE, linewidth=0.8, linestyle=":")
    ax.set_xlabel(say("value\nbox: middle half of the numbers; line: 5 % to 95 %; stroke: median"))
    return ax


def activations_text(model: Any, x: Any) -> str:
    """The ranges of `activations(model, x)` as a table."""
    outputs = outputs_of(model, x)
    rows = ranges(outputs)
    cells = [
        [layer_label(name, len(outputs[name])), *[f"{p:.4g}" for p in points], range_notes(zeros, bad)]
        for name, points, zeros, bad in rows
    ]
    return "\n".join(ruled_table(["layer", "5 %", "25 %", "median", "75 %", "95 %", ""], cells, right=range(1, 6)))
