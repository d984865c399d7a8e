"""Board: a file that all ranks of a machine map into memory, in which each writes what it does.

A rank that waits reads from it which ranks are missing, and their last collective; a signal makes a missing one write
its stack. The launcher reads which rank has ended first, and how. Each rank writes its own part only, at each
collective, in about a microsecond. Read next: `../mpi.py`.
"""

from __future__ import annotations

import contextlib
import faulthandler
import mmap
import os
import re
import select
import shutil
import signal
import struct
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..places import place

VARIABLE = "MINFLOW_BOARD"  # the environment variable in which the launcher tells the path
HEADER, ENTRY, STACK = 64, 1024, 65536  # bytes; a stack ends after 100 frames
FIELDS = struct.Struct("=BqqqH")  # state, process id, group, number of the call, length of the text
TEXT = ENTRY - FIELDS.size
UNKNOWN, COMPUTES, WAITS, ENDED, BROKEN = range(5)
ASK = getattr(signal, "SIGURG", None)  # a process that does not handle it ignores it
ANSWER = 1.0  # seconds to wait for a stack
CLOSED_FIRST = 500  # Linux closes high descriptors first, so this one before that from which mpiexec learns of the end
FRAME = re.compile(r'  File "(.*)", line (\d+) in ')


class Entry(NamedTuple):
    """The entry of a rank. text: its last call of a collective.

    text and number of a rank that is BROKEN are the reason and the exit code.
    """

    state: int
    process: int
    group: int
    number: int
    text: str


class Board:
    """size: number of ranks of all machines; those of other machines stay UNKNOWN."""

    def __init__(self, path: str, size: int):
        self.size = size
        with open(path, "r+b") as file:
            file.truncate(HEADER + size * (ENTRY + STACK))  # a sparse file
            self.memory = mmap.mmap(file.fileno(), 0)
            self.file = os.dup(file.fileno())
        self.visible: set[int] = set()

    # ---- what a rank writes ------------------------------------------------------------------------------------------

    def join(self, rank: int) -> None:
        """Begin to write the entry of a rank, and its stack if it is asked."""
        self.begin = HEADER + rank * ENTRY
        self.enter("", 0, 0, COMPUTES)
        if ASK is not None and hasattr(faulthandler, "register"):
            os.lseek(self.file, self.stack_at(rank), os.SEEK_SET)
            faulthandler.register(ASK, self.file, all_threads=False)

    def enter(self, text: str, group: int, number: int, state: int = WAITS) -> None:
        """Write the entry of this rank."""
        data = text.encode("utf-8", "replace")[:TEXT]
        entry = FIELDS.pack(state, os.getpid(), group, number, len(data)) + data
        self.memory[self.begin : self.begin + len(entry)] = entry

    def set_state(self, state: int) -> None:
        self.memory[self.begin] = state

    def fail(self, reason: str, code: int) -> None:
        """Write why this rank ends all, and with which exit code, before the text of its last collective."""
        last = self.read((self.begin - HEADER) // ENTRY)
        self.enter(f"{reason}; {self.last(last)}", 0, code, BROKEN)

    def look_around(self) -> None:
        """Find the processes of this machine that this one can see, after all have joined: containers hide some."""
        if os.name == "posix":
            entries = {rank: self.read(rank) for rank in range(self.size)}
            self.visible = {rank for rank, e in entries.items() if e.state != UNKNOWN and exists(e.process)}

    def claim(self, code: int) -> bool:
        """True for the first rank that calls it, which then says why all end, with this exit code."""
        first, self.memory[0] = not self.memory[0], code
        return first

    @property
    def claimed(self) -> int:
        """The exit code after a rank has said why all end; otherwise 0."""
        return self.memory[0]

    # ---- what others read --------------------------------------------------------------------------------------------

    def read(self, rank: int) -> Entry:
        begin = HEADER + rank * ENTRY
        state, process, group, number, length = FIELDS.unpack(self.memory[begin : begin + FIELDS.size])
        begin += FIELDS.size
        text = self.memory[begin : begin + length].decode("utf-8", "replace")
        return Entry(state, process, group, number, text)

    def missing(self, ranks: Sequence[int], group: int, number: int) -> list[int]:
        """Those of some ranks that are not in a collective of a group, as far as this machine knows."""
        return [rank for rank in ranks if self.read(rank)[2:4] != (group, number)]

    def has_ended(self, rank: int) -> bool:
        """True if a rank of this machine has ended."""
        entry = self.read(rank)
        return entry.state == ENDED or (rank in self.visible and not exists(entry.process))

    def last(self, entry: Entry) -> str:
        return f"its last collective is {entry.text}" if entry.text else "it has called no collective"

    def describe(self, rank: int, alive: bool = True) -> str:
        """Where a rank is, for an error. alive: False for its state when it ended."""
        entry = self.read(rank)
        if entry.state == UNKNOWN:
            return "runs on another machine, or has not started"
        if entry.state == BROKEN:
            return entry.text
        if entry.state == ENDED or (alive and self.has_ended(rank)):
            return f"has ended; {self.last(entry)}"
        if entry.state == WAITS:
            return f"{'waits' if alive else 'waited'} in {entry.text}"
        if not alive:
            return f"computed; {self.last(entry)}"
        found = self.stack(rank, entry.process) if rank in self.visible else []
        return f"{place(found) if found else 'computes'}; {self.last(entry)}"

    def stack_at(self, rank: int) -> int:
        return HEADER + self.size * ENTRY + rank * STACK

    def stack(self, rank: int, process: int) -> list[tuple[str, int]]:
        """(file, line) of the frames of a process, the innermost one first; empty if it does not answer."""
        if ASK is None or not hasattr(faulthandler, "register"):
            return []
        with contextlib.suppress(OSError):
            os.kill(process, ASK)
        begin, end, before = self.stack_at(rank), time.monotonic() + ANSWER, b""
        while time.monotonic() < end:
            time.sleep(0.02)
            text = self.memory[begin : begin + STACK].rstrip(b"\0")
            if text and text == before:
                break
            before = text
        return [(file, int(line)) for file, line in FRAME.findall(before.decode("utf-8", "replace"))]


def exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it belongs to another user
        pass
    return True


def new_board() -> str:
    """The path of a new, empty file, in a folder of its own."""
    path = Path(tempfile.mkdtemp(prefix="minflow_ranks_")) / "board"
    path.touch()
    return str(path)


def remove_board(path: str) -> None:
    shutil.rmtree(Path(path).parent, ignore_errors=True)


def alive_pipes(path: str, size: int) -> dict[int, int]:
    """Make a named pipe beside the file for each rank, and return those that are open for reading, with their ranks.

    A rank holds the other end until it ends, however it ends. Empty on systems without epoll, or named pipes here.
    """
    if not hasattr(select, "epoll"):
        return {}
    try:
        for rank in range(size):
            os.mkfifo(f"{path}.{rank}")
    except OSError:
        return {}
    return {os.open(f"{path}.{rank}", os.O_RDONLY | os.O_NONBLOCK): rank for rank in range(size)}


def hold_pipe(path: str, rank: int, inherited: bool) -> None:
    """Hold the pipe of a rank. inherited: True if the program that replaces this one holds it, too."""
    if os.path.exists(f"{path}.{rank}"):
        import fcntl

        try:
            pipe = os.open(f"{path}.{rank}", os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # the launcher has ended
            return
        with contextlib.suppress(OSError):  # a limit on the number of open files
            high = fcntl.fcntl(pipe, fcntl.F_DUPFD_CLOEXEC, CLOSED_FIRST)
            os.close(pipe)
            pipe = high
        os.set_inheritable(pipe, inherited)
        os.register_at_fork(after_in_child=lambda: os.close(pipe))


def remove_segments() -> None:
    """Remove the names of shared memory that MPI has opened, so that a process that is killed leaves none behind.

    The memory stays while a process maps it. All ranks must have mapped it. Linux only.
    """
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/maps").read_text().splitlines():
            path = line.split(maxsplit=5)[-1]
            if path.startswith("/dev/shm/mpich_shm_"):
                Path(path).unlink(missing_ok=True)
