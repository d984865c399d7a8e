"""Two books that ship with minflow, 95 kB, without a download: `text("alice")`, `text("tang")`. Sources: NOTICE.

Read next: `sums.py`, a language of thirteen symbols.
"""

from __future__ import annotations

import gzip
from pathlib import Path

from ..core.base.errors import OutOfRangeError
from ..core.messages.suggestions import nearest
from ..core.source_location import fail

TEXTS = ("alice", "tang")


def text(name: str) -> str:
    """A book to learn letters from, as one text.

    "alice": Lewis Carroll, "Alice's Adventures in Wonderland" (1865), in English: 144,354 characters, 69 different
    ones, twelve chapters.
    "tang": "Three Hundred Tang Poems" (collected by Sun Zhu, 1763), in Chinese, simplified characters: 313 poems,
    28,002 characters, 2,579 different ones. Each begins with a line of its title and its poet; an empty line ends it.
    Both are in the public domain. Raises OutOfRangeError for another name.

    >>> text("alice")[82:130]
    'Alice was beginning to get very tired of sitting'
    """
    if name not in TEXTS:
        hint = " or ".join(f'"{known}"' for known in nearest(str(name), TEXTS) or TEXTS)
        fail(OutOfRangeError, "text: no such text ships with minflow", hint, name=name)
    return gzip.decompress(Path(__file__).with_name("texts").joinpath(f"{name}.txt.gz").read_bytes()).decode("utf-8")
