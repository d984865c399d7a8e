"""Memory: an order of the nodes in which less has to be kept at a time. Read next: `../plan.py`, which places it.

The program and its gradients keep their order. An update runs as soon as all that it reads is there and nobody reads
the old numbers any more, so that a gradient can go when it has been used; what needs no inputs (a tensor of zeros, a
range) is made just before its first reader.
"""

from __future__ import annotations

from ...core.ir import OPTIMIZER, Graph, Node, Value


def memory(graph: Graph) -> Graph:
    """The same nodes in another order."""
    at = {node: i for i, node in enumerate(graph.nodes)}
    readers: dict[Node, list[int]] = {}
    for i, node in enumerate(graph.nodes):
        for x in node.inputs:
            if x.__class__ is Value:
                readers.setdefault(x.node, []).append(i)
    writes: dict[Node, list[Node]] = {}  # node -> the states that it gives new numbers to
    for state, value in graph.updates.items():
        writes.setdefault(value.node, []).append(state)
    key: dict[Node, tuple] = {}  # (position, after or before what stands there, its own old position)
    for i, node in enumerate(graph.nodes):
        values = [x.node for x in node.inputs if x.__class__ is Value]
        if node.origin == OPTIMIZER:
            before = [key[x] for x in values if x in key]
            last = [j for state in writes.get(node, ()) for j in readers.get(state, ()) if j < i]
            spots = [*before, *[key.get(graph.nodes[j], (j, 0, j)) for j in last]]
            key[node] = (*max(spots)[:2], i) if spots else (i, 0, i)
        elif not values and node in readers:
            key[node] = (min(readers[node]), -1, i)
        else:
            key[node] = (i, 0, i)
    order = sorted(graph.nodes, key=lambda node: key[node])
    return Graph(graph.inputs, settled(order, at), graph.outputs, graph.states, graph.updates)


def settled(order: list[Node], at: dict[Node, int]) -> list[Node]:
    """The order with every node behind all that it reads: where two moves cross, the one that reads waits."""
    done: set[Node] = set()
    result: list[Node] = []
    for node in order:
        stack = [node]
        while stack:
            top = stack[-1]
            missing = [x.node for x in top.inputs if x.__class__ is Value and x.node in at and x.node not in done]
            if missing:
                stack += missing
                continue
            stack.pop()
            if top not in done:
                done.add(top)
                result.append(top)
    return result
