"""Record which thread ran which chunk of a task, and when: each task is wrapped in one that reads the clock around it.

Chunks are scheduled as without the recorder; a record costs some 50 ns. Read next: `task_scheduler.py`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from ..codegen.atomics import publish
from ..codegen.jit import types
from .instructions import InnerTask, instruction
from .task_scheduler import ALONE, Program, call
from .tasks import Task
from .threads import Recorder

NOTE = 5  # words of a record: the thread, and seconds and nanoseconds of both times
CLOCK = getattr(time, "CLOCK_MONOTONIC", 1)

if not ALONE:
    this_thread = types.ExternalFunction("pthread_self", types.int64())
    clock = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.int64))

    @instruction
    def recorded(chunk, scratch, task: InnerTask, notes):
        """Run a chunk of another task and record it in notes, int64 (chunks, NOTE)."""
        note = notes + chunk * NOTE * 8
        publish(note, this_thread())
        clock(CLOCK, note + 8)
        call(task.code, task.words, chunk, scratch)
        clock(CLOCK, note + 24)


class StepRecorder(Recorder):
    """A recorder of tasks, too."""

    def run(self, steps: Sequence[Task]) -> None:
        """Run and record tasks; without a record if the system has no such clock."""
        if ALONE:
            Program(steps)()
            return
        all_notes = [np.zeros((step.chunks, NOTE), "i8") for step in steps]
        Program(
            [recorded(step.chunks, step, notes, scratch=step.scratch // 4) for step, notes in zip(steps, all_notes)]
        )()
        # Offset between the two clocks; the maximum, since being preempted between the two readings makes it smaller.
        since = max([time.perf_counter() - time.clock_gettime(CLOCK) for _ in range(5)])
        for notes in all_notes:
            times = notes[:, 1::2] + 1e-9 * notes[:, 2::2] + since
            self.notes += [
                (thread, chunk, start, end)
                for chunk, (thread, (start, end)) in enumerate(zip(notes[:, 0].tolist(), times.tolist()))
            ]
