"""Trees cut to a size: the outer rows of a large tree, and counts in place of the others.

A tree is given by the depth of each of its rows, parents first. Read next: `listing.py`, trees of modules.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

MAX_BYTES = 58_000  # bytes of a tree, which is saved with the notebook
MAX_ROWS = 400  # rows of a tree


def cut(text: str, most: int) -> str:
    """Cut the middle out of a long text: its ends say more."""
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-(most // 2) :]}"


def within_limit(draw: Callable[[int], str], limit: int = MAX_BYTES, most: int = MAX_ROWS) -> str:
    """`draw(most)`, a tree of at most `most` rows, for the largest `most` tried whose tree is within `limit` bytes."""
    while len((text := draw(most)).encode("utf-8", "replace")) > limit and most > 4:
        most = most * 3 // 4
    return text


def outer_rows(depths: Sequence[int], most: int, wanted: Sequence[int] = ()) -> Iterator[tuple[int, int, int]]:
    """Yield (row, depth, 0) for each shown row, and (first row, depth, n) for n consecutive hidden ones.

    Shows the outermost rows, the first ones if they have the same depth, and always those in `wanted`.
    """
    first = sorted(range(len(depths)), key=depths.__getitem__)[:most] if len(depths) > most else range(len(depths))
    shown, i = {*first, *wanted}, 0
    while i < len(depths):
        end = i
        while end < len(depths) and end not in shown:
            end += 1
        if end > i:
            yield i, min(depths[i:end]), end - i
        if end < len(depths):
            yield end, depths[end], 0
        i = end + 1


def outer_lines(text: str, limit: int = MAX_BYTES) -> str:
    """A text with two columns of indentation per level, cut to `limit` bytes."""
    if len(text) < limit // 4:
        return text
    lines = text.split("\n")
    depths = [(len(line) - len(line.lstrip(" "))) // 2 for line in lines]

    def draw(most: int) -> str:
        rows = outer_rows(depths, most)
        return "\n".join(
            [f"{'  ' * depth}... {n:,} more line{'s' * (n > 1)}" if n else lines[i] for i, depth, n in rows]
        )

    if len(text.encode("utf-8", "replace")) <= limit:
        return text
    outer, most = sorted(range(len(depths)), key=depths.__getitem__), len(lines)
    sizes = [0, *itertools.accumulate(len(lines[i]) + 1 for i in outer)]
    while sizes[most] > limit + 1 and most > 4:  # as `within_limit`, without drawing trees that are certainly too large
        most = most * 3 // 4
    return within_limit(draw, limit, most)
