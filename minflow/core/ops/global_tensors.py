"""Ops between distributions: of a global tensor to another one, and between local and global tensors.

Their shape rules see placements. The kernels of `boxing` and `share`, which reach other ranks, are in
the package `distributed`. Read next: `sharding.py`.
"""

from __future__ import annotations

from ..backend import namespace, to_host
from ..base.placement import Placement, Sbp, broadcast
from ..context import current_context, world
from ..host import HostArray
from ..kernels import kernel
from ..mode import DEFAULT, using
from ..op import define
from ..sharding import coordinates, local_slices, local_spec, without_partial
from ..spec import Spec

Distribution = tuple[Placement, tuple[Sbp, ...]]


def distributed(x: Spec, shape: tuple[int, ...], target: Distribution) -> Spec:
    return Spec(shape, x.dtype, x.device, *target)


def boxed_spec(x: Spec, shape, source: Distribution, target: Distribution, gradient, rank: int) -> Spec:
    """A global spec for a global tensor; for the local array of one, in a plan of one rank, that of a local array."""
    out = distributed(x, shape, target)
    return local_spec(out, rank) if x.placement is None else out


def boxing_gradient(g, shape, source: Distribution, target: Distribution, gradient, rank: int):
    """Within one placement the distribution of a gradient is left to the op that reads it, unless it is given."""
    if gradient is None and source[0] == target[0]:
        return g
    sbp = without_partial(source[1]) if gradient is None else gradient
    return boxed(g, source[0], sbp, rank)


boxing = define(
    "boxing(x; shape, source, target, gradient, rank)",
    infer=boxed_spec,
    vjp=boxing_gradient,
    distributes=True,
    domain="holomorphic",
    communicates=True,
    dtype_agnostic=True,
    storable=False,
    doc="The same tensor on another placement, or with another sbp. shape: the logical one.  source, target: pairs of "
    "a placement and the sbp.  gradient: the sbp of its gradient; None to leave it to the op that reads it.",
)

as_global = define(
    "as_global(x; shape, target, rank)",
    infer=lambda x, shape, target, rank: distributed(x, shape, target),
    vjp=lambda g, target, rank: as_local(boxed(g, target[0], without_partial(target[1]), rank), rank=rank),
    distributes=True,
    domain="holomorphic",
    dtype_agnostic=True,
    storable=False,
    doc="The global tensor whose local parts are the arrays of these tensors. shape: the logical one.",
)

as_local = define(
    "as_local(x; rank)",
    infer=local_spec,
    vjp=lambda g, x_spec, rank: as_global(
        g, shape=x_spec.shape, target=(x_spec.placement, without_partial(x_spec.sbp)), rank=rank
    ),
    distributes=True,
    domain="holomorphic",
    dtype_agnostic=True,
    storable=False,
    doc="The local part of a global tensor.",
)

share = define(
    "share(x; target)",
    infer=lambda x, target: x,
    vjp=lambda g: g,
    domain="holomorphic",
    communicates=True,
    dtype_agnostic=True,
    storable=False,
    doc="Along each axis of ranks whose sbp is broadcast, the elements of the first rank.",
)

in_order = define(
    "in_order(x, after)",
    infer=lambda x, after: x,
    is_view=True,
    storable=False,
    doc="x unchanged, once `after` is computed: the order in which a plan communicates with other ranks.",
)
kernel(in_order, lambda xp, x, after: x[...])


def same_elements(xp, x, out=None, **attrs):
    """The kernel of ops that only see an array as a part, or a part as an array."""
    if out is None:
        return x
    xp.copyto(out, x)
    return out


kernel(as_global, same_elements)
kernel(as_local, same_elements)


def boxed(x, placement: Placement, sbp: tuple[Sbp, ...], rank: int, gradient: tuple[Sbp, ...] | None = None):
    """The tensor itself if it has this distribution; else its copy with it. A local tensor of the same elements on each
    rank counts as broadcast.
    """
    spec = x.spec
    if spec.placement is None:
        whole = (broadcast,) * len(placement.hierarchy)
        x = as_global(x, shape=spec.shape, target=(placement, whole), rank=rank)
        spec = x.spec
    if spec.placement == placement and spec.sbp == sbp:
        return x
    attrs = {"source": (spec.placement, spec.sbp), "target": (placement, sbp), "gradient": gradient}
    return boxing(x, shape=spec.shape, **attrs, rank=rank)


def on_each_rank(x, placement: Placement):
    """A local tensor as a global one of which each rank has all elements: those of the first rank."""
    return x.to_global(placement, [broadcast] * len(placement.hierarchy), check_meta=False)


def added_up(x):
    """The same global tensor without partial sums, and so its gradient: for statistics that large tensors are combined
    with.
    """
    spec, sbp = x.spec, without_partial(x.spec.sbp)
    return boxed(x, spec.placement, sbp, current_context().rank, gradient=sbp)


def boxed_like(x, spec: Spec, rank: int):
    """The tensor with the distribution of a spec; itself if that is local."""
    if spec.placement is None or spec.sbp is None:
        return x
    return boxed(x, spec.placement, spec.sbp, rank)


# ---- all elements -----------------------------------------------------------------------------------------------


def in_world(placement: Placement) -> bool:
    """True if this program still has the ranks of a placement: not after virtual ranks have ended."""
    return max(placement.order) < world().size


def whole_array(x) -> HostArray:
    """All elements of a global tensor, in an array of their own. All ranks call it, and each of them gets it."""
    spec = x.spec
    assert spec.placement is not None
    spec.placement.check_world()
    everywhere = Placement.all(spec.placement.type)
    with using(DEFAULT.replace(grad=False)):
        whole = boxed(x, everywhere, (broadcast,), world().rank)
    array = to_host(whole.array)
    return array.copy() if whole is x else array


def local_part(array: HostArray, spec: Spec) -> HostArray:
    """The array of this rank, of a global tensor of this spec with these elements. All of a partial sum is on its first
    ranks.
    """
    assert spec.placement is not None and spec.sbp is not None
    placement, rank = spec.placement, world().rank
    placement.check_world()
    at, part = coordinates(placement, rank), local_slices(spec, rank)
    if at is None or part is None or any(i and s.kind == "partial_sum" for i, s in zip(at, spec.sbp)):
        return namespace().zeros(local_spec(spec, rank).shape, array.dtype)
    return array[part].copy()
