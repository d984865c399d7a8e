"""The history of a run as lines, and as text: `History(curve).plot()`.

Read next: `../curve/loss_curve.py`, the live curve of a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from minflow.core.base.errors import DTypeError, ShapeError
from minflow.views.draw import theme
from minflow.views.text.listing import clean
from minflow.views.text.sparkline import curve_line
from minflow.views.words import say

from ..curve.arguments import as_number
from .drawing import COLORS, GRID_STYLE, axes, literal, numbers_of, set_caption, style_axes

LINE_STYLES = ("-", "--", ":", "-.")
MIN_UNDOTTED_VALUES = 50  # lines with fewer values have dots
MIN_WINDOW = 5  # least window of a mean; a shorter one smooths nothing
WINDOWS_PER_LINE = 40  # windows that fit into a line, which determines their length


def appended(steps: np.ndarray, values: np.ndarray, step: float, value: float) -> tuple[np.ndarray, np.ndarray]:
    """Append to both arrays: views of a buffer that doubles when full, so that a step of a long run costs no more than
    of a short one.
    """
    n = steps.size
    table: Any = steps.base
    mine = isinstance(table, np.ndarray) and table is values.base
    mine = mine and table.shape[:1] == (3,) and table.dtype == np.float64
    # a foreign array, or full, or extended by another History
    if not mine or n == table.shape[1] or table[2, 0] != n:
        table = np.empty((3, max(2 * n, 64)))
        table[0, :n], table[1, :n] = steps, values
    table[0, n], table[1, n], table[2, 0] = step, value, n + 1
    return table[0, : n + 1], table[1, : n + 1]


class History:
    """Values of a run by name, as lines and as text: `History(curve).plot()`.

    source: a curve (anything with `.data`), or a mapping of names to values, or to (steps, values). Without a source it
    is empty, and `history.add(step, loss=0.5)` fills it.

    >>> History({"loss": [0.9, 0.5, 0.6]})
    loss █▁▂ 0.6  min 0.5 at 1, max 0.9 at 0
    """

    def __init__(self, source: Any = None):
        self.data: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        mapping = getattr(source, "data", source)
        if mapping is not None and not isinstance(mapping, Mapping):
            hint = "a curve, or {'loss': [0.9, 0.5]}"
            raise DTypeError(f"History: a {type(source).__name__} has no series", hint=hint)
        for name, entry in (mapping or {}).items():
            pair = isinstance(entry, tuple) and len(entry) == 2 and all(np.ndim(part) == 1 for part in entry)
            what, hint = f"History: {clean(str(name))}", "{'loss': [0.9, 0.5]}, or {'loss': (steps, values)}"
            values = numbers_of(entry[1] if pair else entry, what, hint)
            steps = numbers_of(entry[0], what, hint) if pair else np.arange(values.size, dtype=np.float64)
            if values.ndim != 1 or steps.shape != values.shape:
                shapes = f"values of shape {list(values.shape)} and steps of shape {list(steps.shape)}"
                raise ShapeError(f"History: {name} has {shapes}", hint="as many steps as values, in one row each")
            self.data[str(name)] = steps, values

    def add(self, step: float | None = None, **values: float) -> None:
        """Append one value per name at `step` (default: the next one)."""
        last = max((steps[-1] for steps, _ in self.data.values() if steps.size), default=-1.0)
        at = last + 1 if step is None else as_number("step", step, "History.add")
        for name, value in {name: as_number(name, value, "History.add") for name, value in values.items()}.items():
            self.data[name] = appended(*self.data.get(name, (np.empty(0), np.empty(0))), at, value)

    def plot(self, *names: str, ax: Any = None, log: bool = False) -> Any:
        """Draw the series as lines; returns the Axes (of the first series).

        names: series to draw (default: all).  log: logarithmic scale of the first axis. Series whose names end in the
        same word (`loss`, `val_loss`) share an axis; each further word has its own axis on the right. With 200 or more
        values, the raw line is faint behind its mean, whose window the legend gives; the first NaN is marked.
        """
        unknown = [name for name in names if name not in self.data]
        if unknown:
            hint = f"there are {', '.join(self.data) or 'none'}"
            raise DTypeError(f"History.plot: there is no series {unknown[0]!r}", hint=hint)
        first = axes(ax, "history.plot()")
        scales: dict[str, Any] = {}
        handles = []
        for k, name in enumerate(names or self.data):
            word = name.lower().rsplit("_", 1)[-1].rsplit(" ", 1)[-1]
            if word not in scales:
                scales[word] = self.scale(first, len(scales), literal(word))
            color, style = COLORS[k % len(COLORS)], LINE_STYLES[(k + k // len(COLORS)) % len(LINE_STYLES)]
            handles += self.line(scales[word], name, color, style)
        # without positive values there is no log scale
        if log and any((line.get_ydata() > 0).any() for line in first.get_lines()):
            first.set_yscale("log")
        first.set_xlabel(say("step"))
        first.grid(True, **GRID_STYLE)
        if handles:
            # Above the plot, because axes on the right are drawn over its contents.
            place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 2}
            legend = first.legend(handles=handles, fontsize=9, frameon=False, **place)
            for text in legend.get_texts():
                text.set_parse_math(False)
        ends = [
            say(
                "{name} from {first:.3g} to {last:.3g} in {n} values",
                name=name,
                first=values[0],
                last=values[-1],
                n=values.size,
            )
            for name, (_, values) in self.data.items()
            if name in (names or self.data) and values.size
        ]
        return set_caption(first, clean("; ".join(ends)) or say("no values"), self.text())

    @staticmethod
    def scale(first: Any, number: int, word: str) -> Any:
        """The axis for a word: the first one's own, then others on the right, each further out."""
        ax = first if number == 0 else first.twinx()
        if number > 1:
            ax.spines["right"].set_position(("axes", 1 + 0.16 * (number - 1)))
        ax.set_ylabel(word, parse_math=False)
        return style_axes(ax)

    def line(self, ax: Any, name: str, color: str, style: str) -> list:
        """Draw one series; returns its legend entries."""
        steps, values = self.data[name]
        finite = np.isfinite(values)
        shown = np.where(finite, values, np.nan)
        label = literal(name)
        handles = []
        window = values.size // WINDOWS_PER_LINE
        if window >= MIN_WINDOW and finite.any():
            means_at, means = smooth(steps, shown, window)
            ax.plot(steps, shown, color=color, alpha=0.4, linewidth=1)
            look = {"color": color, "linestyle": style, "linewidth": 2}
            handles += ax.plot(means_at, means, label=say("{name}, mean of {n}", name=label, n=window), **look)
        else:
            marker = "." if values.size < MIN_UNDOTTED_VALUES else ""
            handles += ax.plot(steps, shown, color=color, linestyle=style, marker=marker, label=label)
        if not finite.all():
            at = float(steps[np.argmin(finite)])
            what = "NaN" if np.isnan(values[np.argmin(finite)]) else "inf"
            handles.append(
                ax.axvline(
                    at,
                    color=theme.RED,
                    linestyle=":",
                    label=say("{name} is {what} from step {step:g}", name=label, what=what, step=at),
                )
            )
        return handles

    def text(self) -> str:
        """A line for each series: bars, last value, minimum and maximum with their steps."""
        data: Any = self.data
        return "\n".join(curve_line(name, steps, values) for name, (steps, values) in data.items()) or "no values"

    def __repr__(self) -> str:
        return self.text()


def smooth(steps: np.ndarray, values: np.ndarray, window: int) -> tuple[np.ndarray, np.ndarray]:
    """Means over `window` values without NaN; steps are averaged over the same windows, so there is no false start."""
    ones = np.ones(window)
    good = np.isfinite(values)
    with np.errstate(all="ignore"):
        means = np.convolve(np.where(good, values, 0.0), ones, "valid") / np.convolve(good, ones, "valid")
    return np.convolve(steps, ones, "valid") / window, means
