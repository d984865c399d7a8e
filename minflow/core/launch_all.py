"""Launch an update rule on the parameters of an optimizer in as few kernel calls as possible.

Read next: `kernels.py`, which launches one call; `ops/update.py`, the rules.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from .backend import OPEN, namespace
from .kernels import CALLS, OBSERVERS, device_of, launch, select
from .spec import cpu

JOINED = 1 << 12  # elements: copying the arrays of a larger call takes longer than a kernel call of its own
Call = tuple[Sequence, Sequence]  # inputs, outputs


def launch_all(op: Any, calls: Sequence[Call], attrs: Mapping) -> None:
    """Run an op on several (inputs, outputs) of one device, into the outputs; together as far as kernels can."""
    if not calls:
        return
    if (device := device_of(calls[0][0])) is cpu:
        calls = launch_joined(op, calls, attrs) if op.joins and not OBSERVERS else calls
        for arrays, outs in calls:
            launch(op, arrays, attrs, out=outs if op.many else outs[0])
        return
    OPEN[device].activate()
    selected, together = select(op, device_type=device.type), []
    for arrays, outs in calls:
        call = selected.lower and selected.lower(arrays, outs, **attrs)
        if not call:
            launch(op, arrays, attrs, out=outs if op.many else outs[0])
            continue
        together.append(call)
        for observe in list(OBSERVERS):
            observe(op, selected.lowering_platform, arrays, outs)
    for call in together[0].join([together]) if together else ():
        call()


def launch_joined(op: Any, calls: Sequence[Call], attrs: Mapping) -> list[Call]:
    """Run the calls on few elements, those with equal numbers as one on the joined arrays; return the others.

    The bits are those of single calls, since such a rule computes each element by itself. If parameters share memory,
    only the first is joined: the update of a later one starts from its result.
    """
    others, groups, owners = [], dict[tuple, list[Call]](), set[int | None]([None])
    for call in calls:
        arrays, first = call[0], call[0][0]
        owner = id(first) if first.base is None else owner_of(first.base)
        if owner not in owners and first.ndim > 0 and first.size <= JOINED:
            numbers = [float(x) for x in arrays if not x.ndim]
            groups.setdefault((first.dtype, *numbers), []).append(call)
        else:
            others.append(call)
        owners.add(owner)
    others = [members[0] for members in groups.values() if len(members) == 1] + others
    for members in [members for members in groups.values() if len(members) > 1]:
        inputs = [joined(column) for column in zip(*[arrays for arrays, _ in members])]
        results = [inputs[op.inputs.index(name)] for name in op.outputs]  # each replaces an input
        CALLS[op](*inputs, **attrs, out=results if op.many else results[0])
        ends = [*itertools.accumulate([arrays[0].size for arrays, _ in members], initial=0)]
        for result, places in zip(results, zip(*[outs for _, outs in members])):
            for place, start, end in zip(places, ends, ends[1:]):
                place[...] = result[start:end].reshape(place.shape) if place.ndim else result
    return others


def owner_of(base: Any) -> int | None:
    """Id of the base of an array; None if it is not an array that owns its memory."""
    return id(base) if getattr(base, "base", base) is None else None


def joined(arrays: Sequence) -> Any:
    """A new array with the elements of these; of equal numbers, a copy of the first."""
    return namespace().concatenate([x.reshape(-1) for x in arrays]) if arrays[0].ndim else arrays[0].copy()
