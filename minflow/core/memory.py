"""Free memory: checked before large allocations so that the OOM killer does not end the process, and reused.

Free memory is MemAvailable plus free swap, bounded by what the limits of the process (ulimit -v) and of its control
groups (those of a container, for example) leave. If the system does not report it, nothing is refused.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MIN_CHECKED_BYTES = 1 << 26  # bytes: smaller requests are not compared with the free memory
# files of control groups, version 2 and 1: (folder of the groups, limit, usage, reclaimable part of memory.stat)
CGROUP_FILES = (
    ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
MAX_RETAINED_BYTES = 1 << 30  # bytes of freed memory that the allocator keeps at the end of its heap
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # parameters of mallopt, from malloc.h
SETTINGS = "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"  # variables that have priority


def free_bytes(root: Path | None = None) -> int | None:
    """Number of bytes that this process can still allocate, or None if unknown. root: the root folder, for tests."""
    from pathlib import Path  # at first use: import takes 3 ms

    root = root or Path("/")
    known = read_numbers(root / "proc/meminfo")
    free = [1024 * (known["MemAvailable"] + known.get("SwapFree", 0))] if "MemAvailable" in known else []
    for top, limit, used, kept in CGROUP_FILES:
        for folder in cgroup_folders(root, root / top):
            most, now = read_number(folder / limit), read_number(folder / used)
            if most is not None and now is not None:
                free.append(max(most - now + read_numbers(folder / "memory.stat").get(kept, 0), 0))
    limit = next(
        (
            line.split()[3]
            for line in read_text(root / "proc/self/limits").splitlines()
            if line.startswith("Max address space")
        ),
        "",
    )
    used = read_numbers(root / "proc/self/status").get("VmSize")
    if limit.isdecimal() and used is not None:  # ulimit -v
        free.append(max(int(limit) - 1024 * used, 0))
    return min(free, default=None)


def cgroup_folders(root: Path, top: Path) -> Iterable[Path]:
    """The folders of the control groups of this process, from its own up to the root."""
    yield top
    for line in read_text(root / "proc/self/cgroup").splitlines():
        number, names, path = ([*line.split(":", 2), "", ""])[:3]
        if number == "0" or "memory" in names.split(","):
            parts = [part for part in path.split("/") if part]
            yield from (top.joinpath(*parts[:n]) for n in range(len(parts), 0, -1) if ".." not in parts)


def read_text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def read_number(path: Path) -> int | None:
    """The number in a file, or None if it contains something else, such as "max"."""
    found = read_text(path).strip()
    return int(found) if found.isdecimal() else None


def read_numbers(path: Path) -> dict[str, int]:
    """Parse a file with a name and a number per line."""
    rows = [line.replace(":", " ").split() for line in read_text(path).splitlines()]
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}


def free_bytes_if_short(needed: int) -> int | None:
    """The free bytes if fewer than `needed`, also without the memory that the allocator retains; else None."""
    if needed <= MIN_CHECKED_BYTES or (free := free_bytes()) is None or needed <= free:
        return None
    if release_freed_memory() and (free := free_bytes()) is not None and needed <= free:
        return None
    return free


def retain_freed_memory() -> bool:
    """Let glibc reuse the memory of freed arrays, instead of returning it to the system; True if it does.

    The system zeroes new memory page by page, which takes up to a quarter of an eager training step. glibc retains up
    to 64 MiB by default, now up to an eighth of the free memory; larger arrays than half of that are still returned.
    """
    if any(name in os.environ for name in SETTINGS) or (libc := glibc()) is None:
        return False
    retained = min(MAX_RETAINED_BYTES, (free_bytes() or 0) // 8)
    return retained > MIN_CHECKED_BYTES and bool(
        libc.mallopt(M_MMAP_THRESHOLD, retained // 2) and libc.mallopt(M_TRIM_THRESHOLD, retained)
    )


def release_freed_memory() -> bool:
    """Return the memory of freed arrays to the system; True if glibc had some."""
    return (libc := glibc()) is not None and bool(libc.malloc_trim(0))


def glibc():
    """The C library, if it is glibc: malloc_trim is a function of glibc alone."""
    if sys.platform != "linux":
        return None
    import ctypes

    libc = ctypes.CDLL(None)
    if not hasattr(libc, "malloc_trim"):
        return None
    libc.malloc_trim.argtypes = [ctypes.c_size_t]
    return libc


def size_text(nbytes: int) -> str:
    return f"{nbytes / 1e9:,.1f} GB" if nbytes >= 1e9 else f"{nbytes / 1e6:,.1f} MB"
