"""The graph or tape up to and including the failed node, as a record.

Read next: `card.py`, which draws it.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace

from ..core.ir import Graph, Source, Value
from ..core.tensor import Tensor
from ..views.records.graph import GraphRecord, Input, NodeRecord, first_users, graph_record, op_record, walk
from ..views.records.tape import TapeRecord, leaf_record
from .card import CardRecord
from .failure import MAX_INPUTS, Failure, RecordedGraph, name_of


def failed_graph_record(failure: Failure, card: CardRecord) -> GraphRecord | TapeRecord | None:
    """Record of the graph or tape up to and including the failed node."""
    notes = tuple(
        [f"got {name} {spec}" for name, spec in card.got]
        + ([f"expected {' '.join(card.expected.split())}"] if card.expected else [])
        + ([f"try: {card.hint.splitlines()[0]}"] if card.hint else [])
    )
    if failure.plan is not None and failure.node is not None:
        return record_from_plan(failure, notes)
    if not (failure.label or failure.inputs):
        return None
    failed = NodeRecord("failed", "op", failure.label, (), (), failure.attrs, failure.scope, mark="failed", notes=notes)
    if failure.recorded_graph is not None:
        return record_from_trace(failure, failure.recorded_graph, failed)
    return record_from_tape(failure, failed)


def separate_calls(nodes: tuple[NodeRecord, ...]) -> tuple[NodeRecord, ...]:
    """Draw each later call of a layer separately: "pool (2)". In one frame, edges between them would run backward."""
    scopes = {n.scope for n in nodes if n.kind == "op"}
    inner = {s for s in scopes if s and not any(other.startswith((f"{s}.", f"{s}/")) for other in scopes)}
    calls: dict[str, int] = {}
    before, result = "", []
    for n in nodes:
        if n.kind == "op" and not n.phase and n.scope in inner:
            calls[n.scope] = calls.get(n.scope, 0) + (n.scope != before)
            number = calls[n.scope]
            result.append(replace(n, scope=f"{n.scope} ({number})") if number > 1 else n)
        else:
            result.append(n)
        before = n.scope if n.kind == "op" else before
    return tuple(result)


def drop_repeated_names(nodes: tuple[NodeRecord, ...]) -> tuple[NodeRecord, ...]:
    """Remove the names of those inputs of the failed node that repeat the label of their source's box."""
    labels = {n.id: n.label for n in nodes}

    def unnamed(n: NodeRecord) -> NodeRecord:
        return replace(n, inputs=tuple([x._replace(name="") if x.name == labels.get(x.ref) else x for x in n.inputs]))

    return tuple([unnamed(n) if n.mark == "failed" else n for n in nodes])


def record_from_plan(failure: Failure, notes: tuple[str, ...]) -> GraphRecord:
    """A plan that ran: its graph up to the failed node."""
    graph: Graph = failure.plan.graph
    whole = graph_record(graph)
    at = next(i for i, node in enumerate(graph.nodes) if node is failure.node) + len(graph.inputs) + len(graph.states)
    kept = list(whole.nodes[: at + 1])
    got = tuple(f"got {x.name} {x.text}" for x in kept[-1].inputs if x.ref)[:MAX_INPUTS]
    kept[-1] = replace(kept[-1], outs=(), mark="failed", notes=(*got, *notes))
    number = at + 1 - len(graph.inputs) - len(graph.states)
    title = f"the operations of the step up to the one that failed ({number} of {len(graph.nodes)})"
    return GraphRecord(drop_unused_sources(kept), (), (), title)


def drop_unused_sources(nodes: list[NodeRecord]) -> tuple[NodeRecord, ...]:
    """The nodes without unused inputs and states."""
    used = {x.ref for n in nodes for x in n.inputs}
    return tuple(n for n in nodes if n.kind == "op" or n.id in used)


def record_from_trace(failure: Failure, recorded: RecordedGraph, failed: NodeRecord) -> GraphRecord:
    graph = recorded.graph
    whole = graph_record(graph)
    sources = (*graph.inputs, *graph.states)
    ids = {node: f"n{i}" for i, node in enumerate((*sources, *graph.nodes))}
    nodes = list(whole.nodes)
    for i, source in enumerate(sources):
        with contextlib.suppress(Exception):
            nodes[i] = replace(nodes[i], label=recorded.name(source) or nodes[i].label)
    states = {id(s.array): s for s in graph.states}
    if failure.node is not None:  # failed in backward while the graph was built
        inputs: list[Input] = [Input("", ids[failure.node], 0)] if failure.node in ids else []
        nodes.append(replace(failed, inputs=tuple(inputs)))
        return GraphRecord(drop_unused_sources(nodes), (), (), recorded.title)
    inputs, extra = [], []
    for k, (name, x) in enumerate(drawn_inputs(failure)):
        source = x._value.node if x.array is None and x._value is not None else states.get(id(x.array))
        if source in ids:
            inputs.append(Input(name, ids[source], x._value.index if x.array is None else 0, str(x.spec)))
        else:
            kind, scope = ("state", failure.scope) if x._label else ("input", "")
            extra.append(NodeRecord(f"x{k}", kind, name_of(failure, x, name), (str(x.spec),), scope=scope))
            inputs.append(Input(name, f"x{k}"))
    failed = replace(failed, inputs=tuple(inputs))
    done = f"{len(graph.nodes)} operation{'s' * (len(graph.nodes) != 1)} recorded"
    title = f"{recorded.title}: {done} before the one that failed"
    return GraphRecord(drop_unused_sources([*nodes, *extra, failed]), (), (), title)


def record_from_tape(failure: Failure, failed: NodeRecord) -> TapeRecord:
    """Eager: the tape of the input tensors."""
    seen = drawn_inputs(failure)
    roots = [x._value.node for _, x in seen if x._value is not None]
    roots += [failure.node] if failure.node is not None else []
    order = walk(dict.fromkeys(roots))
    ids = {node: f"n{i}" for i, node in enumerate(order)}
    users = first_users(order)
    names = {id(x): name_of(failure, x, name) for name, x in seen}
    nodes = []
    for node in order:
        if isinstance(node, Source):
            nodes.append(leaf_record(node, ids[node], users[node].scope if node in users else "", names, False))
            if node not in users:  # used only by the failed node
                nodes[-1] = replace(nodes[-1], label=names.get(id(node.tensor()), nodes[-1].label), scope=failure.scope)
        else:
            nodes.append(op_record(node, ids))
    inputs = []
    for k, (name, x) in enumerate(seen):
        if x._value is not None and x._value.node in ids:
            inputs.append(Input(name, ids[x._value.node], x._value.index, str(x.spec)))
        else:
            nodes.append(NodeRecord(f"x{k}", "input", name_of(failure, x, name), (str(x.spec),)))
            inputs.append(Input(name, f"x{k}"))
    if failure.node is not None:
        inputs.append(Input("", ids[failure.node], 0))
    has_ops = any(not isinstance(node, Source) for node in order)
    title = f"the {'tape up to' if has_ops else 'inputs of'} the failed operation"
    return TapeRecord((*nodes, replace(failed, inputs=tuple(inputs))), failed.id, 0, title)


def drawn_inputs(failure: Failure) -> list[tuple[str, Tensor]]:
    """The inputs that the failed node is drawn with. For a user line: the tensors visible to it
    without another user.
    """
    if failure.label and not failure.label.endswith(".forward"):
        return failure.inputs
    known = {id(x) for _, x in failure.inputs}
    near = [("", x) for x in failure.visible_tensors if id(x) not in known]
    pairs = [*failure.inputs, *near]
    nodes = walk(dict.fromkeys(x._value.node for _, x in pairs if x._value is not None))
    read_by = {v.node for node in nodes for v in node.inputs if v.__class__ is Value}
    ends = [(name, x) for name, x in pairs if x._value is None or x._value.node not in read_by]
    return ends or pairs
