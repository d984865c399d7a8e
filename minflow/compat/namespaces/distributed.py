"""`flow.distributed` for a single process, rank 0 of 1.

A reduction over one rank returns its input, so a collective leaves its tensor unchanged or copies it to the output.
More than one rank is refused. OneFlow's names are in `comm.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ...core.base.errors import DeviceError
from ...core.messages.suggestions import name_hints as _name_hints
from ...core.source_location import fail


class State:
    """Process-wide state. started: True after init_process_group."""

    started = False
    backend = "gloo"


class ReduceOp:
    """Reductions over ranks; over one rank each of them is the identity."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = "SUM AVG PRODUCT MIN MAX BAND BOR BXOR PREMUL".split()


class Work:
    """Handle of an asynchronous collective, which has already completed."""

    def wait(self, timeout: Any = None) -> bool:
        """Return True: the collective is complete."""
        return True

    def is_completed(self) -> bool:
        """Return True: the collective is complete."""
        return True

    is_success = is_completed


class Group:
    """Group of all ranks: this process only."""

    WORLD: Any = None

    def rank(self) -> int:
        """Return the rank of this process, 0."""
        return 0

    def size(self) -> int:
        """Return the number of processes, 1."""
        return 1


group = Group
Group.WORLD = Group()
ProcessGroup = Group


def check_single_rank(name: str, what: str, value: Any) -> None:
    """Raise DeviceError for a rank other than 0 or a world size other than 1."""
    if value not in (None, -1, int(what == "world_size")):
        hint = f"{what}={int(what == 'world_size')}, or start the program by `python` alone"
        fail(DeviceError, f"distributed.{name}: minflow runs in one process, rank 0 of 1", hint, **{what: value})


def is_available() -> bool:
    """Return True: a single process is supported."""
    return True


def is_initialized() -> bool:
    """True after init_process_group."""
    return State.started


def is_torchelastic_launched() -> bool:
    """Return False: minflow has no launchers or backends for several processes."""
    return False


is_nccl_available = is_mpi_available = is_ucc_available = is_torchelastic_launched


def is_gloo_available() -> bool:
    """Return True: a single process needs no network."""
    return True


def init_process_group(
    backend: Any = None,
    init_method: Any = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Start the group of one process. Raises DeviceError if an argument or WORLD_SIZE asks for more."""
    check_single_rank("init_process_group", "world_size", world_size)
    check_single_rank("init_process_group", "rank", rank)
    if world_size == -1:
        check_single_rank("init_process_group", "world_size", int(os.environ.get("WORLD_SIZE") or 1))
    State.started, State.backend = True, str(backend or "gloo")


def destroy_process_group(group: Any = None) -> None:
    """Reset the state of init_process_group."""
    State.started = False


def get_rank(group: Any = None) -> int:
    """Return the rank of this process, 0."""
    return 0


def get_world_size(group: Any = None) -> int:
    """Return the number of processes, 1."""
    return 1


def get_backend(group: Any = None) -> str:
    """Return the backend given to init_process_group."""
    return State.backend


def get_global_rank(group: Any, group_rank: int) -> int:
    """Return the rank itself, 0."""
    check_single_rank("get_global_rank", "rank", group_rank)
    return 0


get_group_rank = get_global_rank


def new_group(ranks: Any = None, timeout: Any = None, backend: Any = None, pg_options: Any = None) -> Group:
    """Return the group of this process. Raises DeviceError for other ranks."""
    for rank in ranks or ():
        check_single_rank("new_group", "rank", rank)
    return Group.WORLD


def completed(async_op: bool) -> Work | None:
    return Work() if async_op else None


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Return at once: there is only this rank."""
    return completed(async_op)


def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Leave `tensor` unchanged: the sum over one rank."""
    return completed(async_op)


def reduce(tensor: Any, dst: int = 0, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Leave `tensor` unchanged: the sum over one rank. dst: must be 0."""
    check_single_rank("reduce", "dst", dst)
    return completed(async_op)


def broadcast(tensor: Any, src: int = 0, group: Any = None, async_op: bool = False) -> Work | None:
    """Leave `tensor` unchanged. src: must be 0."""
    check_single_rank("broadcast", "src", src)
    return completed(async_op)


def all_gather(tensor_list: list, tensor: Any, group: Any = None, async_op: bool = False) -> Work | None:
    """Copy `tensor` to tensor_list[0]."""
    tensor_list[0].copy_(tensor)
    return completed(async_op)


def gather(
    tensor: Any, gather_list: list | None = None, dst: int = 0, group: Any = None, async_op: bool = False
) -> Work | None:
    """Copy `tensor` to gather_list[0]. dst: must be 0."""
    check_single_rank("gather", "dst", dst)
    return all_gather(gather_list, tensor, async_op=async_op) if gather_list else completed(async_op)


def scatter(
    tensor: Any, scatter_list: list | None = None, src: int = 0, group: Any = None, async_op: bool = False
) -> Work | None:
    """Copy scatter_list[0] to `tensor`. src: must be 0."""
    check_single_rank("scatter", "src", src)
    if scatter_list:
        tensor.copy_(scatter_list[0])
    return completed(async_op)


def all_gather_into_tensor(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Copy input_tensor to output_tensor."""
    output_tensor.copy_(input_tensor.reshape(output_tensor.shape))
    return completed(async_op)


def reduce_scatter(
    output: Any, input_list: list, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Copy input_list[0] to output."""
    output.copy_(input_list[0])
    return completed(async_op)


def reduce_scatter_tensor(
    output: Any, input: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Copy input to output."""
    return all_gather_into_tensor(output, input, async_op=async_op)


def all_to_all(
    output_tensor_list: list, input_tensor_list: list, group: Any = None, async_op: bool = False
) -> Work | None:
    """Copy input_tensor_list[0] to output_tensor_list[0]."""
    return all_gather(output_tensor_list, input_tensor_list[0], async_op=async_op)


def all_to_all_single(
    output: Any,
    input: Any,
    output_split_sizes: Any = None,
    input_split_sizes: Any = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Copy input to output."""
    return all_gather_into_tensor(output, input, async_op=async_op)


def all_gather_object(object_list: list, obj: Any, group: Any = None) -> None:
    """Set object_list[0] to `obj`."""
    object_list[0] = obj


def broadcast_object_list(object_list: list, src: int = 0, group: Any = None, device: Any = None) -> None:
    """Leave object_list unchanged. src: must be 0."""
    check_single_rank("broadcast_object_list", "src", src)


def gather_object(obj: Any, object_gather_list: list | None = None, dst: int = 0, group: Any = None) -> None:
    """Set object_gather_list[0] to `obj`. dst: must be 0."""
    check_single_rank("gather_object", "dst", dst)
    if object_gather_list:
        object_gather_list[0] = obj


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Return at once: there is only this rank."""


__all__ = sorted(
    n
    for n, it in globals().items()
    if n[:1] != "_"
    and isinstance(it, type | Callable)  # type: ignore
    and getattr(it, "__module__", "") == __name__
    and n not in ("State", "Group", "check_single_rank", "completed")
)
__getattr__ = _name_hints("flow.distributed", globals())
