"""A saved graph that runs: an nn.Graph whose build makes the saved operations again, one after the other.

Its modules have the names, texts and tensors of those that were saved and none of their code: each runs its own part
of the operations. So a loaded graph is compiled, listed, explored and compared as any other.
Read next: `../nn/graph/build.py`, which calls it; `training/__init__.py`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..core.base.errors import GraphError, OutOfMemoryError, ShapeError
from ..core.memory import LITTLE, free_bytes
from ..core.dispatch import apply
from ..core.functions.shape import views_as
from ..core.infer import infer
from ..core.ir import RECOMPUTE, Node, Value, outputs_of
from ..core.mode import MODE, using
from ..core.op import Op
from ..core.ops.shape import clone, reshape
from ..core.ops.strided import as_strided
from ..core.random import Generator, default_generator
from ..core.functionalize import stride_probe, write
from ..core.spec import Spec, spec_of
from ..core.tensor import Tensor
from ..core.source_location import fail, warn
from ..nn.graph import Graph
from ..nn.graph.messages import check_arguments
from ..nn.graph.tree import unflatten
from ..nn.module import Module
from ..nn.parameter import Parameter
from .attrs import resolved, settled
from .call_arguments import Arguments
from .checks import Malformed
from .document import Document, NodeEntry, Ref, State, inferred
from .dynamic_shapes.retrace import whole_batch, without_memory
from .dynamic_shapes.derived_sizes import check_sizes
from .program import CallEntry

RUN: ContextVar[Run | None] = ContextVar("replay", default=None)


class LoadedContainer(Module):
    """A module of a saved graph: what it was called and what it held, without its class."""

    _text = ""

    def extra_repr(self) -> str:
        return self._text

    def train(self, mode: bool = True) -> LoadedContainer:
        """A saved graph computes what it computed when it was saved, in train() or in eval()."""
        if mode is not self.training:
            warn(
                f"{type(self).__name__}.{'train' if mode else 'eval'}: a saved graph stays in the mode in which it "
                "was saved",
                f"save the graph again after model.{'train' if mode else 'eval'}() and a call",
                training=self.training,
            )
        return self


class LoadedModule(LoadedContainer):
    """One that has a forward: it runs as a part of its graph."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        run = RUN.get()
        if run is None or run.entering is not self:
            name = type(self).__name__
            fail(
                GraphError,
                f"this {name} is a part of a saved graph, without the code of its class: it runs only "
                "inside of its graph",
                f"the graph itself; or the class: {name}(...) and load_state_dict",
                module=name,
            )
        return run.inside()


class LoadedGraph(Graph):
    """A graph that `flow.load_graph` gave: it computes what the saved one computed. See `flow.load_graph`."""

    _document: Document
    _tensors: list[Any]
    _named: dict[str, LoadedContainer]
    _saved_frozen: tuple[tuple[str, str], ...] = ()
    _accumulation, _compiling = 1, False

    @property
    def _last(self) -> Any:
        """The plan that was used last; of a graph that was not called yet that of the inputs it was saved with, so that
        it can be looked at."""
        own = self.__dict__
        if own["_plans"].last is None and not self._compiling:
            own["_compiling"] = True
            try:
                specs = [whole_batch(spec, self._accumulation) for _, spec in self._document.inputs]
                args, kwargs = unflatten(self._document.tree[0], map(without_memory, specs))
                self.compiled_for(args, kwargs)
            finally:
                own["_compiling"] = False
        return own["_plans"].last

    def structure(self, args: tuple, kwargs: dict) -> tuple[Any, list[Tensor], tuple[Spec, ...]]:
        """The structure of a call as it is saved, and its tensors, in whatever way they are given."""
        super().structure(args, kwargs)  # refuses what no graph takes
        arguments = self.__dict__["_arguments"]
        try:
            tensors = arguments.inputs(self.name, args, kwargs)
        except TypeError:
            check_arguments(self, args, kwargs)
            raise
        arguments.check(self.name, [part_of_batch(x.spec, self._accumulation) for x in tensors])
        tensors = [tensors[number] for number in arguments.order]
        return arguments.tree, tensors, tuple([x.spec for x in tensors])

    def named_members(self) -> Iterator[tuple[str, Module]]:
        yield from self._named.items()

    def outside_name(self, tensor: Tensor) -> str:
        return next((s.name for s, t in zip(self._document.states, self._tensors) if t is tensor), "")

    def frozen(self) -> Any:
        """What was fixed when the graph was saved, and what it reads anew at each call."""
        report = super().frozen()
        rows = tuple([(name, text) for name, text in self._saved_frozen])
        return type(report)(replace(report.record, built_in=rows)) if rows else report

    def replay(self, args: tuple, kwargs: dict) -> Any:
        """What the saved build did, for these arguments."""
        if self.training and self.config.accumulation != self._accumulation:
            hint = f"config.set_gradient_accumulation_steps({self._accumulation}); another number where its class is"
            fail(
                GraphError,
                f"{self.name} was saved with {self._accumulation} gradient accumulation steps, and its "
                "gradients are divided by that number",
                hint,
                now=self.config.accumulation,
            )
        for state, tensor in zip(self._document.states, self._tensors):
            if self.training and state.kind == "parameter" and tensor.requires_grad and not state.requires_grad:
                fail(
                    GraphError,
                    f"{self.name}: {state.name} took no gradient when the graph was saved, so there is none for it",
                    f"{state.name}.requires_grad_(False); or save the graph again where its class is",
                    **{state.name: tensor},
                )
        run: Any = None
        try:
            run = Run(self, self._document, args, kwargs)
            return run.whole()
        except Malformed as error:  # it fits the sizes of the file, and not these
            fail(
                ShapeError,
                f"{self.name}: {error.place} must be {error.wanted} at these sizes of the dynamic axes",
                "sizes nearer to those that it was saved with",
                found=error.found,
                **({} if run is None else run.sizes),
            )
        except RecursionError:
            fail(
                GraphError,
                f"{self.name}: its modules call one another deeper than Python goes",
                "sys.setrecursionlimit(100_000), if the file is to be trusted",
                calls=len(self._document.nodes),
            )


def saved_axes(graph: LoadedGraph) -> dict[int, dict[int, str]]:
    """The dynamic axes that a loaded graph was saved with, as `dynamic` has them."""
    axes: dict[int, dict[int, str]] = {}
    for name, places in graph.__dict__["_document"].axes.items():
        for i, axis in places:
            axes.setdefault(i, {})[axis] = name
    return axes


def part_of_batch(spec: Spec, parts: int) -> Spec:
    """The opposite of `whole_batch`; of an input that cannot be divided itself: the build says so."""
    if parts == 1 or not spec.shape or spec.shape[0] % parts:
        return spec
    return spec.replace(shape=(spec.shape[0] // parts, *spec.shape[1:]))


def loaded(document: Document, frozen: Any = ()) -> LoadedGraph:
    """The graph of a document, without optimizers yet."""
    arguments = Arguments(document)
    graph = class_of(document, arguments)()
    own = graph.__dict__
    tensors = [tensor_of(state) for state in document.states]
    modules: list[LoadedContainer] = []
    classes: dict[Any, type[LoadedContainer]] = {}
    for entry in document.modules:
        base = LoadedContainer if entry.container else LoadedModule
        key = base, entry.kind, entry.text
        if key not in classes:
            classes[key] = type(entry.kind, (base,), {"__module__": __name__, "_text": entry.text})
        module = classes[key]()
        module.training = entry.training
        modules.append(module)
    for entry, module in zip(document.modules, modules):
        for name, number in entry.parameters.items():
            module.register_parameter(name, tensors[number])
        for name, number in entry.buffers.items():
            module.register_buffer(name, tensors[number], name not in entry.transient)
        for name, number in entry.children.items():
            module.add_module(name, modules[number])
    named = {name: modules[number] for name, number in document.members.items()}
    met = [(path, modules[number]) for path, number in document.met.items()]
    own.update(
        _document=document,
        _arguments=arguments,
        _tensors=tensors,
        _named=named,
        _saved_frozen=tuple(frozen),
        _modules_by_number=modules,
        _met=met,
    )
    for name, module in named.items():
        if hasattr(type(graph), name) or name in own:
            raise Malformed("names that a graph has not", name, "members")
        if "." not in name:
            setattr(graph, name, module)
    return graph


def class_of(document: Document, arguments: Arguments) -> type[LoadedGraph]:
    """A class of the saved name, whose build has the saved arguments."""

    def build(self: LoadedGraph, *args: Any, **kwargs: Any) -> Any:
        return self.replay(args, kwargs)

    kinds = inspect.Parameter
    first = kinds("self", kinds.POSITIONAL_OR_KEYWORD)
    signature = inspect.Signature([first, *arguments.signature.parameters.values()])
    build.__signature__ = signature  # type: ignore[attr-defined]
    name = document.name if document.kind == "job" else document.kind
    return type(name, (LoadedGraph,), {"build": build, "__module__": __name__, "__doc__": LoadedGraph.__doc__})


def tensor_of(state: State) -> Any:
    """The tensor of a state; of a generator the Generator itself."""
    if state.kind == "generator":
        if state.name == "generator":
            return default_generator
        return Generator().set_state(np.array(state.words, "int64"))
    if state.kind == "parameter":
        return Parameter(Tensor(state.array, state.spec), state.requires_grad)
    tensor = Tensor(state.array, state.spec)
    tensor.label = state.name.rpartition(".")[2] if state.kind == "buffer" else ""
    return tensor


def needs_copy(op: Op, array: np.ndarray, attrs: Any) -> bool:
    """True if the op looks into contiguous elements, and the array has none in the shape of its result."""
    return op is as_strided or op is reshape and not views_as(array, attrs["shape"])


class Run:
    """One replay, in a trace or in eager. env: number of a value -> its Value in a trace, else its Tensor."""

    def __init__(self, graph: LoadedGraph, document: Document, args: tuple, kwargs: dict):
        self.graph, self.document = graph, document
        self.mode = MODE.get()
        self.traced = self.mode.trace is not None
        self.entering: Any = None
        self.by_number: dict[int, Node] = {}
        arguments = graph.__dict__["_arguments"]
        inputs = arguments.inputs(graph.name, args, kwargs)
        arguments.check(graph.name, [x.spec for x in inputs])
        self.sizes = document.sizes([x.spec for x in inputs]) if document.axes else {}
        self.env: dict[int, Any] = {}
        self.draws: dict[int, Any] = {}
        for number, x in enumerate(inputs):
            self.env[number] = x.value if self.traced else x
        # what an exact graph takes as it is in memory: inputs that are not contiguous, and views of them
        self.strided = {x.value: stride_probe(x) for x in inputs if self.traced and x.alias is not None}
        for number, (state, tensor) in enumerate(zip(document.states, graph._tensors), len(inputs)):
            self.add_state(number, state, tensor)

    def add_state(self, number: int, state: State, tensor: Any) -> None:
        if state.kind == "generator":
            draws = [self.mode.draw(tensor) for _ in range(state.draws)]
            if draws and self.traced:
                self.env[number] = draws[0][0].value
            self.draws[number] = iter(draws), {}
            return
        if state.kind == "constant":
            if state.filled is not None:
                array = state.filled.at(self.sizes, tensor.spec.np)
                tensor = Tensor(array, spec_of(array))
            if self.traced:
                tensor.array.flags.writeable = False  # as where it was saved
                self.mode.trace.created[id(tensor.array)] = tensor.array
        self.env[number] = self.mode.trace.own(tensor).value if self.traced else tensor

    # ---- the operations ----------------------------------------------------------------------------------------------

    def whole(self) -> Any:
        token = RUN.set(self)
        try:
            self.part(0, len(self.document.nodes), self.document.calls)
            self.finish()
            shape, refs = self.document.outputs
            return unflatten(shape, [self.tensor(r) for r in refs])
        finally:
            RUN.reset(token)

    def part(self, first: int, last: int, calls: Sequence[CallEntry]) -> None:
        """The nodes first:last; those of calls inside of the modules that were called."""
        modules = self.graph.__dict__["_modules_by_number"]
        for call in calls:
            self.nodes(first, call.first)
            self.call(modules[call.module], call)
            first = call.last
        self.nodes(first, last)

    def call(self, module: LoadedModule, call: CallEntry) -> None:
        shape, refs = call.inputs
        args, kwargs = unflatten(shape, [self.tensor(r) for r in refs])

        def inside() -> Any:
            self.entering = None
            self.part(call.first, call.last, call.children)
            shape, refs = call.output
            return unflatten(shape, [self.tensor(r) for r in refs])

        self.entering, self.inside = module, inside
        module(*args, **kwargs)

    def nodes(self, first: int, last: int) -> None:
        for number in range(first, last):
            entry = self.document.nodes[number]
            attrs = entry.attrs
            if entry.dynamic:
                attrs = self.attrs(entry)
            (self.trace_node if self.traced else self.run_node)(number, entry, attrs)

    def attrs(self, entry: NodeEntry) -> Mapping[str, Any]:
        """At the sizes of this call."""
        check_sizes(entry.op.name, resolved(entry.attrs, self.sizes).get("shape", ()), self.sizes)
        now = settled(entry.op, entry.attrs, self.sizes)
        given = [x.spec if isinstance(x, Tensor | Value) else x for x in map(self.given, entry.inputs)]
        inferred(entry.op, given, now, entry.op.name)
        return now

    def trace_node(self, number: int, entry: NodeEntry, attrs: Any) -> None:
        """Append the node to the trace, as it was there."""
        trace, mode = self.mode.trace, MODE.get()
        values = [self.given(x) for x in entry.inputs]
        array = self.strided.get(values[0]) if self.strided and values and isinstance(values[0], Value) else None
        if array is not None and needs_copy(entry.op, array, attrs):
            copied = Node(clone, values[:1], {}, (values[0].spec,), entry.needs, (), entry.scope, None)
            copied.number = len(trace.graph.nodes)
            trace.graph.nodes.append(copied)
            values[0], array = outputs_of(copied)[0], None
        specs = infer(entry.op, values, attrs)[1]
        self.need_room(entry, specs)
        where = None if entry.line is None else place_of(*entry.line)
        node = Node(entry.op, values, attrs, specs, entry.needs, (), entry.scope, where)
        origin = entry.origin
        node.origin = origin if origin is None or origin == RECOMPUTE else self.by_number.get(origin, node)
        node.number = len(trace.graph.nodes)
        trace.graph.nodes.append(node)
        self.by_number[number] = node
        if mode.watch is not None:
            mode.watch.added(node)
        for k, value in enumerate(outputs_of(node)):
            self.env[entry.first + k] = value
        if array is not None and entry.op.is_view and not entry.op.checks:
            self.strided[outputs_of(node)[0]] = entry.op.kernel(array, **attrs)

    def need_room(self, entry: NodeEntry, specs: Sequence[Spec]) -> None:
        """Refuse what would not fit into memory if it was there: a view takes none, and what reads it copies it."""
        needed = sum([spec.nbytes for spec in specs])
        if needed > LITTLE and needed > self.most:
            fail(
                OutOfMemoryError,
                f"{self.graph.name}: {entry.op.name} gives {specs[0]}, {needed:,} bytes",
                "smaller inputs; a machine with more memory",
                free=f"{self.most:,} bytes",
            )

    @cached_property
    def most(self) -> float:
        free = free_bytes()
        return math.inf if free is None else free

    def run_node(self, number: int, entry: NodeEntry, attrs: Any) -> None:
        """Run the node now, as eager does."""
        values = [self.given(x) for x in entry.inputs]
        for k, x in enumerate(entry.inputs):
            if isinstance(x, Ref) and x in self.draws:
                draws, done = self.draws[x]
                place = attrs["offset"]  # of the file: what is computed again has the numbers of the first time
                values[k], offset = done[place] if place in done else done.setdefault(place, next(draws))
                attrs = {**attrs, "offset": offset}
        _, mark, part = (entry.scope or "").partition("/")  # of a function in several operations: its name
        mode = MODE.get()
        mode = mode.replace(
            grad=False, origin=None if entry.origin is None else "backward", scope=f"{mode.scope}{mark}{part}"
        )
        with using(mode):
            results = apply(entry.op, *values, **attrs)
        for k, tensor in enumerate(results if entry.op.many else [results]):
            self.env[entry.first + k] = tensor

    def given(self, x: Any) -> Any:
        if isinstance(x, Ref):
            return self.env.get(x)
        return resolved(x, self.sizes)

    def tensor(self, number: int) -> Tensor:
        """The tensor of a value, for those who take and give tensors."""
        x = self.env[number]
        return x if x.__class__ is not Value else self.mode.trace.symbol(None, x.spec, x, False)

    # ---- what a call leaves behind -----------------------------------------------------------------------------------

    def finish(self) -> None:
        """New values of states; gradients, which the optimizers take from there."""
        document, tensors, watch = self.document, self.graph._tensors, self.mode.watch
        for number, value in document.updates:
            if self.traced:
                self.mode.trace.own(tensors[number]).value = self.env[value]
            else:
                with using(self.mode.replace(grad=False)):
                    write(tensors[number], self.env[value])
        for number, value in document.gradients:
            if tensors[number].requires_grad:  # one that is frozen since then takes no step
                tensors[number].grad = self.tensor(value)
        if document.loss is not None and watch is not None:
            watch.loss = self.env[document.loss]
            watch.backwards.append(None)


def place_of(file: str, line: int) -> tuple[Any, int]:
    """A place of the program that was saved: its file is only a name here."""
    return partial(_empty.__code__.replace, co_filename=f"<saved>/{file}", co_firstlineno=line)(), 0


def _empty() -> None:
    """Lends its code to `place_of`; never called."""
