"""Dead code elimination: remove nodes that neither an output nor an update needs. Read next: `constant_folding.py`."""

from __future__ import annotations

from ...core.ir import Graph, Value


def dead_code(graph: Graph) -> Graph:
    """Remove nodes and states without users.

    States with a `read` function are kept: a generator advances by all draws of the trace, even removed ones, so
    passes do not change later draws. Ops that communicate are kept once their rank has a graph of its own: the other
    ranks run them.
    """
    used = {v.node for v in (*graph.outputs, *graph.updates.values())}
    used.update([node for node in graph.nodes if node.op.communicates and node.out_specs[0].placement is None])
    kept = []
    for node in reversed(graph.nodes):
        if node in used:
            kept.append(node)
            used.update([x.node for x in node.inputs if x.__class__ is Value])
    states = [s for s in graph.states if s in used or s in graph.updates or s.read is not None]
    return Graph(graph.inputs, reversed(kept), graph.outputs, states, graph.updates)
