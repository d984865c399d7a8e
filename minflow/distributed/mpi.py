"""Ranks that are processes: mpi4py and an MPI library, both from wheels (extra `mpi`).

Waiting polls, so that a deadline can end it: MPI itself waits forever for a rank that has raised an error. Processes
that wait sleep in between, since with more ranks than cores a polling rank keeps the others from computing.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from ..core.backend import namespace
from ..core.base.optional import import_optional
from ..core.host import HostArray
from .communicator import Communicator, Fingerprint, Pending, check_received, facts_of, mismatch, reduced

POLLS = 2000  # polls before a wait begins to sleep, if each rank has a core
NAP = 20e-6  # seconds
HEADER = 256  # bytes before the elements of a message: their dtype and shape
SUBGROUP = 32_001  # tag of the messages before a group of some ranks begins
ABORTED = 71  # exit code after a deadline


class MPICommunicator(Communicator):
    """A group of processes. comm: mpi4py's communicator."""

    def __init__(self, comm: Any, ranks: Sequence[int] | None = None, deadline: float | None = None):
        super().__init__(comm.rank, range(comm.size) if ranks is None else ranks, deadline)
        self.comm, self.mpi = comm, import_optional("mpi4py.MPI", "several processes")
        self.checks = os.environ.get("MINFLOW_CHECK_COLLECTIVES", "1") != "0"
        self.polls = POLLS if comm.size <= (os.cpu_count() or 1) else 0
        if ranks is None:
            here = comm.Split_type(self.mpi.COMM_TYPE_SHARED)
            self.local_rank, first = here.rank, comm.allgather(here.rank == 0)
            self.machines = sum(first)

    def wait(self, request: Any, what: Any) -> Any:
        """Wait for a request; after the deadline, end all ranks."""
        status, begin, polls = self.mpi.Status(), time.perf_counter(), 0
        while not request.Test(status):
            polls += 1
            if polls > self.polls:
                time.sleep(NAP)
                if time.perf_counter() - begin > self.deadline:
                    text = (
                        f"minflow: rank {self.rank}: after {self.deadline:g} seconds not all ranks have called {what}"
                    )
                    print(text, file=sys.stderr, flush=True)
                    self.comm.Abort(ABORTED)
                    os._exit(ABORTED)  # Abort may return before the launcher has ended this process
        return status

    def agree(self, what: Fingerprint) -> None:
        """Check that all ranks call this collective. Raises RankError."""
        if not self.checks or self.size == 1:
            return
        number = int.from_bytes(hashlib.blake2b(what.key.encode(), digest_size=7).digest(), "big")
        both = namespace().array([number, -number], "int64")
        self.wait(self.comm.Iallreduce(self.mpi.IN_PLACE, both, op=self.mpi.MAX), what)
        if both[0] != -both[1]:
            raise mismatch(self.comm.allgather(what))

    def exchange(self, what: Fingerprint, mine: Any) -> list[Any]:
        self.agree(what)
        if self.size > 1:
            self.wait(self.comm.Ibarrier(), what)  # the next call waits without a deadline
        return self.comm.allgather(mine)

    def barrier(self) -> None:
        what = self.fingerprint("barrier")
        self.agree(what)
        self.wait(self.comm.Ibarrier(), what)

    def all_reduce(
        self, array: HostArray, by: str = "sum", what: Fingerprint | None = None, out: HostArray | None = None
    ) -> None:
        what = what or self.fingerprint("all_reduce", f" {by}{facts_of(array)}")
        source, out = (self.mpi.IN_PLACE, array) if out is None else (array, out)
        if not self.is_native(array):
            out[...] = reduced(self.exchange(what, array), by)
            return
        self.agree(what)
        operation = {"sum": "SUM", "product": "PROD", "min": "MIN", "max": "MAX"}.get(by, by.upper())
        self.wait(self.comm.Iallreduce(source, out, op=getattr(self.mpi, operation)), what)

    def broadcast(self, array: HostArray, source: int) -> None:
        what = self.fingerprint("broadcast", f" from {source}{facts_of(array)}")
        self.agree(what)
        self.wait(self.comm.Ibcast(in_bytes(array), root=source), what)

    def transfer(self, parts: dict[int, HostArray], places: dict[int, HostArray], what: Fingerprint) -> None:
        self.agree(what)
        xp = namespace()
        packed = {id(part): xp.asarray(part, order="C") for part in parts.values()}
        buffers = {rank: xp.asarray(place, order="C") for rank, place in places.items()}
        requests = [self.comm.Irecv(in_bytes(buffer), source=rank) for rank, buffer in buffers.items()]
        requests += [self.comm.Isend(in_bytes(packed[id(part)]), dest=rank) for rank, part in parts.items()]
        for request in requests:
            self.wait(request, what)
        for rank, place in places.items():
            if buffers[rank] is not place:
                place[...] = buffers[rank]

    def is_native(self, array: HostArray) -> bool:
        """True if MPI can compute with the dtype."""
        return array.dtype.kind in "iufc" and array.dtype.name not in ("float16", "bfloat16")

    def start_send(self, array: HostArray, to: int, tag: int = 0, facts: str = "") -> Pending:
        facts += facts_of(array)
        what = f"send of{facts} to rank {to}"
        message = bytearray(header(facts))
        message += in_bytes(array).data
        request = self.comm.Isend(message, dest=to, tag=tag)
        return Pending(lambda: self.wait(request, what) and to, request.Test)

    def start_receive(self, out: HostArray, source: int | None, tag: int = 0, facts: str = "") -> Pending:
        facts += facts_of(out)
        what = f"receive of{facts} from {'any rank' if source is None else f'rank {source}'}"
        message = bytearray(HEADER + out.nbytes)
        request = self.comm.Irecv(message, source=self.mpi.ANY_SOURCE if source is None else source, tag=tag)

        def finish() -> int:
            try:
                rank = self.wait(request, what).source
            except self.mpi.Exception:  # the array is larger than this one; the begin of the message has arrived
                rank = -1 if source is None else source
            if message[:HEADER] != header(facts):
                check_received(rank, message[:HEADER].decode().rstrip(), facts)
            in_bytes(out).data[:] = memoryview(message)[HEADER:]
            return rank

        return Pending(finish)

    def group(self, ranks: Sequence[int]) -> Communicator | None:
        self.agree(self.fingerprint("new_group", f" {list(ranks)}"))
        mine = self.rank in ranks
        comm = self.comm.Split(0 if mine else self.mpi.UNDEFINED, list(ranks).index(self.rank) if mine else 0)
        return MPICommunicator(comm, [self.ranks[rank] for rank in ranks], self.deadline) if mine else None

    def start_subgroup(self, ranks: tuple[int, ...]) -> Communicator:
        hello = namespace().empty(0, "uint8")
        for rank in ranks:  # MPI waits without a deadline until all have come
            self.post(hello, rank, SUBGROUP)
        for rank in ranks:
            self.start_receive(hello, rank, SUBGROUP)()
        comm = self.comm.Create_group(self.comm.group.Incl(ranks))
        return MPICommunicator(comm, [self.ranks[rank] for rank in ranks], self.deadline)


def in_bytes(array: HostArray) -> HostArray:
    return array.reshape(-1).view("uint8")


def header(facts: str) -> bytes:
    return facts.encode()[:HEADER].ljust(HEADER)


def start_processes() -> MPICommunicator:
    """The communicator of all processes that the launcher has started."""
    mpi = import_optional("mpi4py.MPI", "several processes")
    world = MPICommunicator(mpi.COMM_WORLD)
    atexit.register(world.finish_posted)
    return world
