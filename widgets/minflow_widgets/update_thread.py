"""UpdateThread: the thread that updates a live curve or a live timeline, at most ten times per second.

Calls only `_take_new_values()`, `_update()` and `_cpu_share()` of its owner. Read next: `curve/loss_curve.py`,
`timeline/live_timeline.py`.
"""

from __future__ import annotations

import threading
import time
import weakref

from minflow.core.base.locks import new_lock
from minflow.core.context import current_context

# seconds between two updates: more would not be visible, and the notebook server allows 1 MB per second
UPDATE_PERIOD = 0.1
MAX_UPDATE_PERIOD = 3.0  # limit of these seconds after an expensive update, such as during garbage collection
MAX_FAILURES = 3  # consecutive failed updates after which display is given up
JOIN_TIMEOUT = 10.0  # seconds to wait for the picture that another thread leaves
clock = time.perf_counter
thread_cpu_time = getattr(time, "thread_time", time.perf_counter)


class UpdateThread:
    """Updates its owner: at most once per UPDATE_PERIOD, only if there is something new, and always with the latest
    values.

    owner: `_take_new_values()` returns True if there were any (None: it has ended, and so does the thread);
    `_update()` shows them; `_cpu_share()` is the share of a processor that this may take. The owner is held by a weak
    reference: the thread ends when it is collected. idle: seconds without `wake` after which the thread looks on its
    own; 0: every UPDATE_PERIOD. A failing display, such as a closed page, is given up after a few tries, but looking
    continues, because it detects the end of a run. If threads cannot start (WebAssembly), `wake` does the work.
    """

    def __init__(self, owner, idle: float = 1.0):
        self.owner, self.idle = weakref.ref(owner), idle
        self.wake_event, self.stopping = threading.Event(), threading.Event()
        self.shown_at, self.failures = -UPDATE_PERIOD, 0
        name = f"minflow {type(owner).__name__}"
        self.thread: threading.Thread | None = current_context().spawn(self.run, name=name, start=False)
        try:
            self.thread.start()
        except RuntimeError:
            self.thread = None

    def wake(self) -> None:
        if self.thread is not None:
            if not self.wake_event.is_set():
                self.wake_event.set()
        elif clock() - self.shown_at >= UPDATE_PERIOD:
            self.shown_at = clock()
            if (owner := self.owner()) is not None:
                self.show(owner)

    def run(self) -> None:
        while True:
            fresh = self.wake_event.wait(timeout=self.idle)
            self.wake_event.clear()
            start, now = thread_cpu_time(), clock()
            share = None if self.stopping.is_set() else self.once(fresh)
            if share is None:
                return
            self.stopping.wait(
                max(UPDATE_PERIOD - (clock() - now), min((thread_cpu_time() - start) / share, MAX_UPDATE_PERIOD))
            )

    def once(self, fresh: bool) -> float | None:
        """Look for new values and show them. Return the share of a processor to use; None at the end."""
        owner = self.owner()
        if owner is None:
            return None
        try:
            looked = owner._take_new_values()
        except Exception:  # see `show`
            looked = False
        if looked is None:
            return None
        if fresh or looked:
            self.show(owner)
        return owner._cpu_share()

    def show(self, owner) -> None:
        if self.failures >= MAX_FAILURES:
            return
        try:
            owner._update()
            self.failures = 0
        except Exception:  # a closed front end must not stop a training run; finish() shows the rest
            self.failures += 1

    def stop(self) -> None:
        self.stopping.set()
        self.wake_event.set()
        if self.thread is not None and self.thread is not threading.current_thread():
            self.thread.join(timeout=5.0)


class EndGuard:
    """Guard that lets only the first caller end something. done: set when the final picture is there."""

    def __init__(self) -> None:
        self.lock, self.claimed_by, self.done = new_lock(), 0, threading.Event()

    def claim(self, updates: UpdateThread | None) -> bool:
        """True for the first caller. Later callers wait until the first is done, because the program may exit then."""
        with self.lock:
            if not self.claimed_by:
                self.claimed_by = threading.get_ident()
                return True
        if self.claimed_by != threading.get_ident() and (
            updates is None or updates.thread is not threading.current_thread()
        ):
            self.done.wait(JOIN_TIMEOUT)
        return False
