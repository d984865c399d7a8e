"""Atomic writes of files: write to a hidden file in the same folder, sync it to disk, and rename it into place.

`replace` writes all files that minflow writes for users. A reader of the path sees either the old or the new file,
complete, even if the process is killed or the disk is full. Must not depend on the contents.
Read next: `temporary.py`; `io/atomic.py`, which does the same for a folder.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from ..base.errors import FileError
from ..base.locks import locked
from .temporary import sweep, temporary

SPECIAL_FILE_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
MAX_LINKS = 40  # largest number of symbolic links in a path, as on Linux


def replace(path: str | os.PathLike, write: Callable[[BinaryIO], object]) -> None:
    """Replace the contents of `path` by what `write(file)` writes. Raises OSError, or any error of `write`; the old
    file is then unchanged.

    The file is buffered: its `write` writes all of the data or raises. A link stays a link, to the new file; a file
    keeps its mode and, if the process has the right to set it, its owner.
    """
    path = resolved(path)
    old = status(path)
    if old is not None and stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if old is not None and not os.access(path, os.W_OK):  # a rename would ignore the protection of the file
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    mode = 0o666 if old is None else stat.S_IMODE(old.st_mode)
    sweep(path.parent)
    with temporary(path.parent) as beside:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode | 0o200), "wb") as file:
            locked(file.fileno())
            if old is not None and hasattr(os, "fchown"):  # Windows has fchmod, from Python 3.13 on, but no owners
                with suppress(OSError):
                    os.fchown(file.fileno(), old.st_uid, old.st_gid)
                os.fchmod(file.fileno(), mode)
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    sync_folder(path.parent)


def write(path: str | os.PathLike, data: bytes | str, what: str = "", where: Callable[[], str] = str) -> None:
    """Write `data` to the file `path`, a str as UTF-8. Raises FileError, which is an OSError.

    what: the user's call, for the error.  where: returns the place of that call in the user's program.
    """
    data = data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data
    try:
        replace(path, lambda file: file.write(data))
    except OSError as error:
        values = {"file": path, "size": f"{len(data):,} bytes", "old file": old_file_state(path)}
        what = f"{what and f'{what}: '}{os.fspath(path)} cannot be written: {error.strerror or error}"
        refused = FileError(what, values=values, where=where(), hint=write_hint(Path(path)))
        refused.errno, refused.strerror, refused.filename = error.errno, error.strerror, os.fspath(path)
        raise refused from error


def old_file_state(path: str | os.PathLike) -> str:
    return "unchanged" if os.path.isfile(path) else "there is none"


def write_hint(path: Path) -> str:
    """The hint of the error if `path` cannot be written."""
    if not os.path.isdir(path.parent):
        return f'make the folder first: os.makedirs("{path.parent}")'
    if os.path.isdir(path) and path.suffix:
        return f"{path} is a folder: use another name"
    return f"check that {path.parent} is writable and has free space (df -h)"


def status(path: str | os.PathLike) -> os.stat_result | None:
    """The stat of the path, following links; None if there is no file. Raises OSError unless it is a plain file or a
    folder.
    """
    try:
        result = os.stat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(result.st_mode) and not stat.S_ISDIR(result.st_mode):
        raise OSError(
            errno.EINVAL, f"it is {SPECIAL_FILE_KINDS.get(stat.S_IFMT(result.st_mode), 'something else')}, not a file"
        )
    return result


def resolved(path: str | os.PathLike) -> Path:
    """The absolute path without links.

    Raises PermissionError if a link, or the file at the path, was made by another user in a folder that all users may
    write, such as /tmp. Linux does the same in `open` (fs.protected_symlinks, fs.protected_regular).
    """
    if os.name == "nt":
        return Path(os.path.realpath(path))
    text = os.fspath(path)
    todo, place, links = [*reversed(Path(text).parts)], "/" if os.path.isabs(text) else os.getcwd(), 0
    while todo:
        name = todo.pop()
        if name == "..":
            place = os.path.dirname(place)
            continue
        entry = os.path.join(place, name)
        try:
            found = os.lstat(entry)
        except OSError:  # the folder may be made later; otherwise opening the path raises
            place = entry
            continue
        link = stat.S_ISLNK(found.st_mode)
        if (link or not todo) and is_foreign_entry(found, os.stat(place)):
            kind = "a link" if link else "it"
            raise PermissionError(errno.EACCES, f"{kind} belongs to another user, in a folder that all users may write")
        if link and links == MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if link:
            links += 1
            todo += reversed(Path(os.readlink(entry)).parts)  # an absolute link starts with "/", where join restarts
        else:
            place = entry
    return Path(place)


def is_foreign_entry(entry: os.stat_result, folder: os.stat_result) -> bool:
    """True if an entry of a sticky folder that all users may write belongs neither to us nor to the folder's owner."""
    public = stat.S_ISVTX | stat.S_IWOTH
    return folder.st_mode & public == public and entry.st_uid not in (os.geteuid(), folder.st_uid)


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` survive a power failure, if the system supports it."""
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
