"""Users of values: the one analysis of uses, shared by the passes and the plan.

A read of a view is a read of its base (`root`). Read next: `plan.py`, `passes/node_order.py`.
"""

from __future__ import annotations

from ..core.ir import Graph, Node, Value, outputs_of
from .arena import BufferRequest, least


def readers_of(graph: Graph) -> dict[Value, list[Node]]:
    """Return value -> the nodes that read it itself, not through a view."""
    readers: dict[Value, list[Node]] = {}
    for node in graph.nodes:
        for x in dict.fromkeys(x for x in node.inputs if x.__class__ is Value):
            readers.setdefault(x, []).append(node)
    return readers


class Uses:
    """Uses of the values of a graph.

    root: value -> the base that it is a view of.  reads: root -> [(step, the value read there, a view of it or
    itself)]. last: root -> the last step that needs it; the number of steps if it is an output.  shown: the roots of
    outputs and updates.
    """

    def __init__(self, graph: Graph):
        self.graph = graph
        self.root: dict[Value, Value] = {v: v for source in (*graph.inputs, *graph.states) for v in outputs_of(source)}
        self.reads: dict[Value, list[tuple[int, Value]]] = {}
        self.last: dict[Value, int] = {}
        root, reads, last = self.root, self.reads, self.last
        for i, node in enumerate(graph.nodes):
            for x in node.inputs:
                if x.__class__ is Value:
                    base = root[x]
                    if base in reads:
                        reads[base].append((i, x))
                    else:
                        reads[base] = [(i, x)]
                    last[base] = i
            for v in outputs_of(node):
                root[v] = base = root[node.inputs[0]] if node.op.is_view else v
                last.setdefault(base, i)
        self.shown = {root[v] for v in (*graph.outputs, *graph.updates.values())}
        for v in self.shown:
            last[v] = len(graph.nodes)

    def readers(self, node: Node) -> list[int]:
        """Return the steps that read an output of this node itself, not through a view."""
        return [i for v in outputs_of(node) for i, x in self.reads.get(self.root[v], ()) if x.node is node]

    def least_bytes(self) -> int:
        """Estimate the bytes that values need at once; new values of states are written in place."""
        needs, written = {}, set(self.graph.updates.values())
        for i, node in enumerate(self.graph.nodes):
            for v in () if node.op.is_view else outputs_of(node):
                if v not in written:
                    needs[v] = BufferRequest(v.spec.nbytes, i, self.last[v])
        return least(needs)
