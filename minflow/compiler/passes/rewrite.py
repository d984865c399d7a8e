"""The helper shared by all passes that change nodes. Read next: `dead_code.py`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping

from ...core.ir import Graph, Node, Source, Value, outputs_of


def rewrite(
    graph: Graph, nodes: Iterable[Node], replacements: Mapping[Value, Value], states: Iterable[Source] | None = None
) -> Graph:
    """The graph of `nodes`, in which the users of each key of `replacements` use its value.

    Nodes whose inputs have not changed stay the same objects; links from gradients to their forward nodes are kept.
    To remove a node, leave it out of `nodes` and map its outputs to their replacements in `replacements`.
    """
    moved: dict[Value, Value] = dict(replacements)
    twins: dict[Node, Node] = {}
    result: list[Node] = []

    def now(x):
        while x in moved:
            x = moved[x]
        return x

    for node in nodes:
        moves = any([x in moved for x in node.inputs if x.__class__ is Value])
        origin = node.origin
        if isinstance(origin, Node):
            origin = now(outputs_of(origin)[0]).node if origin not in twins else twins[origin]
            origin = node.origin if isinstance(origin, Source) else origin
        if moves or origin is not node.origin:
            inputs = [now(x) if x.__class__ is Value else x for x in node.inputs]
            twins[node] = twin = node.replace(inputs, origin)
            moved.update(zip(outputs_of(node), outputs_of(twin)))
            node = twin
        result.append(node)
    updates = {state: now(value) for state, value in graph.updates.items()}
    return Graph(graph.inputs, result, map(now, graph.outputs), graph.states if states is None else states, updates)


def rewritten(
    graph: Graph, nodes: Iterable[Node], instead: Mapping[Value, Value], states: Iterable[Source] | None = None
) -> Graph:
    """The old name of `rewrite`, which copies of the lessons import."""
    warnings.warn("rewritten is now rewrite", DeprecationWarning, stacklevel=2)
    return rewrite(graph, nodes, instead, states)
