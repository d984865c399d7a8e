"""Measure memory and calls independently of other activity in the process.

Never seconds: those depend on the machine and its load.
"""

import gc
import sys
import tracemalloc
from collections.abc import Callable


def calls(function: Callable[[], object]) -> int:
    """Count the calls of Python and C functions in this thread."""
    count = 0

    def profile(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


def peak(call: Callable[[], object], below: float = 0, tries: int = 5) -> int:
    """Return the peak memory of `call` in bytes: the minimum of several tries, or the first `below` a bound.

    tracemalloc counts allocations of all threads, and threads of earlier tests may be alive (a queue of jobs, a curve
    that is redrawn). The memory of the call itself is in every try.
    """
    least = None
    for _ in range(tries):
        gc.collect()
        tracemalloc.start()
        try:
            call()
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        least = most if least is None else min(least, most)
        if least < below:
            break
    return least
