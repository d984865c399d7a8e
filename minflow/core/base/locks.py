"""Thread locks that survive a fork, and file locks that admit one process at a time.

A fork copies a lock in its current state. If another thread held it, the child, which lacks that thread, would wait
forever; so locks of `new_lock` are reset in the child. The data they protect must be consistent at any moment.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

LOCKS: weakref.WeakSet = weakref.WeakSet()  # locks that are reset in a child process


def new_lock(kind: Callable[[], Any] = threading.Lock) -> Any:
    """Make a lock that is released in a child process. kind: threading.Lock or threading.RLock."""
    lock = kind()
    LOCKS.add(lock)
    return lock


def reset_locks() -> None:
    """Reset all locks in a forked process, which lacks the threads that may hold them."""
    for lock in list(LOCKS):
        lock._at_fork_reinit()  # as Python's own `threading` and `logging` do


if hasattr(os, "register_at_fork"):  # Windows cannot fork
    os.register_at_fork(after_in_child=reset_locks)


@contextmanager
def exclusive_lock(path: str | os.PathLike, wait: float = True, within: int | None = None) -> Iterator[bool]:
    """Lock a folder or file against other processes; the lock of a process that dies is released.

    wait: True to wait without limit, False not to wait, or seconds; any user who can read a folder can hold its lock.
    within: descriptor of the open folder of `path`; links are then not followed.
    Yields False if another process holds the lock; True otherwise, also if the system has no such locks.
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
    """Release the lock, even if a child process, forked meanwhile, has inherited the descriptor."""
    with suppress(ImportError, OSError):
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_UN)


def locked(handle: int, wait: float = False) -> bool:
    """Lock an open file until it is closed; return False if another process has it. wait: as in `exclusive_lock`."""
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
