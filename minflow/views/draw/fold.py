"""Fold a large record: merge adjacent nodes of one module into one box until few enough boxes are left.

Only nodes that are adjacent in an execution order are merged, so folding cannot create a cycle. Read next:
`../text/listing.py`, `dot.py`.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from heapq import heappop, heappush

from .. import MAX_BOXES as MAX_BOXES
from ..records.graph import GraphRecord, Input, NodeRecord, module_name
from ..records.tape import TapeRecord

MAX_TREE_LINES = 200  # limit of a text tree
NEARBY_BOXES = 12  # boxes in a picture about one node
MIN_MODULE_BOXES = 6  # a fold by module with fewer boxes shows too little
MAX_NAMED_OPS = 3  # operations that a box names
OPENED_BOXES = 8  # parts of opened operations that are not folded, as a multiple of the limit


def fold(record: TapeRecord | GraphRecord, limit: int = MAX_BOXES) -> TapeRecord | GraphRecord:
    """The record with at most about `limit` boxes, and a `note` that says what was folded.

    Folds by module, as deep as fits; if modules do not help, keeps the operations nearest to the result and merges
    the earlier ones into one box. Opened operations are not folded, and do not count, unless there are too many.
    """
    total = len(record.nodes)
    opened = {n.id for n in record.nodes if n.whole}
    opened = opened if len(opened) <= OPENED_BOXES * limit else set()
    if total - len(opened) <= limit:
        return record
    graph = isinstance(record, GraphRecord)
    if graph:
        record = mergeable_order(record)
    # inputs are never merged
    alone = {n.id for n in record.nodes if n.kind == "input"} | opened
    scopes = {n.id: (n.id,) if n.id in alone else tuple(scope_levels(n.scope)) for n in record.nodes}
    for depth, inner in depths_to_try(record.nodes, scopes, limit + len(opened), graph):
        at = {n.id: scopes[n.id][: inner if n.phase else depth] for n in record.nodes}
        keys = {n.id: (n.mark, n.phase, *at[n.id]) for n in record.nodes}
        nodes = grouped_order(record.nodes, keys) if graph else record.nodes
        runs = equal_runs([keys[n.id] for n in nodes])
        if 3 <= len(runs) <= limit + len(opened):
            shown = [at[nodes[run[0]].id] for run in runs]
            single = {nodes[run[0]].id for run, scope in zip(runs, shown) if len(run) == 1 and shown.count(scope) == 1}
            single -= opened
            nodes = tuple(name_by_module(n, inner if n.phase else depth) if n.id in single else n for n in nodes)
            return merge_runs(replace(record, nodes=nodes), runs, "by module")
    others = [i for i, n in enumerate(record.nodes) if n.id not in opened]
    late = others[-max(limit - 1, 1)]
    runs = equal_runs([(n.id,) if i >= late or n.id in opened else () for i, n in enumerate(record.nodes)])
    return merge_runs(record, runs, "all but the last ones")


def depths_to_try(nodes: tuple[NodeRecord, ...], scopes: dict[str, tuple[str, ...]], limit: int, graph: bool):
    """Yield pairs (module depth of forward, module depth of backward and optimizer), best first: forward is opened as
    deep as fits, even if backward has to stay closed.

    The number of modules is a lower bound of the number of boxes, so depths with too many modules are skipped:
    100 nested modules would give thousands of pairs.
    """
    deepest = max(len(scopes[n.id]) if n.scope else 0 for n in nodes)
    depths = range(deepest, 0, -1)

    def modules(depth: int, phased: bool) -> int:
        return len({(n.mark, n.phase, *scopes[n.id][:depth]) for n in nodes if bool(n.phase) is phased})

    own, derived = ({depth: modules(depth, phased) for depth in depths} for phased in (False, True))
    for depth in depths:
        for inner in range(depth, 0, -1) if graph else (depth,):
            if own[depth] + derived[inner] <= limit:
                yield depth, inner


def mergeable_order(record: GraphRecord) -> GraphRecord:
    """The same graph in an order that allows more merging: each state just before its first reader, with that reader's
    scope; the optimizer at the end, however early a pass runs it; copies of gradients at the end count as backward.
    """
    nodes = {n.id: n for n in record.nodes}
    for n in record.nodes:
        source = nodes.get(n.inputs[0].ref) if n.inputs else None
        if source and source.phase == "backward" and not n.phase and not n.scope:
            nodes[n.id] = replace(n, scope=source.scope, phase="backward")
    record = replace(record, nodes=tuple(nodes.values()))
    late = {n.id for n in record.nodes if n.phase == "optimizer"}
    if any(x.ref in late for n in record.nodes if n.id not in late for x in n.inputs):
        late = set()  # the program reads results of the optimizer
    order: dict[str, NodeRecord] = {n.id: n for n in record.nodes if n.kind == "input"}
    for n in sorted(record.nodes, key=lambda n: n.id in late):
        if n.kind in ("input", "state"):
            continue
        for x in n.inputs:
            if x.ref and x.ref not in order:  # a state; every other input precedes its reader
                order[x.ref] = replace(
                    nodes[x.ref], scope=n.state_scope, phase=n.phase, mark=n.mark if n.mark == "equal" else ""
                )
        order[n.id] = n
    for n in record.nodes:
        order.setdefault(n.id, n)
    return replace(record, nodes=tuple(order.values()))


def grouped_order(nodes: tuple[NodeRecord, ...], keys: dict[str, tuple[str, ...]]) -> tuple[NodeRecord, ...]:
    """Another valid execution order: each step takes a ready node with the key of its predecessor, or else the first
    remaining one. So a module stays together even if a pass moved one of its operations.
    """
    left = {n.id: len({x.ref for x in n.inputs if x.ref}) for n in nodes}
    users: dict[str, list[int]] = {}
    for i, n in enumerate(nodes):
        for ref in {x.ref for x in n.inputs if x.ref}:
            users.setdefault(ref, []).append(i)
    ready: dict[tuple[str, ...], list[int]] = {}
    for i, n in enumerate(nodes):
        if not left[n.id]:
            ready.setdefault(keys[n.id], []).append(i)  # in ascending order, so already a heap
    done: set[int] = set()
    order: list[NodeRecord] = []
    first, key = 0, ()
    while len(order) < len(nodes):
        while first in done:
            first += 1
        key = key if ready.get(key) else keys[nodes[first].id]
        at = heappop(ready[key])
        done.add(at)
        order.append(nodes[at])
        for i in users.get(nodes[at].id, ()):
            left[nodes[i].id] -= 1
            if not left[nodes[i].id]:
                heappush(ready.setdefault(keys[nodes[i].id], []), i)
    return tuple(order)


def scope_levels(scope: str) -> list[str]:
    """The modules of a scope, outermost first, and the function in the last: "model", ".fc1", "/gelu"."""
    return re.split(r"(?<=.)(?=[./])", scope)


def name_by_module(node: NodeRecord, depth: int) -> NodeRecord:
    """Name a module of one operation like the folded boxes around it, instead of drawing a frame."""
    modules = scope_levels(node.scope)
    if node.kind != "op" or not node.scope or len(modules) < depth:
        return node
    name = f"{module_name([module.lstrip('./') for module in modules[:depth]])} {node.phase}".strip()
    label = node.label if node.label == name else f"{name}: {node.label}"
    return replace(node, label=label, scope="".join(modules[: depth - 1]))


def equal_runs(keys: list[tuple[str, ...]]) -> list[range]:
    """Ranges of adjacent positions with equal keys."""
    ends = itertools.accumulate([len(list(run)) for _, run in itertools.groupby(keys)], initial=0)
    return [range(start, end) for start, end in itertools.pairwise(ends)]


def merge_runs(record: TapeRecord | GraphRecord, runs: list[range], how: str) -> TapeRecord | GraphRecord:
    """Replace each run of more than one node with one box."""
    nodes = record.nodes
    by_id = {n.id: n for n in nodes}
    new_id = {nodes[i].id: nodes[run[0]].id if len(run) == 1 else f"f{run[0]}" for run in runs for i in run}
    run_of = {nodes[i].id: k for k, run in enumerate(runs) for i in run}
    # values that cross boxes
    read = {(x.ref, x.index) for n in nodes for x in n.inputs if x.ref and run_of[x.ref] != run_of[n.id]}
    read |= set(record.outputs)
    updates = {update[1:] for update in record.updates} - read  # new values of states, without other users
    read |= updates
    # Outputs of folded boxes: (old node, old output) -> (box, output index).
    places: dict[tuple[str, int], tuple[str, int]] = {}
    boxes: list[NodeRecord] = []
    for run in runs:
        if len(run) == 1:
            boxes.append(nodes[run[0]])
            continue
        members = [nodes[i] for i in run]
        inside = {n.id for n in members}
        outs = [(n.id, k, spec) for n in members[::-1] for k, spec in enumerate(n.outs) if (n.id, k) in read]
        # the last result first, then the new values of states, then leaves and states
        outs.sort(key=lambda out: (by_id[out[0]].kind != "op", out[:2] in updates))
        held = sum(by_id[id].kind != "op" for id, *_ in outs)
        for place, (id, k, _) in enumerate(outs):
            places[id, k] = new_id[id], place
        rest = "operations" if how == "by module" else "earlier operations"
        boxes.append(folded_box(members, new_id[members[0].id], inside, tuple(spec for *_, spec in outs), rest, held))

    def moved(x: Input) -> Input:
        ref, index = places.get((x.ref, x.index), (new_id.get(x.ref, ""), x.index))
        return x._replace(ref=ref, index=index)

    boxes = move_into_frames(boxes, {b.id: common_scope([nodes[i].scope for i in run]) for b, run in zip(boxes, runs)})
    boxes = [replace(b, inputs=unique_inputs(map(moved, b.inputs), b.kind == "folded")) for b in boxes]
    gone = len(nodes) - len(boxes)
    note = (
        f"{len(nodes)} nodes are shown as {len(boxes)} boxes: {gone + sum(len(r) > 1 for r in runs)} are folded, {how}"
    )

    def output(id: str, index: int) -> tuple[str, int]:
        return places.get((id, index), (new_id[id], index))

    if isinstance(record, TapeRecord):
        root, index = output(record.root, record.index)
        return TapeRecord(tuple(boxes), root, index, record.title, note)
    return GraphRecord(
        tuple(boxes),
        tuple(output(*o) for o in record.outputs),
        tuple((new_id[s], *output(i, k)) for s, i, k in record.updates),
        record.title,
        note,
    )


def move_into_frames(boxes: list[NodeRecord], scopes: dict[str, str]) -> list[NodeRecord]:
    """Put a folded box of a module's own operations into the frame of that module. scopes: id -> module."""
    frames = {
        "".join(parts[:k])
        for parts in (scope_levels(b.scope) for b in boxes if not b.phase)
        for k in range(1, len(parts) + 1)
    }
    return [
        replace(b, scope=scopes[b.id])
        if b.kind == "folded" and not b.phase and scopes[b.id] and scopes[b.id] in frames
        else b
        for b in boxes
    ]


def folded_box(
    members: list[NodeRecord], id: str, inside: set[str], outs: tuple[str, ...], rest: str, held: int
) -> NodeRecord:
    """The box that replaces its members. rest: its name if they share no module."""
    ops = [n for n in members if n.kind == "op"]
    count = sum(n.count for n in members if n.kind in ("op", "folded"))
    scope = common_scope([n.scope for n in members])
    states = sum(n.hidden or n.kind not in ("op", "folded", "constant") for n in members)
    phases = {n.phase for n in members}
    phase = phases.pop() if len(phases) == 1 else ""
    label = f"{module_name([level.lstrip('./') for level in scope_levels(scope)])} {phase}".strip() or rest
    kind = "states" if any(n.kind == "state" for n in members) else "parameters"
    named = count == len(ops) <= MAX_NAMED_OPS and not phase
    attrs = ", ".join(n.label for n in ops) if named else f"{count} operation{'s' * (count != 1)}"
    attrs += f", {states} {kind[: None if states > 1 else -1]}" if states else ""
    return NodeRecord(
        id=id,
        kind="folded",
        label=label,
        outs=outs,
        inputs=tuple(x for n in members for x in n.inputs if x.ref and x.ref not in inside),
        attrs=attrs,
        scope="".join(scope_levels(scope)[:-1]),
        needs=any(n.needs for n in members),
        count=count,
        phase=phase,
        held=held,
        mark=members[0].mark if len({n.mark for n in members}) == 1 else "",
        sent=sum(n.sent for n in members),
    )


def common_scope(scopes: list[str]) -> str:
    """The innermost module that contains all scopes."""
    levels = zip(*[scope_levels(s) for s in dict.fromkeys(scopes)])
    return "".join([level[0] for level in itertools.takewhile(lambda level: len(set(level)) == 1, levels)])


def unique_inputs(inputs, folded: bool) -> tuple[Input, ...]:
    """Inputs without duplicates and names for a folded box; unchanged for others."""
    if not folded:
        return tuple(inputs)
    return tuple({(x.ref, x.index): x._replace(name="") for x in inputs}.values())


def fold_near_end(graph: GraphRecord | TapeRecord, limit: int = NEARBY_BOXES) -> GraphRecord | TapeRecord:
    """The graph with few boxes: its modules, or if there are too many, the last ones before the node that the picture
    is about.
    """
    folded = fold(graph, limit)
    if len(folded.nodes) >= MIN_MODULE_BOXES or len(graph.nodes) <= limit:
        return folded
    keep = limit - 2
    fine = fold(graph, 20 * limit)
    if len(fine.nodes) <= keep + 1:  # too few modules to be useful: keep the last operations
        fine = mergeable_order(graph) if isinstance(graph, GraphRecord) else graph
    total = len(fine.nodes)
    runs = [range(0, total - keep), *(range(i, i + 1) for i in range(total - keep, total))]
    return merge_runs(fine, runs, "all but the last ones")
