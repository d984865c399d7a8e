"""What figures share that grow while a loop runs: drawn anew in place below the running cell, still when it has ended.

Nothing runs beside the loop: the figure is drawn within it, at most a fifth of the time.
Read next: `landscape.py`, `plane.py`.
"""

from __future__ import annotations

import functools
import time
import weakref
from typing import Any

from minflow.diagnosis import notebook

from .. import frontends
from .drawing import loose_axes

SHARE = 0.2  # of the time that drawing may take
OPEN: weakref.WeakSet[Growing] = weakref.WeakSet()  # those that stand below the running cell, and may still grow
clock = time.perf_counter


class Growing:
    """The base of such a figure, which gives `plot(ax)` and `text()`."""

    size = (6.4, 4.8)  # in inches
    pause = 0.0  # seconds that each step is to be seen, where it is live
    _front: Any = None
    _cell = ("", "")
    _next = 0.0

    def _changed(self) -> None:
        """There is something new. The first time in a cell it puts the figure below it."""
        if self._front is None:
            if not notebook.in_notebook():
                return
            end_with_cells()
            self._cell, self._front = notebook.running_cell(), frontends.choose(lambda: frontends.Still(live=True))
            OPEN.add(self)
            self._next = 0.0
        if notebook.live() and (self.pause or clock() >= self._next):
            begun = clock()
            self._front.update(self)
            self._next = clock() + max(notebook.EVERY, (clock() - begun) * (1 / SHARE - 1))
            time.sleep(self.pause)

    def finish(self) -> None:
        """Leave the figure as it is now. The end of a cell, and of the `with` block, does this; after it, a change
        puts the figure below the cell that makes the change."""
        if self._front is not None:
            front, self._front = self._front, None
            frontends.leave(front, self)

    def __enter__(self) -> Any:
        self._changed()
        return self

    def __exit__(self, *error) -> None:
        if notebook.in_notebook():
            self.finish()
        else:
            print(self.text())

    def bundle(self) -> dict[str, str]:
        """The figure of the moment in all forms."""
        try:
            ax = self.plot(loose_axes(f"a {type(self).__name__}", self.size))
            return ax.figure._repr_mimebundle_()
        except Exception as error:  # showing a thing must not break a cell, nor the loop that runs in it
            return {"text/plain": f"{self.text()}\n(no picture: {type(error).__name__}: {error})"}

    def _ipython_display_(self) -> None:
        """As the last line of a cell: what stands below that cell already is not shown twice."""
        if not self._cell[1] or self._cell != notebook.running_cell():
            notebook.display(self.bundle(), raw=True)

    def __repr__(self) -> str:
        return self.text()


@functools.cache
def end_with_cells() -> None:
    """What has grown in a cell ends with it."""
    notebook.follow_cells(lambda *_: None, lambda *_: [figure.finish() for figure in list(OPEN)] and OPEN.clear())
