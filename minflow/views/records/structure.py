"""What there is to see, as plain frozen records with stable ids: a tape, a graph, a tree of modules.

Making a record is the only step that touches live objects; text, DOT and HTML are pure functions of records.
Everything walks with loops, so a tape of 20,000 ops is no deeper than one of two. Knows Nodes and Specs, not Tensors:
a tensor is anything with `.spec` and `.value`. Read next: `../draw/fold.py`, how a large record becomes a small one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...core.ir import Freed, Graph, Node, Source, Value, where_text
from ...core.spec import DType

MOST = 5_000  # nodes of a tape that get a record each; those before them become one box
SHOWN = 8  # elements, up to which a tensor's numbers are written out
# What an attribute of an op is where nobody asked for anything: not told.
DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("ta", "tb", "keepdims", "ceil_mode", "descending", "maximize", "nesterov"), False),
    **dict.fromkeys(("axis", "divisor_override"), None),
    "stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1, "offset": 0, "ignore_index": -100, "reduction": "mean",
    "weight_decay": 0.0, "dampening": 0.0,
}  # fmt: skip
# name -> what says nothing either; None: it never does, it is for messages
SILENT = {"loss": None, "ignore_index": -(2**31)}
WORDS = {"ta": "a transposed", "tb": "b transposed"}


@dataclass(frozen=True)
class Input:
    """One input of a node. `ref` is the node it comes from; where nothing is recorded, `text` alone says what it is."""

    name: str
    ref: str = ""
    index: int = 0
    text: str = ""


@dataclass(frozen=True)
class NodeRecord:
    """One box: an op, a leaf, an input or state of a graph, or many ops folded into one.

    label: the op's or the leaf's name.  outs: the spec of each output.  count: how many ops it stands for.
    needs: a gradient flows through it.  value, grad: numbers in short, where they were asked for.
    phase: in a graph "backward", "recompute" or "optimizer"; empty for what the program itself says.
    held: of a folded box, how many of its last `outs` are leaves or states that stand in it.  hidden: leaves in it in
    all.
    mark: "failed" or "differs" for the one node that a picture is about, "equal" for what was checked before it, "only"
    for what the other side does not have, "ghost" for what only the other side has. notes: lines of a marked node: got,
    expected, try.
    """

    id: str
    kind: str  # "op", "leaf", "input", "state" or "folded"
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


@dataclass(frozen=True)
class TapeRecord:
    """What a tensor was computed from. nodes: inputs before users; `root` made the tensor (as its output `index`)."""

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


@dataclass(frozen=True)
class GraphRecord:
    """A traced program. outputs: (node, output number).  updates: (state, node, output number)."""

    nodes: tuple[NodeRecord, ...]
    outputs: tuple[tuple[str, int], ...]
    updates: tuple[tuple[str, str, int], ...]
    title: str
    note: str = ""


@dataclass(frozen=True)
class PartsRecord:
    """Graphs that run one after the other in one call: the micro-step and the update of gradient accumulation."""

    parts: tuple[GraphRecord, ...]
    title: str

    @property
    def nodes(self) -> tuple[NodeRecord, ...]:
        return tuple(node for part in self.parts for node in part.nodes)


@dataclass(frozen=True)
class ModuleRecord:
    """A module and those inside it. params, trainable, nbytes: of the module and all inside it, each tensor once.

    own: names and specs of its own parameters and buffers.  outputs: of its last call.  earlier: those of calls before
    it, where the next call gave others.  calls: how often it ran (None: nobody looked).
    error: what went wrong in it, at the layer where it did.
    """

    name: str
    kind: str
    extra: str = ""
    own: tuple[tuple[str, str], ...] = ()
    params: int = 0
    trainable: int = 0
    nbytes: int = 0
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    earlier: tuple[tuple[str, ...], ...] = ()
    calls: int | None = None
    error: str = ""
    shared: bool = False
    children: tuple[ModuleRecord, ...] = ()


Record = TapeRecord | GraphRecord | PartsRecord | ModuleRecord
RECORDERS: dict[type, Callable[[Any], Record]] = {}


def recorder(kind: type):
    """Say how a record is made of a class above this room: `@recorder(Module) def module_record(module): ...`."""

    def register(function):
        RECORDERS[kind] = function
        return function

    return register


def record_of(x: Any, **options) -> Record | None:
    """The record of a Tensor, a Graph, a Module or a record itself; None for anything else."""
    if isinstance(x, Record):
        return x
    if isinstance(x, Graph):
        return graph_record(x)
    for kind in type(x).__mro__:
        if kind in RECORDERS:
            return RECORDERS[kind](x)
    if hasattr(x, "spec") and hasattr(x, "value"):
        return tape_record(x, **options)
    return None


# ---- the tape ------------------------------------------------------------------------------------------------------


def tape_record(
    tensor: Any,
    *,
    values: bool = False,
    names: Mapping[int, str] | None = None,
    title: str = "",
    tensors: Mapping[str, Any] | None = None,
) -> TapeRecord:
    """The tape of a tensor. values: with numbers and gradients of leaves, of the tensor itself and of `tensors`.

    names: `id(tensor)` -> the learner's name, for leaves that are no parameters of a module.  tensors: the learner's
    own variables, name -> tensor: what was computed on the way and still has a name.
    """
    names = names or {}
    title = title or f"tape of {names.get(id(tensor), '')} {tensor.spec}".replace("  ", " ")
    if tensor.value is None:
        return TapeRecord((), "", 0, title, "no gradient is wanted by anything it was computed from, so nothing is recorded")
    value: Value = tensor.value
    order = walk([value.node])
    freed = next((node.saved.where for node in reversed(order) if node.saved.__class__ is Freed), None) if values else None
    nodes, order, inside, places = early_box(order)
    ids = {**inside, **{node: f"n{i}" for i, node in enumerate(order)}}
    users = first_users(order)
    named = named_results(tensors) if values and tensors else {}
    for node in order:
        if isinstance(node, Source):
            record = leaf_record(node, ids[node], users.get(node), names, values)
        else:
            record = op_record(node, ids, places)
        if values and node is value.node:
            record = with_numbers(record, tensor, not isinstance(node, Source))
        elif node in named:
            name, held = named[node]
            record = with_numbers(record, held, True)
            record = replace(record, value=f"{name} = {record.value}")
        nodes.append(record)
    note = f"backward ran at {where_text(freed)}; h.retain_grad() before it keeps the gradient of a computed h too" if freed else ""
    return TapeRecord(tuple(nodes), ids[value.node], value.index, title, note)


def early_box(order: list[Node]) -> tuple[list[NodeRecord], list[Node], dict[Node, str], dict[Value, int]]:
    """The one box for the early nodes of a long tape, the other nodes, the box's id for those in it, and which of its
    outputs each value of them is that is read outside. Leaves that are read outside stay out of it."""
    late = order[-MOST:]
    read = {x: None for node in late for x in node.inputs if x.__class__ is Value}
    early = [node for node in order[:-MOST] if not (isinstance(node, Source) and Value(node, 0, node.out_specs[0]) in read)]
    if not early:
        return [], order, {}, {}
    inside = dict.fromkeys(early, "f0")
    places = {x: i for i, x in enumerate([x for x in read if x.node in inside])}
    leaves = sum(isinstance(node, Source) for node in early)
    ops = len(early) - leaves
    attrs = f"{ops} operations" + f", {leaves} parameter{'s' * (leaves != 1)}" * bool(leaves)
    box = NodeRecord("f0", "folded", "earlier operations", tuple([str(x.spec) for x in places]), attrs=attrs, count=ops, hidden=leaves)
    return [box], [node for node in order if node not in inside], inside, places


def named_results(tensors: Mapping[str, Any]) -> dict[Node, tuple[str, Any]]:
    """The node that computed it -> (name, tensor), for the tensors that were computed."""
    found: dict[Node, tuple[str, Any]] = {}
    for name, x in tensors.items():
        node = getattr(getattr(x, "value", None), "node", None)
        if node is not None and not isinstance(node, Source) and len(node.out_specs) == 1 and x.alias is None:
            found.setdefault(node, (name, x))
    return found


def walk(roots: Iterable[Node]) -> list[Node]:
    """The nodes that `roots` depend on, inputs before users and left before right; each leaf just before its first
    user."""
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
    """For each node that is read, the first that reads it."""
    found: dict[Node, Node] = {}
    for node in order:
        for x in node.inputs:
            if x.__class__ is Value:
                found.setdefault(x.node, node)
    return found


def op_record(node: Node, ids: Mapping[Node, str], places: Mapping[Value, int] | None = None) -> NodeRecord:
    """places: the number of an output that is counted anew, in a box."""
    return NodeRecord(**op_fields(node, ids, places or {}), phase="" if node.origin is None else node.phase)


def op_fields(node: Node, ids: Mapping[Node, str], places: Mapping[Value, int], limit: int = 40) -> dict[str, Any]:
    """What every record of an operation holds. limit: characters of an attribute."""
    return dict(
        id=ids[node],
        kind="op",
        label=str(node.op),
        outs=tuple(map(str, node.out_specs)),
        inputs=tuple(
            Input(input_name(node, i), ids.get(x.node, ""), places.get(x, x.index), str(x.spec))
            if x.__class__ is Value
            else Input(input_name(node, i), text=str(x))
            for i, x in enumerate(node.inputs)
        ),
        attrs=attrs_text(node.attrs, limit),
        scope=node.scope,
        where=where_text(node.where) if node.where else "",
        needs=bool(node.needs),
    )


def attrs_text(attrs: Mapping[str, Any], limit: int = 40) -> str:
    """The attributes that say more than the default, flags in words: `b transposed`, `axis=(1,)`. limit: characters of
    each."""
    told = []
    for name, x in attrs.items():
        if name in SILENT and SILENT[name] in (None, x):
            continue
        usual = name in DEFAULTS and type(x) is type(DEFAULTS[name]) and x == DEFAULTS[name]
        if not usual or (name == "stride" and "kernel_size" in attrs):  # of a pool the kernel's size is the usual one
            told.append(WORDS.get(name, name) if x is True and DEFAULTS.get(name) is False else f"{name}={short(x, limit)}")
    return ", ".join(told)


def input_name(node: Node, i: int) -> str:
    names = getattr(node.op, "inputs", ())
    if names and names[0][:1] == "*":
        return f"{names[0][1:]}[{i}]"
    return names[i] if i < len(names) else f"input {i}"


def leaf_record(node: Source, id: str, user: Node | None, names: Mapping[int, str], values: bool) -> NodeRecord:
    tensor = node.tensor()
    scope = user.scope if user is not None else ""
    name = leaf_name(node, tensor, scope, names)
    record = NodeRecord(id, "leaf", name, tuple(map(str, node.out_specs)), scope=scope)
    return with_numbers(record, tensor, True) if values else record


def leaf_name(node: Source, tensor: Any, scope: str, names: Mapping[int, str]) -> str:
    """ "fc1.weight" for a parameter met inside fc1 (or inside a function there), else the learner's own name, else
    nothing."""
    label = getattr(tensor, "label", "") or ""
    if label:
        module = module_name(scope.partition("/")[0].split("."))
        return f"{module}.{label}" if module else label
    return names.get(id(tensor), "") or node.name or "leaf"


def module_name(path: Sequence[str]) -> str:
    """The last name of a path of modules; a number says little by itself: "blocks.0.1" of model.blocks.0.1."""
    first = len(path) - 1
    while first > 0 and path[first].isdigit():
        first -= 1
    return ".".join(path[max(first, 0) :])


def with_numbers(record: NodeRecord, tensor: Any, gradient: bool) -> NodeRecord:
    if tensor is None:
        return replace(record, value="(its tensor is gone)")
    is_leaf = record.kind == "leaf"
    grad = getattr(tensor, "gradient", None) if gradient else None
    told = gradient_text(grad.array) if grad is not None else "none yet" if is_leaf else ""
    return replace(record, value=numbers_text(tensor.array), grad=told)


def gradient_text(array: Any) -> str:
    """The numbers of a gradient, of a large one with its norm; zeros are worth a word, for nothing learns from them."""
    text = numbers_text(array)
    if array is None or array.size <= SHOWN:
        return text
    import numpy as np

    array = np.asarray(array.get() if hasattr(array, "get") else array)
    if not array.any():
        return "all 0"
    with np.errstate(all="ignore"):
        return f"{text}, norm {np.sqrt(np.square(array, dtype=np.float64).sum()):.4g}"


def numbers_text(array: Any) -> str:
    """All numbers of a small array, else its least, mean and greatest."""
    if array is None:
        return "(symbolic)"
    import numpy as np

    array = np.asarray(array.get() if hasattr(array, "get") else array)
    if array.size == 0:
        return "(empty)"
    if array.size <= SHOWN:
        each = {"float_kind": lambda x: f"{x:.4g}"}  # by itself: numpy writes all as 1e-04 where one is small
        return np.array2string(array, separator=", ", threshold=SHOWN, max_line_width=10_000, formatter=each).replace("\n", "")
    if array.dtype == bool:
        return f"{int(array.sum())} of {array.size} true"
    with np.errstate(all="ignore"):
        wide = array.astype(np.float64)
        finite = wide[np.isfinite(wide)]
        bad = f", {wide.size - finite.size} not finite" if finite.size < wide.size else ""
        if not finite.size:
            return f"none of {wide.size} finite"
        return f"{finite.min():.4g} .. {finite.max():.4g}, mean {finite.mean():.4g}{bad}"


def short(x: Any, limit: int = 40) -> str:
    """The repr of an attribute, cut to a readable length."""
    text = x.name if isinstance(x, DType) else repr(x)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def names_in(namespace: Mapping[str, Any]) -> dict[int, str]:
    """`id(tensor)` -> the name under which the learner holds it. Names that start with an underscore are not theirs."""
    found: dict[int, str] = {}
    for name, x in list(namespace.items()):
        if not name.startswith("_") and hasattr(type(x), "requires_grad") and hasattr(x, "spec"):
            found.setdefault(id(x), name)
    return found


# ---- the graph -----------------------------------------------------------------------------------------------------


def graph_record(graph: Graph, title: str = "") -> GraphRecord:
    """The record of a traced program, its nodes in the graph's own order."""
    sources = (*graph.inputs, *graph.states)
    ids = {node: f"n{i}" for i, node in enumerate((*sources, *graph.nodes))}
    users = first_users(graph.nodes)
    nodes = []
    for source in sources:
        scope = users[source].scope if source in users else ""
        kind = "input" if source in graph.inputs else "state"
        nodes.append(
            NodeRecord(ids[source], kind, source.name or kind, tuple(map(str, source.out_specs)), scope=scope if kind == "state" else "")
        )
    nodes += [op_record(node, ids) for node in graph.nodes]
    return GraphRecord(
        tuple(nodes),
        tuple((ids[v.node], v.index) for v in graph.outputs),
        tuple((ids[s], ids[v.node], v.index) for s, v in graph.updates.items()),
        title or f"graph: {len(graph.inputs)} inputs, {len(graph.states)} states, {len(graph.nodes)} operations",
    )
