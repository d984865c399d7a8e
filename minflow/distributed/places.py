"""Where a rank is: the user's line among the frames of its stack, and the cores of its machine."""

from __future__ import annotations

import linecache
import os
import sysconfig
from collections.abc import Iterable

from ..core.ir import file_name
from ..core.source_location import IS_MINFLOW_FILE

STANDARD_LIBRARY = sysconfig.get_path("stdlib")
PACKAGES = "site-packages", "dist-packages"  # folders in the standard library's, where users install others


def place(frames: Iterable[tuple[str, int]]) -> str:
    """The line of the user's program, and its text. frames: (file, line) of a stack, the innermost one first.

    A stack without a line of the user's gives its innermost one.
    """
    frames = list(frames)
    if not frames:
        return "has not started"
    file, line = next((frame for frame in frames if is_users(frame[0])), frames[0])
    return f"is at {file_name(file)}:{line}  {linecache.getline(file, line).strip()}".rstrip()


def cores() -> int:
    """Number of cores that this process may use; in a container often fewer than the computer has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_users(file: str) -> bool:
    """True if a file belongs neither to minflow nor to the standard library."""
    standard = file.startswith(STANDARD_LIBRARY) and not any([folder in file for folder in PACKAGES])
    return not (standard or file.startswith("<frozen ") or IS_MINFLOW_FILE[file])
