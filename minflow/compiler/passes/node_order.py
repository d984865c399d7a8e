"""Memory pass: reorder nodes to reduce peak memory. Read next: `../plan.py`, which assigns memory to the values.

An update runs as soon as its inputs are computed and the old value of its state has no more readers, so that the
gradient can be freed. It never runs before a kernel of forward or of a custom op: if that kernel raises, no state may
have changed. A node without inputs (zeros, a range) runs just before its first user; the gradient of a large weight is
computed at the end if it takes more memory than its inputs. All other nodes keep their order; so do updates on a GPU,
which run at the end in few launches.
Cheap values are recomputed in backward instead of kept: `relu_pool_reorder.py`, `recompute.py`.
"""

from __future__ import annotations

import warnings

from ...core.ir import OPTIMIZER, Graph, Node, Value, outputs_of
from ...core.kernels import device_of_node
from ...core.spec import cpu
from ..uses import Uses
from .recompute import MIN_BYTES, recompute_cheap_values
from .relu_pool_reorder import reorder_relu_pool_grad


def reduce_memory(graph: Graph) -> Graph:
    """Reorder the nodes, and recompute some of them, so that less memory is needed."""
    graph = recompute_cheap_values(reorder_relu_pool_grad(graph))
    uses = Uses(graph)
    early, deferred = reorder(graph, uses, frozenset()), deferrable_gradients(graph, uses)
    if not deferred:
        return early
    late = reorder(graph, uses, deferred)
    return late if Uses(late).least_bytes() < Uses(early).least_bytes() else early


def deferrable_gradients(graph: Graph, uses: Uses) -> frozenset[Node]:
    """Gradients that only the optimizer reads, over twice as large as the inputs that deferring them keeps alive."""
    deferred = set()
    for i, node in enumerate(graph.nodes):
        size = sum(s.nbytes for s in node.out_specs)
        if node.phase != "backward" or node.op.is_view or size < MIN_BYTES:
            continue
        if any(graph.nodes[j].origin != OPTIMIZER for v in outputs_of(node) for j, _ in uses.reads.get(v, ())):
            continue
        roots = {uses.root[x] for x in node.inputs if x.__class__ is Value}
        if size > 2 * sum(root.spec.nbytes for root in roots if root.node.inputs and uses.last[root] == i):
            deferred.add(node)
    return frozenset(deferred)


def reorder(graph: Graph, uses: Uses, deferred: frozenset[Node]) -> Graph:
    """The graph in its new order; the nodes of `deferred` come last, before their users."""
    states_written: dict[Node, list[Node]] = {}  # node -> the states that it updates
    for state, value in graph.updates.items():
        states_written.setdefault(value.node, []).append(state)
    not_forward: set[Node] = set()  # nodes outside forward, and those that depend on them
    last_fallible = 0
    for i, node in enumerate(graph.nodes):
        if node.phase != "forward" or any([x.node in not_forward for x in node.inputs if x.__class__ is Value]):
            not_forward.add(node)
        if node.origin != OPTIMIZER and (node not in not_forward or node.op.custom):
            last_fallible = i
    key: dict[Node, tuple] = {}  # node -> (position, -1 to run before the node there, else 0, old position)
    for i, node in enumerate(graph.nodes):
        values = [x.node for x in node.inputs if x.__class__ is Value]
        if node.origin == OPTIMIZER and device_of_node(node) is cpu:
            before = [key[x] for x in values if x in key]
            last = [j for state in states_written.get(node, ()) for j in uses.readers(state) if j < i]
            last += [last_fallible] if node in states_written else []
            spots = [*before, *[key.get(graph.nodes[j], (j, 0, j)) for j in last]]
            key[node] = (*max(spots)[:2], i) if spots else (i, 0, i)
        elif not values and (readers := uses.readers(node)):
            key[node] = (min(readers), -1, i)
        elif node in deferred:
            key[node] = (len(graph.nodes), 0, i)
        else:
            key[node] = (i, 0, i)
    order = sorted(graph.nodes, key=lambda node: key[node])
    return Graph(graph.inputs, topological_order(order), graph.outputs, graph.states, graph.updates)


def topological_order(order: list[Node]) -> list[Node]:
    """Make the order topological: if moves conflict, the missing inputs of a node are moved before it."""
    nodes = set(order)
    done: set[Node] = set()
    result: list[Node] = []
    for node in order:
        stack = [node]
        while stack:
            top = stack[-1]
            missing = [x.node for x in top.inputs if x.__class__ is Value and x.node in nodes and x.node not in done]
            if missing:
                stack += missing
                continue
            stack.pop()
            if top not in done:
                done.add(top)
                result.append(top)
    return result


def __getattr__(name: str):
    if name == "memory":
        warnings.warn("the pass memory is now reduce_memory", DeprecationWarning, stacklevel=2)
        return reduce_memory
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
