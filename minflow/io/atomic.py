"""Write a file or a folder all or nothing: under a hidden name beside it, to the disk, and then in place by renaming.

Whoever reads the path sees the old one or the new one, whole, even if the process is killed or the disk is full. What a
killed process left is removed by the next save into the same folder, under whatever name.
Knows nothing of what is written. Read next: `container.py`.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from .files import status

LIVE: set[str] = set()  # temporaries that this process is writing now
LIST = ".moving.tmp"  # in the hidden folder of `new_folder`: what will be moved out of it
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


def replace(path: Path, write: Callable[[BinaryIO], None]) -> None:
    """Make `path` hold what `write(file)` writes. Raises OSError, or what `write` raises; then nothing has changed.

    A link stays a link, to the new file; a file keeps its mode and, where we may give it away, its owner.
    """
    path = Path(os.path.realpath(path))
    sweep(path.parent)
    old = status(path)
    if old is not None and stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if old is not None and not os.access(path, os.W_OK):  # the folder would allow it; who protected the file would not
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    mode = 0o666 if old is None else stat.S_IMODE(old.st_mode)
    with temporary(path.parent) as beside:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode | 0o200), "wb", buffering=0) as file:
            if old is not None and hasattr(os, "fchown"):  # Windows has fchmod, from Python 3.13 on, but no owners
                with suppress(OSError):
                    os.fchown(file.fileno(), old.st_uid, old.st_gid)
                os.fchmod(file.fileno(), mode)
            write(file)
            os.fsync(file.fileno())
        os.replace(beside, path)
    sync_folder(path.parent)


def new_folder(path: Path, fill: Callable[[Path], None], last: str) -> None:
    """Make the folder `path`, which is not there or empty, hold what `fill(folder)` writes; the entry `last` comes
    last.

    A new folder is written beside its place, and renamed. One that is there keeps its identity (it may be a mount, or
    someone's working directory): what is written inside of it moves up at the end. Raises as `replace` does.
    """
    there = path.is_dir()
    parent = path if there else path.parent
    parent.mkdir(parents=True, exist_ok=True)
    sweep(parent)
    with temporary(parent) as stage:
        stage.mkdir()
        fill(stage)
        if there:
            move_up(stage, path, last)
        else:
            os.rename(stage, path)
    sync_folder(parent)


def move_up(stage: Path, path: Path, last: str) -> None:
    """All entries of `stage` into `path` around it. A list of them tells the next save what to take back, were we
    killed."""
    names = sorted(os.listdir(stage), key=lambda name: (name == last, name))
    with open(stage / LIST, "x", encoding="utf-8") as file:
        json.dump({name: os.lstat(stage / name).st_ino for name in names}, file)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(stage)
    try:
        for name in names:
            os.rename(stage / name, path / name)
    except BaseException:
        take_back(stage)
        raise
    shutil.rmtree(stage, ignore_errors=True)


def take_back(stage: Path) -> None:
    """Remove from around `stage` what was moved out of it, unless all was.

    A name alone is not believed, it must be that very entry: somebody else may have put the list there.
    """
    try:
        names = json.loads((stage / LIST).read_text(encoding="utf-8"))
        if any(os.path.lexists(stage / name) for name in names):
            for name, number in names.items():
                entry = stage.parent / name
                if entry.parent == stage.parent and os.path.lexists(entry) and os.lstat(entry).st_ino == number:
                    remove(entry)
            (stage / LIST).unlink()
    except (OSError, ValueError, TypeError, AttributeError):  # nothing was moved, or it is no list of ours
        pass


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


def sweep(folder: Path) -> None:
    """Remove what processes of this machine left in `folder` when they died, whatever it was to become."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        result = TEMPORARY.fullmatch(name)
        if result and result[1] == host() and name not in LIVE and not alive(int(result[2])):
            if not os.path.islink(folder / name):
                take_back(folder / name)
            remove(folder / name)


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
