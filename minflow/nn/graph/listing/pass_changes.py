"""What a pass did to a graph: which operations are new, changed, moved or gone.

An operation stays itself by its number in the trace, or, where a pass made it, by what it is and where it stands. Knows
nothing of pictures. Read next: `../explore/subject.py`, where the explorer's records are made of it.
"""

from __future__ import annotations

from bisect import bisect_left

from ....core.ir import Graph as IR
from ....core.ir import Node, Value


def differences(before: IR, now: IR) -> tuple[dict[Node, str], list[Node]]:
    """What a pass did: node -> "new", "changed" or "moved", and the nodes that are gone, in order."""
    old, new = keys_of(before.nodes), keys_of(now.nodes)
    old_at = {key: i for i, key in enumerate(old.values())}
    known = set(new.values())
    marks: dict[Node, str] = {}
    common = []
    old_node = {key: node for node, key in old.items()}
    for node, key in new.items():
        if key not in old_at:
            marks[node] = "new"
        else:
            common.append((node, old_at[key]))
            if said(node, new) != said(old_node[key], old):
                marks[node] = "changed"
    for node in moved(common):
        marks.setdefault(node, "moved")
    return marks, [node for node, key in old.items() if key not in known]


def keys_of(nodes: list[Node]) -> dict[Node, tuple]:
    """A name for each node that stays its own through passes."""
    counts: dict[tuple, int] = {}
    found = {}
    for node in nodes:
        origin = node.origin.number if isinstance(node.origin, Node) else node.origin
        key: tuple = (node.number,)
        if node.number is None or node.phase == "recompute":
            key = node.number, str(node.op), node.scope, origin
        count = counts[key] = counts.get(key, 0) + 1
        found[node] = (*key, count)
    return found


def said(node: Node, keys: dict[Node, tuple]) -> tuple:
    inputs = tuple([(keys.get(x.node, id(x.node)), x.index) if x.__class__ is Value else x for x in node.inputs])
    return str(node.op), inputs, node.out_specs, repr(node.attrs) if node.attrs else ""


def moved(common: list[tuple[Node, int]]) -> list[Node]:
    """The nodes that do not stand in the longest part that kept its order."""
    tails: list[int] = []
    ends: list[int] = []  # position in `common` of each tail
    back: list[int] = []
    for i, (_, at) in enumerate(common):
        k = bisect_left(tails, at)
        back.append(ends[k - 1] if k else -1)
        tails[k:k + 1] = [at]
        ends[k:k + 1] = [i]
    kept, i = set(), ends[-1] if ends else -1
    while i >= 0:
        kept.add(i)
        i = back[i]
    return [node for i, (node, _) in enumerate(common) if i not in kept]
