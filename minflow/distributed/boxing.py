"""Boxing: moves the elements of a global tensor from one distribution to another.

A route of one or more layouts leads from the source to the target, the one with the fewest bytes of some that are
tried. Each step of it is an all-reduce, the zero padding of partial sums, or moves of regions between ranks, which
gather, scatter, exchange and reduce. All ranks compute the same route from the shape. Source of the bytes of each
pair: Yuan et al. 2021 (arXiv:2110.15032), table 2. Read next: `communicator.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise, product
from typing import Any, NamedTuple, TypeAlias

from ..core.backend import namespace
from ..core.base.placement import Placement, Sbp, broadcast, split
from ..core.host import HostArray
from ..core.kernels import kernel
from ..core.ops.global_tensors import boxing, share
from ..core.sharding import coordinates, part
from ..core.spec import Spec
from .communicator import Communicator
from .world import world

Region: TypeAlias = tuple[tuple[int, int], ...]  # (start, stop) of each dim
Shape: TypeAlias = tuple[int, ...]
ROUTES = 4096  # routes and moves that are cached
TAG = 32_000  # of messages between placements, which programs do not use


class Layout(NamedTuple):
    """The distribution of a tensor: a placement, and an Sbp for each axis of its hierarchy."""

    placement: Placement
    sbp: tuple[Sbp, ...]

    def __str__(self) -> str:
        return "[" + ", ".join([f"split({sbp.dim})" * (sbp.kind == "split") or sbp.kind for sbp in self.sbp]) + "]"

    def axes(self, kind: str) -> list[int]:
        """The axes of ranks with this kind of Sbp."""
        return [axis for axis, sbp in enumerate(self.sbp) if sbp.kind == kind]

    def replace(self, changes: dict[int, Sbp]) -> Layout:
        """The layout with other Sbps along some axes of ranks."""
        return self._replace(sbp=tuple([changes.get(axis, sbp) for axis, sbp in enumerate(self.sbp)]))

    def at(self, rank: int) -> tuple[int, ...]:
        """The position of a rank of the placement along each axis of ranks."""
        return coordinates(self.placement, rank)  # type: ignore[return-value]  # the rank is inside


class Move(NamedTuple):
    """Elements that go from a rank to a rank, which may be the same. term: their index among the summands."""

    source: int
    target: int
    term: int
    region: Region


# ---- regions -------------------------------------------------------------------------------------------------------


@lru_cache(ROUTES)
def region_of(shape: Shape, layout: Layout, rank: int) -> Region:
    """The region that a rank of the placement holds."""
    region = [(0, size) for size in shape]
    for sbp, count, index in zip(layout.sbp, layout.placement.hierarchy, layout.at(rank)):
        if sbp.kind == "split":
            start, stop = region[sbp.dim]
            offset, size = part(stop - start, count, index)
            region[sbp.dim] = start + offset, start + offset + size
    return tuple(region)


def shape_of(region: Region) -> Shape:
    return tuple([stop - start for start, stop in region])


def intersection(a: Region, b: Region) -> Region | None:
    """The region in both; None if it has no elements."""
    common = tuple([(max(i, k), min(j, l)) for (i, j), (k, l) in zip(a, b)])
    return common if all([start < stop for start, stop in common]) else None


def place(region: Region, inside: Region) -> tuple[Any, ...]:
    """The index of a region in the array of another one."""
    return *[slice(start - begin, stop - begin) for (start, stop), (begin, _) in zip(region, inside)], ...


def nests(shape: Shape, inner: Layout, outer: Layout) -> bool:
    """True if each rank holds in one layout a part of its region in another one of the same placement."""
    pairs = [(region_of(shape, inner, rank), region_of(shape, outer, rank)) for rank in inner.placement.order]
    return all([intersection(a, b) == a or math.prod(shape_of(a)) == 0 for a, b in pairs])


# ---- routes --------------------------------------------------------------------------------------------------------


def fixed_axes(source: Layout, target: Layout) -> list[int]:
    """Axes of ranks along which nothing moves.

    Along an axis that splits a dim, only if no outer axis changes its part of that dim.
    """
    if source.placement.hierarchy != target.placement.hierarchy:
        return []
    fixed, moved, same = [], set(), source.placement == target.placement
    for axis, (before, after) in enumerate(zip(source.sbp, target.sbp)):
        if before == after and (before.kind == "partial_sum" or (same and before.dim not in moved)):
            fixed.append(axis)
        else:
            moved.update({sbp.dim for sbp in (before, after) if sbp.kind == "split"})
    return fixed


@lru_cache(ROUTES)
def moves(shape: Shape, source: Layout, target: Layout) -> list[Move]:
    """The moves that give each rank of the target its region, in the order of terms. No axis becomes partial sums.

    A rank takes its own elements if it has them, and else those of one of the ranks with the same ones, in turn.
    """
    fixed = fixed_axes(source, target)
    summed = [axis for axis in source.axes("partial_sum") if axis not in fixed]
    holders: dict[tuple, dict[tuple, dict[Region, list[int]]]] = {}  # by position along fixed axes, along summed ones
    for rank in source.placement.order:
        at, region = source.at(rank), region_of(shape, source, rank)
        terms = holders.setdefault(tuple([at[axis] for axis in fixed]), {})
        terms.setdefault(tuple([at[axis] for axis in summed]), {}).setdefault(region, []).append(rank)
    found = []
    for turn, rank in enumerate(target.placement.order):
        at, region = target.at(rank), region_of(shape, target, rank)
        for term, regions in enumerate(holders[tuple([at[axis] for axis in fixed])].values()):
            for held, ranks in regions.items():
                if (common := intersection(held, region)) is not None:
                    giver = rank if rank in ranks else ranks[turn % len(ranks)]
                    found.append(Move(giver, rank, term, common))
    return found


def is_sum(source: Layout, target: Layout) -> bool:
    """True if the step only adds partial sums up, on all ranks."""
    changes = {(a.kind, b.kind) for a, b in zip(source.sbp, target.sbp) if a != b}
    return source.placement == target.placement and changes == {("partial_sum", "broadcast")}


def is_padding(source: Layout, target: Layout) -> bool:
    """True if the step only makes partial sums of elements that the ranks have."""
    changes = {b.kind for a, b in zip(source.sbp, target.sbp) if a != b}
    return source.placement == target.placement and changes == {"partial_sum"}


def neighbors(layout: Layout, rank: int, fixed: Sequence[int]) -> tuple[int, ...]:
    """The ranks at the same position along fixed axes, in order."""
    at = [layout.at(rank)[axis] for axis in fixed]
    return tuple([other for other in layout.placement.order if [layout.at(other)[axis] for axis in fixed] == at])


def sent(shape: Shape, source: Layout, target: Layout) -> dict[int, int]:
    """The number of elements that each rank sends in one step."""
    elements = dict.fromkeys(source.placement.order, 0)
    if is_sum(source, target):  # each rank adds one part up, and sends it to the others
        for rank in elements:
            size = math.prod(shape_of(region_of(shape, source, rank)))
            ranks = neighbors(source, rank, fixed_axes(source, target))
            own = part(size, len(ranks), ranks.index(rank))[1]
            elements[rank] = size - own + (len(ranks) - 1) * own
    elif not is_padding(source, target):
        for move in moves(shape, source, target):
            if move.source != move.target:
                elements[move.source] += math.prod(shape_of(move.region))
    return elements


def refined(shape: Shape, layout: Layout, axes: Sequence[int]) -> Layout:
    """The layout with splits along some axes of ranks, each of the longest dim that no inner axis splits."""
    for axis in axes:
        inner = {sbp.dim for sbp in layout.sbp[axis + 1 :]}
        sizes = shape_of(region_of(shape, layout, layout.placement.order[0]))
        if free := [dim for dim in range(len(shape)) if dim not in inner]:
            layout = layout.replace({axis: split(max(free, key=sizes.__getitem__))})
    return layout


def unpadded(shape: Shape, source: Layout, target: Layout) -> list[Layout]:
    """The layouts from which zero padding makes the partial sums of the target."""
    axes = [axis for axis in target.axes("partial_sum") if axis not in fixed_axes(source, target)]
    whole = target.replace(dict.fromkeys(axes, broadcast))
    choices = product([broadcast, *map(split, range(len(shape)))], repeat=len(axes))
    layouts = [whole.replace(dict(zip(axes, chosen))) for chosen in choices]
    return [layout for layout in layouts if nests(shape, layout, whole)]


@lru_cache(ROUTES)
def route(shape: Shape, source: Layout, target: Layout) -> list[Layout]:
    """The layouts from the source to the target: those with the fewest bytes, then with the fewest of any rank."""
    sums = [axis for axis in source.axes("partial_sum") if axis not in fixed_axes(source, target)]
    routes = []
    for last in unpadded(shape, source, target):
        shared = refined(shape, source, sums), refined(shape, last, last.axes("broadcast"))
        for begin, end in product((source, shared[0]), (last, shared[1])):
            layouts = [source, begin, end, last, target]
            layouts = [source, *[after for before, after in pairwise(layouts) if before != after]]
            steps = [sent(shape, before, after).values() for before, after in pairwise(layouts)]
            routes.append((sum(map(sum, steps)), sum(map(max, steps)), len(layouts), layouts))
    return min(routes, key=lambda route: route[:3])[3]


# ---- steps, as one rank takes them ---------------------------------------------------------------------------------


class Step(NamedTuple):
    """A step of a route, as one rank takes it.

    sent: the number of elements that it sends.  shape: that of its result.  ranks: those of the collective; none if
    all have their elements; None for messages between two placements.  sums: True if the collective is an all-reduce.
    zeros: True if all elements that do not come in are zero.  outgoing: (index in the array, other ranks).
    incoming: (rank, index in the array of this rank, index in the result, index among the summands).
    """

    sent: int
    shape: Shape
    ranks: tuple[int, ...] | None
    sums: bool
    zeros: bool
    outgoing: list[tuple[tuple, list[int]]]
    incoming: list[tuple[int, tuple, tuple, int]]


@lru_cache(ROUTES)
def steps_of(shape: Shape, source: Layout, target: Layout, rank: int) -> list[Step]:
    """The steps of a route in which a rank takes part."""
    return [
        step_of(shape, before, after, rank)
        for before, after in pairwise(route(shape, source, target))
        if rank in before.placement.order + after.placement.order
    ]


def step_of(shape: Shape, source: Layout, target: Layout, rank: int) -> Step:
    sums, zeros = is_sum(source, target), is_padding(source, target)
    mine = region_of(shape, source, rank) if rank in source.placement.order else ()
    whole = region_of(shape, target, rank) if rank in target.placement.order else None
    if zeros:  # of ranks with the same elements, the first one keeps them
        copies = [axis for axis in source.axes("broadcast") if target.sbp[axis].kind == "partial_sum"]
        found = [] if any([source.at(rank)[axis] for axis in copies]) else [Move(rank, rank, 0, mine)]
    else:
        found = [] if sums else moves(shape, source, target)
    ranks = None
    if source.placement == target.placement:
        ranks = neighbors(source, rank, fixed_axes(source, target))
        if not sums and not any([move.source != move.target and move.target in ranks for move in found]):
            ranks = ()
    outgoing: dict[Region, list[int]] = {}
    incoming = []
    for move in found:
        if move.source == rank != move.target:
            outgoing.setdefault(move.region, []).append(move.target)
        if move.target == rank and whole is not None:
            own = place(move.region, mine) if move.source == rank else ()
            incoming.append((move.source, own, place(move.region, whole), move.term))
    return Step(
        sent(shape, source, target).get(rank, 0),
        (0, *shape[1:]) if whole is None else shape_of(whole),
        ranks,
        sums,
        zeros,
        [(place(region, mine), others) for region, others in outgoing.items()],
        incoming,
    )


def run(step: Step, array: HostArray, dtype: Any, facts: str, out: HostArray | None) -> HostArray:
    """The elements of this rank after a step."""
    everyone, xp = world(), namespace()
    out = xp.empty(step.shape, dtype) if out is None else out
    if step.zeros:
        out[...] = 0
    group = everyone.subgroup(step.ranks) if step.ranks else None
    if group is not None and step.sums:
        group.all_reduce(xp.asarray(array, order="C"), what=group.fingerprint("boxing", facts), out=out)
        return out
    parts = {rank: part for index, ranks in step.outgoing for part in [array[index]] for rank in ranks}
    places = {
        rank: xp.empty(out[there].shape, dtype) if term else out[there]
        for rank, _, there, term in step.incoming
        if rank != everyone.rank
    }
    if group is not None:
        to = group.ranks.index
        what = group.fingerprint("boxing", facts)
        group.transfer({to(r): x for r, x in parts.items()}, {to(r): x for r, x in places.items()}, what)
    elif step.ranks is None:
        send_and_receive(everyone, parts, places, f" boxing{facts}")
    for rank, own, there, term in step.incoming:  # in the order of summands, which decides the bits
        if term:
            xp.add(out[there], array[own] if rank == everyone.rank else places[rank], out=out[there])
        elif rank == everyone.rank:
            out[there] = array[own]
    return out


def send_and_receive(
    everyone: Communicator, parts: dict[int, HostArray], places: dict[int, HostArray], facts: str
) -> None:
    """Send parts and receive others by messages: ranks that only send go on, so stages of a pipeline overlap."""
    for rank, array in parts.items():
        everyone.post(namespace().asarray(array, order="C"), rank, TAG, facts)
    for rank, there in places.items():
        buffer = namespace().asarray(there, order="C")
        everyone.start_receive(buffer, rank, TAG, facts)()
        if buffer is not there:
            there[...] = buffer


@lru_cache(ROUTES)
def facts_of_boxing(shape: Shape, dtype: Any, source: Layout, target: Layout) -> str:
    return f" {dtype}{list(shape)} {source} -> {target}"


def box(
    array: HostArray,
    shape: Shape,
    dtype: Any,
    source: tuple[Placement, tuple[Sbp, ...]],
    target: tuple[Placement, tuple[Sbp, ...]],
    out: HostArray | None = None,
) -> HostArray:
    """The part of this rank in the target, of a tensor of which it has `array` in the source.

    shape: that of the whole tensor.  Ranks outside both placements need not call it. The result shares no memory with
    the array, except that it is the array if source and target are equal and there is no `out`.
    """
    begin, end, everyone = Layout(*source), Layout(*target), world()
    if begin == end:
        if out is None:
            return array
        out[...] = array
        return out
    facts = facts_of_boxing(shape, dtype, begin, end)
    steps = steps_of(shape, begin, end, everyone.rank)
    if not steps:
        return namespace().empty((0, *shape[1:]), dtype) if out is None else out
    for step in steps:
        everyone.sent += step.sent * dtype.itemsize
        array = run(step, array, dtype, facts, out if step is steps[-1] else None)
    return array


def boxing_bytes(
    spec: Spec,
    source: tuple[Placement, tuple[Sbp, ...]],
    target: tuple[Placement, tuple[Sbp, ...]],
    rank: int,
) -> int:
    """The bytes that a rank sends to box a tensor of this dtype and logical shape."""
    steps = steps_of(spec.shape, Layout(*source), Layout(*target), rank)
    return sum([step.sent for step in steps]) * spec.dtype.itemsize


def bytes_sent() -> int:
    """The bytes that boxing of global tensors has sent from this rank to others, since the world of this rank began.

    The difference of two calls is that of the program between them. Collectives that the program itself calls, and
    those of DistributedDataParallel, are not counted.
    """
    return world().sent


@kernel(boxing, on_host=True)
def _(xp, x, shape, source, target, gradient, rank, out=None):
    return box(x, shape, x.dtype, source, target, out)


@kernel(share, on_host=True)
def _(xp, x, target):
    out, everyone, layout = xp.array(x, order="C"), world(), Layout(*target)
    if everyone.rank in layout.placement.order:
        split_axes = [axis for axis in range(len(layout.sbp)) if axis not in layout.axes("broadcast")]
        group = everyone.subgroup(neighbors(layout, everyone.rank, split_axes))
        if group.size > 1:
            group.broadcast(out, 0)
            everyone.sent += out.nbytes * (group.size - 1) * (group.rank == 0)
    return out
