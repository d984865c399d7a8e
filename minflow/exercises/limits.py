"""A time limit for code that somebody else wrote, also where it catches what is raised.

In the main thread a timer of the system interrupts, and again, so that `except:` in a loop does not help.
Elsewhere (Windows, other threads) a second thread has the exception raised in this one; that comes between two
bytecodes. What runs in C alone, such as one long call of NumPy or `sum(itertools.count())`, is seen only when it
returns; one that never does ends with the kernel.
"""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

AGAIN = 0.01  # seconds between two interrupts
STEP = 0.05  # seconds between two looks of the thread that watches another
# what catches all of so many of them meets more, so soon after each other that one comes while it deals with another
PATIENT, HASTY = 5, 3e-5


LIMITS: dict[int, list[threading.Event]] = {}  # thread -> its limits by a second thread, the innermost last


class OutOfTime(BaseException):
    """The time is over. No Exception: code that catches errors must not catch this one by accident."""


def limited(seconds: float, call: Callable[[], Any]) -> Any:
    """`call()`, or OutOfTime after so many seconds; time in a limit within this one is that one's. A browser's kernel
    has neither timers nor threads: no limit there."""
    if sys.platform == "emscripten":
        return call()
    if hasattr(signal, "SIGALRM") and threading.current_thread() is threading.main_thread():
        return by_timer(seconds, call)
    return by_thread(seconds, call)


def by_timer(seconds: float, call: Callable[[], Any]) -> Any:
    mine, raised = sys._getframe(), 0

    def stop(number, frame):
        nonlocal raised
        # Not in this function's own lines: the timer must be ended, and the handler put back, whenever it fires.
        if frame is not mine:
            raised += 1
            if raised == PATIENT:
                signal.setitimer(signal.ITIMER_REAL, HASTY, HASTY)
            raise OutOfTime

    before, left = signal.signal(signal.SIGALRM, stop), (0.0, 0.0)
    try:
        left = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
        return call()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left[0]:  # a limit around this one goes on
            signal.setitimer(signal.ITIMER_REAL, *left)


def by_thread(seconds: float, call: Callable[[], Any]) -> Any:
    mine, number = sys._getframe(), threading.get_ident()
    thread, raise_in = ctypes.c_ulong(number), ctypes.pythonapi.PyThreadState_SetAsyncExc
    late, lock, ended = ctypes.py_object(OutOfTime), threading.Lock(), threading.Event()
    raised = met = over = False
    limits = LIMITS.setdefault(number, [])
    limits.append(ended)

    def watch():
        nonlocal raised
        left = seconds
        while not ended.wait(step := min(left, STEP)):
            with lock:
                frame = sys._current_frames().get(number)
                if ended.is_set() or not inside(frame, mine):
                    break
                left -= step if limits[-1] is ended else 0
                if left <= 0:
                    left = AGAIN
                    if frame is not mine:
                        raised = True
                        raise_in(thread, late)

    threading.Thread(target=watch, daemon=True, name="minflow-time-limit").start()
    try:
        return call()
    finally:
        while not over:
            try:
                with lock:
                    ended.set()
                while raised:
                    # One may be on its way. It is met here, not taken back: after raise_in(thread, None) the
                    # interpreter looks for it for ever; under a debugger's trace function Python 3.11 only looks.
                    met = True
                    raise_in(thread, late)
                over = True
            except OutOfTime:
                over = met
        limits.remove(ended)


def inside(frame: Any, outer: Any) -> bool:
    """Has `outer` called what runs in `frame`, or is it that?"""
    while frame is not None and frame is not outer:
        frame = frame.f_back
    return frame is not None
