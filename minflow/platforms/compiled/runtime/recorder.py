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
from .tasks import BYTES, Task
from .threads import Chunk

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


class RecordedProgram:
    """The tasks of adjacent calls as one program, as a plan runs them, with a record of each chunk.

    groups: the tasks of each call.  notes: int64 (chunks, NOTE), the records of the last run.
    """

    def __init__(self, groups: Sequence[Sequence[Task]]):
        self.chunks = [[task.chunks for task in tasks] for tasks in groups]
        self.notes = np.zeros((sum(map(sum, self.chunks)), NOTE), "i8")
        wrapped, start = [], 0
        for task in [task for tasks in groups for task in tasks]:
            notes = self.notes[start : start + task.chunks]
            wrapped.append(recorded(task.chunks, task, notes, scratch=task.scratch // BYTES))
            start += task.chunks
        self.program = Program(wrapped)

    def __call__(self) -> None:
        self.program()

    def read(self, notes: np.ndarray) -> list[list[Chunk]]:
        """The records of a run, for each call."""
        # Offset between the two clocks; the maximum, since being preempted between the two readings makes it smaller.
        since = max([time.perf_counter() - time.clock_gettime(CLOCK) for _ in range(5)])
        times = notes[:, 1::2] + 1e-9 * notes[:, 2::2] + since
        records = zip(notes[:, 0].tolist(), times.tolist())
        return [
            [(thread, chunk, *span) for count in counts for chunk, (thread, span) in zip(range(count), records)]
            for counts in self.chunks
        ]


class StepRecorder:
    """Records the tasks of calls that a plan does not merge. Without a clock for compiled code, it only runs them."""

    def __init__(self) -> None:
        self.programs: dict[int, tuple[Sequence[Task], RecordedProgram]] = {}
        self.runs: list[tuple[RecordedProgram, np.ndarray]] = []

    def run(self, steps: Sequence[Task]) -> None:
        """Run and record the tasks of a call."""
        if ALONE:
            Program(steps)()
            return
        if id(steps) not in self.programs:
            self.programs[id(steps)] = steps, RecordedProgram([steps])
        _, program = self.programs[id(steps)]
        program()
        self.runs.append((program, program.notes.copy()))

    def take(self) -> list[tuple[RecordedProgram, np.ndarray]]:
        """The programs that ran since the last call of this method, each with its records."""
        runs, self.runs = self.runs, []
        return runs
