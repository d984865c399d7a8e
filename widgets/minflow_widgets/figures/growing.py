"""Base class of figures that are redrawn below the running cell while a loop runs, and static after it.

There is no background thread: the figure is drawn within the loop, for at most a fifth of the time.
Read next: `landscape.py`, `plane.py`.
"""

from __future__ import annotations

import functools
import time
import weakref
from collections.abc import Callable
from typing import Any

from minflow.diagnosis import notebook

from .. import frontends
from .drawing import detached_axes

DRAWING_SHARE = 0.2  # share of the time for drawing
OPEN_FIGURES: weakref.WeakSet[GrowingFigure] = weakref.WeakSet()  # figures below the running cell that may still change
clock = time.perf_counter


class GrowingFigure:
    """Base class of such figures. Subclasses define `plot(ax)` and `text()`."""

    size = (6.4, 4.8)  # in inches
    pause = 0.0  # seconds that each step stays visible while live
    _front: Any = None
    plot: Callable[..., Any]
    text: Callable[[], str]
    _cell = ("", "")
    _next = 0.0

    def _changed(self) -> None:
        """Redraw if there is time. The first call in a cell puts the figure below it."""
        if self._front is None:
            if not notebook.in_notebook():
                return
            end_with_cells()
            self._cell, self._front = (
                notebook.running_cell(),
                frontends.choose_frontend(lambda: frontends.StaticPicture(live=True)),
            )
            OPEN_FIGURES.add(self)
            self._next = 0.0
        if notebook.live_updates_enabled() and (self.pause or clock() >= self._next):
            begun = clock()
            self._front.update(self)
            self._next = clock() + max(notebook.UPDATE_INTERVAL, (clock() - begun) * (1 / DRAWING_SHARE - 1))
            time.sleep(self.pause)

    def finish(self) -> None:
        """Make the figure static. Called at the end of a cell and of the `with` block; a later change puts the figure
        below the cell that makes it.
        """
        if self._front is not None:
            front, self._front = self._front, None
            frontends.finish_safely(front, self)

    def __enter__(self) -> Any:
        self._changed()
        return self

    def __exit__(self, *error: Any) -> None:
        if notebook.in_notebook():
            self.finish()
        else:
            print(self.text())

    def bundle(self) -> dict[str, str]:
        """The current figure in all MIME types."""
        try:
            ax = self.plot(detached_axes(f"a {type(self).__name__}", self.size))
            return ax.figure._repr_mimebundle_()
        except Exception as error:  # a failed display must break neither the cell nor its loop
            return {"text/plain": f"{self.text()}\n(no picture: {type(error).__name__}: {error})"}

    def _ipython_display_(self) -> None:
        """Display for the last line of a cell. A figure that is already shown in that cell is not repeated."""
        if not self._cell[1] or self._cell != notebook.running_cell():
            notebook.display(self.bundle(), raw=True)

    def __repr__(self) -> str:
        return self.text()


def finish_all() -> None:
    """Make all open figures static."""
    for figure in list(OPEN_FIGURES):
        figure.finish()
    OPEN_FIGURES.clear()


@functools.cache
def end_with_cells() -> None:
    """Make figures static when their cell ends."""
    notebook.follow_cells(lambda *_: None, lambda *_: finish_all())
