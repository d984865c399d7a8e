"""Where data files lie: the folder that everything fetched goes to. Read next: `download.py`."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_dir() -> Path:
    """Where fetched files go: `$MINFLOW_DATA`, else `minflow` in the system's cache folder (`~/.cache` on Linux)."""
    if own := os.environ.get("MINFLOW_DATA"):
        return Path(own).expanduser()
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base).expanduser() / "minflow"
    if sys.platform == "win32" and (base := os.environ.get("LOCALAPPDATA")):
        return Path(base) / "minflow"
    return Path.home() / ".cache" / "minflow"


def first_of(name: str, folders: list[Path]) -> Path | None:
    """The first of `folders` that holds a file called `name`: its path, else None."""
    return next((folder / name for folder in folders if (folder / name).is_file()), None)
