"""Ctrl-C at a moment that suits: `with uninterrupted(): ...`.

Python may raise KeyboardInterrupt between any two instructions of the main thread. `with lock:` is safe by itself: the
interpreter enters and leaves it in one instruction. A function that starts what has to be ended is not: the interrupt
may come between its last line and the caller's `try`.
"""

from __future__ import annotations

import threading
from _signal import SIGINT, getsignal, raise_signal, signal  # without the enums of `signal`, which take 4 us each


class uninterrupted:
    """Within the block Ctrl-C (SIGINT) waits, and comes at its end. Only the main thread is ever interrupted."""

    def __init__(self, wanted: bool = True):
        self.wanted, self.before, self.came = wanted, None, False

    def hold(self, number: int, frame: object) -> None:
        self.came = True

    def __enter__(self) -> None:
        if (
            self.wanted
            and threading.current_thread() is threading.main_thread()
            and getsignal(SIGINT) is not None
        ):
            self.before = signal(SIGINT, self.hold)

    def __exit__(self, *error: object) -> None:
        if self.before is not None:
            signal(SIGINT, self.before)
            if self.came:
                raise_signal(SIGINT)
