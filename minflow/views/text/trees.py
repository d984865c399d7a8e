"""Trees that stay small: of one that is too large its outer rows, and where others stood how many they are.

A tree is known here by how deep each of its rows lies, parents first. Read next: `listing.py`, trees of modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

LIMIT = 58_000  # bytes of a tree: it is saved with the notebook
ROWS = 400  # of a tree


def cut(text: str, most: int) -> str:
    """Without the middle of a long text: both ends say more."""
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-(most // 2) :]}"


def sized(draw: Callable[[int], str], limit: int = LIMIT, most: int = ROWS) -> str:
    """`draw(most)`, the tree in at most so many rows, of as many as keep it within `limit` bytes."""
    while len((text := draw(most)).encode("utf-8", "replace")) > limit and most > 4:
        most = most * 3 // 4
    return text


def outer_rows(depths: Sequence[int], most: int, wanted: Sequence[int] = ()) -> Iterator[tuple[int, int, int]]:
    """(row, depth, 0) of each row that is shown; (first of them, depth, n) of n others that follow each other.

    The outermost rows are shown, of one depth the first; `wanted` in any case.
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


def outer_lines(text: str, limit: int = LIMIT) -> str:
    """A text whose lines are indented by two columns a level, within `limit` bytes."""
    if len(text) < limit // 4:
        return text
    lines = text.split("\n")
    depths = [(len(line) - len(line.lstrip(" "))) // 2 for line in lines]

    def draw(most: int) -> str:
        rows = outer_rows(depths, most)
        return "\n".join(
            [f"{'  ' * depth}... {n:,} more line{'s' * (n > 1)}" if n else lines[i] for i, depth, n in rows]
        )

    whole = text.encode("utf-8", "replace")
    return text if len(whole) <= limit else sized(draw, limit, len(lines))
