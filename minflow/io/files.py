"""Paths and files given by a user: paths are validated, and only regular files are opened.

Reading from a pipe, a device or a socket could block forever. Read next: `atomic.py`, which writes.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from ..core.base.errors import CheckpointError, FormatError
from ..core.files.atomic import SPECIAL_FILE_KINDS as SPECIAL_FILE_KINDS, status as status
from ..core.source_location import here

# The files of a saved graph, for a folder that has them all: the computation, its tensors, metadata and hashes.
SAVED_GRAPH = GRAPH, WEIGHTS, META = "graph.json", "weights.safetensors", "meta.json"


def checked_path(path: Any, what: str, example: str, error: type[FormatError] = CheckpointError) -> Path:
    """Return a user's path with `~` expanded, or raise an error if it is invalid. what: the caller, for the error."""

    def refuse(why: str, hint: str) -> NoReturn:
        raise error(f"{what}: {why}", values={"path": repr(path)}, where=here(), hint=hint)

    if not isinstance(path, str | os.PathLike):
        refuse(f"the path is {'None' if path is None else f'of type {type(path).__name__}'}", example)
    text = os.fspath(path)
    try:
        if not isinstance(text, str) or not text or "\0" in text:
            raise ValueError
        os.fsencode(text)  # no file name contains a lone surrogate
    except ValueError:
        refuse(f"{text!r} is not a path", example)
    try:
        return Path(text).expanduser()
    except RuntimeError:
        user = Path(text).parts[0]
        refuse(
            f"the home folder {user!r} is not known",
            f"~ for your own, or the full path; or ./{user}, a folder here",
        )


def absolute(path: Path) -> Path:
    """Make a path absolute, so that a later os.chdir does not change its meaning."""
    try:
        return Path(os.path.abspath(path))
    except FileNotFoundError:  # the current folder was deleted: using the path raises an error
        return path


def open_regular(path: str | os.PathLike, links: bool = True) -> BinaryIO:
    """Open a regular file for reading. links: True to follow links. Raises OSError for anything else, never blocks."""
    status(path)
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    flags |= 0 if links else getattr(os, "O_NOFOLLOW", 0)
    file = open(os.open(path, flags), "rb")  # os.open, because `open` blocks on a pipe without a writer
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # replaced in the meantime
        file.close()
        raise OSError(errno.EISDIR if os.path.isdir(path) else errno.EINVAL, "it is not a file")
    return file
