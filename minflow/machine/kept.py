"""What is compiled is kept on disk: by numba, which sees by the one file of a function whether it has changed.

A compiled function of this room holds code of the room's other files, too, so here any change of any of them counts:
else old and new code meet after an update, and the process ends in a segmentation fault. Imported first of all.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from numba.core.caching import CacheImpl

ROOM = Path(__file__).parent
STAMP = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(ROOM.glob("*.py")))).hexdigest()


def of_this_room(kind: type) -> type:
    """One of numba's ways to find a place, for functions of this room alone, and with the stamp of all its files."""

    class Located(kind):
        @classmethod
        def from_function(cls, function, file):
            return super().from_function(function, file) if Path(file).parent == ROOM else None

        def get_source_stamp(self):
            return STAMP

    return Located


CacheImpl._locator_classes = [*map(of_this_room, CacheImpl._locator_classes), *CacheImpl._locator_classes]
