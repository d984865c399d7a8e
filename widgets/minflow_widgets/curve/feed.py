"""A feed: numbers on their way from a fast loop to a curve.

Knows nothing of curves. Read next: `loss_curve.py`, whose pump takes them.
"""

from __future__ import annotations

from collections import deque
from itertools import groupby
from operator import itemgetter

FIRST = itemgetter(0)


class Feed(deque):
    """Numbers on their way from a fast loop to a curve. A loop appends rows (names, step, when, value of each name), a
    tuple of texts and floats, `when` of `time.perf_counter`: at least cost, from any thread. The pump takes them in
    bulk.

    prefix: stands before the names.  zero: from when their seconds count; None: from the first row where there is a
    prefix, else from the start of the curve.  late: name -> a function that computes its numbers from those in the
    rows, so that the loop need not.
    cost: seconds of processor that a row has cost the loop.  every: n, where there is a row for every n-th step only.
    """

    def __init__(self, prefix: str = "", zero: float | None = None):
        super().__init__()
        self.prefix, self.zero, self.late, self.cost, self.every = prefix, zero, {}, 0.0, 1

    def take(self):
        """(names, steps, times, column of each name) of the rows so far, those of the same names together."""
        rows = [self.popleft() for _ in range(len(self))]  # what comes meanwhile is for the next time
        for names, alike in groupby(rows, FIRST):
            _, steps, times, *columns = zip(*alike)
            if self.late:
                columns = [tuple(map(self.late.get(name, float), column)) for name, column in zip(names, columns)]
            yield names, steps, times, columns
