"""Ctrl-C at a moment that suits: `with uninterrupted(): ...`; and contexts that Ctrl-C cannot leave half undone.

Python may raise KeyboardInterrupt between any two instructions of the main thread. `with lock:` is safe by itself: the
interpreter enters and leaves it in one instruction. A function that starts what has to be ended is not: the interrupt
may come between its last line and the caller's `try`.
"""

from __future__ import annotations

import threading
from _io import _IOBase
from contextvars import ContextVar, Token
from typing import Any
from _signal import SIGINT, getsignal, raise_signal, signal  # without the enums of `signal`, which take 4 us each


class Restoring(_IOBase):
    """Base of a context that sets a variable, and sets it back at its end, wherever Ctrl-C comes.

    Python raises KeyboardInterrupt at the first instruction of a function, before any line of it: an `__exit__` written
    in Python may be left with the variable as it was inside. That of IOBase is C code, which calls `close`; here that
    is C code as well, which takes the last token and sets the variable back, without an instruction of Python's
    between. A subclass says which `variable`, and gives its `value`. One object may be entered inside itself.
    """

    closed = True  # for IOBase: there is no file to be closed when it is freed
    variable: ContextVar

    def __init__(self) -> None:
        self.tokens: list[Token] = []
        self.close = map(self.variable.reset, iter(self.tokens.pop, None)).__next__

    def value(self) -> Any:
        """The value of the variable inside the block."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        entered = len(self.tokens)
        try:
            self.tokens.extend(map(self.variable.set, (self.value(),)))  # set and noted by one call of C code
            return self
        except BaseException:
            while len(self.tokens) > entered:
                self.variable.reset(self.tokens.pop())
            raise


class uninterrupted:
    """Within the block Ctrl-C (SIGINT) waits, and comes at its end. Only the main thread is ever interrupted."""

    def __init__(self, wanted: bool = True):
        self.wanted, self.before, self.came = wanted, None, False

    def hold(self, number: int, frame: object) -> None:
        self.came = True

    def __enter__(self) -> None:
        if self.wanted and threading.current_thread() is threading.main_thread() and getsignal(SIGINT) is not None:
            self.before = signal(SIGINT, self.hold)

    def __exit__(self, *error: object) -> None:
        if self.before is not None:
            signal(SIGINT, self.before)
            if self.came:
                raise_signal(SIGINT)
