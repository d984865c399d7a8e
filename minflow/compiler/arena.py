"""Places for values in one buffer: two values may share bytes if they are never needed at the same time.

Source: Pisarchyk & Lee 2020, "Efficient memory management for deep neural net inference" (arXiv:2001.03288), section 5.2,
greedy by size: the largest first, each at the lowest gap that is wide enough.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import NamedTuple

import numpy as np

ALIGN = 64  # bytes: a cache line, and enough for every vector instruction


class Need(NamedTuple):
    """How many bytes a value takes, and the first and last step that it is needed at (both included)."""

    nbytes: int
    first: int
    last: int


def place(needs: Mapping[Hashable, Need]) -> tuple[dict, int]:
    """({value: offset in bytes}, bytes in all): no two values overlap in bytes and in steps."""
    order = sorted(needs, key=lambda v: (-needs[v].nbytes, needs[v].first))
    first, last, low, high = (np.zeros(len(order), "int64") for _ in range(4))
    offsets, total = {}, 0
    for n, value in enumerate(order):
        size = -(-needs[value].nbytes // ALIGN) * ALIGN
        beside = np.flatnonzero((first[:n] <= needs[value].last) & (last[:n] >= needs[value].first))
        beside = beside[np.argsort(low[beside], kind="stable")]
        ends = np.maximum.accumulate(np.concatenate(([0], high[beside])))  # where what lies below each gap ends
        gaps = np.flatnonzero(low[beside] - ends[:-1] >= size)
        offset = int(ends[gaps[0]] if gaps.size else ends[-1])
        offsets[value] = offset
        first[n], last[n], low[n], high[n] = needs[value].first, needs[value].last, offset, offset + size
        total = max(total, offset + size)
    return offsets, total


def least(needs: Mapping[Hashable, Need]) -> int:
    """The largest sum of bytes that are needed at one step: no placement can do with less."""
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
