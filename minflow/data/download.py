"""Download a file once: from the first mirror that answers, into `NAME.part`, verified by sha256, then renamed.

An interrupted download is continued at the next mirror or the next call, so a file under its final name is always
complete and verified. Independent of the file's contents. Read next: `files.py`, which reads it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ..core.base.errors import DataError
from ..core.files.atomic import resolved
from ..core.files.temporary import host, is_running, remove_ours
from ..core.source_location import here
from ..diagnosis.notebook import in_notebook
from ..io.files import status

BLOCK_SIZE = 1 << 16
TIMEOUT = 20.0  # seconds without a byte before the next mirror is tried


def sha256_of(path: Path) -> str:
    """The sha256 of a file, as 64 hex digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch(urls: Sequence[str], path: Path, sha256: str | None, limit: int, alternative: str = "") -> Path:
    """Download a file to `path` from the first of `urls` that has it.

    sha256: 64 hex digits, or None to skip the check.  limit: maximum size in bytes.
    alternative: what to use in place of this file, for the error message. Raises DataError, with each mirror and its
    reason.
    """
    import http.client

    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part_path(path) as part:
            reasons = {}
            for url in urls:
                try:
                    continued = part.exists() and part.stat().st_size > 0
                    resume_download(url, part, limit, path.name)
                    if continued and sha256 and sha256_of(part) != sha256:  # the partial download is of another file
                        part.unlink()
                        resume_download(url, part, limit, path.name)
                    verify_checksum(part, sha256)
                except (OSError, http.client.HTTPException, ValueError) as error:
                    if isinstance(error, OSError) and error.errno in (
                        errno.ENOSPC,
                        errno.EDQUOT,
                        errno.EACCES,
                        errno.EROFS,
                    ):
                        raise
                    reasons[url] = reason(error)
                else:
                    os.replace(part, path)
                    return path
    except OSError as error:
        raise DataError(
            f"{path.name} cannot be written to the download folder",
            values={"folder": path.parent, "reason": reason(error)},
            where=here(),
            hint="set the environment variable MINFLOW_DATA to a folder with free space",
        ) from None
    raise DataError(
        f"{path.name} is missing, and could not be downloaded from any of {len(reasons)} addresses",
        values=reasons | {"wanted": path} | ({"sha256": sha256} if sha256 else {}),
        where=here(),
        hint=f"copy {path.name} by hand to {path}" + (f", or {alternative}" if alternative else ""),
    )


def reason(error: BaseException) -> str:
    """Return the reason for a failure, in one line."""
    inner = getattr(error, "reason", None)  # of a URLError
    error = inner if isinstance(inner, Exception) else error
    return (str(error) or type(error).__name__).splitlines()[0]


@contextmanager
def part_path(path: Path) -> Iterator[Path]:
    """Path of the partial download of `path`. Concurrent processes get different ones."""
    part = path.with_name(f"{path.name}.part")
    lock = None
    status(resolved(part))  # a pipe would block forever, and another user's link could point to our file
    remove_stale_parts(path)
    try:
        import fcntl

        lock = open(part, "ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            part = path.with_name(f"{path.name}.{host()}.{os.getpid()}.part")
    except ImportError:  # no file locks on this system
        part = path.with_name(f"{path.name}.{host()}.{os.getpid()}.part")
    try:
        yield part
    finally:
        if lock is not None:
            lock.close()
        if part.exists() and (part.name != f"{path.name}.part" or not part.stat().st_size):
            part.unlink()


def remove_stale_parts(path: Path) -> None:
    """Remove partial downloads of this user's processes on this host that have ended."""
    for name in os.listdir(path.parent):
        pid = name.removeprefix(f"{path.name}.{host()}.").removesuffix(".part")
        is_part = name == f"{path.name}.{host()}.{pid}.part"
        if is_part and pid.isdecimal() and len(pid) < 10 and not is_running(int(pid)):
            with suppress(OSError):
                remove_ours(name, None, path.parent)


def resume_download(url: str, part: Path, limit: int, name: str) -> None:
    """Append the missing bytes of `url` to `part`; start again if the server cannot resume."""
    import urllib.error  # imported here because it is slow and most programs do not need it
    import urllib.request

    received = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "minflow", "Accept-Encoding": "identity"}
    if received:
        headers["Range"] = f"bytes={received}-"
    try:
        answer = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and received:
            return  # nothing left to download: complete, or another file; verify_checksum() decides
        raise
    with answer:
        continues = (
            received
            and answer.status == 206
            and answer.headers.get("Content-Range", "").startswith(f"bytes {received}-")
        )
        if not continues:
            received = 0
        length = answer.headers.get("Content-Length", "")
        total = received + int(length) if length.isdigit() else None
        if total is not None and total > limit:
            raise ValueError(f"it offers {total} bytes, more than the limit of {limit} for {name}")
        with open(part, "r+b" if part.exists() else "wb") as file, progress(name, total) as show:
            file.truncate(received)
            file.seek(received)
            while block := answer.read(BLOCK_SIZE):
                received += len(block)
                if received > limit:
                    file.truncate(0)
                    raise ValueError(f"it sends more than the limit of {limit} bytes for {name}")
                file.write(block)
                show(received)
            file.flush()
            os.fsync(file.fileno())
        if total is not None and received < total:
            raise ValueError(f"the connection ended after {received} of {total} bytes")


def verify_checksum(part: Path, sha256: str | None) -> None:
    """Delete and refuse a file whose checksum is wrong."""
    result = sha256_of(part)
    if sha256 is not None and result != sha256.lower():
        part.unlink()
        raise ValueError(f"the file has the sha256 {result}")


@contextmanager
def progress(name: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Progress on stderr, updated ten times a second; without a terminal or notebook, one line at the end."""
    start = last = time.monotonic()
    live = sys.stderr is not None and (sys.stderr.isatty() or in_notebook())
    received = 0

    def text() -> str:
        size = (
            f"{received / 1e6:.1f} of {total / 1e6:.1f} MB, {received * 100 // max(total, 1)} %"
            if total
            else f"{received / 1e6:.1f} MB"
        )
        return f"{name}: {size}, {received / 1e6 / max(time.monotonic() - start, 1e-3):.1f} MB/s"

    def show(done: int) -> None:
        nonlocal last, received
        received = done
        if live and time.monotonic() - last >= 0.1:
            last = time.monotonic()
            print(f"\r{text():<72}", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if sys.stderr is not None:
            print(f"\r{text():<72}" if live else text(), file=sys.stderr, flush=True)
