"""The norm of all gradients: at first of every step, then of every n-th step, to limit the cost.

Independent of models and loops. Read next: `../watch.py`, the caller.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from minflow.core.backend import namespace_of

NORM_NAMES = ("gradient norm",)
INITIAL_STEPS = 30  # steps that are all measured, so that a short run has a curve
INITIAL_SHARE = 0.1  # share of a step that a measurement may cost during these
# processor seconds available after them for measuring every step: some hundred steps of a small network
INITIAL_CREDIT = 0.004
MEASURING_SHARE = 0.001  # share of the time for measuring from then on
MAX_INTERVAL = 1_000_000  # largest number of steps between two measurements
thread_cpu_time = getattr(time, "thread_time", time.perf_counter)


class GradientNorm:
    """Selection of the steps that are measured. left: steps until the next one, decremented by the loop.  last: (step,
    when) of the last step.

    every: n if every n-th step is measured.  seen_nonfinite: True after a NaN or infinite value; the first of
    them is always measured.
    """

    def __init__(self) -> None:
        self.feed: Any = None  # set before its source listens
        self.every, self.left, self.seen_nonfinite = 1, 1, False
        self.last: tuple[float, float] | None = None
        self.taken: tuple[float, float] | None = None  # (step, when) of the last measurement
        self.count, self.credit, self.apart = 0, INITIAL_CREDIT, 1

    def record(self, step: float, when: float, gradients: Callable[[], list]) -> None:
        """Measure this step, and choose the next."""
        start = thread_cpu_time()
        self.seen_nonfinite = self.seen_nonfinite or self.left > 0  # called early because the loss is not finite
        arrays = gradients()
        if arrays:
            value = norm_of(arrays)
            self.seen_nonfinite = self.seen_nonfinite or value - value != 0.0
            self.feed.every = self.every
            self.feed.append((NORM_NAMES, step, when, value))
        self.choose_next(step, when, thread_cpu_time() - start)

    def choose_next(self, step: float, when: float, took: float) -> None:
        """Choose the next step: a round n that keeps the cost within its share. Unused budget is saved, up to
        INITIAL_CREDIT.
        """
        before = self.taken[1] if self.taken else when
        each = (when - before) / max(self.apart - self.left, 1)
        self.count += 1
        if not self.taken or (self.count < INITIAL_STEPS and took <= INITIAL_SHARE * each):
            every = 1
        else:
            every = self.every
            self.credit = max(
                min(INITIAL_CREDIT, self.credit + MEASURING_SHARE * (when - before)) - took, -INITIAL_CREDIT
            )
            if self.credit < 0 and took > MEASURING_SHARE * every * each and every < MAX_INTERVAL:
                every = next_round(every)
            elif self.credit > 0 and every > 1 and took < MEASURING_SHARE * previous_round(every) * each:
                every = previous_round(every)
        self.every, self.taken = every, (step, when)
        self.left = self.apart = every - int(step) % every

    def end(self, gradients: Callable[[], list]) -> None:
        """Also measure the last step of the run; its gradients exist until the next step begins."""
        if self.last is not None and self.last != self.taken:
            self.record(*self.last, gradients)


def next_round(n: int) -> int:
    """The next of 1, 2, 5, 10, 20, 50, ..."""
    return n * 5 // 2 if str(n)[0] == "2" else n * 2


def previous_round(n: int) -> int:
    """The previous one."""
    return n * 2 // 5 if str(n)[0] == "5" else n // 2


def norm_of(arrays: list) -> float:
    """The root of the sum of all squares, even if that sum overflows the arrays' dtype."""
    arrays = [a if a.itemsize >= 4 else a.astype("float32") for a in arrays]  # squares in float16 overflow at 65504
    total = squares(arrays)
    if 1e-30 < total < math.inf or total != total:
        return total**0.5
    most = max([0.0, *[float(abs(a).max()) for a in arrays if a.size]])
    if not 0.0 < most < math.inf:
        return most
    scaled = [a.astype("complex128" if a.dtype.kind == "c" else "float64") / most for a in arrays]
    return most * squares(scaled) ** 0.5


def squares(arrays: list) -> float:
    """The sum of all squares, computed on the devices of the arrays."""
    return sum([float(namespace_of(a).vdot(a, a).real) for a in arrays])
