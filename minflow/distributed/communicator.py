"""Communicator: moves arrays of the host between the ranks of a group, and checks that all ranks do the same.

Each call of a collective has a fingerprint: its number, kind, shape and dtype. Ranks compare them before any element
moves, since two collectives in another order would otherwise mix up their elements silently. A rank that does not
arrive until the deadline, has ended or has raised an error ends the collective on all ranks with a RankError.
Two implementations: threads of one process (`virtual.py`), and processes (`mpi.py`). Read next: `collectives.py`.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..core.backend import namespace
from ..core.base.errors import RankError
from ..core.host import HostArray
from ..core.sharding import part
from ..core.source_location import here

DEADLINE = 300.0  # seconds that a rank waits for the others; MINFLOW_COLLECTIVE_TIMEOUT sets another default
LARGE = 65_536  # bytes of an array from which on ranks share the work of a reduction
POSTED = 64  # messages that a rank sends before it waits until one has arrived
REDUCTIONS = {  # names of ufuncs
    "sum": "add",
    "product": "multiply",
    "min": "minimum",
    "max": "maximum",
    "band": "bitwise_and",
    "bor": "bitwise_or",
    "bxor": "bitwise_xor",
}


def default_deadline() -> float:
    return float(os.environ.get("MINFLOW_COLLECTIVE_TIMEOUT") or DEADLINE)


class Fingerprint(NamedTuple):
    """A call of a collective. `where` is for messages: ranks may call it from different lines."""

    number: int
    kind: str
    facts: str
    where: str

    @property
    def key(self) -> str:
        return f"#{self.number} {self.kind}{self.facts}"

    def __str__(self) -> str:
        return f"{self.key} {self.where}"


class Pending:
    """A send or receive that has begun. Calling it completes it, once, and returns the other rank.

    arrived: of a send, returns True once the array has arrived or is kept for the receiver.
    """

    def __init__(self, finish: Callable[[], int], arrived: Callable[[], bool] = lambda: True):
        self.finish: Callable[[], int] | None = finish
        self.arrived = arrived
        self.rank = -1

    def __call__(self) -> int:
        if self.finish is not None:
            finish, self.finish = self.finish, None
            self.rank = finish()
        return self.rank


class Communicator:
    """The ranks of a group, as one of them sees it. Arrays are those of the host, C-contiguous.

    rank: the index of this rank in the group.  ranks: those of the world that belong to it, in order.
    deadline: seconds to wait for the others.  local_rank: the rank among those of this machine.  machines: the number
    of machines.
    """

    def __init__(self, rank: int, ranks: Sequence[int], deadline: float | None = None):
        self.rank, self.ranks = rank, tuple(ranks)
        self.deadline = default_deadline() if deadline is None else deadline
        self.calls, self.local_rank, self.machines = 0, rank, 1
        self.receives: dict[tuple[int | None, int], Pending] = {}  # the last one, by source and tag
        self.posted: list[Pending] = []
        self.subgroups: dict[tuple[int, ...], Communicator] = {}
        self.sent = 0  # bytes that boxing has sent from this rank to others

    @property
    def size(self) -> int:
        return len(self.ranks)

    def fingerprint(self, kind: str, facts: str = "") -> Fingerprint:
        """That of the next collective."""
        self.calls += 1
        return Fingerprint(self.calls, kind, facts, here())

    # ---- what an implementation defines ------------------------------------------------------------------------------

    def exchange(self, what: Fingerprint, mine: Any) -> list[Any]:
        """Hand over an object and return those of all ranks, by rank, which must not be changed."""
        raise NotImplementedError

    def start_send(self, array: HostArray, to: int, tag: int = 0, facts: str = "") -> Pending:
        """Begin to send an array, which stays as it is, to a rank of the group. facts: what the receiver expects."""
        raise NotImplementedError

    def start_receive(self, out: HostArray, source: int | None, tag: int = 0, facts: str = "") -> Pending:
        """Begin to receive an array of this shape and dtype, sent with these facts, from a rank, or from any.

        Receives from one rank with one tag complete in the order of their calls.
        """
        before = self.receives.get((source, tag))

        def finish() -> int:
            if before is not None:
                before()
            return self.receive(out, source, tag, facts + facts_of(out))

        self.receives[source, tag] = started = Pending(finish)
        return started

    def receive(self, out: HostArray, source: int | None, tag: int, facts: str) -> int:
        """Wait for an array, and return the rank that has sent it."""
        raise NotImplementedError

    def group(self, ranks: Sequence[int]) -> Communicator | None:
        """A new communicator of some ranks; None on the others. All ranks call it, with the same ranks."""
        raise NotImplementedError

    def subgroup(self, ranks: tuple[int, ...]) -> Communicator:
        """The communicator of some ranks, which only they call; always the same one."""
        if ranks not in self.subgroups:
            self.subgroups[ranks] = self.start_subgroup(ranks)
        found = self.subgroups[ranks]
        found.deadline = self.deadline
        return found

    def start_subgroup(self, ranks: tuple[int, ...]) -> Communicator:
        """The communicator of some ranks at their first use of it."""
        raise NotImplementedError

    # ---- collectives, in terms of `exchange` -------------------------------------------------------------------------

    def barrier(self) -> None:
        """Wait until all ranks have called it."""
        self.exchange(self.fingerprint("barrier"), None)

    def all_reduce(
        self, array: HostArray, by: str = "sum", what: Fingerprint | None = None, out: HostArray | None = None
    ) -> None:
        """Overwrite an array, or `out`, with the reduction over all ranks: the same bits on each."""
        what, out = what or self.fingerprint("all_reduce", f" {by}{facts_of(array)}"), array if out is None else out
        if array.nbytes < LARGE:
            out[...] = reduced(self.exchange(what, array.copy()), by)
            return
        start, size = part(array.size, self.size, self.rank)  # each rank reduces one part
        mine = reduced([theirs.reshape(-1)[start : start + size] for theirs in self.exchange(what, array)], by)
        namespace().concatenate(self.exchange(what, mine), out=out.reshape(-1))

    def all_gather(self, array: HostArray) -> list[HostArray]:
        """The arrays of all ranks, by rank; they may differ in shape."""
        return self.exchange(self.fingerprint("all_gather", f" {array.dtype}"), array.copy())

    def broadcast(self, array: HostArray, source: int) -> None:
        """Overwrite an array with that of one rank."""
        what = self.fingerprint("broadcast", f" from {source}{facts_of(array)}")
        array[...] = self.exchange(what, array.copy() if source == self.rank else None)[source]

    def reduce_scatter(self, parts: Sequence[HostArray], by: str = "sum", what: Fingerprint | None = None) -> HostArray:
        """Part `rank` of the reduction over all ranks. parts: one array for each rank."""
        what = what or self.fingerprint("reduce_scatter", f" {by}{''.join(map(facts_of, parts))}")
        terms = {rank: namespace().empty_like(parts[self.rank]) for rank in range(self.size) if rank != self.rank}
        self.transfer({rank: parts[rank] for rank in terms}, terms, what)
        terms[self.rank] = parts[self.rank].copy()
        return reduced([terms[rank] for rank in range(self.size)], by)

    def all_to_all(self, parts: Sequence[HostArray]) -> list[HostArray]:
        """Part `rank` of each rank. parts: one array for each rank."""
        what = self.fingerprint("all_to_all", f" {len(parts)} parts")
        return [theirs[self.rank] for theirs in self.exchange(what, [part.copy() for part in parts])]

    def transfer(self, parts: dict[int, HostArray], places: dict[int, HostArray], what: Fingerprint) -> None:
        """Send a part to each of some ranks, and write those of others into places. Both are by rank.

        The arrays need not be contiguous; one part may go to several ranks.
        """
        copies = {id(part): part.copy() for part in parts.values()}
        arrived = self.exchange(what, {rank: copies[id(part)] for rank, part in parts.items()})
        for rank, place in places.items():
            place[...] = arrived[rank][self.rank]

    # ---- messages without a receipt ----------------------------------------------------------------------------------

    def post(self, array: HostArray, to: int, tag: int, facts: str = "") -> None:
        """Send a copy of an array without waiting for the receiver, unless many arrays are under way."""
        self.posted = [pending for pending in self.posted if not pending.arrived()]
        self.finish_posted(POSTED)
        self.posted.append(self.start_send(array, to, tag, facts))

    def finish_posted(self, limit: int = 0) -> None:
        """Wait until at most some of the posted arrays are under way."""
        while len(self.posted) > limit:
            self.posted.pop(0)()


def facts_of(array: HostArray) -> str:
    return f" {array.dtype}{list(array.shape)}"


def reduced(arrays: Sequence[HostArray], by: str) -> HostArray:
    """The reduction of arrays, in the order of ranks."""
    return functools.reduce(getattr(namespace(), REDUCTIONS[by]), arrays)


def check_received(rank: int, sent: str, expected: str) -> None:
    """Raise RankError if a rank has sent another array than one with these facts."""
    if sent != expected:
        raise RankError(
            f"rank {rank} has sent an array of another shape or dtype",
            values={"sent": sent.strip(), "expected": expected.strip()},
            where=here(),
            hint="send and recv tensors of one shape and dtype",
        )


def mismatch(whats: Sequence[Fingerprint]) -> RankError:
    """The error for ranks that call different collectives."""
    return RankError(
        "the ranks do not call the same collective",
        values={f"rank {rank}": what for rank, what in enumerate(whats)},
        where=here(),
        hint="each rank calls the same collectives in the same order, with the same shapes and dtypes",
    )


def late_error(deadline: float, what: Any, places: Mapping[str, str]) -> RankError:
    """The error for ranks that have not come. places: where they are."""
    return RankError(
        f"after {deadline:g} seconds not all ranks have called {what}",
        values=places,
        where=here(),
        hint="each rank calls the same collectives; init_process_group(timeout=...) for slower ranks",
    )


def ended_error(rank: int, what: Any, last: str) -> RankError:
    """The error for a rank that does not come any more. last: what it has called."""
    return RankError(
        f"rank {rank} has ended without {what}",
        values={f"rank {rank}": last},
        where=here(),
        hint="each rank calls the same collectives in the same order",
    )


class Alone(Communicator):
    """The communicator of a program that has one rank."""

    def __init__(self) -> None:
        super().__init__(0, [0])
        self.letters: dict[int, list[tuple[str, HostArray]]] = {}

    def exchange(self, what: Fingerprint, mine: Any) -> list[Any]:
        return [mine]

    def start_send(self, array: HostArray, to: int, tag: int = 0, facts: str = "") -> Pending:
        self.letters.setdefault(tag, []).append((facts + facts_of(array), array.copy()))
        return Pending(lambda: to)

    def receive(self, out: HostArray, source: int | None, tag: int, facts: str) -> int:
        if not self.letters.get(tag):
            raise RankError(
                "a program with one rank waits for an array that it has not sent",
                where=here(),
                hint="send first; minflow launch -n 2 program.py starts two ranks",
            )
        sent, array = self.letters[tag].pop(0)
        check_received(0, sent, facts)
        out[...] = array
        return 0

    def group(self, ranks: Sequence[int]) -> Communicator | None:
        return self if list(ranks) == [0] else None

    def start_subgroup(self, ranks: tuple[int, ...]) -> Communicator:
        return self
