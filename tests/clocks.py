"""Time in tests: waiting for events, and a clock for job functions that only tests advance.

Tests that use these do not fail on a busy machine.
"""

import sys
import threading
import time
from contextlib import contextmanager

from minflow.job.queue.step import Latch
from minflow.job.queue.stream import current_stream

LONG = 60  # seconds before a test gives up


def until(condition, seconds=LONG):
    """Wait until `condition()` is true."""
    end = time.perf_counter() + seconds
    while not condition() and time.perf_counter() < end:
        time.sleep(0.01)
    assert condition()


class Clock:
    """A clock that advances by one microsecond at each reading, and otherwise only on request."""

    def __init__(self):
        self.now, self.waits = time.perf_counter(), threading.Event()

    def __call__(self):
        self.now += 1e-6
        return self.now

    def sleep(self, seconds):
        self.now += seconds

    def rest(self, seconds):
        """Advance while the caller is busy and the queue is empty."""
        assert current_stream().wait_until_idle(LONG), current_stream().thread_locations()
        self.sleep(seconds)

    def work(self, seconds):
        """Advance during a callback, once the caller waits for it."""
        assert self.waits.wait(LONG), current_stream().thread_locations()
        self.sleep(seconds)


@contextmanager
def set_clock(monkeypatch):
    """Context manager: replace the clock of all modules that measure time. Waiting takes real time.

    Its times are later than the true ones, so no record of a step may outlive it.
    """
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
    try:
        yield clock
    finally:
        assert current_stream().wait_until_idle(LONG), current_stream().thread_locations()
        current_stream().records.clear()
        current_stream().callers.forget()
        for name, module in list(sys.modules.items()):  # also those that were imported in the meantime
            if name.startswith("minflow") and getattr(module, "__dict__", {}).get("clock") is clock:
                module.clock = time.perf_counter
