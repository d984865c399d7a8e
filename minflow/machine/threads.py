"""Work cut into chunks, which threads take one by one: a core that others use costs one chunk, not a share.

What is computed in a chunk depends on the shapes alone, so results are the same bits with any number of threads. The
threads wait between two calls, sleeping; who calls takes chunks too, and needs none of them.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from ..accepted.threads import Settings

IN_USE = threading.Lock()  # of the helpers: a second caller works alone meanwhile
HELPERS: list[queue.SimpleQueue] = []  # of each the works that it is given


class Recorder:
    """While it stands in RECORDERS, each chunk is noted. notes: (thread, chunk, start, end), the thread's ident and
    seconds as `time.perf_counter` gives them. Read next: `recorder.py`, for steps."""

    def __init__(self) -> None:
        self.notes: list[tuple[int, int, float, float]] = []

    def noting(self, do: Callable[[int], None]) -> Callable[[int], None]:
        """The same, noted."""
        def one(chunk: int) -> None:
            start = time.perf_counter()
            do(chunk)
            self.notes.append((threading.get_ident(), chunk, start, time.perf_counter()))

        return one


RECORDERS: list[Recorder] = []  # the one that notes now


class Work:
    """chunks: how many there are; each is taken once. After an error none is taken any more."""

    def __init__(self, chunks: int, do: Callable[[int], None]):
        self.chunks, self.do = chunks, do
        self.lock, self.over = threading.Lock(), threading.Event()
        self.next = self.running = 0
        self.error: BaseException | None = None

    def take(self) -> int | None:
        with self.lock:
            if self.next == self.chunks:
                return None
            self.next, self.running = self.next + 1, self.running + 1
            return self.next - 1

    def finished(self, error: BaseException | None = None) -> None:
        """One chunk is; or, with an error, no other is to be taken."""
        with self.lock:
            self.running -= 1
            self.error = self.error or error
            if error is not None:
                self.next = self.chunks
            if self.next == self.chunks and not self.running:
                self.over.set()

    def run(self) -> None:
        while (chunk := self.take()) is not None:
            try:
                self.do(chunk)
            except BaseException as error:
                self.finished(error)
            else:
                self.finished()

    def wait(self) -> None:
        """Until nobody writes any more, also where Ctrl-C comes meanwhile, which is raised afterwards."""
        while not self.over.is_set():
            try:
                self.over.wait()
            except BaseException as error:
                with self.lock:
                    self.next, self.error = self.chunks, self.error or error
                    if not self.running:
                        self.over.set()
        if self.error is not None:
            raise self.error


def number() -> int:
    """How many threads may work: what `flow.set_num_threads` or the environment said, else the cores of this
    process."""
    said = [os.environ.get(f"{name}_NUM_THREADS", "") for name in ("OPENBLAS", "MKL", "OMP")]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Settings.threads or next((int(n) for n in said if n.isdigit() and int(n)), cores)


def split(chunks: int, do: Callable[[int], None]) -> None:
    """do(0), do(1), ..., do(chunks - 1), by several threads where that helps; returns when all is done."""
    do = RECORDERS[0].noting(do) if RECORDERS else do
    helpers = min(number(), chunks) - 1 if chunks > 1 else 0  # who asks for the number pays some microseconds
    if helpers < 1 or not IN_USE.acquire(blocking=False):
        for chunk in range(chunks):
            do(chunk)
        return
    try:
        while len(HELPERS) < helpers:
            HELPERS.append(queue.SimpleQueue())
            start(help_with, HELPERS[-1])
        work = Work(chunks, do)
        for works in HELPERS[:helpers]:
            works.put(work)
        work.run()
        work.wait()
    finally:
        IN_USE.release()


def start(work: Callable, *args: object) -> None:
    """A helper; where the system gives no thread, or Python ends, there is one fewer."""
    with suppress(RuntimeError):
        threading.Thread(target=work, args=args, daemon=True, name="minflow machine").start()


def help_with(works: queue.SimpleQueue) -> None:
    while True:
        works.get().run()


def forget() -> None:
    """In a process that was forked: the helpers are not in it."""
    global IN_USE
    HELPERS.clear()
    IN_USE = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget)
