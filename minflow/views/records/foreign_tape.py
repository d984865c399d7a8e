"""The tape of another engine as a record: objects with `.data`, `.grad` and `.inputs`, such as the values of a
learner's own autograd.

`inputs` are the objects that a value was computed from; `op`, if present, names the operation. Read next: `tape.py`,
minflow's own tape.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from .arrays import numbers_text
from .graph import Input, NodeRecord
from .tape import MAX_NODES, TapeRecord


def is_foreign_value(x: Any) -> bool:
    """True for a value of another engine that remembers the values it was computed from."""
    own = getattr(x, "__dict__", None)
    if isinstance(x, type | ModuleType) or not all(
        (isinstance(own, dict) and name in own) or hasattr(type(x), name) for name in ("inputs", "data", "grad")
    ):
        return False  # never query a module: its `__getattr__` may import
    return isinstance(x.inputs, tuple | list)


def foreign_record(x: Any, names: Mapping[str, Any] | None = None) -> TapeRecord:
    """Record of its tape, with at most 5,000 values. names: the learner's variables, name -> value."""
    known = {id(value): name for name, value in (names or {}).items()}
    order = walk(x)
    note = f"and {len(order) - MAX_NODES:,} earlier values" if len(order) > MAX_NODES else ""
    ids = {id(one): f"n{i}" for i, one in enumerate(order[-MAX_NODES:])}
    nodes = tuple(node_record(one, ids, known) for one in order[-MAX_NODES:])
    return TapeRecord(nodes, ids[id(x)], 0, f"tape of {known.get(id(x), 'a')} {type(x).__name__}", note)


def walk(x: Any) -> list[Any]:
    """All values that x depends on, inputs before users; iterative, because a tape may be deep."""
    order, seen, stack = [], set(), [(x, False)]
    while stack:
        one, done = stack.pop()
        if done:
            order.append(one)
        elif id(one) not in seen:
            seen.add(id(one))
            stack.append((one, True))
            stack += [(before, False) for before in reversed(one.inputs) if is_foreign_value(before)]
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
    """Abbreviated numbers, or the class of an object without numbers."""
    import numpy as np

    if x is None:
        return "none yet"
    try:
        return numbers_text(np.asarray(x, float))
    except (TypeError, ValueError):
        return type(x).__name__


def kind_of(x: Any) -> str:
    """ "float64[3, 4]" for an array, "float" for a number."""
    dtype = getattr(x, "dtype", None)
    return f"{dtype}[{', '.join(map(str, x.shape))}]" if dtype is not None else type(x).__name__
