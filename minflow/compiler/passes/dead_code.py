"""Dead code: what neither an output nor an update needs is not computed. Read next: `constant_folding.py`."""

from __future__ import annotations

from ...core.ir import Graph, Value


def dead_code(graph: Graph) -> Graph:
    """Without the nodes, and the states, that nothing needs.

    States that are read by a function stay: a generator counts what the trace drew, so that no pass changes what is
    drawn afterwards.
    """
    wanted = {v.node for v in (*graph.outputs, *graph.updates.values())}
    kept = []
    for node in reversed(graph.nodes):
        if node in wanted:
            kept.append(node)
            wanted.update([x.node for x in node.inputs if x.__class__ is Value])
    states = [s for s in graph.states if s in wanted or s in graph.updates or s.read is not None]
    return Graph(graph.inputs, reversed(kept), graph.outputs, states, graph.updates)
