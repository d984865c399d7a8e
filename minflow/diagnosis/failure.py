"""What was there when an error was raised, read from its traceback: the failing node, what it got, the graph up to it.

Nothing is kept while a program runs well: the frames of a traceback still hold the op and its inputs, the module and
the build. Gives the record of `diagnosis/card.py`, texts only. Read next: `would_fit.py`, `ipython.py`.
"""

from __future__ import annotations

import contextlib
import inspect
import linecache
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import CodeType, FrameType
from typing import Any, NamedTuple

from ..compiler.executor import run
from ..core.autograd import backprop
from ..core.base.errors import MinflowError
from ..core.door import apply
from ..core.infer import infer
from ..core.ir import INPUT, Graph, Node, Source, Value, Where, file_name, where_text
from ..core.messages.near import of_object
from ..core.op import Op
from ..core.tensor import Tensor
from ..core.where import MODULE_CALL, OURS
from .card import CardRecord
from ..views.records.structure import (
    GraphRecord, Input, NodeRecord, TapeRecord, attrs_text, first_users, graph_record, leaf_record, op_record, walk,
)
from .would_fit import expected_of_layer, expected_of_op
from .frames import entries, message_of
from .lines import library, line_number

CHAIN = 20  # errors behind an error that are looked at
SHOWN = 4  # tensors that are told as "got"
PLACES = ("/nn/functional/", "/core/functions/", "/core/methods", "/core/creation", "/job/layers", "/job/nn", "/job/math", "/job/array")
OPS = {apply.__code__, infer.__code__}


class Recorded(NamedTuple):
    """What a build had recorded. title: of the picture.  name: source -> how it is called."""

    title: str
    graph: Graph
    name: Callable[[Source], str]


BUILDS: dict[CodeType, Callable[[Mapping[str, Any]], Recorded]] = {}  # the function that builds -> from its locals


def builds(code: CodeType):
    """Say how to find the graph of a build in the frame of the function that runs it:
    `@builds(Graph.compile_now.__code__)`."""

    def register(function):
        BUILDS[code] = function
        return function

    return register


@dataclass
class Failure:
    """What the frames of one traceback say, innermost last. Tensors are given as (name, tensor)."""

    error: BaseException
    scope: str = ""
    module: Any = None
    label: str = ""  # of the failing node
    attrs: str = ""
    got: list[tuple[str, Tensor]] = field(default_factory=list)
    near: list[Tensor] = field(default_factory=list)  # that the failing line could see
    place: str = ""  # of the innermost line of the learner's
    code: str = ""
    made: tuple[str, ...] = ()  # place and line that made the module, where the module itself is not the learner's
    recorded: Recorded | None = None
    node: Node | None = None  # a node that was there already, and failed as it ran or in backward
    plan: Any = None
    expected: str = ""

    @property
    def known(self) -> bool:
        """Whether it was raised in something that is a node, a module, or a build."""
        return bool(self.label or self.scope or self.node or self.recorded)


def card_of(error: BaseException) -> CardRecord | None:
    """The card of an error that comes from a model, a graph, a job or a tensor; None for any other."""
    chosen = None
    for link in chain_of(error):
        found = read(link)
        if found.known or isinstance(link, MinflowError):
            chosen = chosen or found
            if found.known and (found.label or found.node):
                chosen = found
                break
        if not carried(link):
            break
    return None if chosen is None else record(chosen, error)


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """The error, and those that it was raised from."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen and len(seen) < CHAIN:
        seen.add(id(link))
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def carried(error: BaseException) -> bool:
    """Is it only the messenger of the error behind it?"""
    return error.__cause__ is not None


# ---- the frames ------------------------------------------------------------------------------------------------------


def read(error: BaseException) -> Failure:
    """Walk the traceback; a frame further in says more than one further out."""
    found = Failure(error)
    function: FrameType | None = None
    for trace in entries(error.__traceback__):
        frame, code = trace.tb_frame, trace.tb_frame.f_code
        if code in MODULE_CALL:
            entered(found, frame)
            function = None
        elif code in BUILDS:
            with contextlib.suppress(Exception):
                found.recorded = BUILDS[code](frame.f_locals)
        elif code in OPS:
            called(found, frame)
        elif code is backprop.__code__ or code is run.__code__:
            ran(found, frame)
        elif not OURS[code.co_filename] and not library(code.co_filename):
            learner(found, frame, trace.tb_lineno)
            function = None
        elif function is None and public(code):
            function = frame
    if not found.label and function is not None and found.node is None:
        found.label = function.f_code.co_name
        found.got = tensors_in(arguments(function)) or found.got
    if not found.label and found.module is not None:
        found.label = f"{type(found.module).__name__}.forward"
    return found


def entered(found: Failure, frame: FrameType) -> None:
    """A call of a module: its scope, and what it was given under the names of its forward."""
    own = frame.f_locals
    found.module, found.scope = own.get("self"), own.get("scope", "")
    found.label, found.attrs, found.node, found.near, found.made = "", "", None, [], made_at(found.module)
    args, kwargs = own.get("args", ()), own.get("kwargs", {})
    names = list(inspect.signature(type(found.module).forward).parameters)[1:]
    names += [f"input {i}" for i in range(len(names), len(args))]
    found.got = tensors_in({**dict(zip(names, args)), **kwargs})


def made_at(module: Any) -> tuple[str, ...]:
    """("In[5]:5", the line) of the learner's that made a module; empty where none is known."""
    made = getattr(module, "__dict__", {}).get("_made")
    if not made or library(made[0].co_filename):
        return ()
    return where_text(made), *filter(None, [code_of(made)])


def code_of(where: Where) -> str:
    """The line of code at a place that a node or a module remembers."""
    return linecache.getline(where[0].co_filename, line_number(where)).strip()


def called(found: Failure, frame: FrameType) -> None:
    """A call of an op."""
    own = frame.f_locals
    op, inputs = own.get("op"), own.get("inputs", ())
    if not isinstance(op, Op):
        return
    names = [f"{op.inputs[0][1:]}[{i}]" for i in range(len(inputs))] if op.variadic else list(op.inputs)
    found.label, found.node = op.name, None
    attrs = {k: v for k, v in own.get("attrs", {}).items() if isinstance(v, int | float | str | tuple)}
    found.attrs = attrs_text(attrs)[:80]
    found.got = [(name_in(found, x, name), x) for name, x in zip(names, inputs) if isinstance(x, Tensor)]
    place = expected_of_op(op, inputs, own.get("attrs", {})) if isinstance(found.error, MinflowError) else None
    if place is not None:
        i, spec = place
        found.expected = f"{name_in(found, inputs[i], names[i])}  {spec}"


def ran(found: Failure, frame: FrameType) -> None:
    """Backward, or a plan: the node is known."""
    own = frame.f_locals
    plan = own.get("plan")
    node = own.get("node") if plan is None else plan.failed
    if isinstance(node, Node) and not isinstance(node, Source):
        found.node, found.plan, found.made = node, plan, ()
        if plan is not None:
            found.code = code_of(node.where) if node.where else ""
        found.label, found.scope, found.attrs = str(node.op) if plan is not None else f"gradient of {node.op}", node.scope, ""
        found.got, found.expected = [], ""


def learner(found: Failure, frame: FrameType, number: int) -> None:
    """A line of the learner's own."""
    name = frame.f_code.co_filename
    found.place, found.code, found.made = f"{file_name(name)}:{number}", linecache.getline(name, number).strip(), ()
    if found.node is None:  # a function of the learner's that backward calls is told as that gradient
        found.label, found.attrs, found.expected = "", "", ""
    found.near = [x for _, x in tensors_in({k: v for k, v in frame.f_locals.items() if not k.startswith("_")})] \
        if frame.f_code.co_name != "<module>" else []  # fmt: skip


# what decorators put around functions
WRAPPERS = ("wrapped", "written", "method", "explained", "either", "scoped", "wider")


def public(code: CodeType) -> bool:
    """A function of ours that a learner calls by its name."""
    place = code.co_filename.replace("\\", "/")
    functions = any(part in place for part in PLACES)
    return functions and not code.co_name.startswith(("_", "<")) and code.co_name not in WRAPPERS


def arguments(frame: FrameType) -> dict[str, Any]:
    code = frame.f_code
    return {name: frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]}


def tensors_in(named: Mapping[str, Any]) -> list[tuple[str, Tensor]]:
    """(name, tensor) of those among the values, and of those in a list or tuple there."""
    found: list[tuple[str, Tensor]] = []
    for name, x in named.items():
        if isinstance(x, Tensor):
            found.append((name, x))
        elif isinstance(x, list | tuple) and len(x) <= 16:
            found += [(f"{name}[{i}]", t) for i, t in enumerate(x) if isinstance(t, Tensor)]
    return found


def name_in(found: Failure, x: Any, otherwise: str) -> str:
    """ "fc1.weight" for a parameter of the module that failed, else the given name."""
    label = getattr(x, "label", "")
    module = found.scope.rpartition(".")[2]
    return (f"{module}.{label}" if module else label) if label else otherwise


# ---- the record ------------------------------------------------------------------------------------------------------


def record(found: Failure, raised: BaseException) -> CardRecord:
    error = found.error
    ours = isinstance(error, MinflowError) and "what" in vars(error)  # a subclass may have left our __init__ out
    scope = found.scope or (found.recorded.title.split(" ")[0] if found.recorded is not None else "")
    data = [(name, x) for name, x in found.got if not x.label]
    got = tuple((name, str(x.spec)) for name, x in (data or found.got)[:SHOWN])
    if not found.expected and ours and found.module is not None and found.node is None:
        found.expected = expected_in_module(found)
    if ours and " if " in error.hint:  # it depends on what was meant
        found.expected = ""
    got, values = told_by(error, found, got) if ours else (got, ())
    where = error.where if ours and error.where else ""
    if found.place and found.plan is None and found.place not in where:
        where = ", ".join(filter(None, [where or (f"in {found.scope}" if found.scope else ""), f"at {found.place}"]))
    told = "" if raised is error else f"{type(raised).__name__}: {message_of(raised).partition(f' raised {type(error).__name__}')[0]}"
    card = CardRecord(
        title=f"{type(error).__name__} in {scope}" if scope else type(error).__name__,
        what=error.what if ours else message_of(error),
        values=values,
        got=got,
        expected=found.expected,
        where=where,
        code=found.code,
        made=found.made,
        hint=error.hint if ours else of_object(error),
        told=told.partition("\n")[0][:200],
    )
    try:
        told = {name for name, _ in values}  # of the parameters that went in, those that the error names
        if data or ours and got and got[0] in error.values.items():
            found.got = [(name, x) for name, x in found.got if not x.label or name_in(found, x, name) in told]
        graph = picture(found, card)
        return replace(card, graph=graph and replace(graph, nodes=named_once(calls_apart(graph.nodes))))
    except Exception:  # the words are worth more than the picture
        return card


Pairs = tuple[tuple[str, str], ...]


def told_by(error: MinflowError, found: Failure, got: Pairs) -> tuple[Pairs, Pairs]:
    """(got, the other values): an error that names what it got or expected itself knows better than the frames."""
    values = dict(error.values)
    found.expected = values.pop("expected", found.expected)
    said_got = [name for name in values if name == "got" or name.startswith("got ")]
    if said_got:
        got = tuple((name[4:], values.pop(name)) for name in said_got)
    elif "expected" in error.values:  # of what went in, only that; the rest is right
        spoken, _, rest = found.expected.partition(" ")
        found.expected = f"{spoken}  {rest}"
        got = tuple(pair for pair in (*got, *values.items()) if pair[0] == spoken)[:1] or got
        found.got = [(name, x) for name, x in found.got if x.label or name == spoken] or found.got
        if found.plan is not None and (name := input_of(found.node)):
            got = tuple((f"{spoken}, the input {name}", values.pop(own)) for own, _ in got if own in values) or got
    elif found.got and all(x.label for _, x in found.got):  # parameters only: what came with them was no tensor
        parameters = {name_in(found, x, name) for name, x in found.got}
        got = tuple(pair for pair in values.items() if pair[0] not in parameters)[:SHOWN] or got
    return got, tuple(values.items())


def input_of(node: Any) -> str:
    """The name of the input that a node looks at, itself or through views; "" if it looks at what was computed."""
    while node.inputs and node.op.is_view:
        node = node.inputs[0].node
    return node.name if node.op is INPUT else ""


def expected_in_module(found: Failure) -> str:
    """For a check of ours before any op: what the layer would have taken."""
    frame_names = [name for name, x in found.got if not x.label]
    inputs = [x for _, x in found.got if not x.label]
    place = expected_of_layer(found.module, inputs)
    return "" if place is None else f"{frame_names[place[0]]}  {place[1]}"


def picture(found: Failure, card: CardRecord) -> GraphRecord | TapeRecord | None:
    """The graph or the tape up to the failing node, with that node in it."""
    notes = tuple(
        [f"got {name} {spec}" for name, spec in card.got]
        + ([f"expected {' '.join(card.expected.split())}"] if card.expected else [])
        + ([f"try: {card.hint.splitlines()[0]}"] if card.hint else [])
    )
    if found.plan is not None and found.node is not None:
        return up_to(found, notes)
    if not (found.label or found.got):
        return None
    failing = NodeRecord("failed", "op", found.label, (), attrs=found.attrs, scope=found.scope, mark="failed", notes=notes)
    if found.recorded is not None:
        return of_trace(found, found.recorded, failing)
    return of_tape(found, failing)


def calls_apart(nodes: tuple[NodeRecord, ...]) -> tuple[NodeRecord, ...]:
    """A layer that is called again later is drawn again: "pool (2)"; in one frame its calls would turn the flow
    around."""
    scopes = {n.scope for n in nodes if n.kind == "op"}
    inner = {s for s in scopes if s and not any(other.startswith(f"{s}.") or other.startswith(f"{s}/") for other in scopes)}
    calls: dict[str, int] = {}
    before, found = "", []
    for n in nodes:
        if n.kind == "op" and not n.phase and n.scope in inner:
            calls[n.scope] = calls.get(n.scope, 0) + (n.scope != before)
            number = calls[n.scope]
            found.append(replace(n, scope=f"{n.scope} ({number})") if number > 1 else n)
        else:
            found.append(n)
        before = n.scope if n.kind == "op" else before
    return tuple(found)


def named_once(nodes: tuple[NodeRecord, ...]) -> tuple[NodeRecord, ...]:
    """The failing node's inputs without the names that stand on the boxes they come from."""
    labels = {n.id: n.label for n in nodes}
    return tuple([
        replace(n, inputs=tuple([replace(x, name="") if x.name == labels.get(x.ref) else x for x in n.inputs])) if n.mark == "failed" else n
        for n in nodes
    ])  # fmt: skip


def up_to(found: Failure, notes: tuple[str, ...]) -> GraphRecord:
    """A plan that ran: its graph up to the node that failed."""
    graph: Graph = found.plan.graph
    whole = graph_record(graph)
    at = next(i for i, node in enumerate(graph.nodes) if node is found.node) + len(graph.inputs) + len(graph.states)
    kept = list(whole.nodes[: at + 1])
    got = tuple(f"got {x.name} {x.text}" for x in kept[-1].inputs if x.ref)[:SHOWN]
    kept[-1] = replace(kept[-1], outs=(), mark="failed", notes=(*got, *notes))
    number = at + 1 - len(graph.inputs) - len(graph.states)
    title = f"the step as it ran, up to the operation that failed: number {number} of {len(graph.nodes)}"
    return GraphRecord(read_only(kept), (), (), title)


def read_only(nodes: list[NodeRecord]) -> tuple[NodeRecord, ...]:
    """Without inputs and states that nothing reads."""
    used = {x.ref for n in nodes for x in n.inputs}
    return tuple(n for n in nodes if n.kind == "op" or n.id in used)


def of_trace(found: Failure, recorded: Recorded, failing: NodeRecord) -> GraphRecord:
    graph = recorded.graph
    whole = graph_record(graph)
    sources = (*graph.inputs, *graph.states)
    ids = {node: f"n{i}" for i, node in enumerate((*sources, *graph.nodes))}
    nodes = list(whole.nodes)
    for i, source in enumerate(sources):
        with contextlib.suppress(Exception):
            nodes[i] = replace(nodes[i], label=recorded.name(source) or nodes[i].label)
    states = {id(s.array): s for s in graph.states}
    if found.node is not None:  # in backward, while the graph was built
        inputs: list[Input] = [Input("", ids[found.node], 0)] if found.node in ids else []
        return GraphRecord((*read_only([*nodes, replace(failing, inputs=tuple(inputs))]),), (), (), recorded.title)
    inputs, extra = [], []
    for k, (name, x) in enumerate(seen_by(found)):
        source = x.value.node if x.array is None and x.value is not None else states.get(id(x.array))
        if source in ids:
            inputs.append(Input(name, ids[source], x.value.index if x.array is None else 0, str(x.spec)))
        else:
            kind, scope = ("state", found.scope) if x.label else ("input", "")
            extra.append(NodeRecord(f"x{k}", kind, name_in(found, x, name), (str(x.spec),), scope=scope))
            inputs.append(Input(name, f"x{k}"))
    failing = replace(failing, inputs=tuple(inputs))
    done = f"{len(graph.nodes)} operation{'s' * (len(graph.nodes) != 1)} recorded"
    return GraphRecord(read_only([*nodes, *extra, failing]), (), (), f"{recorded.title}: {done} before the one that failed")


def of_tape(found: Failure, failing: NodeRecord) -> TapeRecord:
    """Eager: what the tensors that went in were computed from."""
    seen = seen_by(found)
    roots = [x.value.node for _, x in seen if x.value is not None] + ([found.node] if found.node is not None else [])
    order = walk(dict.fromkeys(roots))
    ids = {node: f"n{i}" for i, node in enumerate(order)}
    users = first_users(order)
    names = {id(x): name_in(found, x, name) for name, x in seen}
    nodes = []
    for node in order:
        if isinstance(node, Source):
            nodes.append(leaf_record(node, ids[node], users.get(node), names, False))
            if node not in users:  # the failing node is the one that reads it
                nodes[-1] = replace(nodes[-1], label=names.get(id(node.tensor()), nodes[-1].label), scope=found.scope)
        else:
            nodes.append(op_record(node, ids))
    inputs = []
    for k, (name, x) in enumerate(seen):
        if x.value is not None and x.value.node in ids:
            inputs.append(Input(name, ids[x.value.node], x.value.index, str(x.spec)))
        else:
            nodes.append(NodeRecord(f"x{k}", "input", name_in(found, x, name), (str(x.spec),)))
            inputs.append(Input(name, f"x{k}"))
    if found.node is not None:
        inputs.append(Input("", ids[found.node], 0))
    title = "the tape up to there" if any(not isinstance(node, Source) for node in order) else "what went in"
    return TapeRecord((*nodes, replace(failing, inputs=tuple(inputs))), failing.id, 0, title)


def seen_by(found: Failure) -> list[tuple[str, Tensor]]:
    """What the failing node is drawn to read: its inputs; for a line of the learner's what that line could see and
    nothing else had read."""
    if found.label and not found.label.endswith(".forward"):
        return found.got
    known = {id(x) for _, x in found.got}
    near = [("", x) for x in found.near if id(x) not in known]
    pairs = [*found.got, *near]
    nodes = walk(dict.fromkeys(x.value.node for _, x in pairs if x.value is not None))
    read_by = {v.node for node in nodes for v in node.inputs if v.__class__ is Value}
    ends = [(name, x) for name, x in pairs if x.value is None or x.value.node not in read_by]
    return ends or pairs
