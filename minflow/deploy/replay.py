"""Run a saved graph: an nn.Graph whose build replays the saved nodes in order.

Its modules have the names, texts and tensors of the saved ones but not their code: each runs its part of the nodes. A
loaded graph can therefore be compiled, listed, explored and compared like any other. Read next: `../nn/graph/build.py`,
which calls it; `training/__init__.py`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from ..compiler.dynamic_shapes.derived_sizes import check_sizes
from ..core.backend import Array, on_host, placed
from ..core.base.errors import GraphError, OutOfMemoryError, ShapeError
from ..core.dispatch import apply
from ..core.functionalize import stride_probe, write_into
from ..core.functions.shape import array_has_view
from ..core.host import host_array
from ..core.infer import infer
from ..core.ir import RECOMPUTE, Node, Value, outputs_of
from ..core.kernels import launch
from ..core.memory import MIN_CHECKED_BYTES, free_bytes
from ..core.mode import MODE, using
from ..core.op import Op
from ..core.ops.shape import clone, reshape
from ..core.ops.strided import as_strided
from ..core.random import Generator, default_generator
from ..core.source_location import fail, warn
from ..core.spec import Spec, spec_of
from ..core.tensor import Tensor
from ..nn.graph import Graph
from ..nn.graph.messages import check_arguments
from ..nn.graph.tree import unflatten
from ..nn.module import Module
from ..nn.parameter import Parameter
from .attrs import attrs_at_sizes, resolve_sizes
from .call_arguments import SavedArguments
from .checks import Malformed
from .document import Document, NodeEntry, Ref, State, infer_specs
from .program import CallEntry
from .retrace import whole_batch, without_memory

CURRENT_REPLAY: ContextVar[Replay | None] = ContextVar("replay", default=None)


class LoadedContainer(Module):
    """A module of a saved graph: its name and contents, without its class."""

    _text = ""

    def extra_repr(self) -> str:
        return self._text

    def train(self, mode: bool = True) -> LoadedContainer:
        """Warn if the mode would change: a saved graph keeps the mode that it had when saved."""
        if mode is not self.training:
            warn(
                f"{type(self).__name__}.{'train' if mode else 'eval'}: a saved graph stays in the mode in which it "
                "was saved",
                f"save the graph again after model.{'train' if mode else 'eval'}() and a call",
                training=self.training,
            )
        return self


class LoadedModule(LoadedContainer):
    """A module with a forward, which runs as part of its graph."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        run = CURRENT_REPLAY.get()
        if run is None or run.entered_module is not self:
            name = type(self).__name__
            fail(
                GraphError,
                f"this {name} is a part of a saved graph, without the code of its class: it runs only inside its graph",
                f"the graph itself; or the class: {name}(...) and load_state_dict",
                module=name,
            )
        return run.run_body()


class LoadedGraph(Graph):
    """A graph returned by `flow.load_graph`."""

    _document: Document
    _tensors: list[Any]
    _named: dict[str, LoadedContainer]
    _saved_frozen: tuple[tuple[str, str], ...] = ()
    _accumulation, _compiling = 1, False

    @property
    def _last(self) -> Any:
        """The most recently used plan; before the first call, a plan for the saved input specs, so that it can be
        inspected.
        """
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
        """The structure of a call in its saved form, and its tensors, however they are passed."""
        super().structure(args, kwargs)  # refuses arguments that no graph accepts
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

    def outside_names(self) -> Callable[[Tensor], str]:
        names = {id(tensor): state.name for state, tensor in zip(self._document.states, self._tensors)}
        return lambda tensor: names.get(id(tensor), "")

    def frozen(self) -> Any:
        """Parts of the plan key: values fixed when the graph was saved, and values read at each call."""
        report = super().frozen()
        rows = tuple([(name, text) for name, text in self._saved_frozen])
        return type(report)(replace(report.record, built_in=rows)) if rows else report

    def replay(self, args: tuple, kwargs: dict) -> Any:
        """Replay the saved build for these arguments."""
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
                what = f"{self.name}: {state.name} took no gradient when the graph was saved, so there is none for it"
                hint = f"{state.name}.requires_grad_(False); or save the graph again where its class is"
                fail(GraphError, what, hint, **{state.name: tensor})
        run: Any = None
        try:
            run = Replay(self, self._document, args, kwargs)
            return run.run_all()
        except Malformed as error:  # valid at the saved sizes, but not at these
            what = f"{self.name}: {error.place} must be {error.expected} at these sizes of the dynamic axes"
            hint = "sizes nearer to those that it was saved with"
            fail(ShapeError, what, hint, found=error.actual, **{} if run is None else run.sizes)
        except RecursionError:
            what = f"{self.name}: its module calls are nested deeper than Python's recursion limit"
            hint = "sys.setrecursionlimit(100_000), if the file is to be trusted"
            fail(GraphError, what, hint, calls=len(self._document.nodes))


def saved_axes(graph: LoadedGraph) -> dict[int, dict[int, str]]:
    """The saved dynamic axes of a loaded graph, in the form of the argument `dynamic`."""
    axes: dict[int, dict[int, str]] = {}
    for name, places in graph.__dict__["_document"].axes.items():
        for i, axis in places:
            axes.setdefault(i, {})[axis] = name
    return axes


def part_of_batch(spec: Spec, parts: int) -> Spec:
    """Inverse of `whole_batch`. An input that cannot be divided is returned as it is; the build then raises the
    error.
    """
    if parts == 1 or not spec.shape or spec.shape[0] % parts:
        return spec
    return spec.replace(shape=(spec.shape[0] // parts, *spec.shape[1:]))


def graph_of(document: Document, frozen: Any = ()) -> LoadedGraph:
    """Create the graph of a document, without optimizers."""
    arguments = SavedArguments(document)
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
    nonmembers = [(path, modules[number]) for path, number in document.nonmembers.items()]
    own.update(
        _document=document,
        _arguments=arguments,
        _tensors=tensors,
        _named=named,
        _saved_frozen=tuple(frozen),
        _modules_by_number=modules,
        _nonmembers=nonmembers,
    )
    for name, module in named.items():
        if hasattr(type(graph), name) or name in own:
            raise Malformed("names that a graph does not have", name, "members")
        if "." not in name:
            setattr(graph, name, module)
    return graph


def class_of(document: Document, arguments: SavedArguments) -> type[LoadedGraph]:
    """Create a class with the saved name, whose build has the saved parameters."""

    def build(self: LoadedGraph, *args: Any, **kwargs: Any) -> Any:
        return self.replay(args, kwargs)

    kinds = inspect.Parameter
    first = kinds("self", kinds.POSITIONAL_OR_KEYWORD)
    signature = inspect.Signature([first, *arguments.signature.parameters.values()])
    build.__signature__ = signature  # type: ignore[attr-defined]
    name = document.name if document.kind == "job" else document.kind
    return type(name, (LoadedGraph,), {"build": build, "__module__": __name__, "__doc__": LoadedGraph.__doc__})


def tensor_of(state: State) -> Any:
    """The tensor of a state, or its Generator."""
    if state.kind == "generator":
        if state.name == "generator":
            return default_generator
        return Generator().set_state(host_array(state.words, "int64"))
    tensor = Tensor(placed(state.array, state.spec.device), state.spec)
    if state.kind == "parameter":
        return Parameter(tensor, state.requires_grad)
    tensor._label = state.name.rpartition(".")[2] if state.kind == "buffer" else ""
    return tensor


def needs_copy(op: Op, array: Array, attrs: Any) -> bool:
    """True if the op is a view of contiguous elements and the array is not contiguous in the required shape."""
    return op is as_strided or (op is reshape and not array_has_view(array, attrs["shape"]))


class Replay:
    """One replay, in a trace or in eager mode. env: index of a value -> its Value in a trace, else its Tensor."""

    def __init__(self, graph: LoadedGraph, document: Document, args: tuple, kwargs: dict):
        self.graph, self.document = graph, document
        self.mode = MODE.get()
        self.traced = self.mode.trace is not None
        self.entered_module: Any = None
        self.by_number: dict[int, Node] = {}
        arguments = graph.__dict__["_arguments"]
        inputs = arguments.inputs(graph.name, args, kwargs)
        arguments.check(graph.name, [x.spec for x in inputs])
        self.sizes = document.sizes([x.spec for x in inputs]) if document.axes else {}
        self.env: dict[int, Any] = {}
        self.draws: dict[int, Any] = {}
        for number, x in enumerate(inputs):
            self.env[number] = x._value if self.traced else x
        # non-contiguous inputs of an exact graph, and views of them, keep their strides
        self.strided = {x._value: stride_probe(x) for x in inputs if self.traced and x._alias is not None}
        for number, (state, tensor) in enumerate(zip(document.states, graph._tensors), len(inputs)):
            self.add_state(number, state, tensor)

    def add_state(self, number: int, state: State, tensor: Any) -> None:
        if state.kind == "generator":
            draws = [self.mode.draw(tensor) for _ in range(state.draws)]
            if draws and self.traced:
                self.env[number] = draws[0][0]._value
            self.draws[number] = iter(draws), {}
            return
        if state.kind == "constant":
            if state.filled is not None:
                array = placed(state.filled.evaluate(self.sizes, tensor.spec.np), tensor.spec.device)
                tensor = Tensor(array, spec_of(array))
            if self.traced:
                if on_host(tensor.array):
                    tensor.array.flags.writeable = False  # as in the saved graph
                self.mode.trace.created[id(tensor.array)] = tensor.array
        self.env[number] = self.mode.trace.resolve(tensor)._value if self.traced else tensor

    # ---- the operations ----------------------------------------------------------------------------------------------

    def run_all(self) -> Any:
        token = CURRENT_REPLAY.set(self)
        try:
            self.run_range(0, len(self.document.nodes), self.document.calls)
            self.finish()
            shape, refs = self.document.outputs
            return unflatten(shape, [self.tensor(r) for r in refs])
        finally:
            CURRENT_REPLAY.reset(token)

    def run_range(self, first: int, last: int, calls: Sequence[CallEntry]) -> None:
        """Replay nodes[first:last]; nested calls run inside their modules."""
        modules = self.graph.__dict__["_modules_by_number"]
        for call in calls:
            self.nodes(first, call.first)
            self.run_call(modules[call.module], call)
            first = call.last
        self.nodes(first, last)

    def run_call(self, module: LoadedModule, call: CallEntry) -> None:
        shape, refs = call.inputs
        args, kwargs = unflatten(shape, [self.tensor(r) for r in refs])

        def run_body() -> Any:
            self.entered_module = None
            self.run_range(call.first, call.last, call.children)
            shape, refs = call.output
            return unflatten(shape, [self.tensor(r) for r in refs])

        self.entered_module, self.run_body = module, run_body
        module(*args, **kwargs)

    def nodes(self, first: int, last: int) -> None:
        for number in range(first, last):
            entry = self.document.nodes[number]
            attrs = entry.attrs
            if entry.dynamic:
                attrs = self.attrs(entry)
            (self.trace_node if self.traced else self.run_node)(number, entry, attrs)

    def attrs(self, entry: NodeEntry) -> Mapping[str, Any]:
        """Attrs at the sizes of this call."""
        check_sizes(entry.op.name, resolve_sizes(entry.attrs, self.sizes).get("shape", ()), self.sizes)
        now = attrs_at_sizes(entry.op, entry.attrs, self.sizes)
        given = [x.spec if isinstance(x, Tensor | Value) else x for x in map(self.input_value, entry.inputs)]
        infer_specs(entry.op, given, now, entry.op.name)
        return now

    def trace_node(self, number: int, entry: NodeEntry, attrs: Any) -> None:
        """Append the node to the trace, as it was recorded."""
        trace, mode = self.mode.trace, MODE.get()
        values = [self.input_value(x) for x in entry.inputs]
        array = self.strided.get(values[0]) if self.strided and values and isinstance(values[0], Value) else None
        if array is not None and needs_copy(entry.op, array, attrs):
            copied = Node(clone, values[:1], {}, (values[0].spec,), entry.needs, (), entry.scope, None)
            copied.number = len(trace.graph.nodes)
            trace.graph.nodes.append(copied)
            values[0], array = outputs_of(copied)[0], None
        specs = infer(entry.op, values, attrs)[1]
        self.check_memory(entry, specs)
        where = None if entry.line is None else saved_location(*entry.line)
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
            self.strided[outputs_of(node)[0]] = launch(entry.op, (array,), attrs)

    def check_memory(self, entry: NodeEntry, specs: Sequence[Spec]) -> None:
        """Raise GraphError if an output would not fit into memory. Views are included: they take no memory, but a
        consumer may copy them.
        """
        needed = sum([spec.nbytes for spec in specs])
        if needed > MIN_CHECKED_BYTES and needed > self.free_memory:
            what = f"{self.graph.name}: {entry.op.name} gives {specs[0]}, {needed:,} bytes"
            hint = "smaller inputs; a machine with more memory"
            fail(OutOfMemoryError, what, hint, free=f"{self.free_memory:,} bytes")

    @cached_property
    def free_memory(self) -> float:
        free = free_bytes()
        return math.inf if free is None else free

    def run_node(self, number: int, entry: NodeEntry, attrs: Any) -> None:
        """Run the node at once, as in eager mode."""
        values = [self.input_value(x) for x in entry.inputs]
        for k, x in enumerate(entry.inputs):
            if isinstance(x, Ref) and x in self.draws:
                draws, done = self.draws[x]
                place = attrs["offset"]  # from the file: a recomputed node draws the same numbers
                values[k], offset = done[place] if place in done else done.setdefault(place, next(draws))
                attrs = {**attrs, "offset": offset}
        _, mark, part = (entry.scope or "").partition("/")  # a part is the name of a function made of several ops
        mode = MODE.get()
        mode = mode.replace(
            grad=False, origin=None if entry.origin is None else "backward", scope=f"{mode.scope}{mark}{part}"
        )
        with using(mode):
            results = apply(entry.op, *values, **attrs)
        for k, tensor in enumerate(results if entry.op.many else [results]):
            self.env[entry.first + k] = tensor

    def input_value(self, x: Any) -> Any:
        if isinstance(x, Ref):
            return self.env.get(x)
        return resolve_sizes(x, self.sizes)

    def tensor(self, number: int) -> Tensor:
        """The tensor of a value, for code that takes tensors."""
        x = self.env[number]
        return x if x.__class__ is not Value else self.mode.trace.symbol(None, x.spec, x, False)

    # ---- effects of a call -------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Write new values of states, and gradients, which the optimizers read."""
        document, tensors, watch = self.document, self.graph._tensors, self.mode.watch
        for number, value in document.updates:
            if self.traced:
                self.mode.trace.resolve(tensors[number])._value = self.env[value]
            else:
                with using(self.mode.replace(grad=False)):
                    write_into(tensors[number], self.env[value])
        for number, value in document.gradients:
            if tensors[number].requires_grad:  # a parameter frozen after loading takes no step
                tensors[number].grad = self.tensor(value)
        if document.loss is not None and watch is not None:
            watch.loss = self.env[document.loss]
            watch.backwards.append(None)


def saved_location(file: str, line: int) -> tuple[Any, int]:
    """A source location in the saved program; its file need not exist."""
    return partial(_empty.__code__.replace, co_filename=f"<saved>/{file}", co_firstlineno=line)(), 0


def _empty() -> None:
    """Provides a code object for `saved_location`; never called."""
