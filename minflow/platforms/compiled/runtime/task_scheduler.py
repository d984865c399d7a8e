"""The task scheduler: runs the tasks of adjacent ops in one compiled call, on several threads.

Each thread takes a chunk of the current task by a compare-and-swap on the ticket (number of the task, chunks left);
whichever finishes its last chunk publishes the next task. Tasks wait for chunks, never for threads, so a helper that
the OS delays or never runs costs at most one chunk. Helpers without a chunk read only the team's memory; a chunk keeps
its program alive. Helpers are Python threads that never return from compiled code, so waking them does not need the
GIL; between programs they spin for some 100 us, then sleep. Read next: `tasks.py`.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Sequence

import numpy as np

from ....compat.namespaces.threads import Settings
from ..codegen.atomics import (
    add_to,
    exchange,
    fetch,
    lock,
    pause,
    publish,
    sleep_until_woken,
    unlock,
    wake_all,
    yield_core,
)
from ..codegen.jit import CompiledFunction, compiled, emits, ir, types
from ..codegen.llvm import WORD
from . import threads
from .pointers import at

LINE = 128  # bytes: two cache lines, which the processor fetches together
# Words shared by the threads. TICKET: number of the task << 32 | its chunks that are not taken.  DONE: its finished
# chunks.  BUSY: 1 while a program runs.  WANTED: threads that should work on it; 0 if none runs, -1 to stop for good.
# TABLE, FIRST, COUNT: tasks of the program, number of the first one, how many there are. SCRATCH: address of a table of
# the helpers' scratch memory.  SLEEPING: helpers that sleep, or are about to.
TICKET, DONE, BUSY, WANTED, SLEEPING, MUTEX, BELL = (LINE * i for i in range(7))
TABLE, FIRST, COUNT, SCRATCH = (WANTED + 8 * i for i in range(1, 5))
ALIGN = 64  # bytes of a cache line
ENTRY = 24  # bytes of a task in the table: code, words, number of chunks
LEFT = (1 << 32) - 1
SPINS = 4000  # pauses of a waiting thread before it yields its core, or sleeps
ALONE = os.name != "posix"  # no helpers if the system has no pthread_cond_wait
shared = compiled if ALONE else CompiledFunction


@emits(types.void, types.int64, types.int64, types.int64, types.int64)
def call(builder, code, words, chunk, scratch):
    """Run one chunk of a task."""
    kind = ir.FunctionType(ir.VoidType(), [WORD] * 3)
    builder.call(builder.inttoptr(code, kind.as_pointer()), [words, chunk, scratch])


# ---- compiled code ---------------------------------------------------------------------------------------------------


@compiled
def do_steps(table, step, count, most, scratch):
    """Run tasks from `step` on, up to the first with more than `most` chunks; return its index."""
    while step < count:
        entry = table + step * ENTRY
        chunks = fetch(entry + 16)
        if chunks > most:
            break
        for chunk in range(chunks):
            call(fetch(entry), fetch(entry + 8), chunk, scratch)
        step += 1
    return step


@compiled
def take(team, ticket, scratch):
    """Run the chunk of a taken ticket; after the last chunk of a task, publish the next task."""
    table, first, count = fetch(team + TABLE), fetch(team + FIRST), fetch(team + COUNT)
    step = ((ticket >> 32) - first) & LEFT
    entry = table + step * ENTRY
    chunks = fetch(entry + 16)
    call(fetch(entry), fetch(entry + 8), chunks - (ticket & LEFT), scratch)
    if add_to(team + DONE, 1) == chunks - 1:
        publish(team + DONE, 0)
        step = do_steps(table, step + 1, count, 1, scratch)  # tasks of one chunk are not shared
        left = fetch(table + step * ENTRY + 16) if step < count else 0
        publish(team + TICKET, (first + step) << 32 | left)


@CompiledFunction
def run_alone(table, count, scratch):
    """Run a program on this thread."""
    do_steps(table, 0, count, LEFT, scratch)


@shared
def run(team, wanted, table, count, scratch):
    """Run a program on `wanted` threads; on this one if the team runs another program."""
    step = do_steps(table, 0, count, 1, scratch)
    if wanted < 2 or step == count or not exchange(team + BUSY, 0, 1):
        do_steps(table, step, count, LEFT, scratch)
        return
    first = ((fetch(team + TICKET) >> 32) + 1) & LEFT
    publish(team + TABLE, table)
    publish(team + FIRST, first)
    publish(team + COUNT, count)
    publish(team + TICKET, (first + step) << 32 | fetch(table + step * ENTRY + 16))
    publish(team + WANTED, wanted)
    if fetch(team + SLEEPING):
        lock(team + MUTEX)
        wake_all(team + BELL)
        unlock(team + MUTEX)
    over, spins = (first + count) & LEFT, 0
    while True:
        ticket = fetch(team + TICKET)
        if ticket & LEFT:
            if exchange(team + TICKET, ticket, ticket - 1):
                take(team, ticket, scratch)
            spins = 0
        elif (ticket >> 32) & LEFT == over:
            break
        else:
            pause()
            spins += 1
            if spins > SPINS:
                yield_core()
    publish(team + WANTED, 0)
    publish(team + BUSY, 0)


@shared
def help_always(team, me):
    """The loop of helper `me` (counted from 1): run chunks whenever there are some."""
    spins = 0
    while fetch(team + WANTED) >= 0:
        ticket = fetch(team + TICKET)
        if ticket & LEFT and fetch(team + WANTED) > me:
            if exchange(team + TICKET, ticket, ticket - 1):
                take(team, ticket, fetch(fetch(team + SCRATCH) + 8 * me))
            spins = 0
            continue
        pause()
        spins += 1
        if spins > SPINS and fetch(team + WANTED) > me:
            yield_core()
        elif spins > SPINS:
            lock(team + MUTEX)
            add_to(team + SLEEPING, 1)
            while 0 <= fetch(team + WANTED) <= me:
                sleep_until_woken(team + BELL, team + MUTEX)
            add_to(team + SLEEPING, -1)
            unlock(team + MUTEX)
            spins = 0


# ---- from Python -----------------------------------------------------------------------------------------------------


class Team:
    """The helper threads, the words shared with them, and their scratch memory."""

    def __init__(self) -> None:
        self.growing, self.helpers, self.bytes = threading.Lock(), 0, 0
        memory = np.zeros(LINE, "i8")
        # Never freed: helpers still read it during interpreter shutdown.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))
        self.address = rounded(at(memory), LINE)
        self.words = memory[(self.address - at(memory)) // 8 :]
        if not ALONE:
            system = ctypes.CDLL(None)
            system.pthread_mutex_init(ctypes.c_void_p(self.address + MUTEX), None)
            system.pthread_cond_init(ctypes.c_void_p(self.address + BELL), None)
        self.held: list[np.ndarray] = []  # scratch memory, including outgrown buffers, which may be in use

    def grow(self, helpers: int, bytes: int) -> None:
        """Grow to `helpers` threads with `bytes` of scratch memory each.

        The count is updated last, so an interrupt cannot leave it wrong.
        """
        with self.growing:
            many = max(helpers, self.helpers)
            # Double at least, so that all outgrown buffers together are smaller than the current one.
            if bytes > self.bytes:
                bytes = max(rounded(bytes, ALIGN), 2 * self.bytes)
            else:
                bytes = self.bytes
            memory = np.empty(many * bytes + ALIGN, np.uint8)
            places = rounded(at(memory), ALIGN) + bytes * (np.arange(many + 1) - 1)  # of helper 1, 2, ...
            self.held += [memory, places]
            self.words[SCRATCH // 8] = at(places)
            self.bytes = bytes
            while self.helpers < helpers:
                self.helpers += 1
                threads.start(help_always.call, self.address, self.helpers)


class Program:
    """A sequence of tasks, run by one call. It cannot fail, and runs to its end if it is interrupted (Ctrl-C)."""

    def __init__(self, steps: Sequence) -> None:
        self.steps = steps  # keeps the memory of their words and instructions alive
        self.table = np.array([(step.code, at(step.words), step.chunks) for step in steps], "i8").reshape(-1, 3)
        self.place = at(self.table)
        self.most = max([step.chunks for step in steps], default=0)
        self.bytes = max([step.scratch for step in steps], default=0)
        self.cores = threads.number() if self.most > 1 else 1

        self.alone = functools.partial(run_alone.call, self.place, len(self.steps))

    def __call__(self) -> None:
        mine = THREAD_SCRATCH
        if mine.bytes < self.bytes:
            mine.grow(self.bytes)
        if self.most < 2 or ALONE or (wanted := min(Settings.threads or self.cores, self.most)) < 2:
            self.alone(mine.place)
            return
        team = TEAM
        if team.helpers < wanted - 1 or team.bytes < self.bytes:
            team.grow(wanted - 1, self.bytes)
        run.call(team.address, wanted, self.place, len(self.steps), mine.place)


class ThreadScratch(threading.local):
    """Scratch memory of a thread that runs programs; kept, like that of helpers."""

    bytes, place, memory = -1, 0, None

    def grow(self, bytes: int) -> None:
        memory = np.empty(bytes + ALIGN, np.uint8)
        self.memory, self.place, self.bytes = memory, rounded(at(memory), ALIGN), bytes


THREAD_SCRATCH = ThreadScratch()


def rounded(number: int, size: int) -> int:
    """Round up to a multiple of `size`."""
    return number + -number % size


TEAM = Team()


def forget() -> None:
    """Reset the team after a fork: the child does not have the helper threads."""
    global TEAM
    TEAM = Team()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget)
