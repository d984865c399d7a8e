"""Address ranges of arrays: which of many arrays share bytes with another one. Read next: `trace.py`."""

from __future__ import annotations

import bisect
import operator
from typing import Generic, TypeVar

from .backend import Array, backend_of_array

Item = TypeVar("Item")


class ArraySpans(Generic[Item]):
    """Items by the address ranges of their arrays, of which no two overlap; a search takes logarithmic time."""

    def __init__(self) -> None:
        self.spans: list[tuple[int, int, Array, Item]] = []  # (address of the first byte, that after the last, ...)

    def add(self, array: Array, item: Item) -> None:
        """Add an array. One without elements has no bytes and overlaps none."""
        if array.size:
            bisect.insort(self.spans, (*byte_bounds(array), array, item), key=operator.itemgetter(0))

    def at(self, array: Array) -> list[Item]:
        """The items of which an array has bytes, from its first to its last, in the order of their addresses."""
        first, end = byte_bounds(array)
        found, i = [], max(bisect.bisect(self.spans, first, key=operator.itemgetter(0)) - 1, 0)
        while array.size and i < len(self.spans) and self.spans[i][0] < end:
            _, stop, other, item = self.spans[i]
            if first < stop and backend_of_array(other) is backend_of_array(array):
                found.append(item)
            i += 1
        return found


def byte_bounds(array: Array) -> tuple[int, int]:
    return backend_of_array(array).byte_bounds(array)
