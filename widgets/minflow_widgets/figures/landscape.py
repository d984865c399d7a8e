"""The loss over two parameters, seen from above, and a walk through it: `landscape(loss, w, b, path)`, and `Landscape`,
which grows while a loop walks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minflow.core.base.errors import DTypeError, ShapeError
from minflow.views.draw import theme
from minflow.views.text.listing import clean
from minflow.views.words import say

from ..curve.arguments import as_number
from .drawing import GAP_COLOR, axes, describe, literal, numbers_of, set_caption
from .growing import GrowingFigure

GRID_POINTS = 41  # grid points per axis at which the loss is computed
CONTOUR_LEVELS = 16  # contour levels
MAP_SIZE = (41, 21)  # columns and rows of the map in text
MAX_DOTTED_STEPS = 60  # walks with at most this many steps have dots
RANGE_EXAMPLE = "such as w=(-1, 5)"


class Landscape(GrowingFigure):
    """The loss over two parameters, w to the right and b upwards, and a walk that grows: `land.step(w, b)`.

    loss: a function of two floats that returns one number; it is called at 41 x 41 points, and at each step.
    w, b: ranges, two numbers each.  path: the walk so far, (n, 2) numbers, such as [[0, 0], [0.5, -0.2]].
    names: names of the two parameters.  pause: seconds that each step stays visible while the figure is live.

    In a notebook the first step of a cell puts the figure below it, further ones redraw it, and it becomes static when
    the cell ends. With MINFLOW_LIVE=0 only the final picture is shown. Elsewhere: `print(land)`, and `land.plot()`.
    Raises DTypeError and ShapeError if the loss is not one number, or a point is not two.

    >>> land = Landscape(lambda w, b: w * w + b * b, (-2, 2), (-2, 2))
    >>> land.step(1.0, -1.0)
    """

    size = (6.6, 4.8)

    def __init__(
        self,
        loss: Callable[[float, float], Any],
        w: Any,
        b: Any,
        path: Any = None,
        *,
        names: tuple[str, str] = ("w", "b"),
        pause: float = 0.0,
    ):
        if not callable(loss):
            hint = "a function: loss=lambda w, b: ((w * x + b - y) ** 2).mean()"
            raise DTypeError("Landscape: the loss must be a function", values={"loss": describe(loss)}, hint=hint)
        if isinstance(names, str) or not hasattr(names, "__len__") or len(names) != 2:
            raise DTypeError("Landscape: names must be two", values={"names": describe(names)}, hint='names=("w", "b")')
        self.loss, self.names, self.pause = (
            loss,
            tuple(map(literal, names)),
            as_number("pause", pause, "Landscape"),
        )
        self.w, self.b = (np.linspace(*check_range(name, x), GRID_POINTS) for name, x in (("w", w), ("b", b)))
        self.heights = np.array([[self._loss_at(w, b) for w in self.w.tolist()] for b in self.b.tolist()])
        self.path: list[tuple[float, float]] = []
        self.losses: list[float] = []
        for place in check_path(path):
            self._walk(*place)

    def step(self, w: Any, b: Any) -> None:
        """Continue the walk to a point: two numbers, or tensors with one element."""
        self._walk(as_number("w", w, "Landscape.step"), as_number("b", b, "Landscape.step"))
        self._changed()

    def _walk(self, w: float, b: float) -> None:
        self.losses.append(self._loss_at(w, b))
        self.path.append((w, b))

    def _loss_at(self, w: float, b: float) -> float:
        from minflow import no_grad

        with no_grad(), np.errstate(all="ignore"):
            return as_number("value", self.loss(w, b), "Landscape: the loss")

    def plot(self, ax: Any = None) -> Any:
        """Contours of the loss and the walk on them; returns the Axes."""
        ax = axes(ax, "landscape()", self.size)
        good = np.ma.masked_invalid(self.heights)
        ax.set_facecolor(GAP_COLOR)
        if good.count():
            # like rings of a bowl at equal horizontal distances
            levels = good.min() + (good.max() - good.min() or 1.0) * np.linspace(0, 1, CONTOUR_LEVELS + 1) ** 2
            ax.contourf(self.w, self.b, good, levels, cmap="Blues").set_rasterized(True)
            look = {"colors": theme.LINE, "linewidths": 0.5, "linestyles": "solid"}
            rings = ax.contour(self.w, self.b, good, levels[1:-1], **look)
            for number in ax.clabel(
                rings, rings.levels[::3], fmt="%.3g", fontsize=8, colors=theme.TEXT_COLOR, zorder=2
            ):
                number.set_bbox({"facecolor": theme.TEXT_PLATE, "linewidth": 0, "pad": 1})
            w, b, _ = self._lowest()
            ax.plot(
                [w],
                [b],
                "P",
                color=theme.TEXT_COLOR,
                markeredgecolor=theme.PLAIN,
                markeredgewidth=0.5,
                markersize=8,
                label=say("lowest"),
                zorder=3,
            )
        if self.path:
            w, b = np.array(self.path).T
            ax.plot(w, b, "-", color=theme.PLAIN, linewidth=3.5)
            ax.plot(w, b, "-" if len(w) > MAX_DOTTED_STEPS else ".-", color=theme.RED, linewidth=1.5, markersize=7)
            for place, marker, label in ((0, "o", say("start")), (-1, "*", say("step {step}", step=len(w) - 1)))[
                : len(w)
            ]:
                look = {"color": theme.RED, "markeredgecolor": theme.PLAIN, "markersize": 18 if place else 9}
                if self._inside(*self.path[place]):
                    ax.plot(w[[place]], b[[place]], marker, label=label, **look)
        ax.set_xlim(self.w[0], self.w[-1])
        ax.set_ylim(self.b[0], self.b[-1])
        ax.set_xlabel(self.names[0], parse_math=False)
        ax.set_ylabel(self.names[1], parse_math=False)
        ax.set_title(self._result(), parse_math=False, fontsize=10)
        if ax.get_legend_handles_labels()[0]:
            ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=9)
        return set_caption(ax, self._sentence(), self.text())

    def _lowest(self) -> tuple[float, float, float]:
        """w, b and the loss of the lowest grid point."""
        row, column = divmod(int(np.where(np.isfinite(self.heights), self.heights, np.inf).argmin()), GRID_POINTS)
        return self.w[column], self.b[row], self.heights[row, column]

    def _result(self) -> str:
        """The title."""
        steps = len(self.path) - 1
        if steps < 0:
            if not np.isfinite(self.heights).any():
                return say("the loss is nowhere finite")
            w, b, low = self._lowest()
            return say(
                "lowest of {n:,} places: loss {low:.3g} at {place}", n=self.heights.size, low=low, place=self._at(w, b)
            )
        last = self.path[-1]
        where = self._at(*last)
        if not self._inside(*last):
            where = say("{place}, outside the picture", place=where)
        if not steps:
            return say("start: loss {loss:.3g} at {place}", loss=self.losses[0], place=where)
        return say(
            "loss {first:.3g} at the start, {last:.3g} after {n} steps\n{place}"
            if steps > 1
            else "loss {first:.3g} at the start, {last:.3g} after {n} step\n{place}",
            first=self.losses[0],
            last=self.losses[-1],
            n=steps,
            place=where,
        )

    def _inside(self, w: float, b: float) -> bool:
        return bool(self.w[0] <= w <= self.w[-1] and self.b[0] <= b <= self.b[-1])

    def _at(self, w: float, b: float) -> str:
        return f"{self.names[0].strip()} = {w:.3g}, {self.names[1].strip()} = {b:.3g}"

    def _spans(self) -> list[tuple[str, np.ndarray]]:
        return [(self.names[0], self.w), (self.names[1], self.b)]

    def _sentence(self) -> str:
        w, b = (
            say("{name} from {low:g} to {high:g}", name=name.strip(), low=x[0], high=x[-1]) for name, x in self._spans()
        )
        parts = [say("The loss over {w} and {b}", w=w, b=b)]
        if np.isfinite(self.heights).any():
            *lowest, low = self._lowest()
            most = self.heights[np.isfinite(self.heights)].max()
            place = self._at(*lowest)
            parts = [
                say(
                    "{what}: from {low:.3g} at {place} up to {most:.3g}", what=parts[0], low=low, place=place, most=most
                )
            ]
        parts += [say("The walk: {walk}", walk=self._result().replace("\n", ", "))] if self.path else []
        return clean(". ".join(parts) + ".")

    def text(self) -> str:
        """A map of characters, 0 the lowest and 9 the highest band of the loss, * the walk, S its start, E its end."""
        rows, columns = (np.linspace(0, GRID_POINTS - 1, n).round().astype(int) for n in (MAP_SIZE[1], MAP_SIZE[0]))
        heights = self.heights[np.ix_(rows[::-1], columns)]
        good = np.isfinite(heights)
        low = heights[good].min() if good.any() else 0.0
        most = heights[good].max() if good.any() else 1.0
        share = np.sqrt((np.where(good, heights, low) - low) / (most - low or 1.0))
        letters = np.where(good, np.minimum(share * 10, 9).astype(int).astype(str), "x")
        for k, (w, b) in enumerate(self.path):
            across, up = ((x - r[0]) / (r[-1] - r[0]) for x, r in ((w, self.w), (b, self.b)))
            if 0 <= across <= 1 and 0 <= up <= 1:
                letter = "S" if not k else "E" if k == len(self.path) - 1 else "*"
                letters[round((1 - up) * (MAP_SIZE[1] - 1)), round(across * (MAP_SIZE[0] - 1))] = letter
        return "\n".join([*map("".join, letters.tolist()), self._sentence()])


def landscape(
    loss: Callable[[float, float], Any],
    w: Any,
    b: Any,
    path: Any = None,
    *,
    names: tuple[str, str] = ("w", "b"),
    ax: Any = None,
) -> Any:
    """The loss over two parameters as filled contours, dark where it is high, with the walk `path`; returns the Axes.

    loss: a function of two floats that returns one number.  w, b: ranges, two numbers each.
    path: (n, 2) numbers, a point for each step.  names: names of the two parameters. `Landscape` is the same, and can
    grow.
    """
    return Landscape(loss, w, b, path, names=names).plot(ax)


def landscape_text(loss: Callable[[float, float], Any], w: Any, b: Any, path: Any = None) -> str:
    """The landscape as a map of characters, 0 low and 9 high, with the walk, and a sentence."""
    return Landscape(loss, w, b, path).text()


def check_range(name: str, x: Any) -> tuple[float, float]:
    """Check a range: two increasing numbers."""
    numbers = numbers_of(x, f"Landscape: {name}", RANGE_EXAMPLE)
    if numbers.shape != (2,) or not np.isfinite(numbers).all() or not numbers[0] < numbers[1]:
        values = {name: describe(x)}
        raise ShapeError(f"Landscape: {name} must be two increasing numbers", values=values, hint=RANGE_EXAMPLE)
    return float(numbers[0]), float(numbers[1])


def check_path(path: Any) -> list[tuple[float, float]]:
    """The points of a walk."""
    if path is None or not len(path):
        return []
    hint = "a list of places: path=[[0, 0], [0.5, -0.2]]"
    numbers = numbers_of(path, "Landscape: path", hint)
    if numbers.ndim != 2 or numbers.shape[1] != 2:
        values = {"path": f"shape {list(numbers.shape)}"}
        raise ShapeError("Landscape: path must have two numbers for each step", values=values, hint=hint)
    return [(w, b) for w, b in numbers.tolist()]
