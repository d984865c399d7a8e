"""`flow.distributed.nn`: collectives that return new tensors, and through which gradients pass.

The gradient of a sum over ranks is the sum of the gradients of all ranks. Every rank must call backward.
Read next: `collectives.py`.
"""

from __future__ import annotations

from typing import Any

from ..core.functions.creation import empty_like, zeros_like
from ..core.grad.function import Function
from ..core.messages.suggestions import name_hints as _name_hints
from ..core.tensor import Tensor
from . import collectives as ranks
from .collectives import ReduceOp

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


class Collective(Function):
    """A collective, and the one that its gradients need. run, back: functions of a tuple of tensors."""

    @staticmethod
    def forward(ctx: Any, run: Any, back: Any, *tensors: Tensor) -> Any:
        ctx.back = back
        return run([x.detach().contiguous() for x in tensors])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        return None, None, *ctx.back([g.contiguous() for g in grads])


def summed(x: Tensor, op: Any, group: Any) -> Tensor:
    x = x.clone()
    ranks.all_reduce(x, op, group)
    return x


def gathered(x: Tensor, group: Any) -> tuple:
    found = [empty_like(x) for _ in range(ranks.get_world_size(group))]
    ranks.all_gather(found, x, group)
    return tuple(found)


def scattered_sum(xs: Any, op: Any, group: Any) -> Tensor:
    out = empty_like(xs[ranks.get_rank(group)])
    ranks.reduce_scatter(out, list(xs), op, group)
    return out


def only_on(x: Tensor, rank: int) -> Tensor:
    return x if ranks.get_rank() == rank else zeros_like(x)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Return the sum (or other reduction) over the ranks, on all of them."""
    return Collective.apply(lambda xs: summed(xs[0], op, group), lambda gs: (summed(gs[0], op, group),), tensor)


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Return the sum (or other reduction) over the ranks on rank dst, and the tensor itself on the others."""

    def run(xs: Any) -> Tensor:
        out = xs[0].clone()
        ranks.reduce(out, dst, op, group)
        return out

    return Collective.apply(run, lambda gs: (from_rank(gs[0], dst, group),), tensor)


def from_rank(x: Tensor, src: int, group: Any) -> Tensor:
    x = x.clone()
    ranks.broadcast(x, src, group)
    return x


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """Return the tensor of rank src, on all ranks."""
    back = lambda gs: (only_on(summed(gs[0], ReduceOp.SUM, group), src),)
    return Collective.apply(lambda xs: from_rank(xs[0], src, group), back, tensor)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """Return the tensors of all ranks, which must have one shape, on all of them."""
    back = lambda gs: (scattered_sum(gs, ReduceOp.SUM, group),)
    return as_tuple(Collective.apply(lambda xs: gathered(xs[0], group), back, tensor))


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """Return the tensors of all ranks on rank dst, and zeros on the others."""
    run = lambda xs: tuple(only_on(x, dst) for x in gathered(xs[0], group))
    back = lambda gs: (scattered_sum([only_on(g, dst) for g in gs], ReduceOp.SUM, group),)
    return as_tuple(Collective.apply(run, back, tensor))


def scatter(tensors: Any, src: int = 0, group: Any = None) -> Tensor:
    """Return the tensor of rank src that is for this rank. tensors: one for each rank, on all ranks."""
    run = lambda xs: scattered_sum([only_on(x, src) for x in xs], ReduceOp.SUM, group)
    return Collective.apply(run, lambda gs: tuple(only_on(g, src) for g in gathered(gs[0], group)), *tensors)


def reduce_scatter(output: Tensor, input_list: Any, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Return the sum over the ranks of the tensors that are for this rank; output is for its shape alone."""
    run = lambda xs: scattered_sum(xs, op, group)
    return Collective.apply(run, lambda gs: gathered(gs[0], group), *input_list)


def all_to_all(output_tensor_list: Any, input_tensor_list: Any, group: Any = None) -> tuple[Tensor, ...]:
    """Return the tensors that all ranks have for this one; the outputs are for their shapes alone."""

    def run(xs: Any, like: Any) -> tuple:
        out = [empty_like(x) for x in like]
        ranks.all_to_all(out, list(xs), group)
        return tuple(out)

    back = lambda gs: run(gs, input_tensor_list)
    return as_tuple(Collective.apply(lambda xs: run(xs, output_tensor_list), back, *input_tensor_list))


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Any = None, input_split_sizes: Any = None, group: Any = None
) -> Tensor:
    """all_to_all of the parts of one tensor along axis 0; output is for its shape alone."""

    def run(x: Tensor, like: Tensor, out_sizes: Any, in_sizes: Any) -> Tensor:
        out = empty_like(like)
        ranks.all_to_all_single(out, x, out_sizes, in_sizes, group)
        return out

    back = lambda gs: (run(gs[0], input, input_split_sizes, output_split_sizes),)
    forward = lambda xs: run(xs[0], output, output_split_sizes, input_split_sizes)
    return Collective.apply(forward, back, input)


def as_tuple(found: Any) -> tuple[Tensor, ...]:
    return found if isinstance(found, tuple) else (found,)


__getattr__ = _name_hints("flow.distributed.nn", globals())
