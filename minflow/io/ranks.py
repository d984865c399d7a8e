"""Saving and loading by one of several ranks, for which the others wait: the files of one rank, with global tensors.

Read next: `checkpoint.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..core.backend import empty
from ..core.base.errors import CheckpointError, MinflowError, RankError
from ..core.base.placement import Placement, broadcast
from ..core.context import world
from ..core.sharding import local_spec
from ..core.source_location import fail, here
from ..core.spec import Spec
from ..core.tensor import Tensor
from ..nn.parameter import Parameter


def check_rank(name: str, rank: Any) -> None:
    """Raise RankError unless the argument `name` is a rank of the world."""
    if not isinstance(rank, int) or isinstance(rank, bool) or not 0 <= rank < world().size:
        fail(RankError, f"{name} must be a rank from 0 to {world().size - 1}, got {rank!r}", f"{name}=0")


def on_rank(rank: int, verb: str, call: Callable[[], Any]) -> Any:
    """The result of a call on one rank, on all ranks. They wait for it, and raise an error if it has raised one."""
    comm, mine, error, result = world(), "", None, None
    if comm.rank == rank:
        try:
            result = call()
        except MinflowError as raised:
            error, mine = raised, f"{type(raised).__name__}: {raised.what}"
    message, result = comm.exchange(comm.fingerprint(verb, f" on rank {rank}"), (mine, result))[rank]
    if error is not None:
        raise error
    if message:
        what = f"{verb}: rank {rank}, for which this rank waited, has raised an error"
        raise CheckpointError(what, values={f"rank {rank}": message}, where=here(), hint="correct that error")
    return result


class Outline(NamedTuple):
    """A tensor that another rank has read. number: the same for one tensor at several places."""

    number: int
    spec: Spec
    kind: type
    requires_grad: bool


def load(rank: int, placement: Placement | None, read: Callable[[], Any]) -> Any:
    """The object that one rank reads, with global tensors on that rank, or on a placement."""
    tensors: dict[int, Tensor] = {}

    def outlined() -> Any:
        return mapped(outline, read())

    def outline(x: Tensor) -> Outline:
        tensors[id(x)] = x
        return Outline(list(tensors).index(id(x)), x.spec, type(x), x.requires_grad)

    source = Placement("cpu", rank)
    built: dict[int, Tensor] = {}

    def build(x: Outline) -> Tensor:
        if x.number not in built:
            spec = x.spec.replace(placement=source, sbp=(broadcast,))
            mine = list(tensors.values())[x.number].array if tensors else empty(local_spec(spec, world().rank))
            new = Tensor(mine, spec)
            if placement is not None:
                new = new.to_global(placement, [broadcast] * len(placement.hierarchy))
            if x.kind is Parameter:
                new = Parameter(new, requires_grad=x.requires_grad)
            built[x.number] = new if x.kind is Parameter or not x.requires_grad else new.requires_grad_()
        return built[x.number]

    return mapped(build, on_rank(rank, "load", outlined))


def mapped(function: Callable[[Any], Any], x: Any) -> Any:
    """Copy nested dicts, lists and tuples with `function(x)` in place of each Tensor or Outline."""
    if isinstance(x, Tensor | Outline):
        return function(x)
    if isinstance(x, dict):
        result = type(x)((key, mapped(function, value)) for key, value in x.items())
        if hasattr(x, "_metadata"):  # the versions of modules
            result._metadata = x._metadata  # type: ignore[attr-defined]
        return result
    return type(x)([mapped(function, value) for value in x]) if type(x) in (list, tuple) else x
