"""Bytes, times, rates and shares as short text. Read next: `reports.py`, the user."""

from __future__ import annotations


def nbytes_text(n: int) -> str:
    """Format a number of bytes with powers of 1000: 12 B, 3.4 kB, 5.6 MB."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n >= size:
            return f"{n / size:.1f} {unit}"
    return f"{n} B"


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


def rate_text(amount: float, unit: str) -> str:
    """Format a rate: 98.9 GFLOP/s for operations per second ("FLOP"), 20.1 GB/s for bytes per second ("B")."""
    return f"{amount / 1e9:.1f} G{unit}/s"


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def shares(parts: list[float]) -> list[int]:
    """Percentages of the parts as integers that sum to 100; those with the largest remainders are rounded up."""
    whole = sum(parts)
    if not whole:
        return [0] * len(parts)
    exact = [100 * part / whole for part in parts]
    percents = [int(x) for x in exact]
    for i in sorted(range(len(parts)), key=lambda i: percents[i] - exact[i])[: 100 - sum(percents)]:
        percents[i] += 1
    return percents
