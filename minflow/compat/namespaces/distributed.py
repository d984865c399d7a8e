"""`flow.distributed`, for the one process that there is: rank 0 of 1.

A sum or a mean over one rank is what it was, so each collective leaves its tensor, or copies it to where it belongs.
More ranks than one are refused. OneFlow's names, without the out-tensors, are in `comm.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ...core.base.errors import DeviceError
from ...core.messages.suggestions import name_hints as _name_hints
from ...core.source_location import fail


class State:
    """started: was init_process_group called?"""

    started = False
    backend = "gloo"


class ReduceOp:
    """How numbers of several ranks become one; one rank's stay."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = "SUM AVG PRODUCT MIN MAX BAND BOR BXOR PREMUL".split()


class Work:
    """What an asynchronous collective gives back: it is done."""

    def wait(self, timeout: Any = None) -> bool:
        """True: nothing is waited for."""
        return True

    def is_completed(self) -> bool:
        """True: nothing is waited for."""
        return True

    is_success = is_completed


class Group:
    """The group of all ranks: this one."""

    WORLD: Any = None

    def rank(self) -> int:
        """The number of this process: 0."""
        return 0

    def size(self) -> int:
        """How many processes there are: 1."""
        return 1


group = Group
Group.WORLD = Group()
ProcessGroup = Group


def one(name: str, what: str, value: Any) -> None:
    """Refuse a rank or number of ranks that there is not."""
    if value not in (None, -1, int(what == "world_size")):
        fail(
            DeviceError,
            f"distributed.{name}: minflow runs in one process, rank 0 of 1",
            f"{what}={int(what == 'world_size')}, or start the program by `python` alone",
            **{what: value},
        )


def is_available() -> bool:
    """True: for one process."""
    return True


def is_initialized() -> bool:
    """Was init_process_group called?"""
    return State.started


def is_torchelastic_launched() -> bool:
    """False"""
    return False


is_nccl_available = is_mpi_available = is_ucc_available = is_torchelastic_launched


def is_gloo_available() -> bool:
    """True: one process needs no network."""
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
    """Begin, as the one process. Raises DeviceError where a world of more, by argument or WORLD_SIZE, is asked for."""
    one("init_process_group", "world_size", world_size)
    one("init_process_group", "rank", rank)
    if world_size == -1:
        one("init_process_group", "world_size", int(os.environ.get("WORLD_SIZE") or 1))
    State.started, State.backend = True, str(backend or "gloo")


def destroy_process_group(group: Any = None) -> None:
    """End."""
    State.started = False


def get_rank(group: Any = None) -> int:
    """0"""
    return 0


def get_world_size(group: Any = None) -> int:
    """1"""
    return 1


def get_backend(group: Any = None) -> str:
    """What init_process_group was given."""
    return State.backend


def get_global_rank(group: Any, group_rank: int) -> int:
    """The rank itself: 0."""
    one("get_global_rank", "rank", group_rank)
    return 0


get_group_rank = get_global_rank


def new_group(ranks: Any = None, timeout: Any = None, backend: Any = None, pg_options: Any = None) -> Group:
    """The group of this rank."""
    for rank in ranks or ():
        one("new_group", "rank", rank)
    return Group.WORLD


def done(async_op: bool) -> Work | None:
    return Work() if async_op else None


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait for all ranks: there is this one."""
    return done(async_op)


def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """The sum over all ranks, in `tensor`: what it was."""
    return done(async_op)


def reduce(tensor: Any, dst: int = 0, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """The same, at rank `dst`, 0."""
    one("reduce", "dst", dst)
    return done(async_op)


def broadcast(tensor: Any, src: int = 0, group: Any = None, async_op: bool = False) -> Work | None:
    """What rank `src`, 0, has in `tensor`: what it was."""
    one("broadcast", "src", src)
    return done(async_op)


def all_gather(tensor_list: list, tensor: Any, group: Any = None, async_op: bool = False) -> Work | None:
    """tensor_list[0] becomes `tensor`."""
    tensor_list[0].copy_(tensor)
    return done(async_op)


def gather(
    tensor: Any, gather_list: list | None = None, dst: int = 0, group: Any = None, async_op: bool = False
) -> Work | None:
    """gather_list[0] becomes `tensor`."""
    one("gather", "dst", dst)
    return all_gather(gather_list, tensor, async_op=async_op) if gather_list else done(async_op)


def scatter(
    tensor: Any, scatter_list: list | None = None, src: int = 0, group: Any = None, async_op: bool = False
) -> Work | None:
    """`tensor` becomes scatter_list[0]."""
    one("scatter", "src", src)
    if scatter_list:
        tensor.copy_(scatter_list[0])
    return done(async_op)


def all_gather_into_tensor(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """output_tensor becomes input_tensor."""
    output_tensor.copy_(input_tensor.reshape(output_tensor.shape))
    return done(async_op)


def reduce_scatter(
    output: Any, input_list: list, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """output becomes input_list[0]."""
    output.copy_(input_list[0])
    return done(async_op)


def reduce_scatter_tensor(
    output: Any, input: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """output becomes input."""
    return all_gather_into_tensor(output, input, async_op=async_op)


def all_to_all(
    output_tensor_list: list, input_tensor_list: list, group: Any = None, async_op: bool = False
) -> Work | None:
    """output_tensor_list[0] becomes input_tensor_list[0]."""
    return all_gather(output_tensor_list, input_tensor_list[0], async_op=async_op)


def all_to_all_single(
    output: Any,
    input: Any,
    output_split_sizes: Any = None,
    input_split_sizes: Any = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """output becomes input."""
    return all_gather_into_tensor(output, input, async_op=async_op)


def all_gather_object(object_list: list, obj: Any, group: Any = None) -> None:
    """object_list[0] becomes `obj`."""
    object_list[0] = obj


def broadcast_object_list(object_list: list, src: int = 0, group: Any = None, device: Any = None) -> None:
    """What rank `src`, 0, has: what it was."""
    one("broadcast_object_list", "src", src)


def gather_object(obj: Any, object_gather_list: list | None = None, dst: int = 0, group: Any = None) -> None:
    """object_gather_list[0] becomes `obj`."""
    one("gather_object", "dst", dst)
    if object_gather_list:
        object_gather_list[0] = obj


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Wait for all ranks: there is this one."""


__all__ = sorted(
    n
    for n, it in globals().items()
    if n[:1] != "_"
    and isinstance(it, type | Callable)  # type: ignore
    and getattr(it, "__module__", "") == __name__
    and n not in ("State", "Group", "one", "done")
)
__getattr__ = _name_hints("flow.distributed", globals())
