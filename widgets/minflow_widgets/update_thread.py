"""Pump: the one thread that shows a live curve or a live timeline, at most ten times a second.

Knows nothing of what it shows: that has `_look()`, `_update()` and `_share()`. Read next: `curve/loss_curve.py`,
`timeline/live_timeline.py`.
"""

from __future__ import annotations

import threading
import time
import weakref

from minflow.core.base.locks import new_lock

PERIOD = 0.1  # seconds between two updates: more are not seen, and the notebook server allows 1 MB a second
LONGEST = 3.0  # seconds between two updates, also where one was expensive, as by a collection of garbage
TRIES = 3  # updates that fail one after the other, until it is shown no more
PATIENCE = 10.0  # seconds that one waits for the picture that another thread leaves
clock = time.perf_counter
processor = getattr(time, "thread_time", time.perf_counter)


class Pump:
    """Shows its owner: at most one update per PERIOD, none while nothing is new, the last one always.

    owner: `_look()` takes what is new, and says whether there was something (None: it has ended, and so does the
    thread); `_update()` shows it; `_share()` is of how much of a processor that may take. It is held weakly: an owner
    that nobody holds any more ends the thread. idle: seconds without a `wake`, after which it looks by itself; 0: at
    each PERIOD. What cannot be shown, since a page went away, is tried a few times and then no more; looking goes on
    all the same, as it is what ends the curve of a run. Where threads cannot start (WebAssembly), `wake` does the same
    work.
    """

    def __init__(self, owner, idle: float = 1.0):
        self.owner, self.idle = weakref.ref(owner), idle
        self.news, self.stopping = threading.Event(), threading.Event()
        self.shown_at, self.failures = -PERIOD, 0
        name = f"minflow {type(owner).__name__}"
        self.thread: threading.Thread | None = threading.Thread(target=self.run, name=name, daemon=True)
        try:
            self.thread.start()
        except RuntimeError:
            self.thread = None

    def wake(self) -> None:
        if self.thread is not None:
            if not self.news.is_set():
                self.news.set()
        elif clock() - self.shown_at >= PERIOD:
            self.shown_at = clock()
            if (owner := self.owner()) is not None:
                self.show(owner)

    def run(self) -> None:
        while True:
            fresh = self.news.wait(timeout=self.idle)
            self.news.clear()
            start, now = processor(), clock()
            share = None if self.stopping.is_set() else self.once(fresh)
            if share is None:
                return
            self.stopping.wait(max(PERIOD - (clock() - now), min((processor() - start) / share, LONGEST)))

    def once(self, fresh: bool) -> float | None:
        """Look, and show what is new. The share of a processor that may be taken; None at the end."""
        owner = self.owner()
        if owner is None:
            return None
        try:
            looked = owner._look()
        except Exception:  # as below
            looked = False
        if looked is None:
            return None
        if fresh or looked:
            self.show(owner)
        return owner._share()

    def show(self, owner) -> None:
        if self.failures >= TRIES:
            return
        try:
            owner._update()
            self.failures = 0
        except Exception:  # a front end that went away must not stop a training run; finish() shows the rest
            self.failures += 1

    def stop(self) -> None:
        self.stopping.set()
        self.news.set()
        if self.thread is not None and self.thread is not threading.current_thread():
            self.thread.join(timeout=5.0)


class Ending:
    """What ends is ended once. over: it has ended, its picture is there."""

    def __init__(self) -> None:
        self.lock, self.by, self.over = new_lock(), 0, threading.Event()

    def first(self, pump: Pump | None) -> bool:
        """True for the first caller; a later one waits until the first is ready: then the program may end."""
        with self.lock:
            if not self.by:
                self.by = threading.get_ident()
                return True
        if self.by != threading.get_ident() and (pump is None or pump.thread is not threading.current_thread()):
            self.over.wait(PATIENCE)
        return False
