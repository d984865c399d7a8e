"""Collectives on tensors, with the names and the meaning of `torch.distributed`. OneFlow's are in `flow.comm`.

They run at once, in eager code, and write into the tensors that they are given; gradients do not pass through them.
`async_op=True` returns a Work that has completed. A program that was started alone has one rank.
"""

from __future__ import annotations

import importlib.util
import pickle
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from ..core.backend import namespace
from ..core.base.errors import DTypeError, RankError, SbpError, ShapeError
from ..core.context import PerContext
from ..core.functionalize import write_into
from ..core.functions.creation import from_numpy
from ..core.grad.modes import no_grad
from ..core.host import HostArray, host_array
from ..core.source_location import describe, fail
from ..core.spec import spec_of
from ..core.tensor import Tensor
from .communicator import Communicator, Pending, default_deadline
from .world import world


class ReduceOp:
    """How values of all ranks are combined. AVG is the sum divided by the number of ranks."""

    SUM, AVG, PRODUCT, MIN, MAX = "sum", "avg", "product", "min", "max"
    BAND, BOR, BXOR = "band", "bor", "bxor"
    RedOpType = str  # PyTorch's name of the type of these values


default_pg_timeout = timedelta(seconds=default_deadline())
REDUCE_OPS = {value for name, value in vars(ReduceOp).items() if name.isupper()}


class Work:
    """Handle of an asynchronous call. Collectives have completed; a send or receive completes in `wait`."""

    def __init__(self, finish: Callable[[], Any] | None = None):
        self.finish = finish

    def wait(self, timeout: Any = None) -> bool:
        """Wait until the call is complete; return True."""
        finish, self.finish = self.finish, None
        if finish is not None:
            finish()
        return True

    def is_completed(self) -> bool:
        """Wait until the call is complete; return True."""
        return self.wait()

    is_success = is_completed


class Received(Work):
    """Handle of a receive, which writes the tensor when it completes."""

    def __init__(self, pending: Pending, tensor: Tensor, array: HostArray):
        self.pending = pending

        def finish() -> None:
            pending()
            put(tensor, array)

        super().__init__(finish)


class ProcessGroup:
    """Some ranks, or all. `group.WORLD`, and None as an argument, is the group of all."""

    WORLD: Any = None

    def __init__(self, communicator: Communicator | None):
        self.communicator = communicator

    def rank(self) -> int:
        """Return the rank of this process in the group; -1 if it does not belong to it."""
        return get_rank(self)

    def size(self) -> int:
        """Return the number of ranks of the group; -1 if this process does not belong to it."""
        return get_world_size(self)


group = GroupMember = ProcessGroup
ProcessGroup.NON_GROUP_MEMBER = ProcessGroup(None)  # type: ignore[attr-defined]


class Started:
    """The state of init_process_group, per rank."""

    started, backend = False, "gloo"


started: PerContext[Started] = PerContext(Started)


def communicator_of(group: ProcessGroup | None, by: str) -> Communicator | None:
    """The communicator of a group; None on ranks outside. Raises RankError for anything else."""
    if group is None:
        return world()
    if not isinstance(group, ProcessGroup):
        fail(RankError, f"{by}: group must be a process group, got {describe(group)}", "group=new_group([0, 1])")
    return group.communicator


# ---- ranks and groups ----------------------------------------------------------------------------------------------


def is_available() -> bool:
    """Return True."""
    return True


def is_gloo_available() -> bool:
    """Return True: programs that ask for gloo run, over MPI or threads."""
    return True


def is_nccl_available() -> bool:
    """Return False: there are no collectives on GPUs."""
    return False


def is_ucc_available() -> bool:
    """Return False: programs that ask for ucc do not run."""
    return False


def is_torchelastic_launched() -> bool:
    """Return False: no launcher restarts ranks."""
    return False


def is_mpi_available() -> bool:
    """Return True if mpi4py is installed."""
    return importlib.util.find_spec("mpi4py") is not None


def is_initialized() -> bool:
    """True after init_process_group."""
    return started().started


def init_process_group(
    backend: Any = None,
    init_method: Any = None,
    timeout: timedelta | float | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Join the ranks that the launcher has started. Collectives work without this call, too.

    timeout: seconds, or a timedelta, that a collective waits for other ranks.  world_size, rank: checked.
    The other arguments have no effect. Raises RankError for another world size or rank than the launcher's.
    """
    all_ranks = world()
    for name, wanted, found in (("world_size", world_size, all_ranks.size), ("rank", rank, all_ranks.rank)):
        if wanted not in (None, -1, found):
            fail(
                RankError,
                f"init_process_group: {name} is {wanted}, and the launcher gave {found}",
                f"leave out {name}; minflow launch -n {max(world_size or 1, 1)} program.py starts the ranks",
                **{name: wanted, f"{name} found": found},
            )
    all_ranks.deadline = seconds(timeout, all_ranks.deadline)
    started().started, started().backend = True, str(backend or "gloo")


def seconds(timeout: timedelta | float | None, default: float) -> float:
    """The seconds of a timeout."""
    if timeout is None:
        return default
    return timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Reset the state of init_process_group."""
    started().started = False


def get_rank(group: ProcessGroup | None = None) -> int:
    """Return the rank of this process; -1 if it does not belong to the group."""
    found = communicator_of(group, "get_rank")
    return -1 if found is None else found.rank


def get_world_size(group: ProcessGroup | None = None) -> int:
    """Return the number of ranks; -1 if this process does not belong to the group."""
    found = communicator_of(group, "get_world_size")
    return -1 if found is None else found.size


def get_backend(group: ProcessGroup | None = None) -> str:
    """Return the backend given to init_process_group."""
    return started().backend


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | float | None = None,
    backend: Any = None,
    pg_options: Any = None,
) -> Any:
    """Return the group of some ranks. All ranks call it; those outside get GroupMember.NON_GROUP_MEMBER.

    timeout: as of init_process_group, for collectives of this group.  backend and pg_options have no effect.
    """
    all_ranks = world()
    chosen = list(range(all_ranks.size) if ranks is None else ranks)
    for rank in chosen:
        check_rank("new_group", "ranks", rank, all_ranks)
    found = all_ranks.group(chosen)
    if found is None:
        return ProcessGroup.NON_GROUP_MEMBER  # type: ignore[attr-defined]
    found.deadline = seconds(timeout, found.deadline)
    return ProcessGroup(found)


def get_process_group_ranks(group: ProcessGroup | None = None) -> list[int]:
    """Return the ranks of the world that belong to a group."""
    found = communicator_of(group, "get_process_group_ranks")
    return [] if found is None else list(found.ranks)


def get_global_rank(group: ProcessGroup | None, group_rank: int) -> int:
    """Return the rank in the world of a rank in a group."""
    found = member(group, "get_global_rank")
    check_rank("get_global_rank", "group_rank", group_rank, found)
    return found.ranks[group_rank]


def get_group_rank(group: ProcessGroup | None, global_rank: int) -> int:
    """Return the rank in a group of a rank of the world."""
    found = member(group, "get_group_rank")
    if global_rank not in found.ranks:
        fail(
            RankError, f"get_group_rank: rank {global_rank} does not belong to the group", f"one of {list(found.ranks)}"
        )
    return found.ranks.index(global_rank)


def member(group: ProcessGroup | None, by: str) -> Communicator:
    """The communicator of a group that this rank belongs to. Raises RankError on other ranks."""
    found = communicator_of(group, by)
    if found is None:
        fail(
            RankError, f"{by}: this rank does not belong to the group", "if group != GroupMember.NON_GROUP_MEMBER: ..."
        )
    return found


def check_rank(by: str, name: str, rank: Any, among: Communicator) -> None:
    if not isinstance(rank, int) or not 0 <= rank < among.size:
        hint = f"a rank from 0 to {among.size - 1}"
        if among.size == 1:
            hint += "; minflow launch -n 2 program.py starts two ranks"
        fail(RankError, f"{by}: there is no rank {rank} among {among.size}", hint, **{name: rank})


# ---- tensors ---------------------------------------------------------------------------------------------------------


def elements(by: str, name: str, tensor: Any) -> HostArray:
    """A copy of the elements of an argument. Raises DTypeError for anything but a tensor, SbpError for a global one,
    TraceError in a graph.
    """
    if not isinstance(tensor, Tensor):
        fail(DTypeError, f"{by}: {name} must be a tensor, got {describe(tensor)}", "flow.tensor(...)")
    if tensor.is_global:
        hint = f"{name}.to_global(sbp=...) moves its elements between the ranks; or {name}.to_local()"
        fail(SbpError, f"{by}: {name} is a global tensor", hint, **{name: tensor})
    return host_array(tensor.detach()._read_array(by))


def put(tensor: Tensor, array: HostArray) -> None:
    """Overwrite the elements of a tensor, which the tape does not see. Raises ShapeError, DTypeError if they differ."""
    if (tensor.shape, tensor.spec.np) != (array.shape, array.dtype):
        fail(
            ShapeError if tensor.shape != array.shape else DTypeError,
            f"other ranks have sent {spec_of(array)}, which a tensor of {tensor.spec} cannot receive",
            "tensors of one shape and dtype on all ranks",
            tensor=tensor,
        )
    with no_grad():
        write_into(tensor, from_numpy(host_array(array)))


def check_list(by: str, name: str, tensors: Any, among: Communicator) -> list:
    """A list of one tensor for each rank."""
    if not isinstance(tensors, list | tuple) or len(tensors) != among.size:
        got = f"{len(tensors)}" if isinstance(tensors, list | tuple) else describe(tensors)
        what = f"{by}: {name} must be a list of {among.size} tensors, one for each rank, got {got}"
        fail(ShapeError, what, "[flow.empty_like(x) for _ in range(get_world_size())]")
    return list(tensors)


def completed(async_op: bool) -> Work | None:
    return Work() if async_op else None


def combine(by: str, op: Any) -> str:
    if op not in REDUCE_OPS:
        fail(
            RankError,
            f"{by}: unknown reduction {op!r}",
            "ReduceOp.SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR or BXOR",
            op=op,
        )
    return op


def average(array: HostArray, op: str, size: int) -> HostArray:
    """A sum over ranks as the result of `op`."""
    if op == "avg":
        array /= size
    return array


def all_reduce(
    tensor: Tensor, op: Any = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Overwrite `tensor` with the reduction over all ranks; all get the same bits."""
    among, op = communicator_of(group, "all_reduce"), combine("all_reduce", op)
    if among is not None:
        array = elements("all_reduce", "tensor", tensor)
        among.all_reduce(array, "sum" if op == "avg" else op)
        put(tensor, average(array, op, among.size))
    return completed(async_op)


def reduce(
    tensor: Tensor,
    dst: int = 0,
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Overwrite `tensor` of rank `dst` with the reduction over all ranks."""
    among, op = communicator_of(group, "reduce"), combine("reduce", op)
    if among is not None:
        target = get_group_rank(group, dst)
        array = elements("reduce", "tensor", tensor)
        among.all_reduce(array, "sum" if op == "avg" else op)
        if among.rank == target:
            put(tensor, average(array, op, among.size))
    return completed(async_op)


def broadcast(tensor: Tensor, src: int = 0, group: ProcessGroup | None = None, async_op: bool = False) -> Work | None:
    """Overwrite `tensor` with that of rank `src`."""
    among = communicator_of(group, "broadcast")
    if among is not None:
        array = elements("broadcast", "tensor", tensor)
        source = get_group_rank(group, src)
        among.broadcast(array, source)
        if among.rank != source:
            put(tensor, array)
    return completed(async_op)


def all_gather(
    tensor_list: list, tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Overwrite tensor_list[i] with `tensor` of rank i."""
    among = communicator_of(group, "all_gather")
    if among is not None:
        targets = check_list("all_gather", "tensor_list", tensor_list, among)
        for target, array in zip(targets, among.all_gather(elements("all_gather", "tensor", tensor))):
            put(target, array)
    return completed(async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Overwrite `output_tensor` with the tensors of all ranks, concatenated or stacked along axis 0."""
    among = communicator_of(group, "all_gather_into_tensor")
    if among is not None:
        arrays = among.all_gather(elements("all_gather_into_tensor", "input_tensor", input_tensor))
        check_total("all_gather_into_tensor", output_tensor, sum([a.size for a in arrays]), input_tensor)
        put_flat(output_tensor, arrays)
    return completed(async_op)


def put_flat(tensor: Tensor, arrays: Sequence[HostArray]) -> None:
    """Overwrite the elements of a tensor, in order, with those of arrays."""
    put(tensor, namespace().concatenate([array.reshape(-1) for array in arrays]).reshape(tensor.shape))


def check_total(by: str, output: Tensor, wanted: int, input: Tensor) -> None:
    if output.numel() != wanted:
        fail(
            ShapeError,
            f"{by}: the output has {output.numel()} elements, and the ranks together {wanted}",
            "an output whose axis 0 is that of the input, times or divided by the number of ranks",
            output=output,
            input=input,
        )


def gather(
    tensor: Tensor,
    gather_list: list | None = None,
    dst: int = 0,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """On rank `dst`, overwrite gather_list[i] with `tensor` of rank i."""
    among = communicator_of(group, "gather")
    if among is not None:
        target = get_group_rank(group, dst)
        arrays = among.all_gather(elements("gather", "tensor", tensor))
        if among.rank == target:
            for place, array in zip(check_list("gather", "gather_list", gather_list, among), arrays):
                put(place, array)
    return completed(async_op)


def scatter(
    tensor: Tensor,
    scatter_list: list | None = None,
    src: int = 0,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Overwrite `tensor` with scatter_list[rank] of rank `src`."""
    among = communicator_of(group, "scatter")
    if among is not None:
        source, mine = get_group_rank(group, src), elements("scatter", "tensor", tensor)
        parts = [mine] * among.size
        if among.rank == source:
            tensors = check_list("scatter", "scatter_list", scatter_list, among)
            parts = [elements("scatter", "scatter_list", x) for x in tensors]
        put(tensor, among.all_to_all(parts)[source])
    return completed(async_op)


def reduce_scatter(
    output: Tensor,
    input_list: list,
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Overwrite `output` with the reduction of input_list[rank] over all ranks."""
    among, op = communicator_of(group, "reduce_scatter"), combine("reduce_scatter", op)
    if among is not None:
        parts = [
            elements("reduce_scatter", "input_list", x)
            for x in check_list("reduce_scatter", "input_list", input_list, among)
        ]
        put(output, average(among.reduce_scatter(parts, "sum" if op == "avg" else op), op, among.size))
    return completed(async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Overwrite `output` with part `rank` of the reduction of `input` over all ranks, divided along axis 0."""
    among, op = communicator_of(group, "reduce_scatter_tensor"), combine("reduce_scatter_tensor", op)
    if among is not None:
        array = elements("reduce_scatter_tensor", "input", input).reshape(-1)
        check_total("reduce_scatter_tensor", input, output.numel() * among.size, output)
        n = output.numel()
        parts = [array[i * n : (i + 1) * n] for i in range(among.size)]
        result = average(among.reduce_scatter(parts, "sum" if op == "avg" else op), op, among.size)
        put(output, result.reshape(output.shape))
    return completed(async_op)


def all_to_all(
    output_tensor_list: list, input_tensor_list: list, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Overwrite output_tensor_list[i] with input_tensor_list[rank] of rank i."""
    among = communicator_of(group, "all_to_all")
    if among is not None:
        outputs = check_list("all_to_all", "output_tensor_list", output_tensor_list, among)
        inputs = check_list("all_to_all", "input_tensor_list", input_tensor_list, among)
        for place, array in zip(outputs, among.all_to_all([elements("all_to_all", "input", x) for x in inputs])):
            put(place, array)
    return completed(async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Send parts of `input`, divided along axis 0, to all ranks; `output` becomes those received, in order of ranks.

    input_split_sizes: the rows of each part; by default equal.  output_split_sizes: checked.
    """
    among = communicator_of(group, "all_to_all_single")
    if among is not None:
        array = elements("all_to_all_single", "input", input)
        sizes = input_split_sizes or [len(array) // among.size] * among.size
        if sum(sizes) != len(array) or len(sizes) != among.size:
            fail(
                ShapeError,
                f"all_to_all_single: the parts have {list(sizes)} rows, and input has {len(array)}",
                "input_split_sizes=[...], one size for each rank, or a number of rows that the ranks divide",
                input=input,
            )
        ends = [sum(sizes[: i + 1]) for i in range(among.size)]
        arrays = among.all_to_all([array[end - n : end] for n, end in zip(sizes, ends)])
        received = [len(a) for a in arrays]
        if list(output_split_sizes or received) != received:
            fail(
                ShapeError,
                f"all_to_all_single: output_split_sizes is {list(output_split_sizes or ())}, and the ranks have sent "
                f"{received} rows",
                "the sizes that the others have in input_split_sizes",
                output=output,
            )
        check_total("all_to_all_single", output, sum([a.size for a in arrays]), input)
        put_flat(output, arrays)
    return completed(async_op)


def send(tensor: Tensor, dst: int, group: ProcessGroup | None = None, tag: int = 0) -> None:
    """Send a tensor to rank `dst`, which calls recv."""
    isend(tensor, dst, group, tag).wait()


def recv(tensor: Tensor, src: int | None = None, group: ProcessGroup | None = None, tag: int = 0) -> int:
    """Overwrite `tensor` with that which rank `src`, or any rank, sends; return that rank."""
    work = irecv(tensor, src, group, tag)
    work.wait()
    return member(group, "recv").ranks[work.pending.rank]


def isend(tensor: Tensor, dst: int, group: ProcessGroup | None = None, tag: int = 0) -> Work:
    """Begin to send a tensor to rank `dst`, and return at once. `wait` of the result waits until it has left."""
    among = member(group, "send")
    check_rank("send", "dst", dst, world())
    return Work(among.start_send(elements("send", "tensor", tensor), get_group_rank(group, dst), tag))


def irecv(tensor: Tensor, src: int | None = None, group: ProcessGroup | None = None, tag: int = 0) -> Received:
    """Begin to receive a tensor from rank `src`, or any. `wait` of the result overwrites `tensor`."""
    among, array = member(group, "recv"), elements("recv", "tensor", tensor)
    if src is not None:
        check_rank("recv", "src", src, world())
    source = None if src is None else get_group_rank(group, src)
    return Received(among.start_receive(array, source, tag), tensor, array)


class P2POp:
    """A send or receive for batch_isend_irecv. op: isend or irecv.  peer: the other rank."""

    def __init__(self, op: Any, tensor: Tensor, peer: int, group: ProcessGroup | None = None, tag: int = 0):
        if getattr(op, "__name__", None) not in ("isend", "irecv"):
            fail(RankError, f"P2POp: op must be isend or irecv, got {describe(op)}", "P2POp(dist.isend, tensor, 1)")
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Begin all sends and receives of a list, and return their Works."""
    return [each.op(each.tensor, each.peer, each.group, each.tag) for each in p2p_op_list]


def barrier(group: ProcessGroup | None = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait until all ranks have called it. device_ids has no effect."""
    among = communicator_of(group, "barrier")
    if among is not None:
        among.barrier()
    return completed(async_op)


def monitored_barrier(
    group: ProcessGroup | None = None, timeout: timedelta | float | None = None, wait_all_ranks: bool = False
) -> None:
    """`barrier` with its own timeout. wait_all_ranks has no effect: the error names all ranks that are missing."""
    among = communicator_of(group, "monitored_barrier")
    if among is not None:
        before, among.deadline = among.deadline, seconds(timeout, among.deadline)
        try:
            among.barrier()
        finally:
            among.deadline = before


# ---- objects ---------------------------------------------------------------------------------------------------------


def exchange_objects(among: Communicator, by: str, obj: Any) -> list[Any]:
    """Copies of the objects of all ranks, pickled."""
    return [pickle.loads(text) for text in among.exchange(among.fingerprint(by), pickle.dumps(obj))]


def all_gather_object(object_list: list, obj: Any, group: ProcessGroup | None = None) -> None:
    """Set object_list[i] to a copy of `obj` of rank i."""
    among = communicator_of(group, "all_gather_object")
    if among is not None:
        object_list[:] = exchange_objects(among, "all_gather_object", obj)


def gather_object(
    obj: Any, object_gather_list: list | None = None, dst: int = 0, group: ProcessGroup | None = None
) -> None:
    """On rank `dst`, set object_gather_list[i] to a copy of `obj` of rank i."""
    among = communicator_of(group, "gather_object")
    if among is not None:
        target, found = get_group_rank(group, dst), exchange_objects(among, "gather_object", obj)
        if among.rank == target and object_gather_list is not None:
            object_gather_list[:] = found


def broadcast_object_list(
    object_list: list, src: int = 0, group: ProcessGroup | None = None, device: Any = None
) -> None:
    """Set the elements of a list to copies of those of rank `src`. device has no effect."""
    among = communicator_of(group, "broadcast_object_list")
    if among is not None:
        source = get_group_rank(group, src)
        mine = object_list if among.rank == source else None
        found = exchange_objects(among, "broadcast_object_list", mine)[source]
        if among.rank != source:
            object_list[:] = found


def scatter_object_list(
    scatter_object_output_list: list,
    scatter_object_input_list: list | None = None,
    src: int = 0,
    group: ProcessGroup | None = None,
) -> None:
    """Set the first element of the output list to a copy of element `rank` of the input list of rank `src`."""
    among = communicator_of(group, "scatter_object_list")
    if among is not None:
        source = get_group_rank(group, src)
        found = exchange_objects(among, "scatter_object_list", scatter_object_input_list)[source]
        scatter_object_output_list[0] = found[among.rank]
