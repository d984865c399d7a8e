"""The curves that a notebook cell drew the last time that it ran, so that a new run can be compared with them.

A cell is known by the id that the notebook sends along, which stays when its text is changed. Where no id comes, as in
a script, there is no previous run. Read next: `loss_curve.py`.
"""

from __future__ import annotations

from collections import OrderedDict

from minflow.diagnosis import notebook

CELLS = 32  # that are remembered; the one that was not run for the longest time makes room
CURVES = 8  # of one cell


class Place:
    """The place of a curve among those of its cell. before: its series at the run before, thinned, or nothing."""

    def __init__(self, kept: list, index: int, before: list):
        self.kept, self.index, self.before = kept, index, before

    def keep(self, series: list) -> None:
        """Remember these series for the next run of the cell."""
        if self.index < len(self.kept):
            self.kept[self.index] = series


KNOWN: OrderedDict[str, tuple[str, list, list]] = OrderedDict()  # cell -> run, its curves, those of the run before


def place() -> Place:
    """The place of a curve that starts now."""
    cell, run = notebook.running_cell()
    if not cell:
        return Place([], 0, [])
    last_run, kept, before = KNOWN.pop(cell, ("", [], []))
    if last_run != run:
        kept, before = [], kept or before
    KNOWN[cell] = run, kept, before
    if len(KNOWN) > CELLS:
        KNOWN.popitem(last=False)
    index = len(kept)
    if index < CURVES:
        kept.append([])
    return Place(kept, index, before[index] if index < len(before) else [])
