"""Merge neighboring calls of a plan into one, if their kernels can be joined.

A compiled kernel has a `join`, which makes one call of many, and reports the bytes that it takes. How calls are joined
is up to the platform. Read next: `plan.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..core.ir import Node, Value
from ..core.kernels import select_for
from .uses import Uses


def is_steady(value: Value, uses: Uses, platforms: Sequence[str] | None) -> bool:
    """True if a kernel that can be lowered reads this input, and copying it to a fixed place pays."""
    lowered = [select_for(uses.graph.nodes[i], platforms).lower for i, _ in uses.reads.get(value, ())]
    return value.spec.nbytes <= max([lower.steady for lower in lowered if lower is not None], default=0)


def memory_of(calls: Sequence[Callable]) -> int:
    """Bytes of workspace of the compiled kernels, shared and per thread, besides the arena."""
    kernels = [call for call in calls if hasattr(call, "join")]
    return sum([max([getattr(call, name) for call in kernels], default=0) for name in ("bytes", "scratch")])


def joined(calls: Sequence[Callable], nodes: Sequence[Node]) -> tuple[list[Callable], list[Node]]:
    """Return merged calls in the same order, and the first node of each."""
    joins = [getattr(call, "join", None) for call in calls]
    groups: list[list[int]] = []
    for i, join in enumerate(joins):
        if join and groups and joins[groups[-1][0]]:
            groups[-1].append(i)
        else:
            groups.append([i])
    together = [[calls[i] for i in group] for group in groups if joins[group[0]]]
    units = iter(next(filter(None, joins))(together) if together else ())
    return [next(units) if joins[i] else calls[i] for i, *_ in groups], [nodes[i] for i, *_ in groups]
