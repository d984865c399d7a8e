"""Write a file all or nothing: under a hidden name beside it, to the disk, and then in place by one rename.

All files that minflow writes for users go through `replace`. A reader of the path sees the old file or the new one,
whole, even if the process is killed or the disk is full. Knows nothing of the contents. Read next: `temporary.py`;
`io/atomic.py`, which does the same for a folder.
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

KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket"}
LINKS = 40  # links that a path may lead through, as on Linux


def replace(path: str | os.PathLike, write: Callable[[BinaryIO], object]) -> None:
    """Make `path` contain what `write(file)` writes. Raises OSError, or what `write` raises; then nothing has changed.

    The file is buffered: its `write` takes all of the data or raises. A link stays a link, to the new file; a file
    keeps its mode and, if we may give it away, its owner.
    """
    path = resolved(path)
    old = status(path)
    if old is not None and stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if old is not None and not os.access(path, os.W_OK):  # the folder would allow it; the file is protected
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
    """Make the file `path` contain `data`; a text is written as UTF-8. Raises FileError, which is an OSError.

    what: the learner's call, for the error.  where: gives the place of that call in the learner's program.
    """
    data = data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data
    try:
        replace(path, lambda file: file.write(data))
    except OSError as error:
        values = {"file": path, "size": f"{len(data):,} bytes", "old file": left_as(path)}
        what = f"{what and f'{what}: '}{os.fspath(path)} cannot be written: {error.strerror or error}"
        refused = FileError(what, values=values, where=where(), hint=advice(Path(path)))
        refused.errno, refused.strerror, refused.filename = error.errno, error.strerror, os.fspath(path)
        raise refused from error


def left_as(path: str | os.PathLike) -> str:
    return "unchanged" if os.path.isfile(path) else "there is none"


def advice(path: Path) -> str:
    """What to try if `path` cannot be written."""
    if not os.path.isdir(path.parent):
        return f'make the folder first: os.makedirs("{path.parent}")'
    if os.path.isdir(path) and path.suffix:
        return f"{path} is a folder: another name"
    return f"look whether {path.parent} has room (df -h) and may be written"


def status(path: str | os.PathLike) -> os.stat_result | None:
    """The stat of the path, links followed, or None if nothing is there. Raises OSError unless it is a plain file or a
    folder."""
    try:
        result = os.stat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(result.st_mode) and not stat.S_ISDIR(result.st_mode):
        raise OSError(errno.EINVAL, f"it is {KINDS.get(stat.S_IFMT(result.st_mode), 'something else')}, not a file")
    return result


def resolved(path: str | os.PathLike) -> Path:
    """The path from the root, without links.

    Raises PermissionError for a link, or for what is at the path, if another user put it into a folder like /tmp, which
    all users may write. Linux refuses the same to `open` (fs.protected_symlinks, fs.protected_regular).
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
        except OSError:  # the folder is made later, or the user of the path gets the error
            place = entry
            continue
        link = stat.S_ISLNK(found.st_mode)
        if (link or not todo) and planted(found, os.stat(place)):
            kind = "a link" if link else "it"
            raise PermissionError(errno.EACCES, f"{kind} belongs to another user, in a folder that all users may write")
        if link and links == LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if link:
            links += 1
            todo += reversed(Path(os.readlink(entry)).parts)  # of a link from the root: "/" first, which join goes to
        else:
            place = entry
    return Path(place)


def planted(entry: os.stat_result, folder: os.stat_result) -> bool:
    """True if an entry of a sticky folder that all users may write belongs neither to us nor to the folder's owner."""
    public = stat.S_ISVTX | stat.S_IWOTH
    return folder.st_mode & public == public and entry.st_uid not in (os.geteuid(), folder.st_uid)


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` outlast a power cut, if the system can."""
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
