"""Virtual ranks: several ranks in one process, each on a thread of its own, in a notebook or a test.

    with flow.virtual_ranks(4) as ranks:
        losses = ranks.run(train)  # a list, by rank

Ranks share modules and tensors only if a function takes them from outside; each creates its own. They share the lock
of Python, so they run no faster than one rank, with the same collectives, errors and results as processes.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..core.base.errors import MinflowError, RankError, ShapeError
from ..core.context import Context, current_context, virtual_contexts
from ..core.host import HostArray
from ..core.source_location import fail, here
from .communicator import (
    Communicator,
    Fingerprint,
    Pending,
    check_received,
    ended_error,
    facts_of,
    late_error,
    mismatch,
)
from .places import place

SLICE = 0.1  # seconds after which a waiting thread looks for Ctrl-C
GRACE = 2.0  # seconds that other ranks get to end after an error of one, before they are interrupted


class Round:
    """One exchange: what each rank has handed over."""

    def __init__(self, size: int):
        self.whats: list[Fingerprint | None] = [None] * size
        self.values: list[Any] = [None] * size

    @property
    def complete(self) -> bool:
        return None not in self.whats


class VirtualWorld:
    """The state that virtual ranks share. changed: notified when a rank arrives, sends, ends or fails.

    ended: ranks whose function has returned.  failed: (rank, error) of the first one that has raised an error.
    """

    def __init__(self, size: int):
        self.size = size
        self.changed = threading.Condition()
        self.rounds: dict[tuple, Round] = {}  # by the key of a group
        self.letters: dict[tuple[int, int, int], deque] = {}  # (sender, receiver, tag) -> arrays
        self.last: dict[int, Fingerprint] = {}  # the last call of each rank
        self.ended: set[int] = set()
        self.failed: tuple[int, BaseException] | None = None
        self.threads: list[threading.Thread] = []

    def wait(self, done: Callable[[], Any], missing: Callable[[], list[int]], what: Any, deadline: float) -> None:
        """Wait, with `changed` held. missing: the ranks that are waited for, for errors."""
        end = time.monotonic() + deadline
        while not done():
            if self.failed is not None:
                rank, error = self.failed
                raise RankError(
                    f"rank {rank} has raised {type(error).__name__} while this rank waited in {what}",
                    values={f"rank {rank}": str(error).partition("\n")[0]},
                    where=here(),
                    hint="correct that error",
                )
            if gone := [rank for rank in missing() if rank in self.ended]:
                raise ended_error(gone[0], what, f"has ended; {self.last_of(gone[0])}")
            if (left := end - time.monotonic()) <= 0:
                places = {f"rank {rank}": f"{self.place_of(rank)}; {self.last_of(rank)}" for rank in missing()}
                raise late_error(deadline, what, places)
            self.changed.wait(min(left, SLICE))

    def place_of(self, rank: int) -> str:
        """Where a rank is now."""
        frame = sys._current_frames().get(self.threads[rank].ident or 0)
        return place([(frame.f_code.co_filename, line) for frame, line in traceback.walk_stack(frame)] if frame else ())

    def last_of(self, rank: int) -> str:
        return f"its last collective is {self.last[rank]}" if rank in self.last else "it has called no collective"

    def fail(self, rank: int, error: BaseException) -> None:
        with self.changed:
            self.failed = self.failed or (rank, error)
            self.changed.notify_all()


class VirtualCommunicator(Communicator):
    """A group of virtual ranks. key: the same on its ranks, and another one for each group."""

    def __init__(
        self, world: VirtualWorld, rank: int, ranks: Sequence[int], deadline: float | None = None, key: tuple = ()
    ):
        super().__init__(rank, ranks, deadline)
        self.world, self.key = world, key

    def exchange(self, what: Fingerprint, mine: Any) -> list[Any]:
        world = self.world
        with world.changed:
            current = world.rounds.setdefault(self.key, Round(self.size))
            if (other := current.whats[self.rank]) is not None:
                raise RankError(
                    f"two threads of rank {self.ranks[self.rank]} call collectives at the same time",
                    values={"one": other, "other": what},
                    where=here(),
                    hint="one thread per rank calls collectives, since all ranks call them in the same order",
                )
            current.whats[self.rank], current.values[self.rank] = what, mine
            world.last[self.ranks[self.rank]] = what
            if current.complete:
                del world.rounds[self.key]
                world.changed.notify_all()
            try:
                world.wait(
                    lambda: current.complete,
                    lambda: [rank for rank, known in zip(self.ranks, current.whats) if known is None],
                    what,
                    self.deadline,
                )
            except BaseException:
                current.whats[self.rank] = None
                raise
        if len({known.key for known in current.whats if known is not None}) > 1:
            raise mismatch(current.whats)  # type: ignore[arg-type]  # all have arrived
        return current.values

    def start_send(self, array: HostArray, to: int, tag: int = 0, facts: str = "") -> Pending:
        letter = facts + facts_of(array), array.copy()
        with self.world.changed:
            self.world.letters.setdefault((self.ranks[self.rank], self.ranks[to], tag), deque()).append(letter)
            self.world.changed.notify_all()
        return Pending(lambda: to)

    def receive(self, out: HostArray, source: int | None, tag: int, facts: str) -> int:
        me, letters = self.ranks[self.rank], self.world.letters
        sources = [rank for rank in range(self.size) if source in (None, rank)]

        def arrived() -> list[int]:
            return [rank for rank in sources if letters.get((self.ranks[rank], me, tag))]

        what = f"receive of{facts} from {'any rank' if source is None else f'rank {source}'}"
        with self.world.changed:
            self.world.wait(arrived, lambda: [] if source is None else [self.ranks[source]], what, self.deadline)
            found = arrived()[0]
            sent, array = letters[self.ranks[found], me, tag].popleft()
        check_received(found, sent, facts)
        out[...] = array
        return found

    def group(self, ranks: Sequence[int]) -> Communicator | None:
        what = self.fingerprint("new_group", f" {list(ranks)}")
        self.exchange(what, None)
        return self.part(ranks, what.number) if self.rank in ranks else None

    def start_subgroup(self, ranks: tuple[int, ...]) -> Communicator:
        return self.part(ranks, ranks)

    def part(self, ranks: Sequence[int], name: Hashable) -> Communicator:
        """The communicator of some ranks of this group. name: of the part in the group."""
        chosen = [self.ranks[rank] for rank in ranks]
        return VirtualCommunicator(self.world, list(ranks).index(self.rank), chosen, self.deadline, (*self.key, name))


def join(threads: Sequence[threading.Thread], seconds: float) -> bool:
    """Wait for threads, at most some seconds. True if all have ended."""
    end = time.monotonic() + seconds
    for thread in threads:
        while thread.is_alive() and (left := end - time.monotonic()) > 0:
            thread.join(min(left, SLICE))
    return not any([thread.is_alive() for thread in threads])


def interrupt(threads: Sequence[threading.Thread]) -> None:
    """Raise SystemExit in the Python code of threads, as Ctrl-C raises KeyboardInterrupt in the main thread."""
    for thread in threads:
        if thread.is_alive():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit))


class VirtualRanks:
    """The open virtual ranks. `run(function, *args)` calls a function on each of them and returns the results."""

    def __init__(self, contexts: Sequence[Context]):
        self.contexts = contexts

    def __len__(self) -> int:
        return len(self.contexts)

    def run(self, function: Callable, *args: Any, **options: Any) -> list[Any]:
        """Call function(*args) on each rank, on threads of their own; return the results by rank.

        Raises the error of the first rank that fails, after all have ended. A rank that computes on is interrupted; one
        that sleeps or is in a call of another library goes on until that returns.
        """
        world, results = VirtualWorld(len(self)), [None] * len(self)

        def work(rank: int) -> None:
            try:
                current_context().communicator = VirtualCommunicator(world, rank, range(len(self)))
                results[rank] = function(*args, **options)
            except BaseException as error:
                world.fail(rank, error)
            finally:
                with world.changed:
                    world.ended.add(rank)
                    world.changed.notify_all()

        world.threads[:] = [
            context.spawn(work, rank, name=f"rank {rank}", start=False) for rank, context in enumerate(self.contexts)
        ]
        try:
            for thread in world.threads:
                thread.start()
            while world.failed is None and not join(world.threads, SLICE):
                pass
        except BaseException as error:  # Ctrl-C
            world.fail(-1, error)
            interrupt(world.threads)
            join(world.threads, GRACE)
            raise
        if world.failed is not None:
            rank, cause = world.failed
            if not isinstance(cause, MinflowError) or f"rank {rank}" not in str(cause):
                cause.add_note(f"on rank {rank} of {len(self)}")
            if not join(world.threads, GRACE):  # ranks that wait for others have ended
                interrupt(world.threads)
                join(world.threads, GRACE)
            raise cause
        return results

    __call__ = run


@contextmanager
def virtual_ranks(count: int) -> Iterator[VirtualRanks]:
    """Open `count` virtual ranks in this process. In the block, `ranks.run(function)` runs a function on each.

    A rank has its own random numbers, sessions of jobs and graphs; `flow.env.get_rank()` tells it apart.
    """
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        fail(ShapeError, f"virtual_ranks takes a number of ranks, at least 1, not {count!r}", "virtual_ranks(4)")
    with virtual_contexts(count) as contexts:
        yield VirtualRanks(contexts)
