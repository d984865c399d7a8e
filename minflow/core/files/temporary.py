"""Temporary files and folders, with hidden names that contain the machine and the process; removal of stale ones.

Any user can plant a name, so a temporary is removed only if this user made it: a plain file, or a private folder that
contains nothing but a folder of its own name. Links are not followed.
Must not depend on the purpose of a temporary. Read next: `atomic.py`.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..base.locks import exclusive_lock, locked

LIVE_TEMPORARIES: set[str] = set()  # names of temporaries that this process is writing now
TEMPORARY_NAME = re.compile(r"\.minflow\.([0-9a-f]{8})\.(\d{1,10})\.[0-9a-f]{16}\.tmp")  # (machine, process)
NO_LINKS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def host() -> str:
    """A hash of the machine's name, in eight letters; process ids are only valid on their machine."""
    return f"{zlib.crc32(os.uname().nodename.encode()) if hasattr(os, 'uname') else 0:08x}"


@contextmanager
def temporary(folder: Path) -> Iterator[Path]:
    """Yield an unused hidden path in `folder`, and remove a file that exists there at the end.

    The name does not contain the final name, which may already have the largest length that the file system allows.
    """
    path = folder / f".minflow.{host()}.{os.getpid()}.{secrets.token_hex(8)}.tmp"
    LIVE_TEMPORARIES.add(path.name)
    try:
        yield path
    finally:
        LIVE_TEMPORARIES.discard(path.name)
        with suppress(OSError):
            path.unlink()


@contextmanager
def private_folder(folder: Path) -> Iterator[Path]:
    """Yield a new folder of the default mode, inside a hidden folder that is closed to other users.

    Both have the same name: no other user can write into the outer one, so the inner one proves who made them. Both are
    removed at the end, through a descriptor that was opened at the start.
    """
    with temporary(folder) as path:
        path.mkdir(0o777 if os.name == "nt" else 0o700)  # on Windows the inner one would inherit and keep the rights
        handle = None
        try:
            if os.name != "nt":
                handle = os.open(path, NO_LINKS)
                locked(handle)
            (path / path.name).mkdir()
            yield path / path.name
        finally:
            remove_inner(path, handle)
            if handle is not None:
                os.close(handle)


def remove_inner(path: Path, handle: int | None) -> None:
    """Remove the folder that `private_folder` made. handle: its descriptor; None on Windows."""
    shutil.rmtree(path.name if handle is not None else path / path.name, ignore_errors=True, dir_fd=handle)
    with suppress(OSError):
        path.rmdir()


def remove_ours(name: str, handle: int | None, folder: Path) -> None:
    """Remove a file that this user made, or a folder that `private_folder` made; leave everything else.

    handle: descriptor of the folder, or None to use the path `folder`.
    """
    place = name if handle is not None else folder / name
    found = os.stat(place, dir_fd=handle, follow_symlinks=False)
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        return
    if stat.S_ISREG(found.st_mode):
        os.unlink(place, dir_fd=handle)
    elif stat.S_ISDIR(found.st_mode) and os.name == "nt":
        remove_inner(folder / name, None)
    elif stat.S_ISDIR(found.st_mode):
        opened = os.open(place, NO_LINKS, dir_fd=handle)
        try:
            now = os.fstat(opened)
            if os.path.samestat(found, now) and not now.st_mode & 0o077 and os.listdir(opened) in ([], [name]):
                shutil.rmtree(name, ignore_errors=True, dir_fd=opened)
                os.rmdir(place, dir_fd=handle)
        finally:
            os.close(opened)


def sweep(folder: Path) -> None:
    """Remove the temporaries that dead processes of this user and machine have left in `folder`."""
    if not (names := dead_temporaries(folder)):
        return
    handle = None
    if os.name != "nt":
        try:
            handle = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        except OSError:  # a folder that can no longer be listed
            return
    try:
        for name in names:
            with (
                suppress(OSError),
                exclusive_lock(name if handle is not None else folder / name, False, handle) as free,
            ):
                if free:
                    remove_ours(name, handle, folder)
    finally:
        if handle is not None:
            os.close(handle)


def dead_temporaries(folder: Path) -> list[str]:
    """Names of the temporaries in a folder whose processes have ended."""
    try:
        matches = [found for name in os.listdir(folder) if (found := TEMPORARY_NAME.fullmatch(name))]
    except OSError:
        return []
    return [
        found[0]
        for found in matches
        if found[1] == host() and found[0] not in LIVE_TEMPORARIES and not is_running(int(found[2]))
    ]


def write_in_progress(folder: Path) -> bool:
    """True if a live process is writing in the folder now."""
    try:
        return bool(
            {name for name in os.listdir(folder) if TEMPORARY_NAME.fullmatch(name)} - set(dead_temporaries(folder))
        )
    except OSError:
        return False


def is_running(pid: int) -> bool:
    """True if a process with this id is running, other than this one (whose temporaries are in LIVE)."""
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
    """`is_running` for Windows, where signal 0 is Ctrl-C, so that `os.kill` would stop the process."""
    import ctypes

    kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel.OpenProcess.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(kernel.OpenProcess(0x1000, False, ctypes.c_ulong(pid)))  # 0x1000: limited information
    if not handle:
        return ctypes.get_last_error() != 87  # 87: no such process; other errors mean that access is denied
    code = ctypes.c_ulong()
    kernel.GetExitCodeProcess(handle, ctypes.byref(code))
    kernel.CloseHandle(handle)
    return code.value == 259  # STILL_ACTIVE
