"""Memory: an order of the nodes in which less has to be kept at a time. Read next: `../plan.py`, which places it.

An update runs as soon as all that it reads is there and nobody reads the old numbers any more, so that a gradient can
go when it has been used; but no kernel of forward or of a custom op comes behind one: what it refuses must not leave
half a step. What needs no inputs (a tensor of zeros, a range) is made just before its first reader; the gradient of a
large weight waits until the end, where it takes more bytes than what it is computed from. All else keeps its order.
Cheap values are computed again in backward instead of being kept: `relu_pool_reorder.py`, `recompute.py`.
"""

from __future__ import annotations

from ...core.ir import OPTIMIZER, Graph, Node, Value, outputs_of
from ..uses import Uses
from .recompute import SMALL, recomputed
from .relu_pool_reorder import small_masks


def memory(graph: Graph) -> Graph:
    """The same nodes in another order, and perhaps some of them twice."""
    graph = recomputed(small_masks(graph))
    uses = Uses(graph)
    early, waiting = ordered(graph, uses, frozenset()), can_wait(graph, uses)
    if not waiting:
        return early
    late = ordered(graph, uses, waiting)
    return late if Uses(late).least_bytes() < Uses(early).least_bytes() else early


def can_wait(graph: Graph, uses: Uses) -> frozenset[Node]:
    """Gradients that only the optimizer reads, of twice the bytes that would have to be kept for them."""
    waiting = set()
    for i, node in enumerate(graph.nodes):
        size = sum(s.nbytes for s in node.out_specs)
        if node.phase != "backward" or node.op.is_view or size < SMALL:
            continue
        if any(graph.nodes[j].origin != OPTIMIZER for v in outputs_of(node) for j, _ in uses.reads.get(v, ())):
            continue
        roots = {uses.root[x] for x in node.inputs if x.__class__ is Value}
        if size > 2 * sum(root.spec.nbytes for root in roots if root.node.inputs and uses.last[root] == i):
            waiting.add(node)
    return frozenset(waiting)


def ordered(graph: Graph, uses: Uses, waiting: frozenset[Node]) -> Graph:
    """The order, with the nodes of `waiting` behind all others but those that read them."""
    at = {node: i for i, node in enumerate(graph.nodes)}
    writes: dict[Node, list[Node]] = {}  # node -> the states that it gives new numbers to
    for state, value in graph.updates.items():
        writes.setdefault(value.node, []).append(state)
    behind: set[Node] = set()  # what reads a gradient
    refusing = 0
    for i, node in enumerate(graph.nodes):
        if node.phase != "forward" or any([x.node in behind for x in node.inputs if x.__class__ is Value]):
            behind.add(node)
        if node.origin != OPTIMIZER and (node not in behind or node.op.custom):
            refusing = i
    key: dict[Node, tuple] = {}  # (position, after or before what stands there, its own old position)
    for i, node in enumerate(graph.nodes):
        values = [x.node for x in node.inputs if x.__class__ is Value]
        if node.origin == OPTIMIZER:
            before = [key[x] for x in values if x in key]
            last = [j for state in writes.get(node, ()) for j in uses.readers(state) if j < i]
            last += [refusing] if node in writes else []
            spots = [*before, *[key.get(graph.nodes[j], (j, 0, j)) for j in last]]
            key[node] = (*max(spots)[:2], i) if spots else (i, 0, i)
        elif not values and (readers := uses.readers(node)):
            key[node] = (min(readers), -1, i)
        elif node in waiting:
            key[node] = (len(graph.nodes), 0, i)
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
