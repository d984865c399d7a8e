"""Copies: one that nobody can tell from what it copies is not made. Exact.

    after = copies(graph)

The gradient of a parameter that is looked at in another shape is such a copy: eagerly it must not share its storage
with what somebody else may hold; in a graph everybody who reads a value is known. Read next: `nchw16c.py`.
"""

from __future__ import annotations

from ...core.ir import Graph, Value, outputs_of
from ...core.ops.shape import clone, reshape
from ..passes.rewrite import rewrite
from ..uses import Uses


def copies(graph: Graph) -> Graph:
    """The graph without each `clone` of numbers that lie side by side, seen as they are or in another shape.

    What the graph gives or keeps has an array of its own: there the numbers are those of a node, and nobody else is
    given them.
    """
    ends = Uses(graph).shown
    given = {*ends, *[v for source in (*graph.inputs, *graph.states) for v in outputs_of(source)]}
    instead: dict[Value, Value] = {}
    kept = []
    for node in graph.nodes:
        root = node.inputs[0] if node.op is clone else None
        while root in instead or (root.__class__ is Value and root.node.op is reshape):
            root = instead[root] if root in instead else root.node.inputs[0]
        copy = outputs_of(node)[0]
        if root.__class__ is not Value or root.node.op.is_view or (copy in ends and root in given):
            kept.append(node)
            continue
        instead[copy] = node.inputs[0]
        if copy in ends:
            given.add(root)
    return rewrite(graph, kept, instead) if instead else graph
