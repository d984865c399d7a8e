"""Common subexpression elimination: compute equal expressions only once. Read next: `node_order.py`."""

from __future__ import annotations

from typing import Any

from ...core.ir import Graph, Source, Value, outputs_of
from .rewrite import rewrite


def common_subexpressions(graph: Graph) -> Graph:
    """Merge nodes that have the same op, inputs and attrs.

    Random ops have different offsets, and recomputed ops of a checkpoint read `recompute` nodes: neither are merged.
    Nor are a gather of a split parameter in forward and in backward: its result would be kept until then.
    """
    seen: dict[Any, list[Value]] = {}
    replacements: dict[Value, Value] = {}
    kept = []
    for node in graph.nodes:
        inputs = tuple([replacements.get(x, x) if x.__class__ is Value else exact_key(x) for x in node.inputs])
        gathers = node.op.communicates and isinstance(node.inputs[0].node, Source)
        key = (node.op, inputs, exact_key(node.attrs), node.phase if gathers else "")
        try:
            first = seen.setdefault(key, outputs_of(node))
        except TypeError:  # an unhashable attr: the node is never merged
            first = None
        if first is None or first[0].node is node:
            kept.append(node)
        else:
            replacements.update(zip(outputs_of(node), first))
    return rewrite(graph, kept, replacements)


def exact_key(x: Any) -> Any:
    """A key that is equal only for equal bits and types: 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    if isinstance(x, dict):
        return tuple([(name, exact_key(value)) for name, value in x.items()])
    if isinstance(x, tuple | list):
        return type(x), tuple(map(exact_key, x))
    return (type(x), repr(x)) if isinstance(x, bool | int | float) else x
