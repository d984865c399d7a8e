"""Write a file all or nothing: into a temporary file of the same folder, to the disk, and then in place by renaming.

Whoever reads the path sees the old file or the new one, whole, even if the process is killed or the disk is full.
Knows nothing of what is written. Read next: `container.py`.
"""

from __future__ import annotations

import os
import re
import secrets
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

LIVE: set[str] = set()  # temporaries that this process is writing now


def host() -> str:
    """This machine, in eight letters: a process id means something only there."""
    return f"{zlib.crc32(os.uname().nodename.encode()) if hasattr(os, 'uname') else 0:08x}"


def replace(path: Path, write: Callable[[BinaryIO], None]) -> None:
    """Make `path` hold what `write(file)` writes. Raises OSError, or what `write` raises; then nothing has changed."""
    path = Path(os.path.realpath(path))  # a link stays a link, to the new file
    sweep(path)
    temporary = path.with_name(f".{path.name}.{host()}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    LIVE.add(temporary.name)
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb", buffering=0) as file:
            write(file)
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        LIVE.discard(temporary.name)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` outlast a power cut, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # a system that cannot open folders
        return
    try:
        os.fsync(handle)
    except OSError:  # a file system that cannot sync folders
        pass
    finally:
        os.close(handle)


def sweep(path: Path) -> None:
    """Remove the temporaries of `path` that processes of this machine left behind when they died."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.{host()}\.(\d+)\.[0-9a-f]{{8}}\.tmp")
    try:
        names = os.listdir(path.parent)
    except OSError:
        return
    for name in names:
        found = pattern.fullmatch(name)
        if found and name not in LIVE and not alive(int(found[1])):
            try:
                (path.parent / name).unlink(missing_ok=True)
            except OSError:  # it is not ours to remove
                pass


def alive(pid: int) -> bool:
    """Does a process of this number run, other than this one (whose temporaries are in LIVE)?"""
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return True
