"""How much memory and how many calls something takes, whatever else goes on in the process. Never how many seconds:
those depend on the machine and on what it does beside.
"""

import gc
import sys
import tracemalloc
from collections.abc import Callable


def calls(function: Callable[[], object]) -> int:
    """How many calls of Python and C functions it makes, in this thread."""
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
    """The most bytes that `call` held at once: the least of several tries, or the first that is `below` a bound.

    tracemalloc counts what all threads allocate, and threads of earlier tests may still live (a queue of jobs, a curve
    that is redrawn); what the call itself takes is in each try.
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
