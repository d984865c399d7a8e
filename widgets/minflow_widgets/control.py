"""LoopControl: the target of a curve's buttons, for loops that run in a cell and for runs of flow.start.

A loop is held between two steps, in its own thread, at an event that its source names. The listener exists only while
there is something to obey, so until then a step costs nothing more. Read next: `sources/source.py`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from minflow.core.base import events
from minflow.core.base.locks import new_lock
from minflow.job.queue.step import Latch
from minflow.job.queue.stream import current_stream

IN_CALLBACK = "these values come from a callback of a job, which cannot wait: use the interrupt button"


class LoopControl:
    """Pause, resume and stop loops between two steps; stopping raises KeyboardInterrupt there, as an interrupt does.

    runs: runs of flow.start, which the buttons pause and stop as well.  sources: watched sources, whose steps are held.
    asked: the last request, "running", "paused" or "stopped".  stopped: threads that a stop has interrupted.
    problem: reason why the loop cannot obey, or "".
    """

    def __init__(self) -> None:
        self.runs: list[Any] = []
        self.sources: list[Any] = []
        self.asked, self.problem = "running", ""
        self.stopped: set[int] = set()
        self.process = os.getpid()
        self.resumed = Latch()
        self.listening = ExitStack()
        self.lock = new_lock()  # buttons are handled on another thread than the loop's

    @property
    def state(self) -> str:
        """Current state: "running", "paused" or "stopped"."""
        if self.asked == "stopped":
            return "stopped"
        states = {run.state for run in self.runs if not run.done()}
        if not states or len(self.sources) > len(self.runs):
            states.add(self.asked)
        return "paused" if states == {"paused"} else "running"

    # ---- the buttons -------------------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Hold each loop after its running step until `resume()`."""
        if self.asked == "running":
            self.resumed = Latch()
            self.ask("paused")
        for run in self.runs:
            run.pause()

    def resume(self) -> None:
        """Continue with the next step."""
        self.stopped.clear()
        self.resume_loops()
        for run in self.runs:
            run.resume()

    def stop(self) -> None:
        """Raise KeyboardInterrupt in each loop after its running step; runs end after theirs."""
        self.ask("stopped")
        self.resumed.open()
        for run in self.runs:
            run.stop()

    def resume_loops(self) -> None:
        """Let loops go on, without effect on runs: their curve has ended."""
        self.ask("running")
        self.resumed.open()

    def ask(self, what: str) -> None:
        with self.lock:
            self.asked = what
            self.listen()

    # ---- loops -------------------------------------------------------------------------------------------------------

    def attach(self, sources: list[Any]) -> None:
        """Obey at the steps of these sources from now on."""
        with self.lock:
            self.sources = self.sources + sources
            self.runs = self.runs + [source.run for source in sources if hasattr(source, "run")]
            self.listen()

    def detach(self, sources: list[Any]) -> None:
        """Release these sources."""
        with self.lock:
            self.sources = [source for source in self.sources if source not in sources]
            self.runs = [source.run for source in self.sources if hasattr(source, "run")]
            self.listen()

    def listen(self) -> None:
        """Listen to the steps of all sources if there is something to obey. The caller holds the lock."""
        self.listening.close()
        if self.asked != "running":
            for source in self.sources:
                for kind, is_step in source.steps().items():
                    self.listening.enter_context(events.subscribe(kind, self.holder(is_step)))

    def holder(self, is_step: Callable[[Any], bool]) -> Callable[[Any], None]:
        def heard(event: Any) -> None:
            if is_step(event):
                self.hold()

        return heard

    def hold(self) -> None:
        """Obey, in the thread of a loop between two steps: wait during a pause, raise KeyboardInterrupt after a stop.

        A loop that goes on after its KeyboardInterrupt is not stopped again.
        """
        if os.getpid() != self.process:  # a fork, which the buttons do not reach
            return
        stream, me = current_stream(), threading.get_ident()
        if stream.on_worker():  # waiting here would block all jobs, and an interrupt would wait for it
            self.problem = IN_CALLBACK
            self.resume()
            return
        if self.asked == "paused":
            self.resumed.wait()
        if self.asked == "stopped" and me in self.stopped:
            self.resume()
        elif self.asked == "stopped":
            self.stopped.add(me)
            stream.handle_interrupt()  # for steps of jobs that this thread has submitted
            raise KeyboardInterrupt("the stop button of the curve")
