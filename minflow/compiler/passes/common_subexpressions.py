"""Common subexpression elimination: compute equal expressions only once. Read next: `node_order.py`."""

from __future__ import annotations

from typing import Any

from ...core.ir import Graph, Value, outputs_of
from .rewrite import rewritten


def common_subexpressions(graph: Graph) -> Graph:
    """Merge nodes that have the same op, inputs and attrs.

    Random ops have different offsets, and recomputed ops of a checkpoint read `recompute` nodes: neither are merged.
    """
    seen: dict[Any, list[Value]] = {}
    instead: dict[Value, Value] = {}
    kept = []
    for node in graph.nodes:
        inputs = tuple([instead.get(x, x) if x.__class__ is Value else exactly(x) for x in node.inputs])
        key = (node.op, inputs, exactly(node.attrs))
        try:
            first = seen.setdefault(key, outputs_of(node))
        except TypeError:  # an unhashable attr: the node is never merged
            first = None
        if first is None or first[0].node is node:
            kept.append(node)
        else:
            instead.update(zip(outputs_of(node), first))
    return rewritten(graph, kept, instead)


def exactly(x: Any) -> Any:
    """A key that is equal only for equal bits and types: 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    if isinstance(x, dict):
        return tuple([(name, exactly(value)) for name, value in x.items()])
    if isinstance(x, tuple | list):
        return type(x), tuple(map(exactly, x))
    return (type(x), repr(x)) if isinstance(x, bool | int | float) else x
