"""Names that look like one that is not there. Read next: `../core/messages/suggestions.py`, which knows slips of the
keyboard."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.messages.suggestions import LONGEST


def similar(name: str, known: Iterable[str], count: int = 3, cutoff: float = 0.6) -> list[str]:
    """At most `count` of `known`, the most similar first. cutoff: from 0, any name, to 1, the same."""
    from difflib import get_close_matches  # not needed while a program is right

    return get_close_matches(str(name)[:LONGEST], list(known), count, cutoff)
