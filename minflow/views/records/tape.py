"""The tape of a tensor as a record. A tensor is anything with `.spec` and `._value`.

All walks are iterative, so a tape of 20,000 ops needs no deeper stack than one of two. Read next: `../text/listing.py`,
a record as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...core.ir import CONSTANT, INPUT, FreedMarker, Graph, Node, Source, Value, where_text
from .arrays import gradient_text, numbers_text
from .graph import NodeRecord, first_users, module_name, op_record, walk, whole_of
from .opening import Opening

MAX_NODES = 5_000  # nodes of a tape that get a record each; earlier ones share one box


@dataclass(frozen=True)
class TapeRecord:
    """The tape of a tensor. nodes: inputs before users; `root` computed the tensor, as its output `index`."""

    nodes: tuple[NodeRecord, ...]
    root: str
    index: int
    title: str
    note: str = ""

    @property
    def outputs(self) -> tuple[tuple[str, int], ...]:
        return ((self.root, self.index),) if self.root else ()

    @property
    def updates(self) -> tuple[tuple[str, str, int], ...]:
        return ()


def tape_record(
    tensor: Any,
    *,
    values: bool = False,
    names: Mapping[int, str] | None = None,
    title: str = "",
    tensors: Mapping[str, Any] | None = None,
    opening: Opening | None = None,
) -> TapeRecord:
    """Record of a tensor's tape. values: include elements and gradients of leaves, of the tensor and of `tensors`.

    names: `id(tensor)` -> the learner's name, for leaves that are not parameters of a module.  tensors: the learner's
    variables, name -> tensor: intermediate results that still have a name.  opening: composite operations to open.
    """
    names = names or {}
    title = title or f"tape of {names.get(id(tensor), '')} {tensor.spec}".replace("  ", " ")
    if tensor._value is None:
        return TapeRecord((), "", 0, title, "none of its inputs requires a gradient, so nothing was recorded")
    value: Value = tensor._value
    order = walk([value.node])
    freed = (
        next((node.saved.where for node in reversed(order) if node.saved.__class__ is FreedMarker), None)
        if values
        else None
    )
    named = named_results(tensors) if values and tensors else {}
    if opening:
        tape = Graph([], [n for n in order if not isinstance(n, Source)], [value, *named])
        value, *results = opening.expand(tape).outputs
        named, order = dict(zip(results, named.values())), walk([value.node])
    nodes, order, inside, places = early_box(order)
    ids = {**inside, **{node: f"n{i}" for i, node in enumerate(order)}}
    users = first_users(order)
    held = {x.node: found for x, found in named.items()}
    for node in order:
        if isinstance(node, Source):
            user = users.get(node)
            whole = whole_of(user, opening) if user is not None else None
            scope = whole.scope if whole else user.scope if user is not None else ""
            if node.op in (INPUT, CONSTANT):  # of an opened operation: an input without a gradient, a constant inside
                scope = user.scope if user is not None and node.op is CONSTANT else ""
                record = NodeRecord(ids[node], "constant", node.name, tuple(map(str, node.out_specs)), scope=scope)
            else:
                record = leaf_record(node, ids[node], scope, names, values)
        else:
            record = op_record(node, ids, places, opening)
        if values and node is value.node:
            record = with_numbers(record, tensor, not isinstance(node, Source))
        elif node in held:
            name, result = held[node]
            record = with_numbers(record, result, True)
            record = replace(record, value=f"{name} = {record.value}")
        nodes.append(record)
    note = (
        f"backward ran at {where_text(freed)}; h.retain_grad() before it keeps the gradient of a computed h too"
        if freed
        else ""
    )
    return TapeRecord(tuple(nodes), ids[value.node], value.index, title, note)


def early_box(order: list[Node]) -> tuple[list[NodeRecord], list[Node], dict[Node, str], dict[Value, int]]:
    """Merge the early nodes of a long tape into one box. Return the box, the other nodes, the box's id for each merged
    node, and the output index of each merged value with users outside. Leaves with users outside are not merged.
    """
    late = order[-MAX_NODES:]
    read = {x: None for node in late for x in node.inputs if x.__class__ is Value}
    early = [
        node
        for node in order[:-MAX_NODES]
        if not (isinstance(node, Source) and Value(node, 0, node.out_specs[0]) in read)
    ]
    if not early:
        return [], order, {}, {}
    inside = dict.fromkeys(early, "f0")
    places = {x: i for i, x in enumerate([x for x in read if x.node in inside])}
    leaves = sum(isinstance(node, Source) for node in early)
    ops = len(early) - leaves
    attrs = f"{ops} operations" + f", {leaves} parameter{'s' * (leaves != 1)}" * bool(leaves)
    box = NodeRecord(
        "f0",
        "folded",
        "earlier operations",
        tuple([str(x.spec) for x in places]),
        attrs=attrs,
        count=ops,
        hidden=leaves,
    )
    return [box], [node for node in order if node not in inside], inside, places


def named_results(tensors: Mapping[str, Any]) -> dict[Value, tuple[str, Any]]:
    """Value -> (name, tensor), for the tensors that were computed by an op."""
    results: dict[Value, tuple[str, Any]] = {}
    for name, x in tensors.items():
        node = getattr(getattr(x, "_value", None), "node", None)
        if node is not None and not isinstance(node, Source) and len(node.out_specs) == 1 and x._alias is None:
            results.setdefault(x._value, (name, x))
    return results


def leaf_record(node: Source, id: str, scope: str, names: Mapping[int, str], values: bool) -> NodeRecord:
    tensor = node.tensor()
    name = leaf_name(node, tensor, scope, names)
    record = NodeRecord(id, "leaf", name, tuple(map(str, node.out_specs)), scope=scope)
    return with_numbers(record, tensor, True) if values else record


def leaf_name(node: Source, tensor: Any, scope: str, names: Mapping[int, str]) -> str:
    """ "fc1.weight" for a parameter used inside fc1 (or a function there), else the learner's name, else empty."""
    label = getattr(tensor, "_label", "") or ""
    if label:
        module = module_name(scope.partition("/")[0].split("."))
        return f"{module}.{label}" if module else label
    return names.get(id(tensor), "") or node.name or "leaf"


def with_numbers(record: NodeRecord, tensor: Any, gradient: bool) -> NodeRecord:
    if tensor is None:
        return replace(record, value="(its tensor is gone)")
    is_leaf = record.kind == "leaf"
    grad = getattr(tensor, "_gradient", None) if gradient else None
    gradient = gradient_text(grad.array) if grad is not None else "none yet" if is_leaf else ""
    return replace(record, value=numbers_text(tensor.array), grad=gradient)


def names_in(namespace: Mapping[str, Any]) -> dict[int, str]:
    """`id(tensor)` -> the learner's name for it. Names with a leading underscore are ignored."""
    names: dict[int, str] = {}
    for name, x in list(namespace.items()):
        if not name.startswith("_") and hasattr(type(x), "requires_grad") and hasattr(x, "spec"):
            names.setdefault(id(x), name)
    return names
