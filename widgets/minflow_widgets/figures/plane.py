"""The class that a model predicts for each point of the plane, with labeled points: `plane(model, x, y)`, and `Plane`,
which can be redrawn while the model learns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minflow.core.base.errors import DTypeError, ShapeError
from minflow.views.draw import theme
from minflow.views.text.listing import clean
from minflow.views.words import say

from ..curve.arguments import as_number
from .drawing import COLORS, GAP_COLOR, array_of, axes, describe, evaluate, literal, numbers_of, set_caption
from .growing import GrowingFigure

GRID_POINTS = 81  # grid points per axis at which the model is evaluated
MAP_SIZE = (41, 21)  # columns and rows of the map in text
MARKERS = "os^DvPX<>p"
HATCHES = ("", "///", "\\\\\\", "||", "--", "xx", "++", "/", "\\", "|")
CLASS_SIGNS = "0123456789"


class Plane(GrowingFigure):
    """The plane, colored by the class that a model predicts, with labeled points: `plane.draw()` shows the model as
    it is now.

    model: a Module, or any function, from float32 (n, 2) to scores (n, classes), the highest of which is the
    prediction, or to one number each, (n, 1) or (n,), positive for class 1. It is evaluated at 81 x 81 points, in eval
    mode and without gradients; its mode is restored.
    x: the points, (n, 2).  y: their true classes, (n,) integers from 0 to 9.  names: names of the classes.
    pause: seconds that each drawing stays visible while the figure is live.

    In a notebook the first `draw()` of a cell puts the figure below it, further ones redraw it, for at most a fifth of
    the time, and it becomes static when the cell ends. With MINFLOW_LIVE=0 only the final picture is shown.
    Raises DTypeError and ShapeError for other points, classes and scores.

    >>> plane = Plane(lambda x: x[:, 0], [[-1.0, 0.0], [1.0, 1.0]], [0, 1])
    >>> plane.text().splitlines()[-1]
    'The plane, x0 from -1.2 to 1.2, x1 from -0.1 to 1.1: 51% is class 0, 49% is class 1. 2 of 2 points right (100.0%).'
    """

    size = (6.6, 4.8)

    def __init__(
        self, model: Callable[[Any], Any], x: Any, y: Any, *, names: Sequence[Any] | None = None, pause: float = 0.0
    ):
        if not callable(model) or isinstance(model, type):
            values = {"model": describe(model)}
            raise DTypeError(
                "plane: the model must be callable", values=values, hint="plane(model, x, y), an nn.Module"
            )
        self.model, self.pause = model, as_number("pause", pause, "Plane")
        self.x = numbers_of(x, "plane: x", 'points: x, y = flow.data.points("moons")')
        if self.x.ndim != 2 or self.x.shape[1] != 2 or not self.x.size or not np.isfinite(self.x).all():
            values = {"x": f"shape {list(self.x.shape)}"}
            raise ShapeError(
                "plane: x must have two numbers for each point", values=values, hint="x of shape (n, 2), finite"
            )
        labels = numbers_of(y, "plane: y", "the classes of the points, integers")
        if labels.shape != self.x.shape[:1]:
            values = {"x": f"shape {list(self.x.shape)}", "y": f"shape {list(labels.shape)}"}
            raise ShapeError("plane: y must have one class for each point", values=values, hint="y of shape (n,)")
        if not np.isin(labels, np.arange(len(CLASS_SIGNS))).all():
            wrong = labels[~np.isin(labels, np.arange(len(CLASS_SIGNS)))][0]
            raise DTypeError(
                "plane: classes must be 0 to 9", values={"y": f"{wrong:g}"}, hint="y of integers from 0 on"
            )
        self.y, self.names = labels.astype(np.int64), names
        low, high = self.x.min(axis=0), self.x.max(axis=0)
        rim = np.where(high > low, (high - low) * 0.1, 1.0)
        self.across, self.up = np.linspace(low - rim, high + rim, GRID_POINTS).T
        self._evaluate()

    def draw(self) -> None:
        """Evaluate the model again, and show the result."""
        self._stale = True
        self._changed()

    def _evaluate(self) -> None:
        """Scores (n, classes) of the grid, then of the points."""
        from minflow import tensor

        self._stale = False
        grid = np.stack(np.meshgrid(self.across, self.up), axis=-1).reshape(-1, 2)
        inputs = np.concatenate([grid, self.x]).astype(np.float32)
        result = evaluate(self.model, tensor(inputs))
        scores = numbers_of(result, "plane: the model's result", "scores (n, classes)")
        if scores.shape in ((len(inputs),), (len(inputs), 1)):
            scores = np.stack([np.zeros(len(inputs)), scores.reshape(-1)], axis=1)
        if scores.ndim != 2 or len(scores) != len(inputs) or scores.shape[1] > len(CLASS_SIGNS):
            values = {"input": f"shape {list(inputs.shape)}", "result": f"shape {list(array_of(result).shape)}"}
            hint = "a score for each class, at most 10: (n, classes)"
            raise ShapeError("plane: the model must return class scores", values=values, hint=hint)
        classes = max(scores.shape[1], self.y.max() + 1)
        if self.names is not None and len(self.names) < classes:
            what = f"plane: {len(self.names)} names for {classes} classes"
            raise ShapeError(what, hint="a name for each class, in their order")
        words = (
            [say("class {number}", number=k) for k in range(classes)] if self.names is None else self.names[:classes]
        )
        self._words = [literal(word) for word in words]
        known = np.isfinite(scores).all(axis=1)
        missing = np.full((len(scores), classes - scores.shape[1]), -np.inf)
        scores = np.concatenate([np.where(known[:, None], scores, 0.0), missing], axis=1)
        given = np.where(known, scores.argmax(axis=1), -1)
        self._scores = scores[: len(grid)].reshape(GRID_POINTS, GRID_POINTS, classes)
        self._grid_classes, self._point_classes = (
            given[: len(grid)].reshape(GRID_POINTS, GRID_POINTS),
            given[len(grid) :],
        )

    def plot(self, ax: Any = None) -> Any:
        """The plane with its points; returns the Axes."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        if self._stale:
            self._evaluate()
        ax = axes(ax, "plane()", self.size)
        ax.set_facecolor(GAP_COLOR)
        colors = [COLORS[k % len(COLORS)] for k in range(len(self._words))]
        rgb = np.array([[int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)] for color in [*colors, GAP_COLOR]])
        shares = np.exp(self._scores - self._scores.max(axis=2, keepdims=True))
        sure = (shares.max(axis=2) / shares.sum(axis=2) - 1 / shares.shape[2]) / (1 - 1 / shares.shape[2])
        pale = 0.15 + 0.45 * np.where(self._grid_classes < 0, 1.0, sure)[..., None]
        ends = (self.across[0], self.across[-1], self.up[0], self.up[-1])
        ax.imshow(
            1 - pale * (1 - rgb[self._grid_classes]), extent=ends, origin="lower", interpolation="none", aspect="auto"
        )
        handles = []
        for k, (word, color) in enumerate(zip(self._words, colors, strict=True)):
            others = np.delete(self._scores, k, axis=2).max(axis=2)
            with np.errstate(invalid="ignore"):
                lead = np.clip(np.nan_to_num(self._scores[..., k] - others, nan=-1.0), -1e9, 1e9)
            lead[self._grid_classes < 0] = -1
            if lead.max() > 0 > lead.min():
                ax.contour(self.across, self.up, lead, [0], colors=theme.TEXT_COLOR, linewidths=1)
            if HATCHES[k] and lead.max() > 0:
                area = ax.contourf(self.across, self.up, lead, [0, 2e9], colors="none", hatches=[HATCHES[k]])
                area.set(edgecolor=(*rgb[k], 0.45), linewidth=0, rasterized=True)
            mine = self.x[self.y == k]
            look: dict[str, Any] = {
                "color": color,
                "marker": MARKERS[k],
                "linestyle": "",
                "markeredgecolor": theme.PLAIN,
            }
            if len(mine):
                ax.plot(*mine.T, **look)
            face = "#" + bytes(np.uint8(255 * (1 - 0.4 * (1 - rgb[k])))).hex()
            patch = Patch(facecolor=face, edgecolor=(*rgb[k], 0.45), hatch=HATCHES[k], linewidth=0)
            handles.append(((patch, Line2D([], [], **look)), word))
        wrong = self.x[self._point_classes != self.y]
        if len(wrong):
            ring = {"marker": "o", "markersize": 11, "linestyle": "", "fillstyle": "none", "color": theme.TEXT_COLOR}
            handles.append((ax.plot(*wrong.T, **ring)[0], say("wrong ({n})", n=len(wrong))))
        ax.set_xlim(*ends[:2])
        ax.set_ylim(*ends[2:])
        ax.set_xlabel("x0")
        ax.set_ylabel("x1")
        ax.set_title(self._result(), fontsize=10)
        place = {"loc": "upper left", "bbox_to_anchor": (1, 1), "frameon": False, "fontsize": 9, "handleheight": 1.4}
        legend = ax.legend(*zip(*handles, strict=True), **place)
        for text in legend.get_texts():
            text.set_parse_math(False)
        return set_caption(ax, self._sentence(), self.text())

    def _result(self) -> str:
        right, n = int((self._point_classes == self.y).sum()), len(self.y)
        lost = int((self._grid_classes < 0).sum())
        result = say("{right} of {n} points right ({share:.1%})", right=right, n=n, share=right / n)
        places = self._grid_classes.size
        beside = say("; at {lost:,} of {places:,} places the scores are not finite", lost=lost, places=places)
        return result + beside * bool(lost)

    def _sentence(self) -> str:
        spans = [
            say("{name} from {low:.3g} to {high:.3g}", name=name, low=r[0], high=r[-1])
            for name, r in (("x0", self.across), ("x1", self.up))
        ]
        shares = [
            say("{share:.0%} is {name}", share=(self._grid_classes == k).mean(), name=word.strip())
            for k, word in enumerate(self._words)
        ]
        areas = ", ".join(shares)
        return clean(
            say("The plane, {spans}: {areas}. {result}.", spans=", ".join(spans), areas=areas, result=self._result())
        )

    def text(self) -> str:
        """A map of digits, each the predicted class of a point, × where it is undefined; then the result in a
        sentence.
        """
        if self._stale:
            self._evaluate()
        rows, columns = (np.linspace(0, GRID_POINTS - 1, n).round().astype(int) for n in (MAP_SIZE[1], MAP_SIZE[0]))
        letters = np.array([*CLASS_SIGNS, "×"])[self._grid_classes[np.ix_(rows[::-1], columns)]]
        return "\n".join([*map("".join, letters.tolist()), self._sentence()])


def plane(model: Callable[[Any], Any], x: Any, y: Any, *, names: Sequence[Any] | None = None, ax: Any = None) -> Any:
    """Draw the plane, colored by the class that a model predicts, with points of known classes; returns the Axes.

    model: from float32 (n, 2) to scores (n, classes), or to one number each, positive for class 1.  x: (n, 2).
    y: (n,) integers, 0 to 9.  names: names of the classes. Stronger colors mean higher confidence; each class has its
    own marker and hatching, and a point in a ring is wrong. `Plane` is the same, and can be redrawn.
    """
    return Plane(model, x, y, names=names).plot(ax)


def plane_text(model: Callable[[Any], Any], x: Any, y: Any, names: Sequence[Any] | None = None) -> str:
    """The plane as a map of digits, one for each class, and a sentence."""
    return Plane(model, x, y, names=names).text()
