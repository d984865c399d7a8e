"""What an earlier process compiled is kept in files by numba, which looks at each file of source by itself. Code of one
file is compiled into that of others, so after a change of any of them nothing that is kept may be used.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

NOTE = "compiled-of.txt"  # beside what was compiled: of which sources


def forget_old(folder: Path) -> bool:
    """Delete what was compiled of other sources than those that stand there; had anything to be deleted?"""
    kept, sources = folder / "__pycache__", [(file.name, file.stat()) for file in sorted(folder.glob("*.py"))]
    now = "\n".join([f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in sources])
    with contextlib.suppress(OSError):  # what cannot be written was not kept there
        if (kept / NOTE).is_file() and (kept / NOTE).read_text() == now:
            return False
        old = [file for kind in ("*.nbi", "*.nbc") for file in kept.glob(kind)]
        for file in old:
            file.unlink(missing_ok=True)
        kept.mkdir(exist_ok=True)
        (kept / NOTE).write_text(now)
        return bool(old)
    return False
