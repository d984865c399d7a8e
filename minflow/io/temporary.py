"""Temporary files and folders: whose they are, and whether that process still runs.

A hidden name tells the machine and the process. Knows nothing of what they become. Read next: `container.py`.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LIVE: set[str] = set()  # temporaries that this process is writing now
TEMPORARY = re.compile(r"\..*\.([0-9a-f]{8})\.(\d+)\.[0-9a-f]{8}\.tmp", re.DOTALL)  # (machine, process)


def host() -> str:
    """This machine, in eight letters: a process id means something only there."""
    return f"{zlib.crc32(os.uname().nodename.encode()) if hasattr(os, 'uname') else 0:08x}"


@contextmanager
def temporary(folder: Path) -> Iterator[Path]:
    """A hidden name in `folder` that tells whose it is; what is still there after an error is removed.

    It says nothing of the name that it will get, which may be as long as the file system allows.
    """
    path = folder / f".minflow.{host()}.{os.getpid()}.{secrets.token_hex(4)}.tmp"
    LIVE.add(path.name)
    try:
        yield path
    except BaseException:
        remove(path)
        raise
    finally:
        LIVE.discard(path.name)


def remove(path: Path) -> None:
    """Away with a file or a folder, if it is there and ours to remove."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def dead(folder: Path) -> list[str]:
    """Names of temporaries in a folder that belong to no process any more."""
    try:
        matches = [found for name in os.listdir(folder) if (found := TEMPORARY.fullmatch(name))]
    except OSError:
        return []
    return [found[0] for found in matches if found[1] == host() and found[0] not in LIVE and not alive(int(found[2]))]


def moving(folder: Path) -> bool:
    """Does a process that lives write something in here now?"""
    try:
        return bool({name for name in os.listdir(folder) if TEMPORARY.fullmatch(name)} - set(dead(folder)))
    except OSError:
        return False


def alive(pid: int) -> bool:
    """Does a process of this number run, other than this one (whose temporaries are in LIVE)?"""
    if pid == os.getpid():
        return False
    if sys.platform == "win32":
        return alive_on_windows(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return True


def alive_on_windows(pid: int) -> bool:
    """The same where signal 0 is no question but Ctrl-C, so that `os.kill` would stop who is asked about."""
    import ctypes

    kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel.OpenProcess.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(kernel.OpenProcess(0x1000, False, ctypes.c_ulong(pid)))  # may ask for little: its end
    if not handle:
        return ctypes.get_last_error() != 87  # 87: no process has this number; else we may not ask
    code = ctypes.c_ulong()
    kernel.GetExitCodeProcess(handle, ctypes.byref(code))
    kernel.CloseHandle(handle)
    return code.value == 259  # STILL_ACTIVE
