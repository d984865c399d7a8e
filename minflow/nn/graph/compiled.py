"""A compiled plan of a graph, and its execution. A graph has one for each key that it was called with.

Read next: `../../compiler/plan_cache.py`, `../../compiler/executor.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from functools import cached_property
from typing import Any, NamedTuple

from ...compiler.executor import run
from ...compiler.plan_cache import Compiled, Part, PlanCache
from ...core.arrays import storage_of
from ...core.backend import Array, backend_of_array, namespace_of
from ...core.base import events
from ...core.base.events import LISTENERS
from ...core.base.interrupts import uninterrupted
from ...core.context import current_context
from ...core.functionalize import before_write, external_users_of
from ...core.grad.hooks import functions_on
from ...core.ir import STATE, ExternalUsers, VersionCounter
from ...core.messages.training_warnings import check_results
from ...core.mode import MODE, Mode, mutation_counter
from ...core.source_location import NOTICES, distribution_text
from ...core.spec import DEFAULT_DEVICES, default_dtype
from ...core.tensor import Tensor, new_tensor
from ...platforms.targets import choose_target
from . import messages, side_effects
from .build import Build
from .dynamic import DerivedBuild, DynamicShapes, PlainTrace
from .key import differences
from .parallel.stages import run_halves
from .python_state import UntrackedRead, find_reads
from .tree import unflatten

MAX_HISTORY = 1000  # plans whose summaries a graph keeps
MAX_STATES = 4  # states of a graph, such as train() and eval(), whose symbolic programs it keeps


class Summary(NamedTuple):
    """Entry of a plan in its graph's history. inputs: (name, Spec). reason: (what, old, new). seconds: by phase.

    source: number of the plan for other sizes from which this one was derived; None if build ran.  note: why build ran,
    although only sizes differ, or that it did not; "" for other differences.
    """

    number: int
    inputs: tuple
    reason: tuple
    seconds: dict
    nodes: int
    note: str = ""
    source: int | None = None


class GraphRan(NamedTuple):
    """Event: a call of an nn.Graph has ended. For a training graph it follows the optimizers' StepDone.

    step: index of this step, from 1; 0 for a graph that does not train. result: the return value of the call.
    lr: learning rate of each group of the first optimizer; empty for a graph that does not train.
    """

    graph: Any
    step: int
    result: Any
    lr: tuple[float, ...]
    rank: int = 0


class CompiledGraph(Compiled):
    """A plan of a graph, with everything needed to run and inspect it.

    build: the trace and the calls of modules. number: index of this plan among those of its graph, from 0. reads:
    Python state that build read and that the plan does not follow. reason: (what, old, new) of everything that changed
    since the previous plan, empty for the first. seconds: of trace, passes, plan, the first and the second run.
    context: that of the rank that made it, which alone may run it.
    recorded, timing: a run of the last profiled call, and the durations of all; see
    `introspection/graph/listing/profiling.py`.
    """

    recorded: Any = None
    timing: Any = None
    note = ""  # see Summary
    source: int | None = None

    def __init__(self, graph: Any, build: Build, parts: list[Part], number: int):
        chosen = choose_target([part.graph for part in parts], graph.config.bits)
        super().__init__(parts, graph.passes, build.seconds["trace"], chosen)
        if build.inner_names:
            self.keep_inner(build, parts)
            super().__init__(parts, graph.passes, build.seconds["trace"], chosen)
        self.build, self.number, self.name, self.optimizers = build, number, graph.name, graph.optimizers
        self.links, self.context = build.links, current_context()
        # True if the key stays valid when a run rebinds buffers
        self.rebinds_buffers = all([link.unshared for link in self.links]) and any(
            [link.assigned for link in self.links]
        )
        self.out_tree = build.out_tree
        self.reason: list[tuple[str, str, str]] = []
        self.reads: list[UntrackedRead] = []
        self.inputs: tuple = tuple(zip(graph.input_names(build.tree), [t.spec for t in build.inputs]))
        self.mode = MODE.get().grad, default_dtype(), DEFAULT_DEVICES.get()
        self.steps = graph.config.accumulation
        self.layouts = build.layouts
        self.strided = any(build.layouts)
        self.specs = build.result_specs(self.steps)
        self.trains = bool(graph.optimizers)
        self.writes = self.trains or any(p.plan.written for p in self.parts)
        self.runs = 0
        self.captured = [(t, t.array, t._needs, name, functions_on(t)) for name, t in build.captured]
        self.single_tensor = self.out_tree == "tensor"
        self.plan = self.parts[0].plan

    def keep_inner(self, build: Build, parts: list[Part]) -> None:
        """Keep the requested values of ops within composite ops, which have their names in the plans."""
        pairs = list(zip(parts, self.parts))
        places = {name: (part, n) for part, compiled in reversed(pairs) for n, name in compiled.by_number.items()}
        for name in build.inner_names:
            if name not in places:
                messages.no_such_value(build, name, places)
            part, number = places[name]
            part.keep_inner(f"value {name}", number)

    def summary(self) -> Summary:
        nodes = sum(len(p.graph.nodes) for p in self.parts)
        return Summary(self.number, self.inputs, tuple(self.reason), dict(self.seconds), nodes, self.note, self.source)

    def stale(self) -> list[tuple[str, str, str]]:
        """Captured tensors whose storage, requires_grad or hooks changed."""
        changes = []
        for tensor, array, needs, name, hooks in self.captured:
            if tensor.array is not array:
                changes.append((name, "a tensor", "another storage"))
            elif tensor._needs is not needs:
                changes.append((name, f"requires_grad={needs}", f"requires_grad={tensor._needs}"))
            elif functions_on(tensor) != hooks:
                changes.append((f"{name}.hooks", f"{len(hooks)} hooks", f"{len(functions_on(tensor))} hooks"))
        return changes

    def contiguous_inputs(self, arrays: Iterable[Array]) -> list[Array]:
        """The inputs of a run, each contiguous: for a view whose strides the plan keeps, its whole storage."""
        pairs = zip(arrays, self.layouts)
        return [storage_of(array) if strides else contiguous_array(array) for array, strides in pairs]

    @cached_property
    def storages(self) -> tuple[frozenset[ExternalUsers], frozenset[ExternalUsers]]:
        """Users of the storages that a run reads or writes, and of those that it writes."""
        leaves = [leaf for part in self.traced for leaf in part.leaves.items() if leaf[0].node.op is STATE]
        states = [(v.node, t) for v, t in leaves if t._version_counter is not None]
        updates = {state for part in self.traced for state in part.graph.updates}
        used = [external_users_of(t) for _, t in states]
        written = [external_users_of(t) for state, t in states if state in updates]
        for link in self.links:
            used.append(external_users_of(link.tensor))
            if link.source in updates:
                written.append(used[-1])
        return frozenset(used), frozenset(written)

    def relink(self) -> None:
        """Link the states of buffers that were rebound to other tensors."""
        if rebound := [link for link in self.links if link.rebound()]:
            with current_context().plan_lock:
                new = [link for link in rebound if link.source.link is None]
                for link in rebound:
                    link.read()
                for link in new:
                    link.source.link = link
                self.__dict__.pop("storages", None)
                if new:
                    for part, traced in zip(self.parts, self.traced):
                        part.plan_again(traced)
                    self.plan = self.parts[0].plan
                    self.__dict__.pop("unfused", None)

    def run(self, graph: Any, arrays: list[Array], timed: bool = False) -> Any:
        """Run one call and return its results in the structure of build's output."""
        start = time.perf_counter() if self.runs < 2 else 0.0
        mode, context = MODE.get(), current_context()
        if context is not self.context:
            raise messages.other_rank(self.name, context, self.context)
        mode.before_run(graph, self.parts)
        heard = bool(LISTENERS) and mode.has_listeners(GraphRan)
        rates: tuple[float, ...] = ()
        if self.strided and self.steps == 1:
            arrays = self.contiguous_inputs(arrays)
        if self.writes:
            # before acquiring the lock of plans, which the awaited steps need
            linked = [link.tensor for link in self.links if link.source.link is not None and not link.assigned]
            for counter in (*self.version_counters(), *[tensor._version_counter for tensor in linked]):
                before_write(counter)
            # an interrupt is delayed until the end of the step
            with context.plan_lock, uninterrupted():
                results, rates = self.step(graph, arrays, timed, mode, heard)
        elif self.steps == 1:  # `step`, inlined to save a frame
            with context.plan_lock:
                results = run(self.plan, arrays, timed)
                self.runs += 1
        else:
            with context.plan_lock:
                results, rates = self.step(graph, arrays, timed, mode, heard)
        if self.runs <= 2:
            self.seconds["first run" if self.runs == 1 else "second run"] = time.perf_counter() - start
        if self.single_tensor:  # the code below, inlined for one tensor
            result = new_tensor(results[0], self.specs[0])
            result._graph_name = self.name  # for the error message of its backward()
        else:
            tensors = [*map(new_tensor, results, self.specs)]
            for tensor in tensors:
                tensor._graph_name = self.name
            result = unflatten(self.out_tree, tensors)
        if heard:
            events.emit(GraphRan(graph, graph._steps if self.trains else 0, result, rates))
        return result

    def step(self, graph: Any, arrays: list[Array], timed: bool, mode: Mode, heard: bool) -> tuple[list, tuple]:
        """Run one step, and return its results and, if listeners need them, its learning rates. For a training step
        this includes the bookkeeping.
        """
        epoch = mutation_counter.count
        counters: Sequence[VersionCounter]
        if self.steps == 1:
            results, counters = run(self.plan, arrays, timed), self.plan.version_counters
        else:
            results, counters = self.accumulate(arrays, timed), self.version_counters()
        if self.rebinds_buffers:
            graph._plans.accept(epoch, self.steps * sum([link.assigned for link in self.links]))
        for counter in counters:
            counter.version, counter.where = counter.version + 1, mode.entered
        self.runs += 1
        if not self.trains:
            return results, ()
        rates = self.optimizers[0][0]._learning_rates() if heard else ()  # before the schedules advance
        if NOTICES.on and mode.reports_mistakes():
            check_results(self.name, results, self.steps, graph._steps + 1, self.learning_rates)
        graph.__dict__["_steps"] += 1
        for optimizer, schedulers in self.optimizers:
            optimizer._count_step()
            for scheduler in schedulers:
                scheduler.step()
        return results, rates

    def learning_rates(self) -> list[float]:
        return [rate for optimizer, _ in self.optimizers for rate in optimizer._learning_rates()]

    def version_counters(self) -> list:
        return [counter for part in self.parts for counter in part.plan.version_counters]

    def accumulate(self, arrays: list[Array], timed: bool) -> list[Array]:
        """Run the parts of the batch in turn, then the update: scalars are stacked, others concatenated along axis 0.

        timed: True to sum the seconds of each call of the micro-step over all parts of the batch.
        """
        *micro, update = self.parts
        batches = [batch_part(arrays, k, self.steps) for k in range(self.steps)]
        if self.strided:
            batches = [self.contiguous_inputs(batch) for batch in batches]
        seconds: list[list[list[float]]] = [[] for _ in micro]

        def half(i: int) -> Callable[[int, list], list]:
            def run_one(k: int, arrays: list) -> list:
                self.build.micro = k
                results = run(micro[i].plan, arrays, timed)
                if timed and (spent := micro[i].plan.seconds) is not None:
                    seconds[i].append(spent)
                return results

            return run_one

        try:
            if self.build.halves is None:
                results = [*map(half(0), range(self.steps), batches)]
            else:
                results = run_halves(self.build.halves, batches, half(0), half(1))
        finally:
            self.build.micro = 0  # a later run of only the first part, to compare or to explore, must not accumulate
        for part, rows in zip(micro, seconds):
            if timed:
                part.plan.seconds = [sum(column) for column in zip(*rows)]
        run(update.plan, [], timed)
        return [joined(arrays) for arrays in zip(*results)]

    def kept(self, name: str) -> Tensor | None:
        """Return a copy of a kept value of the last run; None if there is no value with that name."""
        for part, traced in zip(self.parts, self.traced):
            if name in part.kept:
                index = part.kept[name]
                with current_context().plan_lock:  # another thread may run it
                    held = part.plan.array_of(part.graph.outputs[index])
                    array = backend_of_array(held).copy(held)
                return Tensor(array, traced.graph.outputs[index].spec)
        return None


def contiguous_array(array: Array) -> Array:
    return array if array.flags.c_contiguous else backend_of_array(array).copy(array)


def joined(arrays: Sequence[Array]) -> Array:
    """Return the results of the parts of a batch as one array: scalars stacked, others concatenated along axis 0."""
    xp = namespace_of(arrays[0])
    return xp.concatenate(arrays) if arrays[0].ndim else xp.stack(arrays)


def batch_part(batch: list, k: int, steps: int) -> list:
    """Return the k-th of `steps` equal parts of arrays or tensors along axis 0: the inputs of a micro-step."""
    return batch if steps == 1 else [rows_of(x, k, steps) for x in batch]


def rows_of(x: Any, k: int, steps: int) -> Any:
    """Return the k-th part of an array or a tensor along axis 0; of a global tensor, that part on each rank."""
    if isinstance(x, Tensor) and x.spec.placement is not None:
        shape = x.spec.shape[0] // steps, *x.spec.shape[1:]
        return new_tensor(rows_of(x.array, k, steps), x.spec.replace(shape=shape))
    size = len(x) // steps
    return x[k * size : (k + 1) * size]


# ---- a new plan ------------------------------------------------------------------------------------------------------


def compile_graph(graph: Any, args: tuple, kwargs: dict, inputs: tuple) -> CompiledGraph:
    """Trace and compile for a call with these arguments, and store the plan in the graph under the key `inputs`.

    If that fails, the graph is unchanged.
    """
    own, plans = graph.__dict__, graph._plans
    build = start_build(graph, args, kwargs)
    dynamic = dynamic_shapes(graph, build)
    if not build.observer.shows and (derived := dynamic.derive(build)) is not None:
        return compile_derived(graph, inputs, *derived)
    build.observer.started()
    try:
        parts = copy_context().run(build.run)  # an interrupt at any point restores the mode
        own["_nonmembers"] = list(dict.fromkeys([*own["_nonmembers"], *build.nonmember_paths()]))
        build.observer.traced()
        compiled = CompiledGraph(graph, build, parts, own["_plan_count"])
    except BaseException as error:
        build.observer.failed(error)
        messages.remove_symbolic_tensors(build)
        raise
    own["_volatile"] |= build.volatile
    build.before.clear()  # it refers to the graph's last plan, which refers to the plan before it
    build.observer.compiled(compiled)
    modules = [call.module for call in build.top.walk() if call is not build.top]
    reads = find_reads((type(graph).build, type(graph)), modules, holder=graph, tensors=build.trace.keepalive)
    own["_variables"] = {**own["_variables"], **reads.variables}
    outside = {id(module): (name, module) for name, module in own["_outside_modules"]}
    own["_outside_modules"] = list({**outside, **reads.modules}.values())
    if tensors_read := build.trace.tensors_read():
        names = build.array_names()
        own["_numbers"] = {**own["_numbers"], **{id(t): (names.get(id(t.array), ""), t) for t in tensors_read}}
    plans.look()  # the trace may have bumped the mutation counter, or used modules that are not members
    compiled.reads = reads.untracked_reads(plans.fingerprint.untracked)
    compiled.reason = reasons(plans, compiled, own["_volatile"])
    compiled.note = f"build ran again: {dynamic.reason}" if dynamic.reason else ""
    store(graph, inputs, compiled)
    dynamic_shapes(graph, build).add(
        PlainTrace(tuple(build.input_specs), build, parts, compiled.reads, compiled.number, reads)
    )
    unseen = side_effects.notices_of_reads(compiled.reads, own["_noticed"], "build", type(graph).build.__code__)
    for notice in (*build.notices, *unseen):
        side_effects.warn_once(graph, notice)
    if events.GraphCompiled in events.LISTENERS:
        events.emit(events.GraphCompiled(graph, compiled.number, tuple(compiled.reason), dict(compiled.seconds)))
    return compiled


def compile_derived(
    graph: Any, inputs: tuple, build: DerivedBuild, parts: list[Part], plain: PlainTrace
) -> CompiledGraph:
    """Compile the build of other sizes, which did not run, and store the plan in the graph."""
    compiled = CompiledGraph(graph, build, parts, graph._plan_count)
    compiled.reads = plain.reads
    compiled.reason = reasons(graph._plans, compiled, graph._volatile)
    compiled.source = plain.number
    compiled.note = f"build did not run for these sizes: they follow from those of plan {plain.number}"
    store(graph, inputs, compiled)
    if events.GraphCompiled in events.LISTENERS:
        events.emit(events.GraphCompiled(graph, compiled.number, tuple(compiled.reason), dict(compiled.seconds)))
    return compiled


def store(graph: Any, inputs: tuple, compiled: CompiledGraph) -> None:
    """Add a plan to the graph under the key `inputs`, and to its history."""
    own = graph.__dict__
    own["_plan_count"] += 1
    own["_history"].append(compiled.summary())
    del own["_history"][:-MAX_HISTORY]
    graph._plans.add(inputs, compiled)


def dynamic_shapes(graph: Any, build: Build) -> DynamicShapes:
    """The symbolic programs of a graph as it is now; those of its last other states, such as eval(), are kept."""
    key = graph._plans.fingerprint, build.tree, MODE.get().grad, default_dtype(), DEFAULT_DEVICES.get()
    known = [pair for pair in graph._dynamic if pair[0] != key]
    dynamic = next((dynamic for other, dynamic in graph._dynamic if other == key), None) or DynamicShapes()
    graph.__dict__["_dynamic"] = [*known[1 - MAX_STATES :], (key, dynamic)]
    return dynamic


def start_build(graph: Any, args: tuple, kwargs: dict) -> Build:
    """Return the build for these arguments. Raises an error if the graph cannot be called with them."""
    messages.check_arguments(graph, args, kwargs)
    tree, tensors, specs = graph.structure(args, kwargs)
    last = graph._plans.last
    if graph.config.static and last is not None:
        changed = input_differences(last, tuple(zip(graph.input_names(tree), specs)), tree)
        if changed:
            messages.static_inputs_changed(graph, changed)
    if graph.optimizers and not MODE.get().grad:
        messages.under_no_grad(graph)
    for x in tensors:
        if x.array is None:
            messages.symbolic_input(graph, x)
    return Build(graph, tree, tensors)


# ---- why there is a new plan -------------------------------------------------------------------------------------

Difference = tuple[str, str, str]  # (what, old value, new value), as shown to the user


def reasons(plans: PlanCache, compiled: CompiledGraph, volatile: set[tuple[str, str]]) -> list[Difference]:
    """Return everything that changed since the previous plan. volatile: (path, name) of attributes set by build."""
    last = plans.last
    if last is None:
        return []
    changed = [*input_differences(last, compiled.inputs, compiled.build.tree), *plans.dropped]
    named = {f"{path}.{name}" for path, name in volatile} | {what for what, _, _ in changed}
    changed += [d for d in differences(last.fingerprint, plans.fingerprint) if d[0] not in named]
    modes = zip(("recording of gradients", "default dtype", "default device"), last.mode, compiled.mode)
    return changed + [(name, str(a), str(b)) for name, a, b in modes if a != b]


def input_text(spec: Any) -> str:
    """The spec of an input, with the distribution of a global tensor."""
    return str(spec) if getattr(spec, "placement", None) is None else f"{spec} {distribution_text(spec)}"


def input_differences(last: CompiledGraph, inputs: tuple, tree: Any) -> list[Difference]:
    """Return (name, old spec, new spec) of the inputs that changed."""
    before, after = dict(last.inputs), dict(inputs)
    changed = [
        (name, input_text(before.get(name, "was not there")), input_text(after.get(name, "is not there")))
        for name in dict.fromkeys((*before, *after))
        if before.get(name) is not after.get(name)
    ]
    if not changed and last.build.tree != tree:
        changed = [("structure of the inputs", "as in the plan before", "another")]
    return changed
