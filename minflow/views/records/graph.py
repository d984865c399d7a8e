"""A traced program as plain frozen records with stable ids, and the description of an operation for tapes and graphs.

Only making a record touches live objects; text, DOT and HTML are pure functions of records. Works on Nodes and Specs,
not Tensors. Read next: `tape.py`; `../draw/fold.py`, which makes a large record small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...core.ir import Graph, Node, Source, Value, where_text
from ...core.spec import DType
from ..text.tables import cut
from .opening import Opening, Whole

# Default values of op attributes: these are not shown.
ATTR_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("ta", "tb", "keepdims", "ceil_mode", "descending", "maximize", "nesterov"), False),
    **dict.fromkeys(("axis", "divisor_override"), None),
    "stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1, "offset": 0, "ignore_index": -100,
    "reduction": "mean",
    "weight_decay": 0.0, "dampening": 0.0,
}  # fmt: skip
# name -> another value that is not shown; None: the attribute is never shown, it is used in messages only
HIDDEN_ATTRS = {"loss": None, "ignore_index": -(2**31), "ctx": None}
ATTR_WORDS = {"ta": "a transposed", "tb": "b transposed"}


class Input(NamedTuple):
    """One input of a node. `ref` is the id of the node that computes it; if none was recorded, `text` describes it."""

    name: str
    ref: str = ""
    index: int = 0
    text: str = ""


@dataclass(frozen=True)
class NodeRecord:
    """One box: an op, a leaf, an input or state of a graph, or many ops folded into one.

    label: name of the op or leaf.  outs: the spec of each output.  count: number of ops that it represents.
    needs: True if a gradient flows through it.  value, grad: abbreviated elements, if requested.
    phase: in a graph "backward", "recompute" or "optimizer"; empty for forward.
    held: of a folded box, how many of its last `outs` are leaves or states inside it.  hidden: all leaves inside it.
    mark: "failed" or "differs" for the one node that a picture is about, "equal" for nodes that were checked before it,
    "only" for nodes that the other side does not have, "ghost" for those that only the other side has.
    notes: lines of a marked node: got, expected, try.
    whole: of a part of an opened composite operation, that operation.
    sbp: of a global tensor, along each axis of ranks, `S(0), B`.  holders: the ranks of its slices.
    sent: bytes that one rank sends for boxing, at most.  copied: bytes that it copies to another device.
    """

    id: str
    kind: str  # "op", "leaf", "input", "state", "constant" or "folded"
    label: str
    outs: tuple[str, ...]
    inputs: tuple[Input, ...] = ()
    attrs: str = ""
    scope: str = ""
    where: str = ""
    needs: bool = True
    count: int = 1
    value: str = ""
    grad: str = ""
    phase: str = ""
    held: int = 0
    hidden: int = 0
    mark: str = ""
    notes: tuple[str, ...] = ()
    whole: Whole | None = None
    sbp: str = ""
    holders: str = ""
    sent: int = 0
    copied: int = 0

    @property
    def state_scope(self) -> str:
        """The scope of a state whose first user it is: that of the opened operation, of which the state is an input."""
        return self.whole.scope if self.whole else self.scope


@dataclass(frozen=True)
class GraphRecord:
    """A traced program. outputs: (node, output index).  updates: (state, node, output index)."""

    nodes: tuple[NodeRecord, ...]
    outputs: tuple[tuple[str, int], ...]
    updates: tuple[tuple[str, str, int], ...]
    title: str
    note: str = ""


@dataclass(frozen=True)
class PartsRecord:
    """Graphs that run in sequence in one call, such as micro-step and update of gradient accumulation."""

    parts: tuple[GraphRecord, ...]
    title: str

    @property
    def nodes(self) -> tuple[NodeRecord, ...]:
        return tuple(node for part in self.parts for node in part.nodes)


def walk(roots: Iterable[Node]) -> list[Node]:
    """The nodes that `roots` depend on, inputs before users and left before right; each leaf just before its first
    user.
    """
    order: list[Node] = []
    seen: set[Node] = set()
    stack = [(node, False) for node in roots]
    while stack:
        node, done = stack.pop()
        sources = [x.node for x in node.inputs if x.__class__ is Value]
        if done:
            for source in sources:
                if isinstance(source, Source) and source not in seen:
                    seen.add(source)
                    order.append(source)
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(x, False) for x in reversed(sources) if x not in seen and not isinstance(x, Source)]
    return order


def first_users(order: Iterable[Node]) -> dict[Node, Node]:
    """For each node with users, the first one."""
    users: dict[Node, Node] = {}
    for node in order:
        for x in node.inputs:
            if x.__class__ is Value:
                users.setdefault(x.node, node)
    return users


def op_record(
    node: Node, ids: Mapping[Node, str], places: Mapping[Value, int] | None = None, opening: Opening | None = None
) -> NodeRecord:
    """Record of a node. places: new index of each output that became an output of a folded box."""
    phase = "" if node.origin is None else node.phase
    return NodeRecord(**op_fields(node, ids, places or {}), phase=phase, whole=whole_of(node, opening))


def whole_of(node: Node, opening: Opening | None) -> Whole | None:
    """The opened operation that a node is a part of."""
    whole = node.whole
    if opening is None or whole is None or whole not in opening.scopes:
        return None
    return Whole(whole.scope, opening.scopes[whole], whole_text(whole))


def whole_text(node: Node) -> str:
    """The line of an opened operation: `layer_norm(axes=(-1,)) -> float32[4, 8]`."""
    attrs = attrs_text(node.attrs)
    return f"{node.op}{f'({attrs})' if attrs else ''} -> {', '.join(map(str, node.out_specs))}"


def op_fields(node: Node, ids: Mapping[Node, str], places: Mapping[Value, int], limit: int = 40) -> dict[str, Any]:
    """The fields that all records of an operation share. limit: characters of an attribute."""
    return dict(
        id=ids[node],
        kind="op",
        label=str(node.op),
        outs=tuple(map(str, node.out_specs)),
        inputs=tuple(
            Input(input_name(node, i), ids[x.node], places.get(x, x.index), str(x.spec))
            if x.__class__ is Value
            else Input(input_name(node, i), text=str(x))
            for i, x in enumerate(node.inputs)
        ),
        attrs=attrs_text(node.attrs, limit),
        scope=node.scope,
        where=where_text(node.where) if node.where else "",
        needs=bool(node.needs),
        copied=node.out_specs[0].nbytes if getattr(node.op, "moves", False) else 0,
    )


def attrs_text(attrs: Mapping[str, Any], limit: int = 40) -> str:
    """Attributes that differ from the default, flags in words: `b transposed`, `axis=(1,)`. limit: characters of
    each.
    """
    words = []
    for name, x in attrs.items():
        if name in HIDDEN_ATTRS and HIDDEN_ATTRS[name] in (None, x):
            continue
        if name == "path" or (name == "index" and isinstance(x, tuple)):  # of a write into a view; of a view
            words.append(cut(view_text(x) if name == "path" else index_brackets(x), limit))
            continue
        usual = name in ATTR_DEFAULTS and type(x) is type(ATTR_DEFAULTS[name]) and x == ATTR_DEFAULTS[name]
        if not usual or (name == "stride" and "kernel_size" in attrs):  # a pool strides by its kernel size by default
            words.append(
                ATTR_WORDS.get(name, name)
                if x is True and ATTR_DEFAULTS.get(name) is False
                else f"{name}={short_repr(x, limit)}"
            )
    return ", ".join(words)


def input_name(node: Node, i: int) -> str:
    names = getattr(node.op, "inputs", ())
    if names and names[0][:1] == "*":
        return f"{names[0][1:]}[{i}]"
    return names[i] if i < len(names) else f"input {i}"


def module_name(path: Sequence[str]) -> str:
    """The last name of a module path, with the name before an index: "blocks.0.1" for model.blocks.0.1."""
    first = len(path) - 1
    while first > 0 and path[first].isdigit():
        first -= 1
    return ".".join(path[max(first, 0) :])


def short_repr(x: Any, limit: int = 40) -> str:
    """The repr of an attribute, cut to a readable length."""
    return cut(x.name if isinstance(x, DType) else repr(x), limit)


def view_text(path: Sequence[tuple[Any, Mapping[str, Any]]]) -> str:
    """The views from a base to the part that is written, in Python syntax: `[0]`, `[1:, None]`, `.permute(1, 0)`."""
    return "".join(
        [
            index_brackets(attrs["index"])
            if "index" in attrs
            else f".{op.name}({', '.join(map(short_repr, attrs.values()))})"
            for op, attrs in path
        ]
    )


def index_brackets(index: tuple) -> str:
    return f"[{', '.join(map(index_text, index))}]"


def index_text(part: Any) -> str:
    """One part of an index; a slice is stored as (start, stop, step)."""
    if part is Ellipsis:
        return "..."
    if not isinstance(part, tuple):
        return repr(part)
    start, stop, step = ["" if x is None else str(x) for x in part]
    return f"{start}:{stop}" + (f":{step}" if step else "")


def graph_record(
    graph: Graph,
    title: str = "",
    opening: Opening | None = None,
    describe: Callable[[Node, NodeRecord], NodeRecord] | None = None,
) -> GraphRecord:
    """Record of a traced program, with its nodes in the graph's order. opening: composite operations to open.

    describe: changes the record of a node.
    """
    describe = describe or (lambda _, record: record)
    graph = opening.expand(graph) if opening else graph
    sources = (*graph.inputs, *graph.states)
    ids = {node: f"n{i}" for i, node in enumerate((*sources, *graph.nodes))}
    users = first_users(graph.nodes)
    ops = {node: describe(node, op_record(node, ids, opening=opening)) for node in graph.nodes}
    nodes = []
    for source in sources:
        scope = ops[users[source]].state_scope if source in users else ""
        kind = "input" if source in graph.inputs else "state"
        record = NodeRecord(
            ids[source],
            kind,
            source.name or kind,
            tuple(map(str, source.out_specs)),
            scope=scope if kind == "state" else "",
        )
        nodes.append(describe(source, record))
    nodes += ops.values()
    return GraphRecord(
        tuple(nodes),
        tuple((ids[v.node], v.index) for v in graph.outputs),
        tuple((ids[s], ids[v.node], v.index) for s, v in graph.updates.items()),
        title or f"graph: {len(graph.inputs)} inputs, {len(graph.states)} states, {len(graph.nodes)} operations",
        opening.note if opening else "",
    )
