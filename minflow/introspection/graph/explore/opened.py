"""Composite operations that the explorer opens: the graph with their parts, and the values inside, which are computed
on demand.

Read next: `explorer_model.py`, which makes records of these graphs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ....compiler.executor import run_node
from ....compiler.passes.decomposition import template_of
from ....compiler.plan_cache import CompiledPart
from ....core.backend import Array, is_array
from ....core.ir import Graph as IR, Node, Source, Value, outputs_of, values_among
from ....views.records.opening import open_nodes


class OpenedGraph(NamedTuple):
    """The graph of a stage in which composite operations are opened.

    was: new node -> the node of the stage that it copies.  scopes: opened node -> scope of its parts.
    names: part -> its name.  results: (part, output) -> (name of the opened operation, output).
    """

    graph: IR
    was: dict[Node, Node]
    scopes: dict[Node, str]
    names: dict[Node, str]
    results: dict[tuple[Node, int], tuple[str, int]]


def open_graph(part: CompiledPart, graph: IR, names: frozenset[str]) -> OpenedGraph:
    """Open the composite operations of these names, and their gradients."""
    chosen = [node for node in graph.nodes if names and is_chosen(part, node, names)]
    if not chosen:
        return OpenedGraph(graph, {}, {}, {}, {})
    opened, scopes = open_nodes(graph, chosen)
    kept = [node for node in opened.nodes if node.whole not in scopes]
    was = dict(zip(kept, [node for node in graph.nodes if node not in scopes]))
    inner = {(node.whole, node.number): node for node in opened.nodes if node.whole in scopes}
    part_names: dict[Node, str] = {}
    results: dict[tuple[Node, int], tuple[str, int]] = {}
    for node in chosen:
        listed = template_of(node).graph
        numbers = numbers_of(node, len(listed.nodes))
        found = {n: inner[node, number] for n, number in zip(listed.nodes, numbers) if (node, number) in inner}
        part_names |= {found[n]: name for n, name in zip(listed.nodes, names_inside(part, node)) if n in found}
        for k, value in enumerate(listed.outputs):
            if value.node in found:
                results[found[value.node], value.index] = part.name_of(node), k
    return OpenedGraph(opened, was, scopes, part_names, results)


def is_chosen(part: CompiledPart, node: Node, names: frozenset[str]) -> bool:
    """True for a composite node with one of these names, and for the gradient of one."""
    if not node.op.composite or node.number is None:
        return False
    forward = node.origin if node.op.gradient_of is not None else node
    return isinstance(forward, Node) and part.name_of(forward) in names


def numbers_of(node: Node, count: int) -> list[float]:
    """The numbers of the parts of a composite node, as `expand` gives them."""
    return [node.number + k / (count + 1) for k in range(1, count + 1)]


def names_inside(part: CompiledPart, node: Node) -> list[str]:
    """The names of the parts of a composite node: those of a later stage, if a pass opens it there."""
    inner, whole = template_of(node).graph.nodes, part.name_of(node)
    counts: dict[str, int] = {}
    names = []
    for inside, number in zip(inner, numbers_of(node, len(inner))):
        count = counts[str(inside.op)] = counts.get(str(inside.op), -1) + 1
        names.append(part.by_number.get(number) or f"{whole}/{inside.op}-{count}")
    return names


def values_inside(part: CompiledPart, node: Node, arrays: list) -> Iterator[tuple[str, list[Array]]]:
    """Run the parts of a composite node on these inputs. Yield the name of each, and its results."""
    inputs, graph = template_of(node)
    known: dict[Value, Any] = {Value(s, 0, s.out_specs[0]): s.array for s in graph.states}
    known |= zip(inputs, [x for x in arrays if is_array(x)])
    for inside, name in zip(graph.nodes, names_inside(part, node)):
        outs = run_node(inside, [known[x] if x.__class__ is Value else x for x in inside.inputs])
        known |= zip(outputs_of(inside), outs)
        yield name, outs


class InputCopies:
    """Copies of what some nodes of a plan read, made during a run: later calls may overwrite it.

    arrays: value -> copy.
    """

    def __init__(self, part: CompiledPart, nodes: list[Node], inputs: list[Array]):
        self.part, self.arrays = part, dict[Value, Array]()
        self.given: dict[Node, Array] = dict(zip(part.graph.inputs, inputs))
        self.wanted: dict[Node, list[Value]] = {}  # the node after whose call a value is known -> values
        called = set(part.plan.nodes)
        for x in values_among([x for node in nodes for x in node.inputs]):
            maker = part.plan.uses.root[x].node if x.node.op.is_view and x.node not in called else x.node
            if isinstance(maker, Source):
                self.arrays[x] = self.of_source(x)
            else:
                self.wanted.setdefault(maker, []).append(x)

    def of_source(self, x: Value) -> Array:
        """An input or state, or a view of one."""
        node: Any = x.node
        if isinstance(node, Source):
            return self.given[node] if node in self.given else node.array.copy()
        base = self.of_source(node.inputs[0])
        return run_node(node, [base])[0] if len(node.op.inputs) == 1 else base

    def after(self, node: Node) -> None:
        """Copy the results of this call, and of views of them."""
        for x in self.wanted.get(node, ()):
            self.arrays[x] = self.part.plan.array_of(x).copy()

    def of(self, node: Node) -> list:
        """The inputs of a node, as arrays and numbers."""
        return [self.arrays[x] if x.__class__ is Value else x for x in node.inputs]
