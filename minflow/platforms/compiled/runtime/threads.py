"""The number of threads, and the recorder of their work.

Read next: `task_scheduler.py`, which runs the threads, and `recorder.py`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress

from ....compat.namespaces.threads import Settings


class Recorder:
    """Records each chunk while it is in RECORDERS.

    notes: (thread, chunk, start, end), with the thread's ident and seconds of `time.perf_counter`. Read next:
    `recorder.py`, for tasks.
    """

    def __init__(self) -> None:
        self.notes: list[tuple[int, int, float, float]] = []


RECORDERS: list[Recorder] = []  # the active one, if any


def number() -> int:
    """Number of threads: set by `flow.set_num_threads` or the environment, otherwise the cores of this process."""
    said = [os.environ.get(f"{name}_NUM_THREADS", "") for name in ("OPENBLAS", "MKL", "OMP")]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Settings.threads or next((int(n) for n in said if n.isdigit() and int(n)), cores)


def start(work: Callable, *args: object) -> None:
    """Start a helper; does nothing if the system refuses another thread, or Python shuts down."""
    with suppress(RuntimeError):
        threading.Thread(target=work, args=args, daemon=True, name="minflow machine").start()
