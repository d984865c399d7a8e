"""One process at a time in a folder."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(path: str | Path, wait: float = True, within: int | None = None) -> Iterator[bool]:
    """Lock a folder or file; other processes that ask for it wait, and a process that dies lets go.

    wait: True for as long as it takes, False or the most seconds; whoever may read a folder can hold its lock for ever.
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
        os.close(handle)


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
