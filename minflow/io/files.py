"""Paths and files as a user gives them: what is no path is refused, and only plain files are opened.

A pipe, a device or a socket can make its reader wait for ever. Read next: `atomic.py`, which writes.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from ..core.files.atomic import KINDS as KINDS
from ..core.files.atomic import status as status
from ..core.base.errors import CheckpointError, FormatError
from ..core.source_location import here

# The files of a saved graph; a folder that has them all is one. What is computed, its numbers, what it is and hashes.
SAVED_GRAPH = GRAPH, WEIGHTS, META = "graph.json", "weights.safetensors", "meta.json"


def place(path: Any, what: str, example: str, error: type[FormatError] = CheckpointError) -> Path:
    """The path that a user gave, `~` resolved, or an error that says what is wrong with it. what: who asks."""

    def refuse(why: str, hint: str) -> NoReturn:
        raise error(f"{what}: {why}", values={"path": repr(path)}, where=here(), hint=hint)

    if not isinstance(path, str | os.PathLike):
        refuse(f"the path is {'None' if path is None else f'of type {type(path).__name__}'}", example)
    text = os.fspath(path)
    try:
        if not isinstance(text, str) or not text or "\0" in text:
            raise ValueError
        os.fsencode(text)  # a lone surrogate is in no file name
    except ValueError:
        refuse(f"{text!r} is not a path", example)
    try:
        return Path(text).expanduser()
    except RuntimeError:
        user = Path(text).parts[0]
        refuse(
            f"{user!r} stands for a home folder that is not known",
            f"~ for your own, or the whole path; or ./{user}, a folder here",
        )


def absolute(path: Path) -> Path:
    """The path from the root, so that a later os.chdir does not move it."""
    try:
        return Path(os.path.abspath(path))
    except FileNotFoundError:  # the current folder was deleted: whoever uses the path gets an error
        return path


def opened(path: str | os.PathLike, links: bool = True) -> BinaryIO:
    """A plain file, open to be read. links: True to follow links. Raises OSError for all else, without waiting."""
    status(path)
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    flags |= 0 if links else getattr(os, "O_NOFOLLOW", 0)
    file = open(os.open(path, flags), "rb")  # os.open, because `open` alone waits for whoever writes into a pipe
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # put there since
        file.close()
        raise OSError(errno.EISDIR if os.path.isdir(path) else errno.EINVAL, "it is not a file")
    return file
