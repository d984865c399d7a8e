"""Recomputation: compute cheap values again in backward instead of keeping them until then.

Part of the memory pass. Only cheap operations (`is_cheap`) on values that are kept anyway: the same kernel on the same
elements gives the same bits, and is faster than reading a value that has left the cache. Read next: `node_order.py`.
"""

from __future__ import annotations

from ...core.ir import RECOMPUTE, Graph, Node, Source, Value, outputs_of
from ...core.scalar import is_cheap
from ..uses import Uses

MIN_BYTES = 1 << 16  # bytes: keeping a smaller value costs less than another call


def recompute_cheap_values(graph: Graph, fused: bool = False) -> Graph:
    """Recompute cheap values in backward while their inputs are still alive; return the same graph if that saves no
    bytes. fused: recompute them in any case, since fused regions then read and write less.
    """
    first_backward_index = next((i for i, node in enumerate(graph.nodes) if node.phase == "backward"), None)
    if first_backward_index is None:
        return graph
    forward = graph.nodes[:first_backward_index]
    cheap = [n for n in forward if n.origin is None and n.out_specs[0].nbytes >= MIN_BYTES and is_cheap(n.op)]
    if not cheap:
        return graph
    uses = Uses(graph)
    recomputed_at: dict[Value, tuple[int, Node]] = {}  # value -> (index at which it is recomputed, the new node)
    for node in cheap:
        v = outputs_of(node)[0]
        if v in uses.shown:
            continue
        uses_in_backward = [(i, x) for i, x in uses.reads.get(v, ()) if i >= first_backward_index]
        # a view that is read would have to be recomputed too
        if not uses_in_backward or any(x != v for _, x in uses_in_backward):
            continue
        available = [last_available_index(x, graph, uses, recomputed_at) for x in node.inputs if x.__class__ is Value]
        index = min(uses_in_backward[0][0], *available) if available else uses_in_backward[0][0]
        inputs = [x for x in node.inputs if x in recomputed_at]
        if index >= first_backward_index and all(recomputed_at[x][0] <= index for x in inputs):
            twin = Node(node.op, node.inputs, node.attrs, node.out_specs, 0, (), node.scope, node.where)
            twin.origin = RECOMPUTE
            recomputed_at[v] = index, twin
    if not recomputed_at:
        return graph
    after = insert_recomputed(graph, first_backward_index, recomputed_at)
    return after if fused or Uses(after).least_bytes() < uses.least_bytes() else graph


def last_available_index(x: Value, graph: Graph, uses: Uses, recomputed_at: dict) -> int:
    """The last index at which x is alive without being kept for this purpose; -1 if it cannot be used."""
    root = uses.root[x]
    if x in recomputed_at:
        return len(graph.nodes)
    if root in recomputed_at:
        return -1
    if isinstance(root.node, Source):
        return -1 if root.node in graph.updates else len(graph.nodes)  # it may already be updated by then
    return uses.last[root]


def insert_recomputed(graph: Graph, first_backward_index: int, recomputed_at: dict[Value, tuple[int, Node]]) -> Graph:
    moved: dict[Value, Value] = {}
    due: dict[int, list[tuple[Value, Node]]] = {}
    for v, (first, twin) in recomputed_at.items():
        due.setdefault(first, []).append((v, twin))
    nodes = graph.nodes[:first_backward_index]
    twins: dict[Node, Node] = {}
    for i, node in enumerate(graph.nodes[first_backward_index:], first_backward_index):
        for v, twin in due.get(i, ()):
            twin.inputs = [moved.get(x, x) if x.__class__ is Value else x for x in twin.inputs]
            moved[v] = outputs_of(twin)[0]
            nodes.append(twin)
        inputs = [moved.get(x, x) if x.__class__ is Value else x for x in node.inputs]
        origin = twins.get(node.origin, node.origin) if isinstance(node.origin, Node) else node.origin
        if origin is not node.origin or any(a is not b for a, b in zip(inputs, node.inputs)):
            twins[node] = now = node.replace(inputs, origin)
            moved.update(zip(outputs_of(node), outputs_of(now)))
            node = now
        nodes.append(node)
    outputs = [moved.get(v, v) for v in graph.outputs]
    return Graph(graph.inputs, nodes, outputs, graph.states, {s: moved.get(v, v) for s, v in graph.updates.items()})
