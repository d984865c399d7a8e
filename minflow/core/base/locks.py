"""Locks of threads that a fork leaves usable, and one process at a time in a folder.

A fork copies a lock as it is. If another thread holds it, the child, which does not have that thread, would wait for it
for ever: locks of `new_lock` are free in the child. What they protect must be usable at any moment.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

LOCKS: weakref.WeakSet = weakref.WeakSet()  # those that a child process sets free


def new_lock(kind: Callable[[], Any] = threading.Lock) -> Any:
    """A lock that is free in a child process. kind: threading.Lock or threading.RLock."""
    lock = kind()
    LOCKS.add(lock)
    return lock


def set_free() -> None:
    """Make the locks of a forked process new: their threads are not in it."""
    for lock in list(LOCKS):
        lock._at_fork_reinit()  # as Python's own `threading` and `logging` do


if hasattr(os, "register_at_fork"):  # Windows cannot fork
    os.register_at_fork(after_in_child=set_free)


@contextmanager
def alone(path: str | os.PathLike, wait: float = True, within: int | None = None) -> Iterator[bool]:
    """Lock a folder or file; other processes that ask for it wait, and a process that dies lets go.

    wait: True for as long as it takes, False, or seconds at most; any user who can read a folder can hold its lock.
    within: the descriptor of an open folder that `path` is in; a link is then not followed. Yields False if another
    process holds the lock, and True also where the system has no such locks.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | (getattr(os, "O_NOFOLLOW", 0) if within is not None else 0)
    try:
        handle = os.open(path, flags, dir_fd=within)
    except OSError:  # a folder that cannot be opened, and any folder on Windows
        yield True
        return
    try:
        yield locked(handle, wait)
    finally:
        unlock(handle)
        os.close(handle)


def unlock(handle: int) -> None:
    """Let go of the lock also where a child process, forked meanwhile, has inherited the descriptor."""
    with suppress(ImportError, OSError):
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_UN)


def locked(handle: int, wait: float = False) -> bool:
    """Lock an open file until it is closed; False if another process holds the lock. wait: as for `alone`."""
    end = time.monotonic() + wait
    try:
        import fcntl

        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait is True else fcntl.LOCK_NB))
                return True
            except BlockingIOError:
                if time.monotonic() >= end:
                    return False
                time.sleep(0.005)
    except (ImportError, OSError):  # Windows; a file system without locks
        return True
