"""A tape that somebody else wrote, as the record of one: of any object with `.data`, `.grad` and `.inputs`.

`inputs` are the objects that it was computed from, `op` says by what, if there is such an attribute. Read next:
`tape.py`, the engine's own tape.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from .arrays import numbers_text
from .graph import Input, NodeRecord
from .tape import MOST, TapeRecord


def is_own(x: Any) -> bool:
    """Is it a value that remembers what it was computed from, of a class that is not the engine's?"""
    own = getattr(x, "__dict__", None)
    if isinstance(x, type | ModuleType) or not all(
        isinstance(own, dict) and name in own or hasattr(type(x), name) for name in ("inputs", "data", "grad")
    ):
        return False  # nothing is asked of a module, which may import for an answer
    return isinstance(x.inputs, tuple | list)


def own_record(x: Any, names: Mapping[str, Any] | None = None) -> TapeRecord:
    """Its tape, of at most 5,000 values. names: the learner's own variables, name -> value."""
    known = {id(value): name for name, value in (names or {}).items()}
    order = walk(x)
    note = f"and {len(order) - MOST:,} earlier values" if len(order) > MOST else ""
    ids = {id(one): f"n{i}" for i, one in enumerate(order[-MOST:])}
    nodes = tuple(node_record(one, ids, known) for one in order[-MOST:])
    return TapeRecord(nodes, ids[id(x)], 0, f"tape of {known.get(id(x), 'a')} {type(x).__name__}", note)


def walk(x: Any) -> list[Any]:
    """All that x was computed from, inputs before users; with a loop, since a tape may be deep."""
    order, seen, stack = [], set(), [(x, False)]
    while stack:
        one, done = stack.pop()
        if done:
            order.append(one)
        elif id(one) not in seen:
            seen.add(id(one))
            stack.append((one, True))
            stack += [(before, False) for before in reversed(one.inputs) if is_own(before)]
    return order


def node_record(one: Any, ids: Mapping[int, str], known: Mapping[int, str]) -> NodeRecord:
    name, numbers, slope = known.get(id(one), ""), as_text(one.data), as_text(one.grad)
    inputs = tuple(
        Input("", ids.get(id(before), ""), 0, as_text(getattr(before, "data", before))) for before in one.inputs
    )
    if not inputs:
        label = name or "value"
    else:
        label = str(getattr(one, "op", "") or "computed")
        numbers = f"{name} = {numbers}" if name else numbers
    return NodeRecord(
        ids[id(one)], "op" if inputs else "leaf", label, (kind_of(one.data),), inputs, value=numbers, grad=slope
    )


def as_text(x: Any) -> str:
    """Numbers in short; of what holds none, what it is."""
    import numpy as np

    if x is None:
        return "none yet"
    try:
        return numbers_text(np.asarray(x, float))
    except (TypeError, ValueError):
        return type(x).__name__


def kind_of(x: Any) -> str:
    """ "float64[3, 4]" of an array, "float" of a number."""
    dtype = getattr(x, "dtype", None)
    return f"{dtype}[{', '.join(map(str, x.shape))}]" if dtype is not None else type(x).__name__
