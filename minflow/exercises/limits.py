"""Time limit for a learner's code, even if it catches all exceptions.

In the main thread a system timer interrupts repeatedly, so that `except:` in a loop does not help. Elsewhere (Windows,
other threads) a watching thread raises the exception between two bytecodes. A call that stays in C, such as a long
NumPy call or `sum(itertools.count())`, is stopped only when it returns; if it never returns, only stopping the kernel
helps.
"""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

REPEAT_SECONDS = 0.01  # seconds between two interrupts
WATCH_SECONDS = 0.05  # seconds between two checks of the watching thread
# Code that catches MAX_CAUGHT interrupts gets more every HASTY_SECONDS, so that one arrives in its own handler.
MAX_CAUGHT, HASTY_SECONDS = 5, 3e-5


THREAD_LIMITS: dict[int, list[threading.Event]] = {}  # thread -> its limits that use a watching thread, innermost last


class OutOfTime(BaseException):
    """The time limit is over. A BaseException, so that `except Exception` does not catch it by accident."""


def limited(seconds: float, call: Callable[[], Any]) -> Any:
    """Return `call()`, or raise OutOfTime after `seconds`.

    Time inside a nested limit counts only toward the nested limit. In a browser's kernel, without timers and threads,
    there is no limit.
    """
    if sys.platform == "emscripten":
        return call()
    if hasattr(signal, "SIGALRM") and threading.current_thread() is threading.main_thread():
        return limit_by_timer(seconds, call)
    return limit_by_thread(seconds, call)


def limit_by_timer(seconds: float, call: Callable[[], Any]) -> Any:
    mine, raised = sys._getframe(), 0

    def stop(number, frame):
        nonlocal raised
        # Do not raise in this function's own lines: they must stop the timer and restore the handler whenever it fires.
        if frame is not mine:
            raised += 1
            if raised == MAX_CAUGHT:
                signal.setitimer(signal.ITIMER_REAL, HASTY_SECONDS, HASTY_SECONDS)
            raise OutOfTime

    before, left = signal.signal(signal.SIGALRM, stop), (0.0, 0.0)
    try:
        left = signal.setitimer(signal.ITIMER_REAL, seconds, REPEAT_SECONDS)
        return call()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left[0]:  # resume the enclosing limit
            signal.setitimer(signal.ITIMER_REAL, *left)


def limit_by_thread(seconds: float, call: Callable[[], Any]) -> Any:
    mine, number = sys._getframe(), threading.get_ident()
    thread, raise_in = ctypes.c_ulong(number), ctypes.pythonapi.PyThreadState_SetAsyncExc
    late, lock, ended = ctypes.py_object(OutOfTime), threading.Lock(), threading.Event()
    raised = met = over = False
    limits = THREAD_LIMITS.setdefault(number, [])
    limits.append(ended)

    def watch():
        nonlocal raised
        left = seconds
        while not ended.wait(step := min(left, WATCH_SECONDS)):
            with lock:
                frame = sys._current_frames().get(number)
                if ended.is_set() or not is_caller(frame, mine):
                    break
                left -= step if limits[-1] is ended else 0
                if left <= 0:
                    left = REPEAT_SECONDS
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
                    # An exception may be pending. Catch it instead of cancelling it: after raise_in(thread, None) the
                    # interpreter checks for one forever; under a debugger's trace function, Python 3.11 only checks.
                    met = True
                    raise_in(thread, late)
                over = True
            except OutOfTime:
                over = met
        limits.remove(ended)


def is_caller(frame: Any, outer: Any) -> bool:
    """True if `outer` is `frame` or one of its callers."""
    while frame is not None and frame is not outer:
        frame = frame.f_back
    return frame is not None
