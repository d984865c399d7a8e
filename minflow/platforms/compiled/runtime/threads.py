"""How many threads work, and who notes what they do. Read next: `task_scheduler.py`, for the threads, and
`recorder.py`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress

from ....compat.namespaces.threads import Settings


class Recorder:
    """While it stands in RECORDERS, each chunk is noted. notes: (thread, chunk, start, end), the thread's ident and
    seconds as `time.perf_counter` gives them. Read next: `recorder.py`, for steps.
    """

    def __init__(self) -> None:
        self.notes: list[tuple[int, int, float, float]] = []


RECORDERS: list[Recorder] = []  # the one that notes now


def number() -> int:
    """How many threads may work: what `flow.set_num_threads` or the environment said, else the cores of this
    process.
    """
    said = [os.environ.get(f"{name}_NUM_THREADS", "") for name in ("OPENBLAS", "MKL", "OMP")]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Settings.threads or next((int(n) for n in said if n.isdigit() and int(n)), cores)


def start(work: Callable, *args: object) -> None:
    """A helper; where the system gives no thread, or Python ends, there is one fewer."""
    with suppress(RuntimeError):
        threading.Thread(target=work, args=args, daemon=True, name="minflow machine").start()
