"""The number of threads, and the recorder of their work.

Read next: `task_scheduler.py`, which runs the threads, and `recorder.py`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from ....compat.namespaces.threads import Settings


class Recorder(Protocol):
    """Runs and records the tasks of compiled calls while it is in RECORDERS: see `recorder.py`."""

    def run(self, steps: Sequence[Any]) -> None: ...


Chunk = tuple[
    int, int, float, float
]  # thread (its ident), index of the chunk, start and end: seconds of `time.perf_counter`
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
