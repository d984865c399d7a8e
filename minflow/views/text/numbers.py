"""Bytes, times, rates and shares as short text. Read next: `reports.py`, the user."""

from __future__ import annotations

from ..records.reports import Timing


def nbytes_text(n: int) -> str:
    """Format a number of bytes with powers of 1000: 12 B, 3.4 kB, 5.6 MB."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n >= size:
            return f"{n / size:.1f} {unit}"
    return f"{n} B"


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


def step_text(seconds: float, timing: Timing | None) -> str:
    """The duration of a step, and how it was measured."""
    if timing is None:
        return f"{ms(seconds)} in one call, operation by operation; graph.profile() takes the median of seven calls"
    if timing.runs == 1:
        return f"{ms(seconds)} in one call" + (f", not repeated: {timing.note}" if timing.note else "")
    spread = f"{timing.least * 1e3:.2f} to {ms(timing.most)}"
    return f"{ms(seconds)}, the median of {timing.runs} calls ({spread})"


def short_time(seconds: float) -> str:
    """Format seconds with the unit that fits: 3.2 µs, 1.42 ms, 2.10 s."""
    return f"{seconds * 1e6:.1f} µs" if seconds < 1e-4 else ms(seconds) if seconds < 1 else f"{seconds:.2f} s"


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
