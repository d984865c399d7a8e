"""Downsampling of a long line: the extremes of its buckets, and means over windows.

Finished buckets are cached, so that an update of a long run costs no more than of a short one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

FIRST_INDEX = np.zeros(1, int)


class ExtremesCache:
    """Indices of the minimum and maximum of each bucket; full buckets are processed once."""

    def __init__(self) -> None:
        self.size, self.full, self.known = 0, 0, np.empty(0, int)

    def indices(self, values: np.ndarray, limit: int) -> np.ndarray:
        """At most `limit` indices, increasing, with the first and the last one. A bucket without finite values keeps
        one, as a gap.
        """
        n = len(values)
        if n <= limit:
            return np.arange(n)
        size = bucket_size(n, (limit - 4) // 2)
        if size != self.size:
            self.size, self.full, self.known = size, 0, np.empty(0, int)
        full = n // size
        if full > self.full:
            new = extremes(values[self.full * size : full * size].reshape(-1, size)) + self.full * size
            self.known, self.full = np.concatenate([self.known, new]), full
        rest = values[full * size :]
        tail = extremes(rest.reshape(1, -1)) + full * size if len(rest) else self.known[:0]
        at = np.concatenate([FIRST_INDEX, self.known, tail, [n - 1, n]])
        return at[:-1][at[1:] != at[:-1]]


def bucket_size(n: int, buckets: int) -> int:
    """The least power of two such that `buckets` buckets hold n values; it rarely changes while n grows."""
    return 1 << (-(-n // buckets) - 1).bit_length()


def extremes(rows: np.ndarray) -> np.ndarray:
    """Flat indices, increasing, of the finite minimum and maximum of each row: two per row."""
    finite = np.isfinite(rows)
    least = greatest = rows
    if not finite.all():
        least, greatest = np.where(finite, rows, np.inf), np.where(finite, rows, -np.inf)
    pairs = np.array([least.argmin(1), greatest.argmax(1)])
    pairs.sort(0)
    return (pairs.T + np.arange(0, rows.size, rows.shape[1])[:, None]).ravel()


WINDOWS_PER_MEAN = 5  # number of the MEANS windows that one smoothed value covers


class WindowMeans:
    """Sums of step, value, seconds and one over buckets; full buckets are summed once."""

    def __init__(self) -> None:
        self.size, self.full, self.sums = 0, 0, np.empty((4, 0))

    def means(self, table: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """At most `limit` means over overlapping windows: steps, values, seconds, and the number of values per window.

        Step and value are means of the same window, even if it is cut short at the ends, so the line has no false
        start. Each window is summed directly, never by differences of a running sum: a spike of 1e30 affects only its
        own windows.
        """
        n = table.shape[1]
        size = bucket_size(n, limit)
        if size != self.size:
            self.size, self.full, self.sums = size, 0, np.empty((4, 0))
        full = n // size
        if full > self.full:
            self.sums = np.concatenate([self.sums, bucket_sums(table[:, self.full * size : full * size], size)], axis=1)
            self.full = full
        rest = table[:, full * size :]
        sums = np.concatenate([self.sums, bucket_sums(rest, rest.shape[1])], axis=1) if rest.shape[1] else self.sums
        count = sums.shape[1]
        wide = np.zeros((4, count + WINDOWS_PER_MEAN - 1))
        wide[:, WINDOWS_PER_MEAN // 2 : WINDOWS_PER_MEAN // 2 + count] = sums
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            total: Any = sum([wide[:, k : k + count] for k in range(WINDOWS_PER_MEAN)])
            steps, values, seconds, finite = total
            return steps / finite, values / finite, seconds / finite, WINDOWS_PER_MEAN * size


def bucket_sums(table: np.ndarray, size: int) -> np.ndarray:
    sums, finite = np.empty((4, table.shape[1] // size)), np.isfinite(table[1])
    with np.errstate(over="ignore"):
        if finite.all():
            sums[:3], sums[3] = table.reshape(3, -1, size).sum(2), size
        else:
            sums[:3] = np.where(finite, table, 0.0).reshape(3, -1, size).sum(2)
            sums[3] = finite.reshape(-1, size).sum(1)
    return sums


def means_over_steps(table: np.ndarray, most: int) -> tuple[np.ndarray, int]:
    """Means of steps, finite values and seconds over at most `most` overlapping windows of equally many steps, and that
    number of steps. For increasing steps.

    For values that are unevenly spaced: a window of a number of values would cover few steps here and many there.
    """
    steps, finite = table[0], np.isfinite(table[1])
    size = bucket_size(int(steps[-1] - steps[0]) + 1, most)
    bucket = ((steps - steps[0]) // size).astype(int) + WINDOWS_PER_MEAN // 2
    count = int(bucket[-1]) + 1 - WINDOWS_PER_MEAN // 2
    rows = [*np.where(finite, table, 0.0), finite]
    wide = np.array([np.bincount(bucket, row, count + WINDOWS_PER_MEAN - 1) for row in rows])
    with np.errstate(over="ignore"):
        total: Any = sum([wide[:, k : k + count] for k in range(WINDOWS_PER_MEAN)])
    there = total[3] > 0
    return total[:3, there] / total[3, there], WINDOWS_PER_MEAN * size


def decimate(values: np.ndarray, limit: int) -> np.ndarray:
    """Indices of at most `limit` values that draw the same line: minimum and maximum of each bucket."""
    return ExtremesCache().indices(values, limit)
