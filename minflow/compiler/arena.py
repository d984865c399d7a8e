"""Offsets of values in one buffer: two values may share bytes if their live ranges do not overlap.

Source: Pisarchyk & Lee 2020, "Efficient memory management for deep neural net inference" (arXiv:2001.03288), section
5.2, greedy by size: the largest first, each in the lowest gap that is large enough. Read next: `buffer_assignment.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from heapq import heappop, heappush
from typing import NamedTuple

from ..core.backend import namespace

ALIGN = 64  # bytes: a cache line, and enough for every vector instruction
# With more than MANY values, those of at most LITTLE bytes are not placed in gaps between the others.
MANY, LITTLE = 2_000, 4_096


class BufferRequest(NamedTuple):
    """Bytes of a value, and its live range: the first and last step that need it (both included)."""

    nbytes: int
    first: int
    last: int


def place(needs: Mapping[Hashable, BufferRequest]) -> tuple[dict, int]:
    """Return ({value: offset in bytes}, total bytes), without overlaps in both bytes and live range.

    The time to find gaps is quadratic in the number of values; if there are many, small ones are placed after the
    others.
    """
    order = sorted(needs, key=lambda v: (-needs[v].nbytes, needs[v].first))
    small = [v for v in order if needs[v].nbytes <= LITTLE] if len(order) > MANY else []
    order = order[: len(order) - len(small)]
    xp = namespace()
    first, last, low, high = (xp.zeros(len(order), "int64") for _ in range(4))
    offsets, total = {}, 0
    for n, value in enumerate(order):
        size = -(-needs[value].nbytes // ALIGN) * ALIGN
        beside = xp.flatnonzero((first[:n] <= needs[value].last) & (last[:n] >= needs[value].first))
        beside = beside[xp.argsort(low[beside], kind="stable")]
        ends = xp.maximum.accumulate(xp.concatenate(([0], high[beside])))  # end of the values below each gap
        gaps = xp.flatnonzero(low[beside] - ends[:-1] >= size)
        offset = int(ends[gaps[0]] if gaps.size else ends[-1])
        offsets[value] = offset
        first[n], last[n], low[n], high[n] = needs[value].first, needs[value].last, offset, offset + size
        total = max(total, offset + size)
    return offsets, in_slots(needs, small, offsets, total)


def in_slots(needs: Mapping[Hashable, BufferRequest], values: Iterable, offsets: dict, total: int) -> int:
    """Place these values from byte `total` on, each in a free slot of its own size; return the new total."""
    free: defaultdict[int, list[int]] = defaultdict(list)  # size -> offsets
    taken: list[tuple[int, int, int]] = []  # (last step, size, offset)
    for value in sorted(values, key=lambda v: needs[v].first):
        while taken and taken[0][0] < needs[value].first:
            _, size, offset = heappop(taken)
            heappush(free[size], offset)
        size = -(-needs[value].nbytes // ALIGN) * ALIGN
        offsets[value], total = (heappop(free[size]), total) if free[size] else (total, total + size)
        heappush(taken, (needs[value].last, size, offsets[value]))
    return total


def least(needs: Mapping[Hashable, BufferRequest]) -> int:
    """Return the largest sum of bytes that one step needs: a lower bound for any placement."""
    change: dict[int, int] = {}
    for need in needs.values():
        size = -(-need.nbytes // ALIGN) * ALIGN
        change[need.first] = change.get(need.first, 0) + size
        change[need.last + 1] = change.get(need.last + 1, 0) - size
    now = peak = 0
    for step in sorted(change):
        now += change[step]
        peak = max(peak, now)
    return peak
