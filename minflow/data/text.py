"""Two books that ship with minflow (95 kB, no download): `text("alice")`, `text("tang")`. Sources: NOTICE.

Read next: `sums.py`, text over an alphabet of thirteen symbols.
"""

from __future__ import annotations

import gzip
from pathlib import Path

from ..core.base.errors import OutOfRangeError
from ..core.messages.suggestions import nearest
from ..core.source_location import fail

TEXTS = ("alice", "tang")


def text(name: str) -> str:
    """Return a book as one string, to train a character-level model on.

    "alice": Lewis Carroll, "Alice's Adventures in Wonderland" (1865), in English: 144,354 characters, 69 of them
    distinct, in twelve chapters.
    "tang": "Three Hundred Tang Poems" (collected by Sun Zhu, 1763), in Chinese, simplified characters: 313 poems,
    28,002 characters, 2,579 of them distinct. Each poem begins with a line that has its title and its poet, and ends
    with an empty line. Both are in the public domain. Raises OutOfRangeError for any other name.

    >>> text("alice")[82:130]
    'Alice was beginning to get very tired of sitting'
    """
    if name not in TEXTS:
        hint = " or ".join(f'"{known}"' for known in nearest(str(name), TEXTS) or TEXTS)
        fail(OutOfRangeError, "text: no such text ships with minflow", hint, name=name)
    return gzip.decompress(Path(__file__).with_name("texts").joinpath(f"{name}.txt.gz").read_bytes()).decode("utf-8")
