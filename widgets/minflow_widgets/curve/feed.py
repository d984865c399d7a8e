"""A queue of values from a fast loop to a curve.

Independent of curves. Read next: `loss_curve.py`, whose update thread empties it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import groupby
from operator import itemgetter

FIRST_ITEM = itemgetter(0)


class Feed(deque):
    """A queue of values from a fast loop to a curve. A loop appends rows (names, step, when, value of each name):
    tuples of strings and floats, with `when` from `time.perf_counter`. This is cheap and safe in any thread; the update
    thread takes the rows in bulk.

    prefix: put before the names.  zero: origin of the seconds; None: the first row if there is a prefix, else the
    start of the curve.  converters: name -> function that computes its values from those in the rows, outside the loop.
    cost: processor seconds that a row costs the loop.  every: n if only every n-th step has a row.
    """

    def __init__(self, prefix: str = "", zero: float | None = None):
        super().__init__()
        self.prefix, self.zero, self.cost, self.every = prefix, zero, 0.0, 1
        self.converters: dict[str, Callable] = {}

    def take(self):
        """Yield (names, steps, times, column of each name) of the rows so far, grouped by names."""
        rows = [self.popleft() for _ in range(len(self))]  # rows that arrive meanwhile are left for the next call
        for names, alike in groupby(rows, FIRST_ITEM):
            _, steps, times, *columns = zip(*alike)
            if self.converters:
                columns = [tuple(map(self.converters.get(name, float), column)) for name, column in zip(names, columns)]
            yield names, steps, times, columns
