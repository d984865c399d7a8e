"""Write a file or a folder all or nothing: under a hidden name beside it, to the disk, and then in place by renaming.

Whoever reads the path sees the old one or the new one, whole, even if the process is killed or the disk is full. What a
killed process left is removed by the next save into the same folder, under whatever name.
Knows nothing of what is written. Read next: `temporary.py`, whose hidden names they are; `container.py`.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from ..core.base.locks import alone
from .files import status
from .temporary import TEMPORARY, dead, remove, temporary

LIST = ".moving.tmp"  # in the hidden folder of `new_folder`: what will be moved out of it
OLD = ".old.tmp"  # beside LIST: what was there before, until all is moved


def replace(path: Path, write: Callable[[BinaryIO], object]) -> None:
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


def new_folder(path: Path, fill: Callable[[Path], None], last: str, over: Collection[str] = ()) -> None:
    """Make the folder `path`, which is not there or empty, hold what `fill(folder)` writes; the entry `last` comes
    last.

    A new folder is written beside its place, and renamed. One that is there keeps its identity (it may be a mount, or
    someone's working directory): what is written inside of it moves up at the end. Raises as `replace` does.
    over: the files that an older one of the same kind has. It is exchanged with the new one in one step, where the
    system can and it is no such place; else they move aside for the new ones, and what a killed process has moved is
    moved back by the next `sweep` of the folder. Anything else that is there raises FileExistsError.
    """
    old = settled(path, over)
    inside = old is not None and (not old or stays(path))
    parent = path if inside else path.parent
    parent.mkdir(parents=True, exist_ok=True)
    sweep(parent)
    with temporary(parent) as stage:
        stage.mkdir()
        fill(stage)
        if inside:
            move_up(stage, path, last, over)
        elif not renamed(stage, path, over) and not exchanged(stage, path, over):
            within = path / stage.name
            os.rename(stage, within)
            try:
                move_up(within, path, last, over)
            except BaseException:
                remove(within)
                raise
    sync_folder(parent)


def settled(path: Path, over: Collection[str]) -> list[str] | None:
    """The files of the folder, once nothing of a killed process is there; None if there is no folder."""
    if not path.is_dir():
        return None
    sweep(path)
    return old_files(path, over)


def renamed(stage: Path, path: Path, over: Collection[str]) -> bool:
    """Give a new folder its name; False if another of its kind has it already."""
    if over and path.is_dir() and old_files(path, over):
        return False
    try:
        os.rename(stage, path)
    except OSError:
        if over and path.is_dir() and old_files(path, over):  # of another process, a moment ago
            return False
        raise
    return True


def old_files(path: Path, over: Collection[str]) -> list[str]:
    """The files in a folder that `new_folder` may take away: all of `over`, or none. Raises OSError for others."""
    names = [name for name in sorted(os.listdir(path)) if not TEMPORARY.fullmatch(name)]
    strange = [name for name in names if name not in over or not stat.S_ISREG(os.lstat(path / name).st_mode)]
    if not strange and names and len(names) < len(over):
        strange = names
    if strange:
        raise FileExistsError(errno.EEXIST, f"the folder holds {shown(strange)}, which would be lost")
    for name in ("", *names):  # the folder around it may allow more; who protected this one would not
        if not os.access(path / name, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path / name))
    return names


def shown(names: list[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def stays(path: Path) -> bool:
    """Must the folder keep its place? A mount, where this process works, or where the one around it is protected."""
    try:
        here = Path.cwd()
    except FileNotFoundError:
        here = path.parent
    return os.path.ismount(path) or path in (here, *here.parents) or not os.access(path.parent, os.W_OK)


def like(new: Path, old: Path) -> None:
    """Give a new file or folder the mode of the old one and, where we may give it away, its owner."""
    before = os.stat(old)
    if hasattr(os, "chown"):
        with suppress(OSError):
            os.chown(new, before.st_uid, before.st_gid)
    os.chmod(new, stat.S_IMODE(before.st_mode))


def exchanged(stage: Path, path: Path, over: Collection[str]) -> bool:
    """Put a new folder in the place of an older one, which goes; False where the system cannot in one step."""
    for name in ("", *old_files(path, over)):
        like(stage / name, path / name)
    sync_folder(stage)
    if not exchange(stage, path):
        return False
    try:
        old_files(stage, over)  # what came into it since it was judged is not ours
    except OSError:
        exchange(stage, path)
        raise
    shutil.rmtree(stage, ignore_errors=True)
    return True


def exchange(a: Path, b: Path) -> bool:
    """Let two folders change places in one step; False where the system or the place cannot."""
    import ctypes

    library: Any = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None
    first, second = os.fsencode(a), os.fsencode(b)
    if hasattr(library, "renameat2"):  # Linux
        result = library.renameat2(-100, first, -100, second, 2)  # paths from the working directory, RENAME_EXCHANGE
    elif hasattr(library, "renamex_np"):  # macOS
        result = library.renamex_np(first, second, 2)  # RENAME_SWAP
    else:
        return False
    number = ctypes.get_errno()
    if result and number not in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EBUSY, errno.EXDEV, errno.EPERM):
        raise OSError(number, os.strerror(number))
    return not result


def move_up(stage: Path, path: Path, last: str, over: Collection[str] = ()) -> None:
    """All entries of `stage` into `path` around it. A list of them tells the next save what to take back, were we
    killed."""
    names = sorted(os.listdir(stage), key=lambda name: (name == last, name))
    with open(stage / LIST, "x", encoding="utf-8") as file:
        json.dump({name: os.lstat(stage / name).st_ino for name in names}, file)
        file.flush()
        os.fsync(file.fileno())
    (stage / OLD).mkdir()
    sync_folder(stage)
    with alone(path):
        try:
            for name in old_files(path, over):
                os.rename(path / name, stage / OLD / name)
            for name in names:
                os.rename(stage / name, path / name)
        except BaseException:
            take_back(stage)
            raise
        sync_folder(path)
    shutil.rmtree(stage / OLD, ignore_errors=True)  # first: where there is no list, there is nothing to put back
    shutil.rmtree(stage, ignore_errors=True)


def take_back(stage: Path) -> None:
    """Remove from around `stage` what was moved out of it, unless all was, and put back what was there before.

    A name alone is not believed, it must be that very entry: somebody else may have put the list there.
    """
    try:
        names = json.loads((stage / LIST).read_text(encoding="utf-8"))
        if any(os.path.lexists(stage / name) for name in names):
            for name, number in names.items():
                entry = stage.parent / name
                if entry.parent == stage.parent and os.path.lexists(entry) and os.lstat(entry).st_ino == number:
                    remove(entry)
            for name in os.listdir(stage / OLD) if not os.path.islink(stage / OLD) else ():
                if not os.path.lexists(stage.parent / name):
                    os.rename(stage / OLD / name, stage.parent / name)
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
    if not dead(folder):
        return
    with alone(folder):
        for name in dead(folder):
            if not os.path.islink(folder / name):
                take_back(folder / name)
            if not waiting(folder / name):
                remove(folder / name)


def waiting(stage: Path) -> bool:
    """Are there files that could not be put back, where the folder may not be written, say?"""
    try:
        names = json.loads((stage / LIST).read_text(encoding="utf-8"))
        return any(os.path.lexists(stage / name) for name in names) and bool(os.listdir(stage / OLD))
    except (OSError, ValueError, TypeError):
        return False
