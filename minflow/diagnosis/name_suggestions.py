"""Existing names that are similar to a missing one. Read next: `../core/messages/suggestions.py`, for typing
errors.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..core.messages.suggestions import MAX_NAME_LENGTH


def similar_names(name: str, known: Iterable[str], count: int = 3, cutoff: float = 0.6) -> list[str]:
    """At most `count` names of `known`, the most similar first. cutoff: from 0, any name, to 1, equal names."""
    from difflib import get_close_matches  # imported only when an error occurs

    return get_close_matches(str(name)[:MAX_NAME_LENGTH], list(known), count, cutoff)
