"""The effect of a pass on a graph: which operations are new, changed, moved or gone.

An operation is identified by its number in the trace, or, if a pass added it, by its op and its position. Read next:
`reports.py`, whose `stages()` and `changes()` these are; `../explore/explorer_model.py`, which marks records.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ....compiler.buffer_assignment import Layout
from ....compiler.plan_cache import CompiledPart
from ....core.ir import Graph as IR, Node, Value


class PassChanges(NamedTuple):
    """marks: node -> "new", "changed" or "moved". gone: the nodes that were removed, in order.

    kept_order: old node -> new node, for those that kept their order.
    """

    before: list[Node]
    after: list[Node]
    marks: dict[Node, str]
    gone: list[Node]
    kept_order: dict[Node, Node]

    def lines(self, text: Callable[[Node], str]) -> Iterator[tuple[str, str]]:
        """(" ", "-" or "+", text) of every node, before and after in one list."""
        stays = {old: new for old, new in self.kept_order.items() if text(old) == text(new)}
        added = iter(self.after)
        for old in self.before:
            if old in stays:
                new = itertools.takewhile(lambda node, end=stays[old]: node is not end, added)
                yield from [("+", text(node)) for node in new]
            yield " " if old in stays else "-", text(old)
        yield from [("+", text(new)) for new in added]


def changes_of(before: IR, now: IR) -> PassChanges:
    """The effect of a pass, from the graphs before and after it."""
    old, new = keys_of(before.nodes), keys_of(now.nodes)
    old_at = {key: i for i, key in enumerate(old.values())}
    old_node = {key: node for node, key in old.items()}
    common = [(node, old_at[key]) for node, key in new.items() if key in old_at]
    marks = {node: "new" for node, key in new.items() if key not in old_at}
    marks |= {
        node: "changed" for node, _ in common if node_content(node, new) != node_content(old_node[new[node]], old)
    }
    kept = longest_kept_order(common)
    for node, _ in common:
        if node not in kept:
            marks.setdefault(node, "moved")
    known = set(new.values())
    gone = [node for node, key in old.items() if key not in known]
    return PassChanges(before.nodes, now.nodes, marks, gone, {old_node[new[node]]: node for node in kept})


def arena_after(part: CompiledPart, at: int) -> int:
    """Bytes of the arena in a plan of the graph after this many passes."""
    graph = part.stages[min(at, len(part.stages) - 1)].graph
    return (
        part.plan if graph is part.graph else Layout(graph, len(part.plan.kept), platforms=part.platforms)
    ).arena_bytes


def keys_of(nodes: list[Node]) -> dict[Node, tuple]:
    """node -> a key that passes do not change."""
    counts: dict[tuple, int] = {}
    keys = {}
    for node in nodes:
        origin = node.origin.number if isinstance(node.origin, Node) else node.origin
        key: tuple = (node.number,)
        if node.number is None or node.phase == "recompute":
            key = node.number, str(node.op), node.scope, origin
        count = counts[key] = counts.get(key, 0) + 1
        keys[node] = (*key, count)
    return keys


def node_content(node: Node, keys: dict[Node, tuple]) -> tuple:
    inputs = tuple([(keys.get(x.node, id(x.node)), x.index) if x.__class__ is Value else x for x in node.inputs])
    return str(node.op), inputs, node.out_specs, repr(node.attrs) if node.attrs else ""


def longest_kept_order(common: list[tuple[Node, int]]) -> dict[Node, None]:
    """The nodes of the longest subsequence that kept its order. common: (node, its position before)."""
    tails: list[int] = []
    ends: list[int] = []  # position in `common` of the last node of each length
    back: list[int] = []
    for i, (_, at) in enumerate(common):
        k = bisect_left(tails, at)
        back.append(ends[k - 1] if k else -1)
        tails[k : k + 1] = [at]
        ends[k : k + 1] = [i]
    kept: dict[Node, None] = {}
    i = ends[-1] if ends else -1
    while i >= 0:
        kept[common[i][0]] = None
        i = back[i]
    return kept
