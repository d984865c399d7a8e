"""Ranks that are processes: mpi4py and an MPI library, both from wheels (extra `mpi`).

Waiting polls, so that a deadline can end it: MPI itself waits forever for a rank that has raised an error. Processes
that wait sleep in between, since with more ranks than cores a polling rank keeps the others from computing.
"""

from __future__ import annotations

import atexit
import faulthandler
import hashlib
import os
import pickle
import sys
import threading
import time
import zlib
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, NoReturn

from ..core.backend import namespace
from ..core.base.errors import RankError
from ..core.base.locks import locked
from ..core.base.optional import import_optional
from ..core.host import HostArray
from ..core.sharding import part
from ..core.source_location import here
from .communicator import (
    Communicator,
    Fingerprint,
    Pending,
    check_received,
    default_deadline,
    ended_error,
    facts_of,
    late_error,
    mismatch,
)
from .places import cores
from .processes.board import COMPUTES, ENDED, VARIABLE, WAITS, Board, new_board, remove_board, remove_segments

POLLS = 2000  # polls before a wait begins to sleep, if each rank has a core
NAP, LONGEST_NAP = 20e-6, 1e-3  # seconds; a longer wait has longer naps, of a hundredth of its time
LOOK = 0.25  # seconds after which a waiting rank looks for ranks that have ended
DRAIN = 0.3  # seconds in which mpiexec reads the last lines of a rank before it ends all of them
SPEECH = 2.0  # seconds that another rank gets to say why all end
WATCH = 1.0  # seconds between two looks for the launcher
HEADER = 256  # bytes before the elements of a message: their dtype and shape
SUBGROUP, TRANSFER = 32_001, 32_002  # tags of messages: before a group of some ranks begins; of parts of arrays
FAILED, ABORTED = 1, 71  # exit codes after an error, and after a deadline


class MPICommunicator(Communicator):
    """A group of processes.

    comm: mpi4py's communicator.  name: tells groups of the same ranks apart; the same on each of them.
    """

    def __init__(self, comm: Any, machine: Machine, ranks: Sequence[int], deadline: float | None = None, name: Any = 0):
        super().__init__(comm.rank, ranks, deadline)
        self.comm, self.mpi, self.machine = comm, import_optional("mpi4py.MPI", "several processes"), machine
        self.checks = os.environ.get("MINFLOW_CHECK_COLLECTIVES", "1") != "0"
        self.key = zlib.crc32(repr((name, self.ranks)).encode())  # the same on all ranks of the group
        self.latest: Any = None

    def wait(self, request: Any, what: Fingerprint | str, peers: Sequence[int] | None = None) -> Any:
        """Wait for a request. After the deadline, or if a rank has ended that it waits for, end all ranks.

        peers: those that it waits for, in the group; None for all.
        """
        board, status = self.machine.board, self.mpi.Status()
        number = what.number if isinstance(what, Fingerprint) else 0
        if what is not self.latest:
            self.latest = what
            board.enter(self.text(what), self.key, number)
        else:
            board.set_state(WAITS)
        begin, polls, look, ended = time.perf_counter(), 0, LOOK, list[int]()
        while not request.Test(status):
            polls += 1
            if polls > self.machine.polls:
                waited = time.perf_counter() - begin
                time.sleep(min(max(NAP, waited / 100), LONGEST_NAP))
                if waited > min(look, self.deadline):
                    look += LOOK
                    missing = self.missing(number, peers)
                    before, ended = ended, [rank for rank in missing if board.has_ended(rank)]
                    if ended and before:  # at two looks: it is not a message that is still under way
                        self.machine.stop(ended_error(ended[0], self.text(what), board.describe(ended[0])))
                    if waited > self.deadline:
                        places = {f"rank {rank}": board.describe(rank) for rank in missing}
                        self.machine.stop(late_error(self.deadline, self.text(what), places))
        board.set_state(COMPUTES)
        return status

    def text(self, what: Fingerprint | str) -> str:
        """A call, and the ranks of its group, if it is not the group of all."""
        return str(what) if self.size == self.machine.board.size else f"{what}, of ranks {list(self.ranks)}"

    def missing(self, number: int, peers: Sequence[int] | None) -> list[int]:
        """The ranks of the world that have not come."""
        if peers is not None:
            return [self.ranks[peer] for peer in peers]
        return self.machine.board.missing(self.ranks, self.key, number)

    def agree(self, what: Fingerprint) -> None:
        """Check that all ranks call this collective. Raises RankError."""
        if not self.checks or self.size == 1:
            return
        number = int.from_bytes(hashlib.blake2b(what.key.encode(), digest_size=7).digest(), "big")
        both = namespace().array([number, -number], "int64")
        self.wait(self.comm.Iallreduce(self.mpi.IN_PLACE, both, op=self.mpi.MAX), what)
        if both[0] != -both[1]:
            raise mismatch(self.gather(what, what))

    def exchange(self, what: Fingerprint, mine: Any) -> list[Any]:
        self.agree(what)
        return self.gather(what, mine)

    def gather(self, what: Fingerprint, mine: Any) -> list[Any]:
        """The objects of all ranks, pickled."""
        data, sizes = pickle.dumps(mine, protocol=pickle.HIGHEST_PROTOCOL), namespace().zeros(self.size, "int64")
        sizes[self.rank] = len(data)
        self.wait(self.comm.Iallgather(self.mpi.IN_PLACE, sizes), what)
        ends = list(accumulate(sizes.tolist(), initial=0))
        received = bytearray(ends[-1])
        self.wait(self.comm.Iallgatherv(data, [received, sizes.tolist(), ends[:-1], self.mpi.BYTE]), what)
        return [pickle.loads(memoryview(received)[begin:end]) for begin, end in pairwise(ends)]

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
            self.reduce_parts(array.reshape(-1), by, what, out.reshape(-1))
            return
        self.agree(what)
        operation = {"sum": "SUM", "product": "PROD", "min": "MIN", "max": "MAX"}.get(by, by.upper())
        self.wait(self.comm.Iallreduce(source, out, op=getattr(self.mpi, operation)), what)

    def reduce_parts(self, array: HostArray, by: str, what: Fingerprint, out: HostArray) -> None:
        """All-reduce a 1-D array whose dtype MPI does not know: each rank reduces one part."""
        bounds = [part(array.size, self.size, rank) for rank in range(self.size)]
        slices = {rank: slice(start, start + size) for rank, (start, size) in enumerate(bounds)}
        total = self.reduce_scatter([array[index] for index in slices.values()], by, what)
        others = [rank for rank in slices if rank != self.rank]
        self.transfer(dict.fromkeys(others, total), {rank: out[slices[rank]] for rank in others}, what)
        out[slices[self.rank]] = total

    def broadcast(self, array: HostArray, source: int) -> None:
        what = self.fingerprint("broadcast", f" from {source}{facts_of(array)}")
        self.agree(what)
        self.wait(self.comm.Ibcast(in_bytes(array), root=source), what)

    def transfer(self, parts: dict[int, HostArray], places: dict[int, HostArray], what: Fingerprint) -> None:
        self.agree(what)
        xp = namespace()
        packed = {id(array): xp.asarray(array, order="C") for array in parts.values()}
        buffers = {rank: xp.asarray(place, order="C") for rank, place in places.items()}
        messages = {rank: in_bytes(packed[id(array)]) for rank, array in parts.items()}
        requests = [self.comm.Irecv(in_bytes(buffer), source=rank, tag=TRANSFER) for rank, buffer in buffers.items()]
        requests += [self.comm.Isend(message, dest=rank, tag=TRANSFER) for rank, message in messages.items()]
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
        what = f"send of{facts} to rank {to} {here()}"
        message = bytearray(header(facts))
        message += in_bytes(array).data
        request = self.comm.Isend(message, dest=to, tag=tag)
        return Pending(lambda: self.wait(request, what, [to]) and to, request.Test)

    def start_receive(self, out: HostArray, source: int | None, tag: int = 0, facts: str = "") -> Pending:
        facts += facts_of(out)
        what = f"receive of{facts} from {'any rank' if source is None else f'rank {source}'} {here()}"
        peers = [rank for rank in range(self.size) if rank != self.rank] if source is None else [source]
        message = bytearray(HEADER + out.nbytes)
        request = self.comm.Irecv(message, source=self.mpi.ANY_SOURCE if source is None else source, tag=tag)

        def finish() -> int:
            try:
                rank = self.wait(request, what, peers).source
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
        return self.part(comm, ranks, self.calls) if mine else None

    def start_subgroup(self, ranks: tuple[int, ...]) -> Communicator:
        hello = namespace().empty(0, "uint8")
        for rank in ranks:  # MPI waits without a deadline until all have come
            self.post(hello, rank, SUBGROUP)
        for rank in ranks:
            self.start_receive(hello, rank, SUBGROUP)()
        comm = self.comm.Create_group(self.comm.group.Incl(ranks))
        return self.part(comm, ranks, "")

    def part(self, comm: Any, ranks: Sequence[int], name: Any) -> MPICommunicator:
        chosen = [self.ranks[rank] for rank in ranks]
        return MPICommunicator(comm, self.machine, chosen, self.deadline, (self.key, name))


def in_bytes(array: HostArray) -> HostArray:
    return array.reshape(-1).view("uint8")


def header(facts: str) -> bytes:
    return facts.encode()[:HEADER].ljust(HEADER)


class Machine:
    """The ranks of this machine, and how they end. comm: mpi4py's communicator of them; world: that of all ranks."""

    def __init__(self, comm: Any, world: Any):
        self.comm, self.world = comm, world
        self.polls = POLLS if comm.size <= cores() else 0
        self.launched = VARIABLE in os.environ
        path = comm.bcast(new_board() if comm.rank == 0 and not self.launched else os.environ.get(VARIABLE))
        self.board = Board(path, world.size)
        self.board.join(world.rank)
        comm.Barrier()
        self.board.look_around()
        if comm.rank == 0:
            remove_segments()
            if not self.launched:
                remove_board(path)
        threading.Thread(target=self.watch, args=(path,), name="minflow-watch", daemon=True).start()

    def stop(self, error: RankError) -> NoReturn:
        """End all ranks for an error. One of them prints it."""
        if self.board.claim(ABORTED):
            print(f"minflow: rank {self.world.rank}: {error}", file=sys.stderr, flush=True)
        else:
            time.sleep(SPEECH)
        self.end_all(ABORTED)

    def end_all(self, code: int) -> NoReturn:
        """End this process, upon which its launcher ends the others."""
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        time.sleep(DRAIN)
        if not self.launched and "HYDI_CONTROL_FD" not in os.environ:  # Hydra leaves a file behind if it is told
            self.world.Abort(code)
        os._exit(code)

    def finish(self, ranks: MPICommunicator) -> None:
        """Called as this process exits: end all ranks if it has raised an error, else wait for those of this machine.

        MPI itself would wait, too, and take a core for it.
        """
        if (error := getattr(sys, "last_value", None)) is not None:
            self.board.fail(raised(error), FAILED)
            self.end_all(FAILED)
        ranks.finish_posted()
        self.board.set_state(ENDED)
        request = self.comm.Ibarrier()
        while not request.Test():
            time.sleep(LONGEST_NAP)

    def watch(self, path: str) -> None:
        """End this process if its parent has ended, or `minflow launch`, which would leave it behind."""
        parent = os.getppid()
        launcher = os.open(path, os.O_RDONLY) if self.launched else -1
        held = self.launched and not locked(launcher)  # False, too, on file systems without locks
        while os.getppid() == parent and not (held and locked(launcher)):
            time.sleep(WATCH)
        if self.launched:
            remove_board(path)
        os._exit(ABORTED)


def raised(error: BaseException) -> str:
    return f"has raised {type(error).__name__}: {error}".partition("\n")[0]


def start_processes() -> MPICommunicator:
    """The communicator of all processes that the launcher has started."""
    faulthandler.dump_traceback_later(default_deadline(), exit=True)  # MPI waits without a deadline for all to start
    mpi = import_optional("mpi4py.MPI", "several processes")
    world = mpi.COMM_WORLD
    local = world.Split_type(mpi.COMM_TYPE_SHARED)
    machine = Machine(local, world)
    found = MPICommunicator(world, machine, range(world.size))
    found.local_rank, found.machines = local.rank, sum(world.allgather(local.rank == 0))
    faulthandler.cancel_dump_traceback_later()
    atexit.register(machine.finish, found)
    return found
