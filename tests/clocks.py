"""Time in tests: to wait for what happens, and a clock of job functions that moves only where a test says so.

With these no machine is too busy for a test.
"""

import sys
import threading
import time

from minflow.job.queue.step import Latch
from minflow.job.queue.stream import STREAM

LONG = 60  # seconds after which a test gives up


def until(condition, seconds=LONG):
    """Wait for it."""
    end = time.perf_counter() + seconds
    while not condition() and time.perf_counter() < end:
        time.sleep(0.01)
    assert condition()


class Clock:
    """Stands still but for a microsecond at each look."""

    def __init__(self):
        self.now, self.waits = time.perf_counter(), threading.Event()

    def __call__(self):
        self.now += 1e-6
        return self.now

    def sleep(self, seconds):
        self.now += seconds

    def rest(self, seconds):
        """The caller takes so long, and nothing is in the queue meanwhile."""
        assert STREAM.idle(LONG), STREAM.thread_locations()
        self.sleep(seconds)

    def work(self, seconds):
        """A callback takes so long, and the caller waits for it, from its beginning."""
        assert self.waits.wait(LONG), STREAM.thread_locations()
        self.sleep(seconds)


def set_clock(monkeypatch):
    """The one clock of all modules that measure, until the end of the test; how long somebody waits stays real."""
    clock, wait = Clock(), Latch.wait

    def waited(gate, timeout=None):
        clock.waits.set()
        try:
            return wait(gate, timeout)
        finally:
            clock.waits.clear()

    monkeypatch.setattr(Latch, "wait", waited)
    for name, module in list(sys.modules.items()):
        measures = name.startswith("minflow") and name != Latch.__module__
        if measures and getattr(module, "clock", None) is time.perf_counter:
            monkeypatch.setattr(module, "clock", clock)
    return clock
