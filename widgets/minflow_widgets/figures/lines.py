"""Two pictures for beginners: a line with its errors at points, and the slope of a curve between two points.

`line_and_points(x, y, w, b)` and `slope_at(f, at, h)`. Read next: `landscape.py`, the same loss over two parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minflow.core.base.errors import ShapeError
from minflow.views.draw import theme
from minflow.views.text.tables import ruled_table
from minflow.views.words import say

from ..curve.arguments import as_number
from .drawing import GRID_STYLE, axes, literal, numbers_of, set_caption

CURVE_POINTS = 121  # points at which a curve is computed
MAX_LISTED_POINTS = 20  # points listed in the text


def line_and_points(x: Any, y: Any, w: Any, b: Any, *, ax: Any = None) -> Any:
    """Draw points (x, y), the line w*x + b, and a stick from each point to the line, its error; returns the Axes.

    x, y: n numbers each.  w, b: numbers. The title gives the mean squared error.
    """
    x, y = (numbers_of(values, f"line_and_points: {name}", "[0, 1, 2]") for name, values in (("x", x), ("y", y)))
    if x.ndim != 1 or x.shape != y.shape or not x.size:
        values = {"x": f"shape {list(x.shape)}", "y": f"shape {list(y.shape)}"}
        raise ShapeError("line_and_points: x and y must have the same length", values=values, hint="[0, 1], [1, 3]")
    w, b = as_number("w", w, "line_and_points"), as_number("b", b, "line_and_points")
    error = w * x + b - y
    result = say("w = {w:.3g}, b = {b:.3g}: the mean squared error is {loss:.3g}", w=w, b=b, loss=np.mean(error**2))
    ax = axes(ax, "line_and_points()", (6.4, 4.0))
    ax.vlines(x, y, y + error, color=theme.RED, linewidth=1.2, label=say("errors"))
    ends = np.array([x.min(), x.max()])
    ax.plot(ends, w * ends + b, color=theme.BLUE, linewidth=2, label=say("line"))
    ax.plot(x, y, "o", color=theme.TEXT_COLOR, markeredgecolor=theme.PLAIN, markersize=6, label=say("points"))
    label_axes(ax, "x", "y", result)
    rows = [
        [f"{value:.3g}" for value in row]
        for row in zip(
            x[:MAX_LISTED_POINTS], y[:MAX_LISTED_POINTS], (y + error)[:MAX_LISTED_POINTS], error[:MAX_LISTED_POINTS]
        )
    ]
    more = [say("and {n} more points", n=x.size - MAX_LISTED_POINTS)] * (x.size > MAX_LISTED_POINTS)
    table = ruled_table(["x", "y", say("line"), say("line - y")], rows, range(4))
    return set_caption(
        ax, say("{n} points and a line. {result}.", n=x.size, result=result), "\n".join([result, *table, *more])
    )


def slope_at(
    f: Callable[[float], Any],
    at: Any,
    h: Any = 0.5,
    *,
    span: Any = None,
    names: tuple[str, str] = ("x", "f(x)"),
    ax: Any = None,
) -> Any:
    """Draw the curve of f, its points at at - h and at + h, and the straight line through them; returns the Axes.

    f: a function of one float that returns one number.  span: range of the curve; default: two h beyond the points.
    names: names of the argument and of the result. The title gives rise, run and slope.
    """
    at, h = as_number("at", at, "slope_at"), as_number("h", h, "slope_at")
    left, right = at - h, at + h
    span = (left - 2 * abs(h), right + 2 * abs(h)) if span is None else span
    low, high = numbers_of(span, "slope_at: span", "(0, 4)")
    places = np.linspace(low, high, CURVE_POINTS)
    heights = np.array([as_number("value", f(place), "slope_at: f") for place in places.tolist()])
    below, above = (as_number("value", f(place), "slope_at: f") for place in (left, right))
    rise, run = above - below, right - left
    slope = rise / run if run else np.nan
    result = say(
        "from {left:.3g} to {right:.3g} it rises by {rise:.3g} over a run of {run:.3g}: slope {slope:.3g}",
        left=left,
        right=right,
        rise=rise,
        run=run,
        slope=slope,
    )
    ax = axes(ax, "slope_at()", (6.4, 4.0))
    ax.plot(places, heights, color=theme.BLUE, linewidth=2, label=literal(names[1]))
    ax.plot([left, right], [below, below], ":", color=theme.TEXT_COLOR, label=say("run"))
    ax.plot([right, right], [below, above], "--", color=theme.RED, label=say("rise"))
    ax.plot(places, below + slope * (places - left), color=theme.AMBER, linewidth=1, label=say("slope"))
    ax.plot(
        [left, right], [below, above], "o", color=theme.TEXT_COLOR, markeredgecolor=theme.PLAIN, label=say("two places")
    )
    margin = 0.15 * (np.ptp(heights) or 1.0)
    ax.set_ylim(heights.min() - margin, heights.max() + margin)
    across, up = map(literal, names)
    label_axes(ax, across, up, result)
    picked = places[:: CURVE_POINTS // 8]
    rows = [[f"{place:.3g}", f"{height:.4g}"] for place, height in zip(picked, heights[:: CURVE_POINTS // 8])]
    table = ruled_table(names, rows, range(2))
    return set_caption(ax, say("A curve and its slope: {result}.", result=result), "\n".join([result, *table]))


def label_axes(ax: Any, across: str, up: str, title: str) -> None:
    ax.set_xlabel(across, parse_math=False)
    ax.set_ylabel(up, parse_math=False)
    ax.set_title(title, fontsize=10)
    ax.grid(**GRID_STYLE)
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=9)
