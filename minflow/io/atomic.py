"""Write a folder atomically: next to its destination, flushed to disk, and then moved into place in one step.

There is no recovery journal: leftovers of a killed process never decide what is deleted or moved later. Systems without
such a step move the files one by one, while hidden copies keep the older files readable: `kept_copy` names them by the
hash of the file that is moved last, so a reader can verify them. Read next: `core/files/atomic.py`, which writes a
file; `container.py`.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from ..core.base.locks import exclusive_lock
from ..core.files.atomic import replace as replace, resolved as resolved, sync_folder as sync_folder, write as write
from ..core.files.temporary import NO_LINKS, TEMPORARY_NAME, private_folder, sweep as sweep

KEPT_COPY = re.compile(r"\.minflow\.[0-9a-f]{32}\.(.+)\.old", re.DOTALL)
LOCK_TIMEOUT = 5  # seconds to wait for other processes that save to the same folder
UNSUPPORTED_ERRNOS = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EBUSY, errno.EXDEV, errno.EPERM, errno.EACCES}
EXISTS_ERRNOS = {errno.EEXIST, errno.ENOTEMPTY}


def new_folder(path: Path, fill: Callable[[Path], None], last: str, old_names: Collection[str] = ()) -> None:
    """Create the folder `path` with the files that `fill(folder)` writes; `last` is the file that is moved last.

    The folder may exist if it is empty. old_names: file names of an older folder of the same kind, which is replaced.
    The contents of `last` must change whenever those of another file do. Anything else in the folder raises
    FileExistsError. Raises the same errors as `replace`.
    A folder that cannot be exchanged (a mount, or the working directory) gets the new files one by one.
    """
    path = resolved(path)
    inside = replaceable_files(path, old_names) is not None and cannot_be_exchanged(path)
    parent = path if inside else path.parent
    parent.mkdir(parents=True, exist_ok=True)
    sweep(path)
    sweep(parent)
    with private_folder(parent) as new:
        fill(new)
        with exclusive_lock(path.parent, LOCK_TIMEOUT) as free:
            if inside or not rename_into_place(new, path, old_names):
                if not free:  # two processes that move files into one folder would mix them
                    raise OSError(errno.EBUSY, "another process is saving to it and does not finish")
                move_in(new, path, last, old_names)
    sync_folder(parent)


def replaceable_files(path: Path, old_names: Collection[str]) -> list[str] | None:
    """The names of all files of the folder `path`: all of `old_names`, or none; None if there is no folder.

    Raises FileExistsError for a folder with other contents. A folder that another process exchanges meanwhile is
    checked again: its files are deleted while they are listed.
    """
    while True:
        before = identity(path)
        try:
            return check_contents(path, old_names)
        except FileNotFoundError:
            if before is None:
                return None
            if identity(path) == before:
                raise
        except OSError:
            if identity(path) == before:
                raise


def identity(path: Path) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns


def check_contents(path: Path, old_names: Collection[str]) -> list[str]:
    names = [name for name in sorted(os.listdir(path)) if not TEMPORARY_NAME.fullmatch(name)]
    files = [name for name in names if stat.S_ISREG(os.lstat(path / name).st_mode)]
    copies = [name for name in files if old_names and KEPT_COPY.fullmatch(name)]
    strange = [name for name in names if name not in copies and (name not in old_names or name not in files)]
    names = [name for name in names if name not in copies]
    if not strange and names and len(names) < len(old_names):
        strange = names
    if strange:
        raise FileExistsError(errno.EEXIST, f"the folder holds {abbreviate(strange)}, which would be lost")
    for name in ("", *names):  # the folder around it may allow more than this one, which is protected
        if not os.access(path / name, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path / name))
    return names


def abbreviate(names: list[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def cannot_be_exchanged(path: Path) -> bool:
    """True if a folder cannot be exchanged: a mount, a parent of the working directory, or in a protected folder."""
    try:
        here = Path.cwd()
    except FileNotFoundError:
        here = path.parent
    return os.path.ismount(path) or path in (here, *here.parents) or not os.access(path.parent, os.W_OK)


def copy_attributes(new: Path, old: Path) -> None:
    """Give a new file or folder the mode and attributes of the old one and, if permitted, its owner."""
    before = os.stat(old)
    if hasattr(os, "chown"):
        with suppress(OSError):
            os.chown(new, before.st_uid, before.st_gid)
    os.chmod(new, stat.S_IMODE(before.st_mode))
    with suppress(OSError, AttributeError):  # other systems, and file systems without attributes
        for name in os.listxattr(old):  # access control lists, for example
            os.setxattr(new, name, os.getxattr(old, name))


def rename_into_place(new: Path, path: Path, old_names: Collection[str]) -> bool:
    """Move the new folder into place in one step; return False if the system cannot."""
    while True:
        names = replaceable_files(path, old_names)
        try:
            if names is not None:
                if any(map(TEMPORARY_NAME.fullmatch, os.listdir(path))):  # another process is moving files into it
                    return False
                for name in ("", *names):
                    copy_attributes(new / name, path / name)
                sync_folder(new)
            if names:
                return replace_folder(new, path, old_names)
            if names is not None and os.name == "nt":  # on Windows a rename never replaces
                os.rmdir(path)
            os.rename(new, path)
            return True
        except OSError as error:
            if names is not None and error.errno in UNSUPPORTED_ERRNOS:
                return False
            # Without locks, another process may just have saved there.
            if (
                not old_names
                or error.errno not in EXISTS_ERRNOS | {errno.ENOENT}
                or not new.is_dir()
                or not path.is_dir()
            ):
                raise


def replace_folder(new: Path, path: Path, old_names: Collection[str]) -> bool:
    """Replace an older folder and delete its files; return False if the system cannot do so in one step."""
    before = os.stat(path)
    if not exchange(new, path):
        return False
    try:
        check_contents(new, old_names)  # again: other files may have been added meanwhile
    except OSError:
        exchange(new, path)
        raise
    old = os.open(new, NO_LINKS)
    try:
        for name in os.listdir(old) if os.path.samestat(os.fstat(old), before) else ():
            with suppress(OSError):
                if name in old_names or KEPT_COPY.fullmatch(name):
                    os.unlink(name, dir_fd=old)
                else:  # added since the check
                    os.rename(name, path / name, src_dir_fd=old)
    finally:
        os.close(old)
    return True


def exchange(a: Path, b: Path) -> bool:
    """Exchange two folders in one step; return False if the system or the file system cannot."""
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
    if result and number not in UNSUPPORTED_ERRNOS:
        raise OSError(number, os.strerror(number))
    return not result


def move_in(new: Path, path: Path, last: str, old_names: Collection[str]) -> None:
    """Move all entries of `new` into the folder `path`.

    Until `last` is moved, `kept_copy` names copies of the older files; a reader that verifies them against the older
    `last` sees either the complete old folder or the complete new one.
    """
    names = replaceable_files(path, old_names) or []
    copies = {}
    for name in names:
        if name != last:
            with open(path / last, "rb") as file:
                copies[name] = kept_copy(path, name, file)
            if not os.path.lexists(copies[name]):  # left by a killed save of this state
                link_or_copy(path / name, copies[name])
    sync_folder(path)
    entries = sorted(os.listdir(new), key=lambda name: (name == last, name))
    try:
        for name in entries:
            os.replace(new / name, path / name)
    except BaseException:
        if os.path.lexists(new / last):
            for name in entries:
                if not os.path.lexists(new / name):
                    os.replace(*((copies[name], path / name) if name in copies else (path / name, new / name)))
            drop_copies(path)
        raise
    sync_folder(path)
    drop_copies(path)


def kept_copy(path: Path, name: str, last: BinaryIO) -> Path:
    """The path of the copy of the file `name` while another process moves files in the folder.

    Its name contains the hash of the folder's last file (open here), against which a reader must verify the copy.
    """
    last.seek(0)
    return path / f".minflow.{hashlib.file_digest(cast(Any, last), 'sha256').hexdigest()[:32]}.{name}.old"


def drop_copies(path: Path) -> None:
    """Delete the copies of a finished save. The folder is ours: `check_contents` found nothing else in it."""
    for name in os.listdir(path):
        if KEPT_COPY.fullmatch(name):
            with suppress(OSError):
                os.unlink(path / name)


def link_or_copy(file: Path, copy: Path) -> None:
    """Hard-link a file or, if the file system cannot, copy it."""
    try:
        os.link(file, copy)
    except OSError:
        with open(file, "rb") as source:
            replace(copy, lambda out: shutil.copyfileobj(source, out))
