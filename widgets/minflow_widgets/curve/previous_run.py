"""Curves that a notebook cell drew in its previous run, for comparison with the new run.

A cell is identified by the id that the notebook sends, which survives edits. Without an id, as in a script, there is no
previous run. Read next: `loss_curve.py`.
"""

from __future__ import annotations

from collections import OrderedDict

from minflow.diagnosis import notebook

MAX_CELLS = 32  # cells that are remembered; the least recently run one is dropped
MAX_CURVES = 8  # curves of a cell


class CurveSlot:
    """Slot of a curve among those of its cell. before: its downsampled series in the previous run, or empty."""

    def __init__(self, kept: list, index: int, before: list):
        self.kept, self.index, self.before = kept, index, before

    def keep(self, series: list) -> None:
        """Remember these series for the next run of the cell."""
        if self.index < len(self.kept):
            self.kept[self.index] = series


# cell -> (run, its curves, those of the previous run)
CURVES_OF_CELLS: OrderedDict[str, tuple[str, list, list]] = OrderedDict()


def claim_slot() -> CurveSlot:
    """The slot of a curve that starts now."""
    cell, run = notebook.running_cell()
    if not cell:
        return CurveSlot([], 0, [])
    last_run, kept, before = CURVES_OF_CELLS.pop(cell, ("", [], []))
    if last_run != run:
        kept, before = [], kept or before
    CURVES_OF_CELLS[cell] = run, kept, before
    if len(CURVES_OF_CELLS) > MAX_CELLS:
        CURVES_OF_CELLS.popitem(last=False)
    index = len(kept)
    if index < MAX_CURVES:
        kept.append([])
    return CurveSlot(kept, index, before[index] if index < len(before) else [])
