"""The work of each thread in a step, as text. Read next: `../renderers/threads.py`, the same as a picture."""

from __future__ import annotations

from ..records.reports import ThreadBar, Threads
from .listing import clean, count, cut
from .numbers import ms, percent, step_text
from .tables import table

MAX_LISTED_CALLS = 8  # calls with idle threads that are listed


def thread_name(thread: int) -> str:
    return f"thread {thread}" + (", the caller" if not thread else "")


def busy_seconds(record: Threads) -> list[float]:
    """Seconds that each thread worked."""
    seconds = [0.0] * record.count
    for bar in record.bars:
        if bar.thread >= 0:
            seconds[bar.thread] += bar.stop - bar.start
    return seconds


def idle_calls(record: Threads) -> list[tuple[ThreadBar, int, float]]:
    """(call, number of chunks, idle seconds summed over threads), the most idle first."""
    rows: list[list] = []
    for bar in record.bars:
        seconds = bar.stop - bar.start
        if bar.thread < 0:
            rows.append([bar, 0, record.at_once * seconds])
        else:
            rows[-1][1] += 1
            rows[-1][2] -= seconds
    return sorted([(bar, pieces, max(left, 0.0)) for bar, pieces, left in rows], key=lambda row: -row[2])


def verdict(record: Threads) -> str:
    """The threads in one sentence."""
    time = step_text(record.seconds, record.timing) if record.timing else ms(record.seconds)
    if record.count < 2:
        return f"one thread, {time}; threads inside NumPy's products are not counted"
    share = percent(sum(busy_seconds(record)) / (record.at_once * record.seconds or 1.0))
    return f"{count(record.at_once, 'thread')} at a time, {time}: they worked {share} of it"


def threads_text(record: Threads) -> str:
    lines = [clean(record.title), verdict(record)]
    if record.count > 1:
        rows = [("", "worked", "of the step", "pieces")]
        for thread, seconds in enumerate(busy_seconds(record)):
            pieces = sum(bar.thread == thread for bar in record.bars)
            rows.append((thread_name(thread), ms(seconds), percent(seconds / (record.seconds or 1.0)), f"{pieces:,}"))
        lines += ["", *table(rows, (1, 2, 3))]
        calls = [("where threads had nothing to do", "took", "pieces", "idle, together")]
        calls += [
            (cut(clean(bar.name), 52), ms(bar.stop - bar.start), f"{pieces:,}", ms(left))
            for bar, pieces, left in idle_calls(record)[:MAX_LISTED_CALLS]
        ]
        lines += ["", *table(calls, (1, 2, 3))]
    return "\n".join(lines)
