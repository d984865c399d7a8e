"""Composite operations that a view opens: in their place it has the operations of their decomposition.

Works on graphs; a tape is given as one. Read next: `../../compiler/passes/decomposition.py`, `expand`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ...core.base.errors import DTypeError
from ...core.ir import Graph, Node, Value, values_among


class Whole(NamedTuple):
    """An opened operation, for the records of its parts. scope: its own; inner: that of its parts; text: its line.

    name: that of the operation, if operations have names.
    """

    scope: str
    inner: str
    text: str
    name: str = ""


class Opening:
    """The choice of composite operations to open. names: None for all, else names of operations or paths of modules.

    caller: the function with the argument `open`, for messages.
    found: names that were met.  known: names of all composite operations that were met.
    scopes: opened node -> the scope of its parts.  fused: names of chosen operations whose parts run in fused ones.
    """

    def __init__(self, names: Any, caller: str = "show"):
        listed = (names,) if isinstance(names, str) else names
        if names is not True and not (isinstance(listed, Iterable) and all(isinstance(x, str) for x in listed)):
            what = f"{caller}: open must be True, a name or a list of names, got {names!r:.60}"
            raise DTypeError(what, hint='open=True, open="gelu" or open=["model.norm1"]')
        self.caller = caller
        self.names: tuple[str, ...] | None = None if names is True else tuple(listed)
        self.found: set[str] = set()
        self.known: dict[str, None] = {}
        self.scopes: dict[Node, str] = {}
        self.fused: dict[str, None] = {}

    def chooses(self, node: Node) -> bool:
        """True if a composite node is to be opened. A pass may have replaced it by its parts already."""
        whole = str(node.op.gradient_of or node.op)
        self.known[whole] = None
        if self.names is None:
            return True
        inside = [x for x in self.names if node.scope == x or node.scope.startswith((f"{x}.", f"{x}/"))]
        hits = {*inside, *({str(node.op), whole} & {*self.names})}
        self.found |= hits
        return bool(hits)

    def expand(self, graph: Graph) -> Graph:
        """The graph with the chosen operations opened, each in a scope of its own."""
        for node in graph.nodes:
            for part in node.parts or (node,):
                if part.whole is not None and self.chooses(part.whole) and node.parts:
                    self.fused[str(part.whole.op)] = None
        graph, scopes = open_nodes(graph, [node for node in graph.nodes if node.op.composite and self.chooses(node)])
        self.scopes |= scopes
        return graph

    @property
    def note(self) -> str:
        """A line on operations that cannot be opened."""
        names = ", ".join(self.fused)
        return f"parts of {names} are fused with others; explore(graph) opens them" if names else ""

    def check(self) -> None:
        """Raise DTypeError if a name was not met."""
        if wrong := self.mistake():
            raise wrong

    def mistake(self) -> DTypeError | None:
        """The error for a name that was not met."""
        wrong = [x for x in self.names or () if x not in self.found]
        if not wrong:
            return None
        known = ", ".join(self.known)
        hint = f"one of {known}; or the path of a module that calls them" if known else "it has none"
        return DTypeError(f"{self.caller}: no composite operation is called {wrong[0]!r}", hint=hint)


def open_nodes(graph: Graph, chosen: Iterable[Node]) -> tuple[Graph, dict[Node, str]]:
    """The graph with these nodes opened, and the scope of the parts of each: no two have the same."""
    from ...compiler.passes.decomposition import expand

    taken, scopes = {node.scope for node in graph.nodes}, dict[Node, str]()
    for node in chosen:
        scope, count = f"{node.scope}/{node.op}", 1
        while scope in taken:
            count += 1
            scope = f"{node.scope}/{node.op} {count}"
        taken.add(scope)
        scopes[node] = scope
    used = {x.node for x in values_of(graph.nodes, graph)}
    graph = expand(graph, scopes.__contains__, scopes.__getitem__)
    return without_unused(graph, {node for node in scopes if node in used}), scopes


def values_of(nodes: Iterable[Node], graph: Graph) -> Iterator[Value]:
    """The values that these nodes, and the ends of the graph, read."""
    yield from (*graph.outputs, *graph.updates.values())
    for node in nodes:
        yield from values_among(node.inputs)


def without_unused(graph: Graph, opened: set[Node]) -> Graph:
    """The graph without those parts of opened nodes that have no users, such as gradients that are not needed."""
    used, kept = {x.node for x in values_of((), graph)}, list[Node]()
    for node in reversed(graph.nodes):
        if node in used or node.whole not in opened:
            kept.append(node)
            used.update([x.node for x in values_among(node.inputs)])
    return Graph(graph.inputs, reversed(kept), graph.outputs, graph.states, graph.updates)
