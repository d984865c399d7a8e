"""Methods of global tensors: conversion from and to local tensors, and reading all elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base.dtypes import dtype_named
from ..base.errors import DTypeError, MissingNameError, SbpError, ShapeError
from ..base.placement import Placement, Sbp, SbpLike, broadcast, parse_sbp
from ..context import world
from ..mode import MODE
from ..ops.global_tensors import Distribution, as_global, as_local, boxed, share
from ..sharding import coordinates, local_spec, without_partial
from ..source_location import fail
from ..spec import Spec

if TYPE_CHECKING:
    from ..tensor import Tensor


class GlobalTensors:
    """Attributes and methods of global tensors. Source: Yuan et al. 2021 (arXiv:2110.15032), section 3."""

    if TYPE_CHECKING:
        spec: Spec

    is_global = property(lambda self: self.spec.placement is not None, doc="True if its parts are on several ranks.")
    is_local = property(lambda self: self.spec.placement is None, doc="True if it belongs to this rank only.")

    @property
    def placement(self) -> Placement:
        """The ranks that hold a global tensor. Raises AttributeError for a local one."""
        if self.spec.placement is None:
            fail(MissingNameError, "a local tensor has no placement", "x.to_global(placement, sbp)", x=self)
        return self.spec.placement

    @property
    def sbp(self) -> tuple[Sbp, ...]:
        """The distribution of a global tensor along each axis of its ranks. Raises AttributeError for a local one."""
        if self.spec.sbp is None:
            fail(MissingNameError, "a local tensor has no sbp", "x.to_global(placement, sbp)", x=self)
        return self.spec.sbp

    def to_global(
        self: Any,
        placement: Placement | None = None,
        sbp: SbpLike | None = None,
        *,
        grad_sbp: SbpLike | None = None,
        check_meta: bool = True,
        copy: bool = False,
    ) -> Tensor:
        """A local tensor as this rank's part of a global one; or a global tensor with another placement or sbp.

        All ranks call it. With `split` the local tensors are joined along that dim, with `partial_sum` they are added
        up, and with `broadcast` the elements of the first rank count. The tensors of ranks outside of the placement do
        not count.
        grad_sbp: the sbp of the gradient of a global tensor; by default its own, with `broadcast` for `partial_sum`.
        check_meta: False to rely on local tensors of one shape and dtype without asking the other ranks.
        copy: True to copy even if nothing changes.
        Raises SbpError for a local tensor without placement and sbp; ShapeError if the shapes of the local
        tensors are not those of a balanced split; DTypeError if their dtypes differ.
        """
        own, rank = self.spec, world().rank
        placement, sbp = own.placement if placement is None else placement, own.sbp if sbp is None else sbp
        if not isinstance(placement, Placement) or sbp is None:
            what = "to_global of a local tensor needs a placement and an sbp"
            hint = 'x.to_global(flow.placement("cpu", ranks=[0, 1]), flow.sbp.split(0))'
            fail(SbpError, what, hint, x=self, placement=placement, sbp=sbp)
        placement.check_world()
        if self.is_global:
            gradient = without_partial(own.sbp) if grad_sbp is None else parse_sbp(grad_sbp, own.placement, own.ndim)
            result = boxed(self, placement, parse_sbp(sbp, placement, own.ndim), rank, gradient)
            return result.clone() if copy and result is self else result
        check = check_meta and MODE.get().trace is None  # a build must not wait for other ranks
        spec, target = logical_spec(self, placement, sbp, check)
        part = self.clone() if copy else self
        if rank not in placement.order:  # of any shape and dtype
            part = self.reshape(-1)[:0].reshape(local_spec(spec, rank).shape).to(spec.dtype)
        part = share(part, target=target) if broadcast in target[1] else part
        return as_global(part, shape=spec.shape, target=target, rank=rank)

    def local_to_global(
        self: Any, placement: Placement, sbp: SbpLike, *, check_meta: bool = True, copy: bool = False
    ) -> Tensor:
        """`to_global` of a local tensor. Raises SbpError for a global one."""
        if self.is_global:
            fail(SbpError, "local_to_global of a tensor that is global already", "x.to_global(placement, sbp)", x=self)
        return self.to_global(placement, sbp, check_meta=check_meta, copy=copy)

    def global_to_global(
        self: Any,
        placement: Placement | None = None,
        sbp: SbpLike | None = None,
        *,
        grad_sbp: SbpLike | None = None,
        check_meta: bool = False,
        copy: bool = False,
    ) -> Tensor:
        """`to_global` of a global tensor. Raises SbpError for a local one."""
        if self.is_local:
            fail(SbpError, "global_to_global of a local tensor", "x.to_global(placement, sbp)", x=self)
        return self.to_global(placement, sbp, grad_sbp=grad_sbp, check_meta=check_meta, copy=copy)

    def to_local(self: Any, *, copy: bool = False) -> Tensor:
        """This rank's part of a global tensor, which shares its memory; without elements on ranks that are outside of
        the placement. Raises SbpError for a local tensor.
        """
        if self.is_local:
            fail(SbpError, "to_local of a tensor that is local already", "the tensor itself", x=self)
        result = as_local(self, rank=world().rank)
        return result.clone() if copy else result


def logical_spec(x: Any, placement: Placement, sbp: SbpLike, check: bool) -> tuple[Spec, Distribution]:
    """The spec of the global tensor of which each rank has a part, and its distribution."""
    comm = world()
    mine = tuple(x.shape), x.dtype.name
    found = comm.exchange(comm.fingerprint("to_global", f" {placement} {sbp}"), mine) if check else [mine] * comm.size
    shapes = {rank: found[rank][0] for rank in placement.order}
    dtypes = {rank: found[rank][1] for rank in placement.order}
    if len(set(dtypes.values())) > 1:
        fail(DTypeError, "to_global: the dtypes of the local tensors differ", "x.to(flow.float32)", dtypes=dtypes)
    if len({len(shape) for shape in shapes.values()}) > 1:
        what, hint = "to_global: the local tensors have different numbers of axes", "x.unsqueeze(0) adds one"
        fail(ShapeError, what, hint, shapes=shapes)
    result = list(shapes[placement.order[0]])
    axes = parse_sbp(sbp, placement, len(result))
    at = {coordinates(placement, rank) or (): shape for rank, shape in shapes.items()}
    for dim in {s.dim for s in axes if s.kind == "split"}:
        splits = [s.kind == "split" and s.dim == dim for s in axes]
        result[dim] = sum([n[dim] for place, n in at.items() if all(on or not i for on, i in zip(splits, place))])
    spec = Spec(tuple(result), dtype_named(dtypes[placement.order[0]]), x.spec.device, placement, axes)
    wanted = {rank: local_spec(spec, rank).shape for rank in placement.order}
    if check and wanted != shapes:
        what = f"to_global: these are not the parts of a balanced split of a tensor of shape {spec.shape}"
        fail(ShapeError, what, "parts of equal size, or one element more on the first ranks", parts=shapes, need=wanted)
    return spec, (placement, axes)
