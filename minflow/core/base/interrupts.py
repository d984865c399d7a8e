"""Delay Ctrl-C (`with uninterrupted(): ...`), and contexts that Ctrl-C cannot leave half undone.

Python may raise KeyboardInterrupt between any two instructions of the main thread. `with lock:` is safe: the
interpreter enters and leaves it in one instruction. A function that acquires a resource is not: the interrupt may come
between its return and the caller's `try`.
"""

from __future__ import annotations

import threading
from _io import _IOBase
from _signal import SIGINT, getsignal, raise_signal, signal  # without the enums of `signal`, which take 4 us each
from contextvars import ContextVar, Token
from operator import itemgetter, not_
from typing import Any


class ContextVarScope(_IOBase):
    """Base of contexts that set a ContextVar and always reset it at the end, even if Ctrl-C comes in between.

    Python may raise KeyboardInterrupt at the first instruction of an `__exit__` written in Python, which would leave
    the variable set. `__exit__` of IOBase is C code that calls `close`; here `close` is C code too, which pops the last
    token and resets the variable without a Python instruction in between.
    A subclass defines `variable` and `value`. An object may be entered again inside its own block.
    """

    closed = True  # IOBase would otherwise close the object when it is freed
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
            self.tokens.extend(map(self.variable.set, (self.value(),)))  # one C call sets it and keeps the token
            return self
        except BaseException:
            while len(self.tokens) > entered:
                self.variable.reset(self.tokens.pop())
            raise


class StackEntry(_IOBase):
    """`__exit__` of a context that pushes to the tuple in a ContextVar: it pops the last item, in C code, as above. One
    object serves all threads, so that an object which they share can be a context.
    """

    closed = True

    def __init__(self, variable: ContextVar[tuple]):
        popped = map(variable.set, map(itemgetter(slice(-1)), iter(variable.get, None)))
        vars(self).update(close=map(not_, popped).__next__)  # False, so that an error in the block is raised


class uninterrupted:
    """Delay Ctrl-C (SIGINT) until the end of the block. Only the main thread is ever interrupted."""

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
