"""One process at a time in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(path: Path, wait: bool = True) -> Iterator[bool]:
    """Other processes that ask for this folder wait, where the system has such locks; one that dies lets go. It gives
    False where another is there already and we do not wait."""
    try:
        import fcntl

        handle = os.open(path, os.O_RDONLY)
    except (ImportError, OSError):  # Windows; a folder that cannot be opened
        yield True
        return
    free = True
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError as error:  # also a file system without locks
            free = not isinstance(error, BlockingIOError)
        yield free
    finally:
        os.close(handle)
