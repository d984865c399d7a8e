"""The folder for downloaded data files. Read next: `download.py`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ..core.base.errors import DataError
from ..io.files import checked_path


def cache_dir() -> Path:
    """The folder for downloads: `$MINFLOW_DATA`, else `minflow` in the system's cache folder (`~/.cache` on Linux)."""
    if own := os.environ.get("MINFLOW_DATA"):
        return folder(own, "MINFLOW_DATA")
    if base := os.environ.get("XDG_CACHE_HOME"):
        return folder(base, "XDG_CACHE_HOME") / "minflow"
    if sys.platform == "win32" and (base := os.environ.get("LOCALAPPDATA")):
        return Path(base) / "minflow"
    return folder("~", "the home folder") / ".cache" / "minflow"


def folder(path: str | os.PathLike, what: str) -> Path:
    """Return a folder for data files that a user named, or raise a DataError."""
    return checked_path(path, what, 'the folder of the files, as "./data"; or set MINFLOW_DATA to one', DataError)


def find_file(name: str, folders: list[Path]) -> Path | None:
    """The path of file `name` in the first of `folders` that has it, else None."""
    return next((folder / name for folder in folders if os.path.isfile(folder / name)), None)
