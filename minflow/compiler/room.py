"""Is there memory for a plan? Asked before it is allocated: a system that runs out ends the whole process instead.

Free is what Linux calls available, with what can be swapped out, and no more than the control group of the process,
such as a container's, has left. Where nobody says it, nothing is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ..core.base.errors import OutOfMemoryError
from ..core.ir import Node, Source, Value, where_text

if TYPE_CHECKING:
    from pathlib import Path

LITTLE = 1 << 26  # bytes: less is not asked for
HINT = ("a smaller batch or smaller inputs; float32 instead of float64; in training also "
        "module.to(nn.graph.GraphModule).activation_checkpointing = True")
# the files of control groups, version 2 and 1: (where the groups are, limit, used, what is given back when asked)
GROUPS = (("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
          ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"))


def free_bytes(root: Path | None = None) -> int | None:
    """How many bytes this process can still take; None where that is not known. root: of the files of the system."""
    from pathlib import Path  # at first use: import takes 3 ms

    root = root or Path("/")
    known = numbers(root / "proc/meminfo")
    free = [1024 * (known["MemAvailable"] + known.get("SwapFree", 0))] if "MemAvailable" in known else []
    for top, limit, used, kept in GROUPS:
        for folder in groups_of(root, root / top):
            most, now = number(folder / limit), number(folder / used)
            if most is not None and now is not None:
                free.append(max(most - now + numbers(folder / "memory.stat").get(kept, 0), 0))
    return min(free, default=None)


def groups_of(root: Path, top: Path) -> Iterable[Path]:
    """The folders of the groups that this process is in, from its own up to the root."""
    yield top
    for line in text(root / "proc/self/cgroup").splitlines():
        number, names, path = (line.split(":", 2) + ["", ""])[:3]
        if number == "0" or "memory" in names.split(","):
            parts = [part for part in path.split("/") if part]
            yield from (top.joinpath(*parts[:n]) for n in range(len(parts), 0, -1) if ".." not in parts)


def text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def number(path: Path) -> int | None:
    """Of a file that holds one number; "max" is none."""
    found = text(path).strip()
    return int(found) if found.isdecimal() else None


def numbers(path: Path) -> dict[str, int]:
    """Of a file with a name and a number in each line."""
    rows = [line.replace(":", " ").split() for line in text(path).splitlines()]
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}


def need_room(needed: int, values: Iterable[Value], name_of: Callable[[Node], str], kernels: int = 0) -> None:
    """Raise OutOfMemoryError where a plan needs more than there is; the largest of its values are named.

    kernels: bytes of those needed that kernels compute with, and no value has.
    """
    if needed <= LITTLE or (free := free_bytes()) is None or needed <= free:
        return
    largest = sorted(dict.fromkeys(values), key=lambda v: -v.spec.nbytes)[:3]
    shown = {(v.node.name or "input") if isinstance(v.node, Source) else name_of(v.node):
             f"{v.spec}, {size(v.spec.nbytes)}, made at {where_text(v.node.where)}" for v in largest}
    within = f", {size(kernels)} of them for kernels to compute with" if kernels else ""
    raise OutOfMemoryError(f"the plan of this graph needs {size(needed)} of memory, and {size(free)} are free",
                           values={"needed": f"{needed} bytes{within}", "free": f"{free} bytes", **shown}, hint=HINT,
                           where=f"at {where_text(largest[0].node.where)}" if largest else "")


def size(nbytes: int) -> str:
    return f"{nbytes / 1e9:,.1f} GB" if nbytes >= 1e9 else f"{nbytes / 1e6:,.1f} MB"
