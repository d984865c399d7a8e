"""The world of this rank: the communicator of all ranks, found at first use."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ..core.base.errors import RankError
from ..core.context import PROCESS_CONTEXT, WORLD, current_context
from ..core.messages.invocation import command
from ..core.source_location import here
from .communicator import Alone, Communicator

# variables in which launchers tell the number of ranks and the rank: Hydra, Open MPI, srun
SIZES = "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"
RANKS = "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_ID"
CONNECTED = "PMI_PORT", "PMIX_NAMESPACE"  # of launchers that may leave the number to MPI


def launched_size() -> int | None:
    """The number of processes that a launcher has started: 1 without one, None if only MPI knows it."""
    return number_in(SIZES, 0) or (None if any([name in os.environ for name in CONNECTED]) else 1)


def launched_rank() -> int:
    """The rank that a launcher has given to this process; 0 without one."""
    return number_in(RANKS, 0)


def number_in(names: Sequence[str], otherwise: int) -> int:
    """The number in the first of some environment variables that has one."""
    return next((int(os.environ[name]) for name in names if os.environ.get(name, "").isdecimal()), otherwise)


def world() -> Communicator:
    """The communicator of all ranks, as this one sees it. Raises RankError if no launcher has started the ranks."""
    context = current_context()
    if context.communicator is None:
        context.communicator = start() if context is PROCESS_CONTEXT else Alone()
    return context.communicator


def start() -> Communicator:
    """Join the other processes of a launcher; without one, this process is the only rank."""
    size, wanted = launched_size(), int(os.environ.get("WORLD_SIZE") or 1)
    if size == 1 and wanted == 1:
        return Alone()
    if size == 1:
        raise RankError(
            f"WORLD_SIZE is {wanted}, and no launcher has started this process: its ranks cannot find each other",
            where=here(),
            hint=command("launch", "-n", str(wanted), "program.py"),
        )
    from .mpi import start_processes

    found = start_processes()
    if size not in (None, found.size):
        hint = command("launch", "-n", str(size), "program.py")
        slurm = f"; or srun --mpi=pmi2 -n {size} python program.py" * ("SLURM_PROCID" in os.environ)
        raise RankError(
            f"the launcher has started {size} processes, and mpi4py knows {found.size}",
            where=here(),
            hint=f"{hint}, which uses the launcher of mpi4py's library{slurm}",
        )
    PROCESS_CONTEXT.rank, PROCESS_CONTEXT.world_size = found.rank, found.size
    return found


def check_machines(what: str, count: int) -> None:
    """Raise RankError for another number of machines than those of the ranks. what: the function that states it."""
    comm = world()
    if count != comm.machines:
        raise RankError(
            f"{what}: the ranks of this program are on another number of machines",
            values={"stated": count, "machines": comm.machines, "ranks": comm.size},
            where=here(),
            hint=f"mpiexec -n {count * comm.size // comm.machines} -hosts a,b python program.py, with all machines",
        )


def check_port(what: str, port: int) -> None:
    """Raise RankError unless this is a port. what: the function that states it."""
    if port.__class__ is not int or port not in range(1, 2**16):
        hint = f"{what}(50051)"
        raise RankError(f"{what} takes a port from 1 to 65535", values={"got": repr(port)}, where=here(), hint=hint)


WORLD[:] = [world]
