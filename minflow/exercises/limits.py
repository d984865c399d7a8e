"""A time limit for code that somebody else wrote, also where it catches what is raised.

In the main thread a timer of the system interrupts, and again every 10 ms, so that `except:` in a loop does not help.
Elsewhere (Windows, other threads) a second thread has the exception raised in this one; that comes between two
bytecodes. One long call of NumPy is seen only when it returns.
"""

from __future__ import annotations

import contextlib
import ctypes
import signal
import sys
import threading
from collections.abc import Iterator

AGAIN = 0.01  # seconds between two interrupts


class OutOfTime(BaseException):
    """The time is over. No Exception: code that catches errors must not catch this one by accident."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise OutOfTime in the block after so many seconds. A browser's kernel has neither timers nor threads: no
    limit there."""
    if sys.platform == "emscripten":
        yield
    elif hasattr(signal, "SIGALRM") and threading.current_thread() is threading.main_thread():
        with by_timer(seconds):
            yield
    else:
        with by_thread(seconds):
            yield


@contextlib.contextmanager
def by_timer(seconds: float) -> Iterator[None]:
    running = True

    def stop(number, frame):
        if running:
            raise OutOfTime

    before = signal.signal(signal.SIGALRM, stop)
    left, again = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        while running:
            with contextlib.suppress(OutOfTime):  # the timer may fire between any two lines
                running = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:  # a limit around this one goes on
            signal.setitimer(signal.ITIMER_REAL, left, again)


@contextlib.contextmanager
def by_thread(seconds: float) -> Iterator[None]:
    lock, ended, running = threading.Lock(), threading.Event(), True
    thread = ctypes.c_ulong(threading.get_ident())
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc

    def watch():
        wait = seconds
        while not ended.wait(wait):
            with lock:
                if running:
                    raise_in(thread, ctypes.py_object(OutOfTime))
            wait = AGAIN

    watcher = threading.Thread(target=watch, daemon=True, name="minflow-time-limit")
    watcher.start()
    try:
        yield
    finally:
        while True:  # one that was on its way arrives here at the latest
            try:
                with lock:
                    running = False
                    raise_in(thread, None)
                ended.set()
                watcher.join()
                break
            except OutOfTime:
                continue
