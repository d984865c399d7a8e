"""Memory pass: reorder nodes to reduce peak memory. Read next: `../plan.py`, which assigns memory to the values.

An update runs as soon as its inputs are computed and the old value of its state has no more readers, so that the
gradient can be freed. It never runs before a kernel of forward or of a custom op: if that kernel raises, no state may
have changed. A node without inputs (zeros, a range) runs just before its first user; the gradient of a large weight is
computed at the end if it takes more memory than its inputs. All other nodes keep their order.
Cheap values are recomputed in backward instead of kept: `relu_pool_reorder.py`, `recompute.py`.
"""

from __future__ import annotations

from ...core.ir import OPTIMIZER, Graph, Node, Value, outputs_of
from ..uses import Uses
from .recompute import SMALL, recomputed
from .relu_pool_reorder import small_masks


def memory(graph: Graph) -> Graph:
    """Reorder the nodes, and recompute some of them, so that less memory is needed."""
    graph = recomputed(small_masks(graph))
    uses = Uses(graph)
    early, waiting = ordered(graph, uses, frozenset()), can_wait(graph, uses)
    if not waiting:
        return early
    late = ordered(graph, uses, waiting)
    return late if Uses(late).least_bytes() < Uses(early).least_bytes() else early


def can_wait(graph: Graph, uses: Uses) -> frozenset[Node]:
    """Gradients that only the optimizer reads, over twice as large as the inputs that deferring them keeps alive."""
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
    """The graph in its new order; the nodes of `waiting` come last, before their users."""
    at = {node: i for i, node in enumerate(graph.nodes)}
    writes: dict[Node, list[Node]] = {}  # node -> the states that it updates
    for state, value in graph.updates.items():
        writes.setdefault(value.node, []).append(state)
    behind: set[Node] = set()  # nodes outside forward, and those that depend on them
    refusing = 0
    for i, node in enumerate(graph.nodes):
        if node.phase != "forward" or any([x.node in behind for x in node.inputs if x.__class__ is Value]):
            behind.add(node)
        if node.origin != OPTIMIZER and (node not in behind or node.op.custom):
            refusing = i
    key: dict[Node, tuple] = {}  # node -> (position, -1 to run before the node there, else 0, old position)
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
    """Make the order topological: if moves conflict, the missing inputs of a node are moved before it."""
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
