"""Sharding: how each rank computes its part of an op on global tensors.

An op states labels of the axes of its inputs and outputs, like an einsum, and which inputs may be partial sums. From
them follow its rows (SBP signatures): inputs that are distributed as a row says give outputs that are distributed as it
says, if each rank runs the op on its local arrays. A call takes the row to which its inputs can be boxed with the
fewest bytes. There are no rows of gradients: a gradient rule consists of ops, which choose their own.
Source: Yuan et al. 2021 (arXiv:2110.15032), section 3. Read next: `infer.py`, which plans a call.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .base.placement import Placement, Sbp, broadcast, partial_sum, split
from .spec import Spec

Labels = tuple[Hashable, ...]  # of the axes of one tensor; None for an axis that cannot be split


class Row(NamedTuple):
    """Distributions along one axis of ranks, of all inputs (None for a number) and of all outputs."""

    inputs: tuple[Sbp | None, ...]
    outputs: tuple[Sbp, ...]


# ---- the parts of ranks ------------------------------------------------------------------------------------------


def part(size: int, count: int, index: int) -> tuple[int, int]:
    """(start, size) of part `index` of a balanced split into `count` parts: the first ones have one element more."""
    small, larger = divmod(size, count)
    return index * small + min(index, larger), small + (index < larger)


@functools.lru_cache(maxsize=4096)
def coordinates(placement: Placement, rank: int) -> tuple[int, ...] | None:
    """The position of a rank along each axis of a placement, or None if it is outside."""
    if rank not in placement.order:
        return None
    index, result = placement.order.index(rank), []
    for count in reversed(placement.hierarchy):
        index, at = divmod(index, count)
        result.append(at)
    return tuple(reversed(result))


def local_slices(spec: Spec, rank: int) -> tuple[slice, ...] | None:
    """The part of the logical tensor that a rank holds, as an index; None if it is outside the placement."""
    assert spec.placement is not None and spec.sbp is not None
    at = coordinates(spec.placement, rank)
    if at is None:
        return None
    parts = [(0, n) for n in spec.shape]
    for count, index, sbp in zip(spec.placement.hierarchy, at, spec.sbp):
        if sbp.kind == "split":
            start, size = parts[sbp.dim]
            offset, size = part(size, count, index)
            parts[sbp.dim] = start + offset, size
    return tuple([slice(start, start + size) for start, size in parts])


@functools.lru_cache(maxsize=4096)
def local_spec(spec: Spec, rank: int) -> Spec:
    """The spec of the local array of a rank. Outside the placement it has no elements. A local spec is unchanged."""
    if spec.placement is None:
        return spec
    slices = local_slices(spec, rank)
    shape = (0, *spec.shape[1:]) if slices is None else tuple([s.stop - s.start for s in slices])
    return Spec(shape, spec.dtype, spec.device)


def part_of(spec: Spec, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of a global tensor, and the first index of the part of a rank."""
    slices = local_slices(spec, rank) or ()
    return spec.shape, tuple([s.start for s in slices])


def logical(spec: Any) -> Any:
    """A spec without its distribution, as shape rules see it; a type of numbers is unchanged."""
    return spec.replace(placement=None, sbp=None) if isinstance(spec, Spec) and spec.placement is not None else spec


def without_partial(sbp: Sequence[Sbp]) -> tuple[Sbp, ...]:
    """The distribution of the gradient of a tensor: each rank's term of a sum has the gradient of the sum."""
    return tuple([broadcast if s.kind == "partial_sum" else s for s in sbp])


# ---- labels ------------------------------------------------------------------------------------------------------


def labels_of(pattern: str | Sequence[Labels], specs: Sequence) -> list[Labels]:
    """The labels of each tensor. pattern: "...k, k -> ..."; `.` is an axis that cannot be split, `...` any number of
    leading axes, which are aligned at the right.
    """
    if not isinstance(pattern, str):
        return list(pattern)
    result = []
    for text, spec in zip(pattern.replace(" ", "").replace("->", ",").split(","), specs):
        own = text.removeprefix("...")
        ndim = spec.ndim if isinstance(spec, Spec) else 0
        lead = ndim - len(own) if text != own else 0
        result.append((*range(-lead, 0), *[None if c == "." else c for c in own]))
    return without_repeated(result, specs)


def without_repeated(labels: Sequence[Labels], specs: Sequence) -> list[Labels]:
    """The labels, without those of axes of size 1 that are repeated to another size."""
    longest: dict[Hashable, int] = {}
    shapes = [s.shape if isinstance(s, Spec) else () for s in specs]
    for axes, shape in zip(labels, shapes):
        for label, size in zip(axes, shape):
            longest[label] = max(size, longest.get(label, 0))
    return [
        tuple([None if n == 1 < longest[label] else label for label, n in zip(axes, shape)])
        for axes, shape in zip(labels, shapes)
    ]


def elementwise_labels(specs: Sequence, outs: Sequence[Spec]) -> list[Labels]:
    """Labels of tensors that broadcast to the shape of the first output: axes are aligned at the right."""
    shape = outs[0].shape
    return [
        ()
        if isinstance(s, type)
        else tuple([i - s.ndim if n == shape[len(shape) - s.ndim + i] else None for i, n in enumerate(s.shape)])
        for s in (*specs, *outs)
    ]


def kept_labels(ndim: int, axis: Any, keepdims: bool = True) -> list[Labels]:
    """Labels of an input and an output, of an op that needs whole lines along `axis` (one, several, or None for all):
    other axes can be split.
    """
    axes = range(ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    whole = {d % max(ndim, 1) for d in axes}
    x = [None if d in whole else d for d in range(ndim)]
    return [tuple(x), tuple([label for d, label in enumerate(x) if keepdims or d not in whole])]


def summed_labels(ndim: int, axis: Any, keepdims: bool) -> list[Labels]:
    """Labels of an input and an output, of a sum along `axis`: a split of these axes gives partial sums."""
    axes = range(ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    summed = {d % max(ndim, 1) for d in axes}
    out = [None if d in summed else d for d in range(ndim)]
    return [tuple(range(ndim)), tuple([label for d, label in enumerate(out) if keepdims or d not in summed])]


def reduction_labels(x: Spec, axis: Any, keepdims: bool, **_: Any) -> list[Labels]:
    """The labels of a reduction that needs whole lines."""
    return kept_labels(x.ndim, axis, keepdims)


def whole_lines(count: int) -> Callable:
    """The labels of an op that needs whole lines along its attr `axis`. count: of its inputs and outputs."""
    return lambda x, *others, axis, **_: kept_labels(x.ndim, axis)[:1] * count


def reshape_labels(old: Sequence[int], new: Sequence[int]) -> list[Labels]:
    """Labels of the input and output of a reshape: the first axes of groups of axes with one product correspond."""
    labels: list[list] = [[None] * len(old), [None] * len(new)]
    left, right = [[d for d, n in enumerate(shape) if n != 1] for shape in (old, new)]
    while 0 not in old and left:
        i, j = left.pop(0), right.pop(0)
        labels[0][i] = labels[1][j] = i
        a, b = old[i], new[j]
        while a != b:
            if a < b:
                a *= old[left.pop(0)]
            else:
                b *= new[right.pop(0)]
    return [tuple(x) for x in labels]


# ---- rows --------------------------------------------------------------------------------------------------------


def rows_of(op: Any, specs: Sequence, attrs: Mapping, outs: Sequence[Spec], count: int) -> Iterator[Row]:
    """The rows of a call on `count` ranks. The first one has all tensors whole on each rank."""
    whole = tuple([None if isinstance(s, type) else broadcast for s in specs])
    yield Row(whole, (broadcast,) * len(outs))
    if outs[0] is None:
        return
    tensors, numbers = [*specs, *outs], [i for i, name in enumerate(op.outputs) if name in op.host_inputs]
    for row in split_rows(labels_of_call(op, specs, attrs, outs), tensors, len(specs), count):
        yield Row(row.inputs, tuple([broadcast if i in numbers else s for i, s in enumerate(row.outputs)]))
    if op.rows is not None:
        yield from op.rows(*specs, **attrs)
    linear = op.linear(*specs, **attrs) if callable(op.linear) else op.linear
    names = [op.inputs[0]] * len(specs) if op.variadic else op.inputs
    for group in linear:
        inside = {name.strip() for name in group.split(",")}
        ours = [name in inside for name in names]
        if all([isinstance(s, Spec) and s.differentiable for s, mine in zip(specs, ours) if mine]):
            inputs = [partial_sum if mine else s for s, mine in zip(whole, ours)]
            yield Row(tuple(inputs), (partial_sum,) * len(outs))


def labels_of_call(op: Any, specs: Sequence, attrs: Mapping, outs: Sequence[Spec]) -> list[Labels]:
    """The labels of all inputs and outputs of a call."""
    facts = op.sharding(*specs, **attrs) if callable(op.sharding) else op.sharding
    if facts is not None:
        return labels_of(facts, [*specs, *outs])
    return elementwise_labels(specs, outs) if op.elementwise else [()] * (len(specs) + len(outs))


def split_rows(labels: Sequence[Labels], tensors: Sequence, inputs: int, count: int) -> Iterator[Row]:
    """The rows that split all axes of one label. An output without the label is a sum over it."""
    places: dict[Hashable, list[int]] = {}
    for axes, spec in zip(labels, tensors):
        for label, size in zip(axes, spec.shape if isinstance(spec, Spec) else ()):
            if label is not None:
                places.setdefault(label, []).append(size)
    for label, sizes in places.items():
        same = len(set(sizes)) == 1
        if not same and any(size % count for size in sizes):
            continue  # parts of unequal size would not correspond
        row: list[Sbp | None] = []
        for axes, spec in zip(labels, tensors):
            if isinstance(spec, type):
                row.append(None)
            elif label in axes:
                row.append(split(axes.index(label)))
            else:
                row.append(broadcast if len(row) < inputs else partial_sum)
        sums = [s for s, spec in zip(row[inputs:], tensors[inputs:]) if s is partial_sum and not spec.differentiable]
        if not sums and any(s is not None and s.kind == "split" for s in row[:inputs]):
            yield Row(tuple(row[:inputs]), tuple(row[inputs:]))  # type: ignore[arg-type]  # outputs are tensors


def boxing_bytes(source: Sbp, target: Sbp, nbytes: int, count: int) -> float:
    """The bytes that each of `count` ranks sends to change the distribution of a tensor of this size.

    A split tensor can become partial sums without sending anything, but then it has to be added up: that is counted.
    """
    if source == target or source.kind == "broadcast":
        return 0
    if "partial_sum" in (source.kind, target.kind):
        return nbytes * (count - 1) / count * (2 if target.kind == "broadcast" else 1)
    return nbytes * (count - 1) / (count if target.kind == "broadcast" else count * count)


def grown_sums(row: Row, specs: Sequence, outs: Sequence, count: int) -> float:
    """The bytes that each rank sends more to add up partial results, which are larger than the partial inputs."""
    before = sum([s.nbytes for s, sbp in zip(specs, row.inputs) if sbp is partial_sum])
    after = sum([s.nbytes for s, sbp in zip(outs, row.outputs) if sbp is partial_sum])
    return max(after - before, 0) * (count - 1) / count if before else 0


class Cost(NamedTuple):
    """The cost of a row, by which rows are compared. nbytes: that each rank sends to box the inputs.  boxed: number of
    these inputs.  partial: True if a result is partial sums.  whole: True if all results are whole on each rank.
    """

    nbytes: float
    boxed: int
    partial: bool
    whole: bool


def cost_of(row: Row, specs: Sequence, outs: Sequence[Spec], have: Sequence, count: int) -> Cost:
    """The cost of a row. have: see `choose_row`."""
    moves = [(a, b, s) for a, b, s in zip(have, row.inputs, specs) if a is not None and b is not None]
    return Cost(
        sum([boxing_bytes(a, b, s.nbytes, count) for a, b, s in moves], 0.0) + grown_sums(row, specs, outs, count),
        sum([a != b for a, b, _ in moves]),
        partial_sum in row.outputs,
        all(s is broadcast for s in row.outputs),
    )


def choose_row(op: Any, specs: Sequence, attrs: Mapping, outs: Sequence[Spec], have: Sequence, count: int) -> Row:
    """The row to which the inputs can be boxed with the fewest bytes.

    have: the Sbp of each input along this axis of ranks, None for a number. Among rows with the same bytes, one that
    boxes fewer inputs is chosen, then one without partial sums, then one that is not whole on each rank.
    """
    return min(rows_of(op, specs, attrs, outs, count), key=lambda row: cost_of(row, specs, outs, have, count))


class GlobalCall:
    """How the ranks run one call of an op on global tensors.

    placement: that of all tensors; None for an op that distributes.  inputs: the distribution to which each input is
    boxed, None for a number.
    boxes: True if an input has another one.  outs: the specs of the results; None if their shapes depend on elements.
    whole: the sbp of a tensor that is whole on each rank.
    """

    def __init__(self, op: Any, placement: Placement | None, specs: Sequence, attrs: Mapping, outs: Sequence):
        self.op, self.placement, self.specs, self.attrs = op, placement, specs, attrs
        self.by_rank: dict[int, tuple] = {}
        self.inputs: list[tuple[Sbp | None, ...] | None]
        if placement is None:  # an op that distributes
            self.inputs, self.boxes, self.outs = [None], False, tuple(outs)
            return
        plain = [logical(s) for s in specs]
        self.whole = whole = (broadcast,) * len(placement.hierarchy)
        have = [None if isinstance(s, type) else s.sbp or whole for s in specs]
        total = math.prod(placement.hierarchy)
        rows = [
            choose_row(op, plain, attrs, outs, [None if s is None else s[axis] for s in have], total)
            for axis in range(len(placement.hierarchy))
        ]
        self.inputs = [None if s is None else tuple([row.inputs[i] for row in rows]) for i, s in enumerate(have)]
        self.boxes = self.inputs != have
        self.outs = tuple(
            [
                None
                if out is None
                else specs[op.inputs.index(op.outputs[i])]
                if op.outputs[i] in op.host_inputs
                else out.replace(placement=placement, sbp=tuple([row.outputs[i] for row in rows]))
                for i, out in enumerate(outs)
            ]
        )

    def local(self, rank: int) -> tuple[Mapping, tuple[Spec, ...]]:
        """(attrs, specs of the results) of the op on the local arrays of a rank."""
        found = self.by_rank.get(rank)
        if found is None:
            outs = tuple([s if s is None else local_spec(s, rank) for s in self.outs])
            found = self.by_rank[rank] = local_attrs(self.op, self.attrs, self.specs, self.outs, rank), outs
        return found


def local_attrs(op: Any, attrs: Mapping, specs: Sequence, outs: Sequence[Spec], rank: int) -> Mapping:
    """The attrs of an op on the local arrays of a rank. specs, outs: of the global tensors."""
    how = op.local_attrs
    if not how:
        return attrs
    if how == "part":
        return {**attrs, "part": part_of(outs[0], rank)}
    ins, outs = [[local_spec(s, rank) if isinstance(s, Spec) else s for s in tensors] for tensors in (specs, outs)]
    return {**attrs, how: outs[0].shape} if isinstance(how, str) else {**attrs, **how(attrs, ins, outs)}
