"""One trace of a `build`: the calls of modules, the graph, the optimizer's part, and the names of all states.

A Build is the `watch` of its Trace: every call of a Module goes through its `call`, so the modules themselves are not
wrapped. Read next: `checkpointing.py`, `compiled.py`.
"""

from __future__ import annotations

import itertools
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...compiler.executor import INSIDE
from ...compiler.names import op_names
from ...compiler.plan_cache import Part
from ...core.arrays import storage_size
from ...core.backend import Array, full
from ...core.base.errors import GraphError
from ...core.context import current_context
from ...core.dispatch import apply
from ...core.functions.creation import strided_look
from ...core.ir import CONSTANT, OPTIMIZER, Node, Source, Value
from ...core.mode import MODE, using
from ...core.ops.update import accumulate
from ...core.sharding import local_spec
from ...core.source_location import caller
from ...core.spec import Spec
from ...core.tensor import Tensor
from ...core.trace import Trace
from ..buffer_links import buffer_links, link_assigned
from ..hooks import GLOBAL_HOOKS
from ..module import Module
from . import messages, side_effects
from .checkpointing import run_checkpointed
from .parallel.stages import Halves, halved, on_stage, ranks_of_stages
from .parallel.zero import split_gradient
from .tree import flatten, unflatten


@dataclass(eq=False)
class ModuleCall:
    """One call of a module during build.

    path: "model.features.0". args, kwargs, output: those of the call, with symbolic tensors. first, last: its nodes are
    `nodes[first:last]` of the trace. done: True if it returned. error: the exception it raised, at the innermost module
    that failed. input_values: Values of the tensors in args at the call. output_values: those in output at return; a
    tensor that is written in place has a different Value later.
    """

    path: str
    module: Module
    args: tuple
    kwargs: dict
    first: int
    last: int = -1
    output: Any = None
    input_values: list[Value] = field(default_factory=list)
    output_values: list[Value] = field(default_factory=list)
    done: bool = False
    error: BaseException | None = None
    children: list[ModuleCall] = field(default_factory=list)

    def walk(self) -> Iterator[ModuleCall]:
        """This call and all calls inside it, in order."""
        stack = [self]
        while stack:
            call = stack.pop()
            yield call
            stack += reversed(call.children)


class TraceResult(NamedTuple):
    """The part of the trace that build itself recorded: its first `nodes` nodes, before the optimizer's.

    updates: state -> its new value. gradients: id of a parameter -> its gradient.
    """

    nodes: int
    updates: dict[Source, Value]
    gradients: dict[int, Value]


class Observer:
    """Receives the events of one build. This class ignores them; the subclass for the listing prints them.

    shows: True if the user watches the build, which then runs even if its result could be derived.
    """

    shows = False

    def started(self) -> None:
        """The build is about to start."""

    def inputs_ready(self) -> None:
        """The inputs have become symbolic."""

    def build_entered(self) -> None:
        """The user's build starts."""

    def build_returned(self) -> None:
        """The user's build has returned."""

    def module_entered(self, call: ModuleCall) -> None:
        """A module is called."""

    def module_exited(self, call: ModuleCall) -> None:
        """The call of a module has returned."""

    def node_added(self, node: Node) -> None:
        """A node was appended to the trace."""

    def traced(self) -> None:
        """The trace is complete; passes and plans follow."""

    def compiled(self, compiled: Any) -> None:
        """The plan is complete."""

    def failed(self, error: BaseException) -> None:
        """The build ends with this error."""


def strides_of(x: Tensor) -> tuple[int, ...] | None:
    """Return the strides of a view, since the order in which some kernels add depends on them; None if contiguous."""
    array = x.array
    view = x._alias is not None and array is not None and x.spec.placement is None and not array.flags.c_contiguous
    return array.strides if view and storage_size(array) else None


def parts_along_axis_0(spec: Spec) -> int:
    """The number of parts into which axis 0 of a tensor is split over ranks."""
    axes = zip(spec.placement.hierarchy, spec.sbp or ()) if spec.placement is not None else ()
    return math.prod([count for count, sbp in axes if sbp.kind == "split" and sbp.dim == 0])


def value_of(tensor: Tensor) -> Value:
    """The Value of a tensor that a trace has resolved."""
    return tensor._value  # type: ignore[return-value]  # such a tensor has one


class Build:
    """Runs `build` once. graph: the nn.Graph. tree, inputs: the structure and the tensors of the call."""

    def __init__(self, graph: Any, tree: Any, inputs: list[Tensor]):
        self.graph, self.tree, self.inputs = graph, tree, inputs
        self.input_specs = [tensor.spec for tensor in inputs]
        self.trace = Trace()
        self.top = ModuleCall("", graph, (), {}, 0)
        self.stack = [self.top]
        self.paths: dict[int, str] = dict(graph.module_paths())
        self.taken = set(self.paths.values())
        # to avoid duplicate names
        self.numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: itertools.count(1))
        self.nonmembers: dict[int, Module] = {}  # modules that are not members: in closures, in globals
        self.failed: ModuleCall | None = None
        self.recomputing = 0  # above 0 while a checkpoint recomputes: those calls are not new
        self.loss: Value | None = None  # the scalar that backward was called on
        self.reached: set[int] = set()  # ids of the parameters that backward gave a gradient
        self.backwards: list = []  # where backward was called
        self.notices: list[side_effects.Notice] = []
        self.before: list[
            side_effects.AttributeRecord
        ] = []  # the attributes of the graph and its modules before build ran
        # (path, name) of attributes that build itself sets: not part of the key
        self.volatile: set[tuple[str, str]] = set()
        self.inner_names: list[str] = []  # see `requested_values`
        self.accumulators: dict[int, Tensor] = {}
        self.micro = 0  # index of the part of the batch that runs now
        self.halves: Halves | None = None  # if a micro-step is cut in two
        self.phase = "graph inputs"
        self.observer: Observer = graph.observer(self)
        self.seconds: dict[str, float] = {}

    def arguments(self) -> Any:
        """Return (args, kwargs) of the call."""
        return unflatten(self.tree, self.inputs)

    def inputs_of(self, args: tuple, kwargs: dict) -> list[Tensor]:
        """The tensors among the inputs of a call."""
        return flatten((args, kwargs), messages.refuse_input(self.graph))[1]

    # ---- called by the mode ----------------------------------------------------------------------------------------

    def scope_of(self, module: Module, outer: str) -> str:
        """Return the path of a module: that of the member of the graph that holds it, else its class name."""
        path = self.paths.get(id(module))
        if path is None:
            base = path = module.__dict__["_scope_name"] or type(module).__name__
            while path in self.taken:
                path = f"{base}_{next(self.numbers[base])}"
            for inner, child in module.named_modules():
                self.taken.add(self.paths.setdefault(id(child), f"{path}.{inner}" if inner else path))
                self.nonmembers[id(child)] = child
                self.before.append(side_effects.record_attributes(self.paths[id(child)], child))
        return path

    def call(self, module: Module, path: str, args: tuple, kwargs: dict) -> Any:
        """Run a module's forward, and record the call."""
        if self.recomputing:
            return module._run_forward(args, kwargs)
        args, kwargs = on_stage(module, args, kwargs)
        input_values = self.values_of((args, kwargs))
        call = ModuleCall(path, module, args, kwargs, len(self.trace.graph.nodes), input_values=input_values)
        self.stack[-1].children.append(call)
        self.stack.append(call)
        self.observer.module_entered(call)
        try:
            if module.__dict__.get("_checkpointing") and MODE.get().grad:
                call.output = run_checkpointed(self, module, args, kwargs)
            elif module.__dict__["_module_hooks"] is None and not GLOBAL_HOOKS.used and len(args) == 1 and not kwargs:
                call.output = module.forward(args[0])  # one frame less than `compute`: see `../recursion_limit.py`
            else:
                call.output = module._run_forward(args, kwargs)
        except BaseException as error:
            if self.failed is None:
                self.failed, call.error = call, error
            raise
        finally:
            call.last = len(self.trace.graph.nodes)
            self.stack.pop()
        call.done, call.output_values = True, self.values_of(call.output)
        self.observer.module_exited(call)
        return call.output

    def values_of(self, x: Any) -> list[Value]:
        """Return the current Values of the tensors in a structure; an update gives a parameter a new Value."""
        tensors = flatten(x, lambda path, leaf: None)[1]
        return [value_of(t if t.array is None else self.trace.resolve(t)) for t in tensors]

    def added(self, node: Node) -> None:
        """A node was appended to the trace."""
        self.observer.node_added(node)

    def array_names(self) -> dict[int, str]:
        """Return id(array) -> name for the tensors of modules and optimizers: "model.fc.weight"."""
        names: dict[int, str] = {}
        for tensor, name in self.graph.named_tensors(self.nonmember_paths()):
            names.setdefault(id(tensor.array), name)
        return names

    def name_of(self, array: Array) -> str:
        """Return the name of a module's tensor, found by its array; empty for other arrays."""
        return self.array_names().get(id(array), "")

    def backward(self, outputs: list[Tensor], tensors: tuple[Tensor, ...]) -> None:
        """Record that `loss.backward()` was called. outputs: the symbolic tensors it was called on."""
        for t in tensors:
            if t.array is not None and t._value is not None and not isinstance(t._value.node, Source):
                messages.eager_backward(self.graph, t)
        self.backwards.append(caller(3))
        if self.loss is None and outputs[0].spec.size == 1:
            self.loss = outputs[0]._value

    def refuse_step(self, optimizer: Any, verb: str) -> None:
        """Refuse optimizer.step() and scheduler.step(), which the graph calls, and zero_grad() after backward()."""
        if verb == "zero_grad" and not self.backwards:
            return
        messages.step_in_build(self.graph, optimizer, verb)

    # ---- the trace ---------------------------------------------------------------------------------------------------

    def run(self) -> list[Part]:
        """Trace build and the optimizer's step: one Part, or two with gradient accumulation. Runs in a new context."""
        INSIDE.set(f"the build of {self.graph.name}")
        graph, steps = self.graph, self.graph.config.accumulation
        start = time.perf_counter()
        zero = graph.config.zero
        self.slices = {} if zero is None else zero.split_tensors(graph.optimizers)
        self.trace.gathers_again = zero is not None and zero.stage == 3
        for optimizer, _ in graph.optimizers:
            optimizer._create_states()
        mode = self.trace.replace(
            grad=MODE.get().grad,
            watch=self,
            seed=graph.config.loss_scale / steps if steps > 1 else graph.config.loss_scale,
        )
        try:
            with using(mode):
                self.observer.inputs_ready()
                symbols = self.make_inputs(steps)
                args, kwargs = unflatten(self.tree, symbols)
                self.top.args, self.top.kwargs = args, kwargs
                self.phase = "graph modules"
                self.observer.build_entered()
                with side_effects.record_side_effects(self):
                    output = graph.build(*args, **kwargs)
                self.phase = "graph outputs"
                self.top.output, self.top.done, self.top.last = output, True, len(self.trace.graph.nodes)
                shape, tensors = messages.check_outputs(self, output, flatten)
                self.out_tree = shape
                owned = [mode.resolve(t) for t in tensors]
                self.observer.build_returned()
                link_assigned(graph, self.trace, self.nonmember_paths())
                messages.check_leaks(self)
                messages.check_hooks(self, steps)
                messages.check_backward(self)
                values = [value_of(t) for t in owned]
                self.outputs = values
                parts = self.parts(mode, values, steps)
                for part in parts:
                    self.trace.refuse_stale(self.trace.reads, part.graph.updates)
        finally:
            self.trace.restore_buffers()
        self.seconds["trace"] = time.perf_counter() - start
        for part in parts:
            try:
                part.graph.verify()
            except GraphError as error:
                raise messages.foreign_value_error(self, part.graph, error) from None
        self.name_states(parts)
        self.links = buffer_links(graph.all_modules(self.nonmember_paths()), [s for p in parts for s in p.graph.states])
        return parts

    def make_inputs(self, steps: int) -> list[Tensor]:
        symbols = []
        self.layouts = [strides_of(tensor) if self.graph.config.bits else None for tensor in self.inputs]
        for i, (tensor, name) in enumerate(zip(self.inputs, self.graph.input_names(self.tree))):
            spec = self.input_specs[i]
            if steps > 1:
                ranks = parts_along_axis_0(spec)
                if not spec.shape or spec.shape[0] % (steps * ranks):
                    messages.not_divisible(self.graph, name, tensor, steps, ranks)
                spec = spec.replace(shape=(spec.shape[0] // steps, *spec.shape[1:]))
            strides = self.layouts[i]
            if strides is None:
                symbols.append(self.trace.symbol_of_input(spec, name))
            else:  # a view of its storage, as in eager mode: kernels get arrays with the same strides
                size = storage_size(tensor.array[: spec.shape[0]] if steps > 1 else tensor.array)
                storage = self.trace.symbol_of_input(spec.replace(shape=(size,)), name)
                symbols.append(apply(strided_look, storage, shape=tuple(spec.shape), strides=strides))
        return symbols

    def result_specs(self, steps: int) -> list[Spec]:
        """The specs of the results of a call, from those of a micro-step: see `compiled.joined`."""
        specs = [value.spec for value in self.outputs]
        if steps == 1:
            return specs
        return [s.replace(shape=(steps * s.shape[0], *s.shape[1:]) if s.shape else (steps,)) for s in specs]

    def parts(self, mode: Trace, outputs: list[Value], steps: int) -> list[Part]:
        trace, graph = self.trace, self.graph
        values = self.requested_values()
        parameters = {id(t): t for t, _ in graph.named_tensors(self.nonmember_paths()) if t._needs}
        if graph.config.zero is not None and graph.config.zero.stage > 1:
            self.split_gradients(mode, parameters)
        if graph.config.loss_scale != 1:
            with using(mode.replace(origin=OPTIMIZER, scope="", grad=False)):
                for p in parameters.values():
                    if p.grad is not None:
                        p.grad = p.grad * (1 / graph.config.loss_scale)
        gradients = {key: value_of(mode.resolve(p.grad)) for key, p in parameters.items() if p.grad is not None}
        self.reached = set(gradients)
        self.traced = TraceResult(len(trace.graph.nodes), trace.updates(), gradients)
        if self.loss is not None:
            values = {**values, "loss": self.loss}
        if steps == 1:
            self.optimizer_part(mode)
            return [self.part("step", trace, outputs, {**values, **self.gradients(mode)})]
        rank = current_context().rank
        trained = [p for optimizer, _ in graph.optimizers for p in optimizer._all_parameters() if p.grad is not None]
        count = mode.scalar(lambda: float(self.micro))
        adding = mode.replace(origin=OPTIMIZER, scope="", grad=False)
        with using(adding):
            for p in trained:
                spec = p.grad.spec
                total = self.accumulators[id(p)] = Tensor(full(local_spec(spec, rank), 0), spec)
                adding.update(accumulate, [total], [total, p.grad, count], {})
        first = self.part("micro-step", trace, outputs, values)
        cut = halved(first, trace, ranks_of_stages(graph.all_modules(self.nonmember_paths())), steps)
        micro, self.halves = cut or ([first], None)
        second = Trace()
        inner = second.replace(grad=False, watch=self)
        with using(inner):
            for p in trained:
                inner.resolve(p)._gradient = inner.resolve(self.accumulators[id(p)])
            self.optimizer_part(inner)
            stepped = self.gradients(inner)
        return [*micro, self.part("update", second, [], stepped)]

    def split_gradients(self, mode: Trace, parameters: dict[int, Tensor]) -> None:
        """Replace the gradients of parameters by their slices."""
        with using(mode.replace(grad=False)):
            for key, (placement, sbp) in self.slices.items():
                symbol = mode.resolve(parameters[key]) if key in parameters else None
                if symbol is not None and symbol._gradient is not None:
                    split_gradient(symbol, placement, sbp)

    def optimizer_part(self, mode: Trace) -> None:
        """Clip and step, like `clip_grad` and `step` in eager mode."""
        with using(mode.replace(origin=OPTIMIZER, scope="", grad=False)):
            for optimizer, _ in self.graph.optimizers:
                optimizer.clip_grad()
                optimizer.step()

    def gradients(self, mode: Trace) -> dict[str, Value]:
        """Return name -> the gradient that the step uses."""
        gradients = {}
        if self.graph.config.gradients:
            names = self.graph.parameter_names(self.nonmember_paths())
            for optimizer, _ in self.graph.optimizers:
                for p in optimizer._all_parameters():
                    if p.grad is not None:
                        gradients[f"grad {names.get(id(p), p._label or 'parameter')}"] = value_of(mode.resolve(p.grad))
        return gradients

    def part(self, name: str, trace: Trace, outputs: list[Value], kept: dict[str, Value]) -> Part:
        ir = trace.graph
        ir.outputs, ir.updates = [*outputs, *kept.values()], trace.updates()
        return Part(name, ir, trace.leaves, len(outputs), {key: len(outputs) + i for i, key in enumerate(kept)})

    def requested_values(self) -> dict[str, Value]:
        """Return the values requested by `graph.values`: outputs of a module's first call, or of an op by its name.

        Names that are neither may be of ops within a composite op, which a plan has: `CompiledGraph.keep_inner`.
        """
        values: dict[str, Value] = {}
        names = {name: node for node, name in op_names(self.trace.graph.nodes).items()}
        calls: dict[str, ModuleCall] = {}  # the first one of each path
        for call in self.top.walk() if self.graph.kept else ():
            if call.done and call is not self.top:
                calls.setdefault(call.path, call)
        for name in self.graph.kept:
            if name in calls:
                _, tensors = flatten(calls[name].output, lambda path, leaf: None)
                for i, t in enumerate(tensors):
                    values[f"value {name}" + (f" {i}" if len(tensors) > 1 else "")] = value_of(self.trace.resolve(t))
            elif name in names:
                node = names[name]
                values[f"value {name}"] = Value(node, 0, node.out_specs[0])
            else:
                self.inner_names.append(name)
        return values

    # ---- names -------------------------------------------------------------------------------------------------------

    def nonmember_paths(self) -> list[tuple[str, Module]]:
        return [(self.paths[key], module) for key, module in self.nonmembers.items()]

    def name_states(self, parts: list[Part]) -> None:
        """Give every state the name under which it is listed, and record which ones were captured."""
        graph = self.graph
        names = {id(t.array): name for t, name in graph.named_tensors(self.nonmember_paths())}
        parameters = graph.parameter_names(self.nonmember_paths()) if self.accumulators else {}
        for key, total in self.accumulators.items():
            names[id(total.array)] = f"{parameters.get(key, 'parameter')}-gradient"
        self.captured: list[tuple[str, Tensor]] = []
        outside: Callable[[Tensor], str] | None = None
        kept = {id(t.array): t for t in self.trace.keepalive if t.array is not None}
        drawn = {id(entry[1]._value.node) for entry in self.trace.draws.values()}
        for part in parts:
            for source in part.graph.states:
                known = names.get(id(source.array))
                if known is not None:
                    source.name = known
                elif id(source) in drawn:
                    source.name = "generator"
                elif source.read is not None:
                    source.name = "lr" if part.name in ("step", "update") else "micro-step number"
                elif source.op is CONSTANT:
                    source.name = source.name or "constant"
                elif id(source.array) in kept:
                    tensor = kept[id(source.array)]
                    outside = outside or graph.outside_names()
                    source.name = outside(tensor) or f"captured {len(self.captured)}"
                    self.captured.append((source.name, tensor))
