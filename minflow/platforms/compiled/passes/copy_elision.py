"""Remove copies whose aliasing cannot be observed. Exact.

    after = copies(graph)

Such a copy is the gradient of a parameter that is used in another shape: in eager mode it must not share storage with a
tensor that the program may hold, but in a graph all users of a value are known. Read next: `nchw16c.py`.
"""

from __future__ import annotations

from ....compiler.passes.rewrite import rewrite
from ....compiler.uses import Uses
from ....core.ir import Graph, Value, outputs_of
from ....core.ops.shape import clone, reshape


def copies(graph: Graph) -> Graph:
    """Remove each `clone` of a contiguous value, or of a reshape of one.

    Graph outputs and updates need arrays of their own: there a clone is removed only if its source was computed by a
    node and is not itself an output or update.
    """
    if not any([node.op is clone for node in graph.nodes]):
        return graph
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
