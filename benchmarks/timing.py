"""Time contestants in alternation, and compare them: shared by the scripts that measure steps."""

from __future__ import annotations

import gc
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

MIN_TIMED_SECONDS = 0.01  # shorter steps are repeated
Times = Mapping[str, list[tuple[float, float]]]  # contestant -> (wall time, processor time) of a step in each round


def timed(function: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    function()
    return clock() - start


def rounds(
    steps: Mapping[str, Callable[[], Any]],
    count: int,
    switch: Callable[[str], Any] = lambda name: None,
    least: float = MIN_TIMED_SECONDS,
    seconds: float = math.inf,
) -> Times:
    """Time each contestant once per round, for `count` rounds, or until `seconds` have passed after five.

    switch: called with a contestant before it runs. least: seconds of one timing. Each contestant first runs untimed,
    so that neither caches filled by the one before it nor its spinning threads count.
    """
    calls, times = {}, {name: [] for name in steps}
    for name, step in steps.items():
        switch(name)
        step(), step()
        calls[name] = max(1, math.ceil(least / max(timed(step), 1e-9)))
    gc.collect()
    end = time.perf_counter() + seconds
    for index in range(count):
        if index >= 5 and time.perf_counter() > end:
            break
        for name, step in steps.items():
            switch(name)
            step()
            used, start = time.process_time(), time.perf_counter()
            for _ in range(calls[name]):
                step()
            wall, processor = time.perf_counter() - start, time.process_time() - used
            times[name].append((wall / calls[name], processor / calls[name]))
    return times


def quartiles(mine: list[float], other: list[float]) -> list[float]:
    """[lower quartile, median, upper quartile] of the paired ratio."""
    paired = sorted(a / b for a, b in zip(mine, other))
    return [paired[min(len(paired) - 1, len(paired) * q // 4)] for q in (1, 2, 3)]


def fastest(times: Times, names: tuple[str, ...]) -> str | None:
    """The one of these contestants whose median is lowest, by processor time; None if none of them ran."""
    ran = [name for name in names if name in times]
    return min(ran, key=lambda name: statistics.median([used for _, used in times[name]]), default=None)


def figures(times: Times, contestant: str, peer: str | None) -> dict[str, Any]:
    """The fields of a row: medians of a contestant, and its ratio to a peer, if there is one."""
    wall, used = zip(*times[contestant])
    row: dict[str, Any] = {"contestant": contestant, "samples": len(wall)}
    row |= {"seconds": statistics.median(wall), "processors": statistics.median(used)}
    if peer is not None:
        other_wall, other_used = zip(*times[peer])
        row |= {"peer": peer, "peer_seconds": statistics.median(other_wall)}
        row["peer_processors"] = statistics.median(other_used)
        row |= {"ratio": quartiles(wall, other_wall), "processors_ratio": quartiles(used, other_used)}
    return row


def shown(ratio: list[float] | None) -> str:
    """A ratio with its quartiles, or spaces."""
    return " " * 20 if ratio is None else "{1:6.3f} [{0:.2f}, {2:.2f}]".format(*ratio)


def human(seconds: float) -> str:
    """A time with its unit and three digits."""
    scale, unit = next(((s, u) for s, u in ((1, "s"), (1e3, "ms"), (1e6, "us")) if seconds * s >= 1), (1e6, "us"))
    value = seconds * scale
    return f"{value:.{max(0, 2 - (value >= 9.995) - (value >= 99.95))}f} {unit}"


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Run n processes that compute until the block, or this process, ends."""
    code = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n for i in range(1_000_000): pass"
    processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
