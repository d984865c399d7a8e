"""The IR of the tape and of static graphs: Node, Value, Graph.

References point only backward (Tensor -> Value -> Node -> Values), so a tape is freed with the last tensor that needs
it, without the cyclic collector. A Node keeps saved tensors and its source location, but no frame.
Must not depend on arrays or kernels. Read next: `mode.py`, `source_location.py`, `infer.py`, `dispatch.py`, and
`op.py`, the definition of an op.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Container, Iterable, Iterator, Mapping
from types import CodeType
from typing import Any, NamedTuple

from .base.display import cell_name
from .base.errors import GraphError, InternalError
from .spec import Spec
from .symbolic_shapes import SymFloat, SymInt

# origins of Nodes in a graph, besides the program and gradients
OPTIMIZER, RECOMPUTE = "optimizer", "recompute"
Where = tuple[CodeType, int]  # (code, offset of the instruction): a line, without keeping a frame alive
Literal = bool | int | float | complex  # Python numbers are inputs of a Node as they are


class Node:
    """One application of an op.

    inputs: Values and Python numbers; on the tape, only the Spec of an input that needs no gradient.
    needs: bit i is set if input i needs a gradient.  saved: `(array, version counter, version)` for each slot that the
    rules name.  scope: path of the running module, "LeNet.conv1".
    hooks: None, or output index -> {number: hook}, see `grad/hooks.py`.
    origin: None for an op of the program; in a graph also the forward Node whose gradient this is, OPTIMIZER or
    RECOMPUTE.
    number: its index in the trace, which passes keep; None on a tape and for nodes that a pass adds. Those of a
    decomposition have fractions between the index of the composite node and the next.
    parts: the nodes that a pass has merged into this one.  whole: the composite node of the trace whose decomposition
    this one belongs to, or None.
    """

    __slots__ = (
        "op",
        "inputs",
        "attrs",
        "out_specs",
        "needs",
        "saved",
        "scope",
        "where",
        "hooks",
        "origin",
        "number",
        "parts",
        "whole",
        "__weakref__",
    )

    def __init__(self, op, inputs, attrs, out_specs, needs=0, saved=(), scope="", where=None):
        self.op = op
        self.inputs = inputs
        self.attrs = attrs
        self.out_specs = out_specs
        self.needs = needs
        self.saved = saved
        self.scope = scope
        self.where = where
        self.hooks = self.origin = self.number = self.whole = None
        self.parts = ()

    def replace(self, inputs, origin) -> Node:
        """A copy of this node with other inputs and another origin, for passes."""
        node = Node(self.op, inputs, self.attrs, self.out_specs, self.needs, self.saved, self.scope, self.where)
        node.origin, node.number, node.parts, node.whole = origin, self.number, self.parts, self.whole
        return node

    @property
    def phase(self) -> str:
        """The part of a training step that it belongs to: "forward", "backward", "optimizer" or "recompute"."""
        return "forward" if self.origin is None else "backward" if isinstance(self.origin, Node) else self.origin

    def __repr__(self) -> str:
        place = f" at {where_text(self.where)}" if self.where else ""
        return f"<{self.op} {', '.join(map(str, self.out_specs))}{place}>"


class Value(NamedTuple):
    """Output `index` of a node. A tuple, equal by content, so that a node needs no references to its outputs."""

    node: Node
    index: int
    spec: Spec

    def __repr__(self) -> str:
        return f"{self.node.op}.{self.index} {self.spec}" if self.index else f"{self.node.op} {self.spec}"


# class of a number that may be an input of a Node -> its Python class
NUMBERS: dict[type, type] = {**{kind: kind for kind in (bool, int, float, complex)}, SymInt: int, SymFloat: float}
new_value = tuple.__new__  # new_value(Value, (...)) is Value(...) without the frame of its __new__


def outputs_of(node: Node) -> list[Value]:
    """The Values of a node, in order."""
    specs = node.out_specs
    if len(specs) == 1:
        return [new_value(Value, (node, 0, specs[0]))]
    return [new_value(Value, (node, i, spec)) for i, spec in enumerate(specs)]


# keys of Node.hooks besides output indices: hooks of a leaf after accumulation, and hooks of the node itself
AFTER, INPUTS, OUTPUTS = "after", "inputs", "outputs"
RETAIN = 1 << 62  # smallest number of a hook of `retain_grad`; those run last


def hooks_at(node: Node, key: int | str) -> dict:
    """number -> hook, for an output of a node or for one of the kinds above; hooks run in order of their numbers."""
    if node.hooks is None:
        node.hooks = {}
    return node.hooks.setdefault(key, {})


class SourceKind:
    """The kind of a Source; `source.op` in place of an Op."""

    def __init__(self, name: str):
        self.name = name
        self.is_view = False

    def __repr__(self) -> str:
        return self.name


LEAF, INPUT, STATE, CONSTANT = map(SourceKind, ("leaf", "input", "state", "constant"))


class Source(Node):
    """A Node without inputs: the leaf of a tape (with a weak reference to its Tensor), an input, state or constant.

    array: that of a state or constant. Constants are listed among the states, but never written.
    read: for some states, a function that returns the elements at each call.
    link: for a buffer that is bound to other tensors over time, see `nn/buffer_links.py`; `array` is then its current
    array.
    """

    __slots__ = ("tensor", "array", "read", "name", "link")
    link: Any  # None or a BufferLink

    def __init__(self, op: SourceKind, spec: Spec, tensor=None, array=None, read=None, name=""):
        super().__init__(op, (), {}, spec.as_tuple)
        self.tensor = (lambda: None) if tensor is None else weakref.ref(tensor)
        self.array, self.read, self.name, self.link = array, read, name, None


State = Source  # a Source whose op is STATE


class VersionCounter:
    """The version of a storage: its number of writes, and the place of the last one. Shared by all views.

    storage: None, or for `x.data` the counter of x: both count writes to one storage, and a write through `x.data` does
    not change the version that a tape compares.  unseen: writes through `x.data`, counted in the counter of x.
    external_users: None, or other users of the storage (`ExternalUsers`).
    """

    __slots__ = ("version", "where", "storage", "unseen", "external_users")

    def __init__(self, storage: VersionCounter | None = None):
        self.version, self.where, self.storage, self.unseen, self.external_users = 0, None, storage, 0, None


class ExternalUsers:
    """Users of a storage other than the program that calls ops.

    order: None, or an object whose `before_write(users)` returns when no step in flight uses the storage, and
    `before_read(users)` when none writes it (`job/queue/ordering.py`).  lent: True if NumPy or another library shares
    the memory: its writes cannot be seen.
    """

    __slots__ = ("order", "lent")

    def __init__(self) -> None:
        self.order: Any = None
        self.lent = False


class FreedMarker(NamedTuple):
    """The value of Node.saved after backward has used and freed the arrays. where: the place of that backward."""

    where: Where | None


class InnerTape:
    """The value of Node.saved of a composite op that ran as its decomposition.

    outputs: the Value of each result on the tape of the decomposition, which begins at the inputs of the node; None if
    it needs no gradient. May be given as a function, called when they are first read.
    saved: the saved form of the inputs that a gradient reads, for second derivatives.
    entries: None, or what all nodes of the tape have saved, in order.
    """

    __slots__ = ("found", "saved", "entries")

    def __init__(self, outputs: Any, saved: Any, entries: list[tuple] | None = None):
        self.found, self.saved, self.entries = outputs, saved, entries

    @property
    def outputs(self) -> list[Value | None]:
        if self.found.__class__ is not list:
            self.found = self.found()
        return self.found


def inner_nodes(node: Node) -> list[Node]:
    """The nodes of the decomposition of a node on the tape, inputs before users."""
    return nodes_between(node.inputs, node.saved)


def nodes_between(inputs: Iterable, tape: InnerTape) -> list[Node]:
    """The nodes from the inputs of a composite op to its results, inputs before users."""
    return toposort([x.node for x in tape.outputs if x is not None], stop=set(values_among(inputs)))


def values_among(inputs: Iterable) -> list[Value]:
    return [x for x in inputs if x.__class__ is Value]


def saved_slots(node: Node) -> list[tuple[int, Any]]:
    """(slot, saved form) for each input and output that a node on the tape has saved; see `op.SavedSlots`."""
    saved = node.saved.saved if node.saved.__class__ is InnerTape else node.saved
    return [] if saved.__class__ is FreedMarker else list(zip(node.op.saves[node.needs], saved or ()))


def line_number(where: Where) -> int:
    """Line number of a place in its file, from 1; that of the `def` if the instruction has none."""
    code, instruction = where
    return next((n for start, end, n in code.co_lines() if start <= instruction < end), None) or code.co_firstlineno


def where_text(where: Where | None) -> str:
    """`In[4]:2` in a notebook, `file.py:12` in a script."""
    return "?" if where is None else f"{file_name(where[0].co_filename)}:{line_number(where)}"


def file_name(path: str) -> str:
    """A source file as users know it: `In[4]` for a notebook cell, else the name of the file."""
    return cell_name(path) or os.path.basename(path)


def toposort(roots: Iterable[Node], every: bool = False, stop: Container[Value] = ()) -> list[Node]:
    """The given nodes and those they depend on, inputs before users. Iterative, since recursion would limit the depth.

    Follows only inputs that need a gradient, unless `every`, and none of those in `stop`.
    """
    order: list[Node] = []
    known: dict[Node, bool] = {}  # node -> True once it is in `order`, False while those that it depends on are added
    stack = list(roots)
    while stack:
        node = stack[-1]
        added = known.get(node)
        if added is None:
            known[node] = False
            for i, x in enumerate(node.inputs if every or node.needs else ()):
                if x.__class__ is Value and (every or node.needs >> i & 1) and x.node not in known:
                    if not stop or x not in stop:
                        stack.append(x.node)
        else:
            stack.pop()
            if not added:
                known[node] = True
                order.append(node)
    return order


class Graph:
    """A traced program, pure: inputs and states in, outputs and updates out. A pass returns a new one."""

    def __init__(
        self,
        inputs: Iterable[Source] = (),
        nodes: Iterable[Node] = (),
        outputs: Iterable[Value] = (),
        states: Iterable[Source] = (),
        updates: Mapping[Source, Value] | None = None,
    ):
        self.inputs, self.nodes, self.outputs = list(inputs), list(nodes), list(outputs)
        self.states, self.updates = list(states), dict(updates or {})

    def values(self) -> Iterator[Value]:
        """Every Value, sources first."""
        for node in (*self.inputs, *self.states, *self.nodes):
            yield from outputs_of(node)

    def verify(self) -> Graph:
        """Check that the graph is well formed (defined before used, right specs, sources registered) or raise
        GraphError.
        """
        defined: set[Node] = set()

        def known(x: Value) -> bool:
            return x.node in defined and x.spec in x.node.out_specs[x.index : x.index + 1]

        for source in (*self.inputs, *self.states):
            if source.inputs or not isinstance(source, Source):
                raise GraphError(f"{source.op} is listed as an input or state but has inputs", values={"node": source})
            defined.add(source)
        for position, node in enumerate(self.nodes):
            for x in node.inputs:
                if x.__class__ is Value:
                    if x.node in defined and x.spec in x.node.out_specs[x.index : x.index + 1]:  # `known`
                        continue
                    raise GraphError(
                        f"node {position} ({node.op}) reads a value that no node before it computes",
                        values={"value": x, "node": node},
                        hint="a pass must keep nodes in order, and every source in inputs or states",
                    )
                if x.__class__ not in NUMBERS:
                    raise GraphError(
                        f"node {position} ({node.op}) reads {x!r}", hint="inputs are Values or Python numbers"
                    )
            if node in defined:
                raise GraphError(f"node {position} ({node.op}) is in the graph twice", values={"node": node})
            defined.add(node)
        for value in (*self.outputs, *self.updates.values()):
            if not known(value):
                raise GraphError("an output or update is a value that no node computes", values={"value": value})
        states = set(self.states)
        for state, value in self.updates.items():
            if state not in states:
                raise GraphError("an update must be of a state of this graph", values={"state": state})
            if state.out_specs[0] is not value.spec:
                raise GraphError(
                    "an update changes the spec of its state",
                    values={"state": state.out_specs[0], "update": value.spec},
                )
        return self

    def __str__(self) -> str:
        names: dict[Value, str] = {}

        def name(x: Any) -> str:
            return names.setdefault(x, f"%{len(names)}") if isinstance(x, Value) else repr(x)

        rows = []
        for source in (*self.inputs, *self.states):
            value = new_value(Value, (source, 0, source.out_specs[0]))
            rows.append(f"{name(value)} = {source.op} {source.name} {value.spec}".replace("  ", " "))
        for node in self.nodes:
            created = ", ".join(map(name, outputs_of(node)))
            attrs = "".join(f", {k}={v!r}" for k, v in node.attrs.items())
            specs = ", ".join(map(str, node.out_specs))
            rows.append(
                f"{created} = {node.op}({', '.join(map(name, node.inputs))}{attrs}) -> {specs}  {node.scope}".rstrip()
            )
        rows += [f"update {name(Value(s, 0, s.out_specs[0]))} <- {name(v)}" for s, v in self.updates.items()]
        return "\n".join([*rows, f"return {', '.join(map(name, self.outputs))}"])


def check_outputs(node_op: object, expected: tuple[Spec, ...], got: Iterable[Spec]) -> None:
    """Raise InternalError unless a kernel's outputs have the specs that its shape rule inferred."""
    got = tuple(got)
    if got != expected:
        raise InternalError(
            f"{node_op}: infer returned {expected}, the kernel {got}", hint="report this with the program"
        )
