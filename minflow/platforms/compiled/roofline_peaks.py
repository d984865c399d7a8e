"""Measure the peaks of a roofline on this processor: float32 operations per second, and bytes copied per second.

Measured once per number of threads, in about half a second. Works without numba, with NumPy's kernels. Source:
Williams, Waterman & Patterson 2009, "Roofline: an insightful visual performance model for multicore architectures".
Read next: `../../introspection/graph/listing/roofline.py`, which places the calls of a graph below them.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from ...core.kernels import CALLS
from ...core.op import OPS
from .runtime.threads import number
from .switch import used

ROWS, SIDE = 256, 512  # rows of a product per thread; its depth and width
SIZES = 1 << 18, 1 << 21, 1 << 24, 1 << 26  # bytes read and written by a copy: from a core's cache to main memory
# Seconds of one copy of a thread, seconds to measure one peak, and fewest repetitions: many short ones, so that some
# are not disturbed by other programs.
SHORT, LONG, LEAST = 0.001, 0.1, 3


class Ceilings(NamedTuple):
    """Peaks of a roofline.

    flops: additions and multiplications per second.  copies: (bytes read and written, bytes per second), small ones
    first.  threads: how many took part.  compiled: True if a compiled kernel was measured.
    """

    flops: float
    copies: tuple[tuple[int, float], ...]
    threads: int
    compiled: bool


def ceilings() -> Ceilings:
    """Measure the peaks of this process, with the current number of threads."""
    return measured(number(), used())


@functools.cache
def measured(threads: int, compiled: bool) -> Ceilings:
    copies = tuple([(size, copy_rate(size, threads)) for size in SIZES])
    return Ceilings(product_rate(threads, compiled), copies, threads, compiled)


def product_rate(threads: int, compiled: bool) -> float:
    """Operations per second of a large product, by NumPy or by the compiled kernel."""
    a, b, out = (np.ones(shape, "f4") for shape in ((ROWS * threads, SIDE), (SIDE, SIDE), (ROWS * threads, SIDE)))
    seconds = shortest(lambda: np.matmul(a, b, out=out))
    if compiled:
        kernel = CALLS[OPS["matmul"]]
        seconds = min(seconds, shortest(lambda: kernel(a, b, ta=False, tb=False, out=out)))
    return 2 * out.size * SIDE / seconds


def copy_rate(size: int, threads: int) -> float:
    """Bytes per second that all threads together read and write, each in its own arrays."""
    pairs = [(np.ones(size // threads // 8, "f4"), np.ones(size // threads // 8, "f4")) for _ in range(threads)]
    source, target = pairs[0]
    times = max(1, round(SHORT / shortest(lambda: np.copyto(target, source), 0.0)))

    def one(k: int) -> None:
        for _ in range(times):
            np.copyto(pairs[k][1], pairs[k][0])

    with ThreadPoolExecutor(threads) as pool:
        return size * times / shortest(lambda: list(pool.map(one, range(threads))))


def shortest(call: Callable[[], object], long: float = LONG) -> float:
    """Seconds of the fastest of the calls within `long` seconds.

    The first call does not count, since it may touch memory for the first time.
    """
    clock = time.perf_counter
    seconds: list[float] = []
    call()
    end = clock() + long
    while len(seconds) < LEAST or clock() < end:
        start = clock()
        call()
        seconds.append(clock() - start)
    return min(seconds)
