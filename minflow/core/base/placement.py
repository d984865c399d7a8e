"""The values that describe a global tensor: its `Placement` on ranks, and an `Sbp` for each axis of their array.

An Sbp says how the tensor is distributed along that axis: split along a dim, broadcast, or as partial sums.
Source: Yuan et al. 2021 (arXiv:2110.15032), section 3. Must not depend on tensors. Read next: `../spec.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, Self, TypeAlias

from ..backend import is_available
from ..context import CURRENT, PROCESS_CONTEXT, world
from ..host import HostArray, host_array
from ..messages.invocation import command
from ..source_location import fail
from .errors import DeviceError, DTypeError, OutOfRangeError, RankError, SbpError, ShapeError


class Interned:
    """An immutable value whose fields are its slots. Equal values are one object, so they are compared by `is`."""

    __slots__: tuple[str, ...] = ()
    table: dict[tuple, Any] = {}

    @classmethod
    def of(cls, *fields: Any) -> Self:
        """The value with these fields, which are not checked."""
        key = cls, *fields
        found = Interned.table.get(key)
        if found is None:
            new = object.__new__(cls)
            for name, field in zip(cls.__slots__, fields, strict=True):
                object.__setattr__(new, name, field)
            found = Interned.table.setdefault(key, new)
        return found

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{self} cannot be changed")

    def __reduce__(self):
        return type(self).of, tuple([getattr(self, name) for name in self.__slots__])


class Placement(Interned):
    """The ranks that hold a global tensor, in an array: `placement("cpu", ranks=[0, 1])` or `ranks=[[0, 1], [2, 3]]`.

    type: "cpu" or "cuda".  order: the ranks in C order.  hierarchy: the shape of their array.
    """

    __slots__ = ("type", "order", "hierarchy")
    type: str
    order: tuple[int, ...]
    hierarchy: tuple[int, ...]

    def __new__(cls, type: str | None = None, ranks: Any = None) -> Placement:
        """ranks: different integers of at least 0: a list, nested lists, a range or an array.

        Raises DeviceError for "cuda" without a GPU; DTypeError, ShapeError, SbpError, OutOfRangeError or RankError for
        other ranks.
        """
        if type not in ("cpu", "cuda"):
            hint = 'flow.placement("cpu", ranks=[0, 1])'
            fail(DeviceError, 'the type of a placement must be "cpu" or "cuda"', hint, type=type)
        order, hierarchy = parse_ranks(type, ranks)
        if type == "cuda" and not is_available("cuda"):
            fail(DeviceError, "there is no CUDA device here", call("cpu", order, hierarchy))
        placement = cls.of(type, order, hierarchy)
        if (CURRENT.get() or PROCESS_CONTEXT).world_size > 1:  # else a launcher's ranks may not have joined yet
            placement.check_world()
        return placement

    @classmethod
    def all(cls, type: str) -> Placement:
        """All ranks of the world, in one list."""
        return cls(type, range(world().size))

    @property
    def ranks(self) -> HostArray:
        """The array of ranks."""
        return host_array(self.order).reshape(self.hierarchy)

    def check_world(self) -> None:
        """Raise RankError if a rank is not in the world. Joins the ranks that a launcher has started."""
        size, most = world().size, max(self.order)
        if most >= size:
            more = str(most + 1)
            what = f"there is no rank {most}: the world has {size} rank{'s' * (size != 1)}, counted from 0"
            hint = f"{command('launch', '-n', more, 'program.py')}, or flow.virtual_ranks({more})"
            fail(RankError, what, hint, placement=self)

    def __repr__(self) -> str:
        return call(self.type, self.order, self.hierarchy, "minflow.placement(type=")


def call(type: str, order: Sequence[int], hierarchy: tuple[int, ...], start: str = "flow.placement(") -> str:
    """The call that makes this placement."""
    return f'{start}"{type}", ranks={host_array(order).reshape(hierarchy).tolist()})'


def parse_ranks(type: str, ranks: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ranks of an array of integers, in C order, and its shape; one integer is an array of one."""
    try:
        array = host_array(ranks)
    except ValueError:
        hint = call(type, range(4), (2, 2))
        fail(ShapeError, "the lists of ranks must have the same length", hint, ranks=ranks)
    order, hierarchy = tuple(array.ravel().tolist()), array.shape or (1,)
    if not array.size:
        fail(SbpError, "a placement must have at least one rank", call(type, [0], (1,)), ranks=ranks)
    if array.dtype.kind not in "iu":
        hint = f"{call(type, [0, 1], (2,))}; ranks are counted over all machines"
        fail(DTypeError, "ranks must be integers", hint, ranks=ranks)
    if min(order) < 0:
        fail(OutOfRangeError, f"a rank must be at least 0, got {min(order)}", call(type, [0, 1], (2,)), ranks=ranks)
    if len(set(order)) < len(order):
        twice = next(rank for rank in order if order.count(rank) > 1)
        hint = call(type, once := sorted(set(order)), (len(once),))
        fail(SbpError, f"rank {twice} is in the placement more than once", hint, ranks=ranks)
    return order, hierarchy


class Sbp(Interned):
    """Distribution along one axis of ranks. kind: "split", "broadcast" or "partial_sum".  dim: of a split, else -1."""

    __slots__ = ("kind", "dim")
    kind: str
    dim: int

    def __new__(cls, kind: str, dim: int = -1) -> Sbp:
        return cls.of(kind, dim)

    def __call__(self) -> Sbp:
        """Itself, since OneFlow writes `sbp.broadcast` with and without parentheses."""
        return self

    def __repr__(self) -> str:
        return f"minflow.sbp.{self.kind}" + f"(dim={self.dim})" * (self.kind == "split")


broadcast = Sbp("broadcast")
partial_sum = Sbp("partial_sum")


def split(dim: int) -> Sbp:
    """The Sbp by which each rank holds a slice along `dim`. A negative dim counts from the end of the shape."""
    if not isinstance(dim, int) or isinstance(dim, bool):
        fail(DTypeError, "the dim of a split must be an integer", "flow.sbp.split(0)", dim=dim)
    return Sbp("split", dim)


SbpLike: TypeAlias = Sbp | Sequence[Sbp]


def parse_sbp(sbp: Any, placement: Placement, ndim: int) -> tuple[Sbp, ...]:
    """An Sbp for each axis of the placement's array of ranks, with dims of at least 0.

    sbp: an Sbp, or a list or tuple of them.  ndim: of the tensor. Raises SbpError, DTypeError or OutOfRangeError.
    """
    given, axes = (tuple(sbp) if isinstance(sbp, list | tuple) else (sbp,)), len(placement.hierarchy)
    for one in given:
        if not isinstance(one, Sbp):
            hint = "flow.sbp.split(0), flow.sbp.broadcast, flow.sbp.partial_sum, or a list of these"
            fail(DTypeError, "sbp must be of flow.sbp", hint, sbp=sbp)
        if one.kind == "split" and not -ndim <= one.dim < ndim:
            hint = f"a dim from {-ndim} to {ndim - 1}" if ndim else "flow.sbp.broadcast"
            fail(OutOfRangeError, f"a tensor of {ndim} dims cannot be split along dim {one.dim}", hint, sbp=sbp)
    if len(given) != axes:
        hint = f"sbp=[{', '.join(['flow.sbp.broadcast'] * axes)}]"
        what = f"sbp must have one value for each axis of the ranks: {axes}, got {len(given)}"
        fail(SbpError, what, hint, sbp=sbp, placement=placement)
    return tuple([Sbp("split", one.dim % ndim) if one.kind == "split" else one for one in given])
