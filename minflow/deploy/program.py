"""The computation of a traced graph or job, independent of its code: the input of saving and export.

A Program is the trace before any pass, without the optimizer's nodes (the optimizer recreates them), with the tensors
it uses, the modules by class name and text only, and the calls of modules by the nodes that they recorded. Read next:
`../compiler/dynamic_shapes/__init__.py`, the sizes that differ from call to call; `writing.py`, a Program as data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..compiler.dynamic_shapes.axes import axes_of
from ..compiler.dynamic_shapes.derived_sizes import SizedConstant
from ..compiler.dynamic_shapes.traces import solve_sizes
from ..compiler.names import op_names
from ..core.backend import Array, backend_of_array
from ..core.base.errors import GraphError
from ..core.ir import CONSTANT, Graph, Node, Source, Value
from ..core.random import default_generator
from ..core.source_location import fail
from ..core.tensor import Tensor
from ..core.trace import Trace
from ..introspection.graph.listing.reports import frozen_record, is_container
from ..job.function import Job
from ..nn.graph.build import Build
from ..nn.graph.graph import RunningGraph
from ..nn.graph.tree import Leaf, flatten
from .retrace import check_unchanged, retrace_graph, retrace_job


@dataclass(frozen=True, eq=False)
class ProgramTensor:
    """A tensor that a program holds. kind: "parameter", "buffer", "captured", "constant", or "generator", which has no
    array but `draws`, its number of draws per call.
    """

    name: str
    kind: str
    tensor: Tensor | None = None
    source: Source | None = None  # its source in the trace; None if the program does not read it
    generator: Any = None
    draws: int = 0


@dataclass(frozen=True, eq=False)
class ModuleEntry:
    """A module as listed: its first path, class, and `extra_repr`; tensors and children by index."""

    path: str
    kind: str
    text: str
    training: bool
    parameters: dict[str, int]
    buffers: dict[str, int]
    children: dict[str, int]
    transient: tuple[str, ...] = ()  # names of non-persistent buffers
    container: bool = False  # True if it has no forward, like ModuleList


@dataclass(frozen=True, eq=False)
class CallEntry:
    """One call of a module, with nodes[first:last]. inputs, output: structures with Values at the leaves."""

    module: int
    first: int
    last: int
    inputs: Any
    output: Any
    children: Sequence[CallEntry] = ()


@dataclass(frozen=True, eq=False)
class Program:
    """A computation without its code.

    graph: before all passes; its sources are named as in listings.  arguments: names of build's parameters.
    tree, out_tree: structures of arguments and result, see `../nn/graph/tree.py`.  names: node names, as listed.
    tensors: parameters, buffers and all other tensors it reads.  members: attribute of the graph -> index of a module.
    nonmembers: path -> index of a module that is not a member.  gradients: index of a parameter -> its gradient
    (training graphs).  loss: the tensor on which backward was called.  axes: the dynamic axes.  size_dependent,
    sized_constants: values that depend on them: attrs by name, literals by input position, and constants; see
    `../compiler/dynamic_shapes/derived_sizes.py`.
    """

    name: str
    kind: str
    graph: Graph
    names: dict[Node, str]
    arguments: tuple[str, ...]
    tree: Any
    out_tree: Any
    tensors: list[ProgramTensor]
    modules: list[ModuleEntry] = field(default_factory=list)
    members: dict[str, int] = field(default_factory=dict)
    nonmembers: dict[str, int] = field(default_factory=dict)
    calls: tuple[CallEntry, ...] = ()
    gradients: dict[int, Value] = field(default_factory=dict)
    loss: Value | None = None
    training: bool = False
    frozen: tuple[tuple[str, str], ...] = ()
    axes: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    size_dependent: Mapping[Node, Mapping[str | int, Any]] = field(default_factory=dict)
    sized_constants: Mapping[Source, SizedConstant] = field(default_factory=dict)


def unchanged(program: Program) -> Program:
    return program


def program_of(obj: Any, dynamic: Any = None, prepare: Callable[[Program], Program] = unchanged) -> Program:
    """The Program of the most recently used plan of an nn.Graph or a predict job. dynamic: axes whose size may change
    from call to call, {"x": {0: "batch"}}; build is then also traced at other sizes. prepare: applied to the program
    of each trace. Raises GraphError if `obj` was never called.
    """
    if isinstance(obj, Job):
        return program_of_job(obj, dynamic, prepare)
    if not isinstance(obj, RunningGraph):
        what = f"only a graph or a job function can be saved or exported, got a {type(obj).__name__}"
        fail(GraphError, what, "class MyGraph(nn.Graph): ..., an object of it, called once", got=obj)
    if obj._last is None:
        hint = f"call it once with an example of its inputs: {obj.name.rpartition('_')[0]}()(x)"
        fail(GraphError, f"{obj.name} was never called, so there is no computation to save", hint, graph=obj.name)
    compiled = obj._last
    compiled.relink()
    frozen = frozen_record(obj, compiled).built_in
    build = compiled.build
    if compiled.strided:  # a file does not record the strides of inputs
        build = retrace_graph(obj, compiled, [tensor.spec for tensor in build.inputs])
    program = prepare(program_of_build(obj, build, frozen))
    if not dynamic:
        return program
    check_unchanged(obj.name, obj._plans, compiled, compiled.mode[1])

    def retrace(specs: list) -> Program:
        return prepare(program_of_build(obj, retrace_graph(obj, compiled, specs), frozen))

    return with_dynamic_axes(program, dynamic, retrace)


def with_dynamic_axes(program: Program, dynamic: Any, retrace: Callable[[list], Program]) -> Program:
    """Add the values that depend on the dynamic axes to the program. retrace: function that traces the program for
    other input specs.
    """
    inputs = program.graph.inputs
    names, specs = [source.name for source in inputs], [source.out_specs[0] for source in inputs]
    axes = axes_of(dynamic, names, specs)
    base, size_dependent, sized_constants = solve_sizes(axes, names, specs, program, retrace)
    return replace(base, axes=axes, size_dependent=size_dependent, sized_constants=sized_constants)


def program_of_build(graph: Any, build: Build, frozen: tuple) -> Program:
    traced, trace = build.traced, build.trace
    collector = TensorCollector(trace)
    moments = {id(t.array) for optimizer, _ in graph.optimizers for s in optimizer.state.values() for t in s.values()}
    collector.traced = {s.name for s in collector.sources.values() if id(s.array) not in moments}
    modules = Modules(collector)
    members = {name: modules.index_of(name, member) for name, member in graph.named_members()}
    paths = [(path, module) for path, module in build.nonmember_paths() if "." not in path]
    nonmembers = {path: modules.index_of(path, module) for path, module in paths}
    for name, tensor in build.captured:
        collector.add(name, "captured", tensor)
    ir = collector.graph(traced.nodes, build.outputs, traced.updates)
    parameters = {id(h.tensor): number for number, h in enumerate(collector.tensors)}
    gradients = {parameters[key]: collector.resolve(v) for key, v in traced.gradients.items() if key in parameters}
    return Program(
        graph.name,
        type(graph).__name__,
        ir,
        op_names(ir.nodes),
        argument_names(graph),
        build.tree,
        build.out_tree,
        collector.tensors,
        modules.entries,
        members,
        nonmembers,
        tuple(collector.calls(build.top.children, modules)),
        gradients,
        None if build.loss is None else collector.resolve(build.loss),
        bool(graph.optimizers),
        frozen,
    )


def argument_names(graph: Any) -> tuple[str, ...]:
    """Names of build's parameters, in positional order; keyword arguments have their own names."""
    import inspect

    parameters = inspect.signature(graph.build).parameters.values()
    return tuple(("*" if p.kind == 2 else "**" if p.kind == 4 else "") + p.name for p in parameters)


def program_of_job(job: Job, dynamic: Any, prepare: Callable[[Program], Program]) -> Program:
    if job.training:
        fail(
            GraphError,
            f"the job {job.name} trains; only predict jobs can be saved and exported",
            '@flow.global_function(type="predict") for the part that predicts; flow.checkpoint.save keeps the '
            "variables of a training",
            job=job.name,
        )
    compiled = job.compiled
    if compiled is None:
        what = f"the job {job.name} was never called, so there is no computation to save"
        fail(GraphError, what, f"{job.name}(...) once", job=job.name)
    ranks = job.together
    if job.devices > 1 or ranks is not None:
        devices = job.devices if ranks is None else len(ranks.order)
        what = f"the job {job.name} runs on {devices} devices; a saved job must run on one"
        fail(GraphError, what, "flow.config.cpu_device_num(1)", job=job.name)
    program = prepare(program_of_step(job, compiled, compiled.part.stages[0].graph, compiled.uses))
    if not dynamic:
        return program
    check_unchanged(f"the job {job.name}", job.plans, compiled)

    def retrace(specs: list) -> Program:
        build, part = retrace_job(job, specs)
        return prepare(program_of_step(job, build, part.graph, compiled.uses))

    return with_dynamic_axes(program, dynamic, retrace)


def program_of_step(job: Job, build: Any, graph: Graph, uses: frozenset[str]) -> Program:
    """The Program of one step of a job. build: has the trace, the value and the positions of the results.  uses: names
    of the variables.
    """
    collector = TensorCollector(build.trace)
    variables = {
        name.replace(".", "/"): collector.add(name, "parameter", variable.tensor)
        for name, variable in job.session.variables.items()
        if name in uses
    }
    outputs = [graph.outputs[column[0]] for column in build.positions]
    ir = collector.graph(len(graph.nodes), outputs, graph.updates)
    shapes = tuple([placeholders(tree) for tree in job.signature.arguments.values()])
    tree = tuple, None, ((tuple, None, shapes), (dict, (), ()))
    out_tree, _ = flatten(build.value, keep_leaf)
    module = ModuleEntry("variables", "Variables", "", False, variables, {}, {}, container=True)
    return Program(
        job.name,
        "job",
        ir,
        op_names(ir.nodes),
        tuple(job.signature.arguments),
        tree,
        out_tree,
        collector.tensors,
        [module],
        {"variables": 0},
    )


def placeholders(tree: Any) -> Any:
    """The structure of a job's argument, as `flatten` returns it."""
    return (tuple, None, tuple([placeholders(inner) for inner in tree])) if isinstance(tree, tuple) else "tensor"


def keep_leaf(path: str, leaf: Any) -> Leaf:
    return Leaf(leaf)


class TensorCollector:
    """Collects the tensors that a trace reads. forwarded: output of an autograd.Function node -> the value it
    forwards.
    """

    def __init__(self, trace: Trace):
        self.trace = trace
        self.tensors: list[ProgramTensor] = []
        self.indices: dict[tuple, int] = {}  # storage -> index of the tensor in `tensors`
        self.forwarded: dict[Value, Value] = {}
        self.names: set[str] = set()
        self.sources = {key_of(s.array): s for s in trace.graph.states if s.read is None}
        self.traced: set[str] = set()  # names of the parameters and buffers that the trace reads or writes

    def add(self, name: str, kind: str, tensor: Tensor) -> int:
        """Index of a tensor, which is added if new; tensors that share a storage share an index."""
        if tensor.array is None:
            what = f"{name} is a symbolic tensor, which has no numbers to save"
            fail(GraphError, what, "a tensor made before build", tensor=tensor)
        if tensor._alias is not None and tensor._alias.path and kind != "captured":
            what = f"{name} is a view of another tensor, and a saved {kind} has a storage of its own"
            fail(GraphError, what, f"{kind} = tensor.clone()", tensor=tensor)
        key = key_of(tensor.array)
        if kind != "captured" and key not in self.sources and name in self.traced:
            what = f"{name} is not the tensor of the last call"
            fail(GraphError, what, "call it once more, then save it", tensor=tensor)
        if key not in self.indices:
            self.indices[key] = len(self.tensors)
            self.tensors.append(ProgramTensor(self.unique_name(name), kind, tensor, self.sources.get(key)))
        return self.indices[key]

    def unique_name(self, name: str) -> str:
        base, number = name, 1
        while name in self.names:
            number += 1
            name = f"{base}~{number}"
        self.names.add(name)
        return name

    def graph(self, count: int, outputs: list[Value], updates: Mapping[Source, Value]) -> Graph:
        """The first `count` nodes of the trace and their sources, without autograd.Function nodes: the ops of its
        forward and backward are separate nodes.
        """
        nodes = []
        for node in self.trace.graph.nodes[:count]:
            if node.op.custom_backward is not None:
                for i, spec in enumerate(node.out_specs):
                    self.forwarded[Value(node, i, spec)] = self.resolve(node.inputs[i])
            else:
                nodes.append(self.resolve_inputs(node))
        self.read_sources(nodes, [*outputs, *updates.values()])
        now = {source: self.resolve(v) for source, v in updates.items()}
        states = [h.source for h in self.tensors if h.source is not None]
        return Graph(self.trace.graph.inputs, nodes, [self.resolve(v) for v in outputs], states, now)

    def resolve(self, value: Any) -> Any:
        return self.forwarded.get(value, value) if value.__class__ is Value else value

    def resolve_inputs(self, node: Node) -> Node:
        """The node, or a copy with replaced inputs if it reads forwarded values or outputs of such a copy."""
        if not self.forwarded:
            return node
        inputs = [self.resolve(x) for x in node.inputs]
        if all(a is b for a, b in zip(inputs, node.inputs)):
            return node
        fresh = node.replace(inputs, node.origin)
        for i, spec in enumerate(node.out_specs):
            self.forwarded[Value(node, i, spec)] = Value(fresh, i, spec)
        return fresh

    def read_sources(self, nodes: list[Node], others: list[Value]) -> None:
        """Add the unnamed sources that the nodes read: constants, captured tensors, generators."""
        generators = {id(entry[1]._value.node): (g, entry[0]) for g, entry in self.trace.draws.items()}
        known = {id(h.source) for h in self.tensors}
        tensors = {id(t.array): t for t in self.trace.keepalive if t.array is not None}
        read = [x.node for node in nodes for x in node.inputs if x.__class__ is Value]
        for source in dict.fromkeys(s for s in (*read, *[v.node for v in others]) if isinstance(s, Source)):
            if id(source) in known or source not in self.trace.graph.states:
                continue
            if id(source) in generators:
                generator, draws = generators[id(source)]
                name = "generator" if generator is default_generator else "generator of its own"
                self.tensors.append(ProgramTensor(self.unique_name(name), "generator", None, source, generator, draws))
            elif source.read is not None:
                what = f"{source.name or 'a number'} is computed at each call by a Python function, which is not saved"
                fail(GraphError, what, "give it to build as an input", place=source.name)
            else:
                kind = "constant" if source.op is CONSTANT else "captured"
                tensor = tensors.get(id(source.array))
                tensor = Tensor(source.array, source.out_specs[0]) if tensor is None else tensor
                self.indices[key_of(source.array)] = len(self.tensors)
                self.tensors.append(ProgramTensor(self.unique_name(source.name or kind), kind, tensor, source))

    def calls(self, calls: list, modules: Modules) -> Iterator[CallEntry]:
        """The calls of modules as data, without those repeated by checkpointing."""
        for call in calls:
            first, last = self.kept_index(call.first), self.kept_index(call.last)
            inputs = (
                self.structure((call.args, call.kwargs), call.input_values),
                self.structure(call.output, call.output_values),
            )
            children = tuple(self.calls(call.children, modules))
            yield CallEntry(modules.index_of(call.path, call.module), first, last, *inputs, children)

    def kept_index(self, number: int) -> int:
        """Convert an index into the trace's nodes to one into the kept nodes."""
        return (
            number - sum(node.op.custom_backward is not None for node in self.trace.graph.nodes[:number])
            if self.forwarded
            else (number)
        )

    def structure(self, x: Any, values: list[Value]) -> tuple[Any, list[Value]]:
        """A structure, and the Values that it contained when it was passed."""
        return flatten(x, keep_leaf)[0], [self.resolve(v) for v in values]


class Modules:
    """Numbers modules in order of discovery, each once."""

    def __init__(self, collector: TensorCollector):
        self.collector = collector
        self.entries: list[Any] = []
        self.indices: dict[int, int] = {}
        self.visiting: set[int] = set()

    def index_of(self, path: str, module: Any) -> int:
        key = id(module)
        if key in self.visiting:
            what = f"{path} contains itself, which a file cannot represent"
            fail(GraphError, what, "a module inside another, not around it", module=type(module).__name__)
        if key in self.indices:
            return self.indices[key]
        number = self.indices[key] = len(self.entries)
        self.entries.append(None)
        self.visiting.add(key)
        parameters, buffers = [
            {name: self.collector.add(f"{path}.{name}", kind, t) for name, t in tensors.items() if t is not None}
            for kind, tensors in (("parameter", module._parameters), ("buffer", module._buffers))
        ]
        children = {
            name: self.index_of(f"{path}.{name}", child) for name, child in module._modules.items() if child is not None
        }
        self.visiting.discard(key)
        self.entries[number] = ModuleEntry(
            path,
            type(module).__name__,
            extra_repr_text(module),
            module.training,
            parameters,
            buffers,
            children,
            tuple(sorted(module._non_persistent_buffers_set)),
            is_container(module),
        )
        return number


def extra_repr_text(module: Any) -> str:
    try:
        return str(module.extra_repr())
    except Exception:  # a user's extra_repr is only displayed
        return ""


def key_of(array: Array) -> tuple:
    """Key of an array's storage, as in `Trace.state`."""
    storage = backend_of_array(array).storage_key(array) if array.size else id(array)
    return storage, array.shape, array.strides, array.dtype
