"""Localization: replace ops on global tensors by the same ops on the local arrays of this rank. The first pass.

Ops that communicate stay, also on ranks outside the placement, in the order of the program: each reads the result of
the one before, so that no later pass can reorder, merge or remove them on one rank only.
Read next: `../../core/sharding.py`, `dead_code.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.backend import empty
from ...core.context import current_context
from ...core.infer import infer
from ...core.ir import CONSTANT, Graph, Node, Source, Value, outputs_of
from ...core.ops.global_tensors import as_global, as_local, in_order
from ...core.sharding import coordinates, local_spec
from ...core.spec import Spec
from .common_subexpressions import common_subexpressions
from .dead_code import dead_code


def is_global(graph: Graph) -> bool:
    """True if a value of the graph is a global tensor, or an op communicates."""
    sources = (*graph.inputs, *graph.states)
    values = any([spec.placement is not None for node in (*sources, *graph.nodes) for spec in node.out_specs])
    return values or any([node.op.communicates for node in graph.nodes])


def localize(graph: Graph) -> Graph:
    """The graph on the local arrays of this rank. An op on other ranks disappears: its results have no elements.

    First what is redundant on every rank is removed; later passes see the graph of one rank.
    """
    return Localization(dead_code(common_subexpressions(graph)), current_context().rank).result()


class Localization:
    """moved: global value -> its local one.  twins: node -> the local one.  last: result of the last op that
    communicates.
    """

    def __init__(self, graph: Graph, rank: int):
        self.graph, self.rank = graph, rank
        self.moved: dict[Value, Value] = {}
        self.twins: dict[Node, Node] = {}
        self.nodes: list[Node] = []
        self.constants: list[Source] = []
        self.last: Value | None = None

    def result(self) -> Graph:
        graph, moved = self.graph, self.moved
        sources = {source: self.local_source(source) for source in (*graph.inputs, *graph.states)}
        for node in graph.nodes:
            self.add(node)
        updates = {sources[s]: moved.get(v, v) for s, v in graph.updates.items() if self.is_here(s.out_specs)}
        return Graph(
            [sources[s] for s in graph.inputs],
            self.nodes,
            [moved.get(v, v) for v in graph.outputs],
            [*[sources[s] for s in graph.states], *self.constants],
            updates,
        )

    def is_here(self, specs: Sequence[Spec]) -> bool:
        """True if values with these specs have elements on this rank."""
        return any([s.placement is None or coordinates(s.placement, self.rank) is not None for s in specs])

    def local_source(self, source: Source) -> Source:
        """The source with the spec of its local array; `origin` is the source of the program."""
        spec = source.out_specs[0]
        if spec.placement is None:
            return source
        local = Source(source.op, local_spec(spec, self.rank), array=source.array, read=source.read, name=source.name)
        local.origin, local.link = source, source.link
        self.moved[Value(source, 0, spec)] = Value(local, 0, local.out_specs[0])
        return local

    def add(self, node: Node) -> None:
        """Add the local node of a node, or find its results without one."""
        inputs = [self.moved.get(x, x) if x.__class__ is Value else x for x in node.inputs]
        specs = tuple([local_spec(s, self.rank) for s in node.out_specs])
        if node.op in (as_global, as_local) and inputs[0].spec is specs[0]:
            self.moved[outputs_of(node)[0]] = inputs[0]
        elif not node.op.communicates and not self.is_here(node.out_specs):
            for value, spec in zip(outputs_of(node), specs):
                constant = Source(CONSTANT, spec, array=empty(spec), name="on other ranks")
                self.constants.append(constant)
                self.moved[value] = Value(constant, 0, spec)
        else:
            if node.op.communicates and self.last is not None:
                inputs[0] = self.after_last(node, inputs[0])
            local = self.local_node(node, inputs, specs)
            self.nodes.append(local)
            self.moved.update(zip(outputs_of(node), outputs_of(local)))
            if node.op.communicates:
                self.last = outputs_of(local)[0]

    def after_last(self, node: Node, x: Value) -> Value:
        """The input of a node that communicates, as a value that exists once the last one has run."""
        order = Node(in_order, [x, self.last], {}, (x.spec,), 0, (), node.scope, node.where)
        order.origin = self.twins.get(node.origin, node.origin)
        self.nodes.append(order)
        return outputs_of(order)[0]

    def local_node(self, node: Node, inputs: list, specs: tuple[Spec, ...]) -> Node:
        """The node on local arrays. A local node stays the same object if its inputs do."""
        origin, attrs = self.twins.get(node.origin, node.origin), node.attrs
        if origin is node.origin and specs == node.out_specs and all(a is b for a, b in zip(inputs, node.inputs)):
            return node
        everything = [x.spec for x in node.inputs if x.__class__ is Value] + list(node.out_specs)
        if node.op.custom_backward is None and any([s.placement is not None for s in everything]):
            attrs = infer(node.op, node.inputs, attrs)[2].local(self.rank)[0]
        local = self.twins[node] = node.replace(inputs, origin)
        local.attrs, local.out_specs = attrs, specs
        return local
