"""A program: the steps of neighbouring operations in one table, run by one compiled call on several threads.

All threads do the same: take a chunk of the step that is next, do it, and whoever did the last one goes on to the next
step. A ticket says which step that is and how many of its chunks are left; taking one is a single exchange of words,
which fails where the ticket is not what it was. So a thread that comes late, or that the system never runs, harms
nobody: a core that others use costs one chunk, and the steps wait for chunks, never for threads. What helpers read
before they hold a chunk is the team's memory alone; who holds one keeps its program from ending.

Helpers are threads of Python that never come back from compiled code: they need no lock of Python's to be woken.
Between two programs they spin for some 100 us, then sleep. Read next: `tasks.py`.
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
from ..codegen.jit import Code, compiled, intrinsic, ir, types
from ..codegen.llvm import WORD
from . import threads
from .pointers import at

LINE = 128  # bytes: two lines of the cache, which the processor fetches together
# What the threads share. TICKET: number of the step << 32 | chunks of it that nobody took.  DONE: chunks of it that
# are done.  BUSY: a program runs.  WANTED: threads that are to work at it, 0 where none runs, -1: stop for ever.
# TABLE, FIRST, COUNT: of the program: its steps, the number of its first one, how many there are.
# SCRATCH: the address of a table of each helper's own memory.  SLEEPING: helpers that sleep, or are about to.
TICKET, DONE, BUSY, WANTED, SLEEPING, MUTEX, BELL = (LINE * i for i in range(7))
TABLE, FIRST, COUNT, SCRATCH = (WANTED + 8 * i for i in range(1, 5))
ALIGN = 64  # bytes: a line of the cache
ENTRY = 24  # bytes of a step in the table: its code, its words, how many chunks
LEFT = (1 << 32) - 1
SPINS = 4000  # pauses: before a thread that waits gives its core away, or sleeps
ALONE = os.name != "posix"  # there are no helpers where the system has no pthread_cond_wait
shared = compiled if ALONE else Code


@intrinsic
def call(context, code, words, chunk, scratch):
    """Do one chunk of a step."""

    def written(context, builder, signature, arguments):
        kind = ir.FunctionType(ir.VoidType(), [WORD] * 3)
        builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64), written


# ---- what is compiled ------------------------------------------------------------------------------------------------


@compiled
def do_steps(table, step, count, most, scratch):
    """The steps from this one on, up to the first of more than `most` chunks, which is returned."""
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
    """Do a chunk of the step that the ticket was of; after its last chunk, show all the next step."""
    table, first, count = fetch(team + TABLE), fetch(team + FIRST), fetch(team + COUNT)
    step = ((ticket >> 32) - first) & LEFT
    entry = table + step * ENTRY
    chunks = fetch(entry + 16)
    call(fetch(entry), fetch(entry + 8), chunks - (ticket & LEFT), scratch)
    if add_to(team + DONE, 1) == chunks - 1:
        publish(team + DONE, 0)
        step = do_steps(table, step + 1, count, 1, scratch)  # those of one chunk are nobody else's business
        left = fetch(table + step * ENTRY + 16) if step < count else 0
        publish(team + TICKET, (first + step) << 32 | left)


@Code
def run_alone(table, count, scratch):
    """A program, by this thread."""
    do_steps(table, 0, count, LEFT, scratch)


@shared
def run(team, wanted, table, count, scratch):
    """A program, by so many threads; alone where others run one."""
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
    """What helper number `me`, counted from 1, does: chunks, wherever there are some."""
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


# ---- who runs it -----------------------------------------------------------------------------------------------------


class Team:
    """The helpers, the words that they share with who runs a program, and scratch memory for each."""

    def __init__(self) -> None:
        self.growing, self.helpers, self.bytes = threading.Lock(), 0, 0
        memory = np.zeros(LINE, "i8")
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))  # never freed: helpers still read it while Python ends
        self.address = rounded(at(memory), LINE)
        self.words = memory[(self.address - at(memory)) // 8 :]
        if not ALONE:
            system = ctypes.CDLL(None)
            system.pthread_mutex_init(ctypes.c_void_p(self.address + MUTEX), None)
            system.pthread_cond_init(ctypes.c_void_p(self.address + BELL), None)
        self.held: list[np.ndarray] = []  # scratch memory, also what was too small: it may be in use

    def grow(self, helpers: int, bytes: int) -> None:
        """Have so many helpers at least, with so much scratch memory each. What is counted last is safe from Ctrl-C."""
        with self.growing:
            many = max(helpers, self.helpers)
            if bytes > self.bytes:  # twice as much at least: what is held of all sizes is less than the largest again
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
    """Steps that follow one another: a call runs them. They cannot fail, and end whole where Ctrl-C comes."""

    def __init__(self, steps: Sequence) -> None:
        self.steps = steps  # they hold what their words and instructions stand in
        self.table = np.array([(step.code, at(step.words), step.chunks) for step in steps], "i8").reshape(-1, 3)
        self.place = at(self.table)
        self.most = max([step.chunks for step in steps], default=0)
        self.bytes = max([step.scratch for step in steps], default=0)
        self.cores = threads.number() if self.most > 1 else 1

        self.alone = functools.partial(run_alone.call, self.place, len(self.steps))

    def __call__(self) -> None:
        mine = OWN
        if mine.bytes < self.bytes:
            mine.grow(self.bytes)
        if self.most < 2 or ALONE or (wanted := min(Settings.threads or self.cores, self.most)) < 2:
            self.alone(mine.place)
            return
        team = TEAM
        if team.helpers < wanted - 1 or team.bytes < self.bytes:
            team.grow(wanted - 1, self.bytes)
        run.call(team.address, wanted, self.place, len(self.steps), mine.place)


class Own(threading.local):
    """Scratch memory of the thread that runs a program. It is kept, as helpers keep theirs."""

    bytes, place, memory = -1, 0, None

    def grow(self, bytes: int) -> None:
        memory = np.empty(bytes + ALIGN, np.uint8)
        self.memory, self.place, self.bytes = memory, rounded(at(memory), ALIGN), bytes


OWN = Own()


def rounded(number: int, size: int) -> int:
    """Up to the next multiple."""
    return number + -number % size


TEAM = Team()


def forget() -> None:
    """In a process that was forked: the helpers are not in it."""
    global TEAM
    TEAM = Team()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget)
