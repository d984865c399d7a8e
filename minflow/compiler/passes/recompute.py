"""Recomputation: compute cheap values again in backward instead of keeping them until then.

Part of the memory pass. Only sums, products and ReLUs of values that are kept anyway: the same kernel on the same
elements gives the same bits, and is faster than reading a value that has left the cache. Read next: `node_order.py`.
"""

from __future__ import annotations

from ...core.ir import RECOMPUTE, Graph, Node, Source, Value, outputs_of
from ..uses import Uses

CHEAP = frozenset({"add", "sub", "mul", "neg", "relu"})
SMALL = 1 << 16  # bytes: keeping a smaller value costs less than another call


def recomputed(graph: Graph, fused: bool = False) -> Graph:
    """Recompute cheap values in backward while their inputs are still alive; return the same graph if that saves no
    bytes. fused: recompute them in any case, since fused regions then read and write less.
    """
    turn = next((i for i, node in enumerate(graph.nodes) if node.phase == "backward"), None)
    if turn is None:
        return graph
    uses = Uses(graph)
    again: dict[Value, tuple[int, Node]] = {}  # value -> (index at which it is recomputed, the new node)
    for node in graph.nodes[:turn]:
        v = outputs_of(node)[0]
        if node.op.name not in CHEAP or node.origin is not None or v.spec.nbytes < SMALL or v in uses.shown:
            continue
        late = [(i, x) for i, x in uses.reads.get(v, ()) if i >= turn]
        if not late or any(x != v for _, x in late):  # the view that is read would have to be recomputed too
            continue
        steps = [at_hand(x, graph, uses, again) for x in node.inputs if x.__class__ is Value]
        step = min(late[0][0], *steps) if steps else late[0][0]
        if step >= turn and all(x not in again or again[x][0] <= step for x in node.inputs if x.__class__ is Value):
            twin = Node(node.op, node.inputs, node.attrs, node.out_specs, 0, (), node.scope, node.where)
            twin.origin = RECOMPUTE
            again[v] = step, twin
    if not again:
        return graph
    after = with_twins(graph, turn, again)
    return after if fused or Uses(after).least_bytes() < uses.least_bytes() else graph


def at_hand(x: Value, graph: Graph, uses: Uses, again: dict) -> int:
    """The last index at which x is alive without being kept for this purpose; -1 if it cannot be used."""
    root = uses.root[x]
    if x in again:
        return len(graph.nodes)
    if root in again:
        return -1
    if isinstance(root.node, Source):
        return -1 if root.node in graph.updates else len(graph.nodes)  # it may already be updated by then
    return uses.last[root]


def with_twins(graph: Graph, turn: int, again: dict[Value, tuple[int, Node]]) -> Graph:
    moved: dict[Value, Value] = {}
    due: dict[int, list[tuple[Value, Node]]] = {}
    for v, (first, twin) in again.items():
        due.setdefault(first, []).append((v, twin))
    nodes = graph.nodes[:turn]
    twins: dict[Node, Node] = {}
    for i, node in enumerate(graph.nodes[turn:], turn):
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
