"""The explorer's data of a compiled graph or job: records of its stages, and one step with all its values.

Only `ExplorerModel` accesses live objects; views get plain data. A recorded step starts from the current state, and
everything that it wrote is restored. Read next: `details.py`, one node of it; `views/explorer/rows.py`.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple

from ....compiler.executor import run
from ....compiler.passes.decomposition import inner_scope
from ....compiler.plan_cache import CompiledPart
from ....core.backend import Array, backend_of_array
from ....core.base.errors import GraphError
from ....core.base.interrupts import uninterrupted
from ....core.context import current_context
from ....core.ir import CONSTANT, Graph as IR, Node, Source, Value, values_among
from ....core.random import default_generator
from ....core.source_location import fail
from ....views.explorer.rows import loss_of
from ....views.explorer.tiles import MAX_CELLS
from ....views.records.graph import op_fields, short_repr, whole_text
from ....views.records.opening import Whole
from ....views.records.step import StepNode, StepRecord
from ..compare.restore import input_arrays, preserve_last_call, restore_on_exit
from ..listing.pass_changes import arena_after, changes_of, keys_of
from ..listing.reports import phases_of
from .array_summary import Summary, summary_of
from .opened import InputCopies, OpenedGraph, is_chosen, open_graph, values_inside

MAX_REPEATED_STEP = 1.0  # seconds: longer steps are not repeated to time them
REPEAT_SECONDS = 0.1  # total time of the repeats
MAX_MAP_CELLS = 1 << 24  # elements of all maps that a recording keeps: 64 MB
MAX_OPENED_RECORDS = 16  # records with opened operations that are kept
COLUMNS = {"forward": 0, "backward": 1, "recompute": 1, "optimizer": 2}


class StageCounts(NamedTuple):
    """A pass and its effect. arena: bytes of the arena in a plan of the graph after it."""

    name: str
    nodes: int
    new: int
    gone: int
    changed: int
    moved: int
    arena: int | None


@dataclass(frozen=True)
class Instruction:
    """One call of a recorded step. outs: a Summary of each result. seconds: of this call alone, in that run.

    run_index: its position in the order in which the calls ran. previous: the name of the call before it.
    """

    name: str
    phase: str
    seconds: float
    outs: tuple[Summary, ...]
    run_index: int = 0
    previous: str = ""


class ExplorerModel:
    """A compiled graph or job. parts: the compiled parts of a call, in order. kinds: name of a state -> its kind.

    modules: path -> class. gradient: name of a parameter -> the array of its last gradient, or None.
    by_reader: names of states do not contain their module, as in a job; they are listed at their first reader.
    runs: True if it can be run here, so that it has lines, times and passes.
    """

    runs = True

    def __init__(
        self,
        title: str,
        parts: Sequence[CompiledPart],
        modules: dict[str, str],
        kinds: dict[str, str],
        gradient: Callable[..., Array | None],
        note: str = "",
        by_reader: bool = False,
    ):
        self.title, self.parts, self.modules, self.kinds = title, tuple(parts), modules, kinds
        self.gradient, self.note, self.by_reader = gradient, note, by_reader
        self.records: dict[tuple[int, bool], StepRecord] = {}
        self.opened_records: dict[tuple[int, frozenset[str]], StepRecord] = {}
        self.node_records = [NodeRecords(part, f"{k}n") for k, part in enumerate(self.parts)]
        self.arenas: dict[int, int | None] = {}
        self.instructions: list[Instruction] = []  # forward, then backward, then update; within each in running order
        self.step_seconds: dict[str, float] = {}  # name -> seconds of its call
        self.timed_step = ""  # the step whose times these are
        # (name of the operation, output) -> its result in the recorded step
        self.summaries: dict[tuple[str, int], Summary] = {}
        self.gradients: dict[str, Summary] = {}  # name of a parameter -> its gradient in the recorded step
        self.states_before: dict[str, Summary] = {}  # states as they were before the recorded step
        self.updates: dict[str, Summary] = {}  # name of a parameter -> the change of it by the recorded step
        self.map_cells = MAX_MAP_CELLS  # elements of maps that the rest of a recording may keep
        self.stages = max([len(part.stages) for part in self.parts], default=0)
        self.replay: Callable[[Callable], None] | None = None  # runs the recorded step again, given `watch_of(part)`
        self.inputs: list[Array] = []  # of the recorded step
        self.inside: dict[str, str] = {}  # operations whose values inside were computed -> a note on them
        self.preserving: Callable[[], AbstractContextManager] = nullcontext  # around each run of the recorded step

    # ---- records -----------------------------------------------------------------------------------------------------

    def record(self, stage: int) -> StepRecord:
        """The step after this many passes (0: as traced), with marks for the effects of the last of them.

        `stages`: the graph that runs, without marks.
        """
        same = self.first_equal[stage]
        key = same, 0 < same == stage  # with marks, if the pass changed something
        if key not in self.records:
            self.records[key] = self.step_after(*key)
        return self.records[key]

    def opened_record(self, stage: int, names: Iterable[str]) -> StepRecord:
        """`record(stage)` with the composite operations of these names, and their gradients, replaced by their parts.

        Names that are not composite at this stage are ignored.
        """
        record = self.record(stage)
        opened = frozenset(names) & {node.name for node in record.nodes if node.opens} if names else frozenset()
        if not opened:
            return record
        same = self.first_equal[stage]
        if (key := (stage, opened)) not in self.opened_records:
            if len(self.opened_records) >= MAX_OPENED_RECORDS:
                self.opened_records.clear()
            self.opened_records[key] = self.step_after(same, 0 < same == stage, opened)
        return self.opened_records[key]

    @cached_property
    def first_equal(self) -> list[int]:
        """For each stage, the first stage with the same operations in the same order."""
        same = [0]
        for stage in range(1, self.stages + 1):
            graphs = [[p.stages[min(k, len(p.stages) - 1)].graph for k in (same[-1], stage)] for p in self.parts]
            same.append(same[-1] if all(before.nodes == now.nodes for before, now in graphs) else stage)
        return same

    def step_after(self, stage: int, marked: bool, names: frozenset[str] = frozenset()) -> StepRecord:
        nodes: list[StepNode] = []
        updates, outputs = [], []
        for k, (part, records) in enumerate(zip(self.parts, self.node_records)):
            at = min(stage, len(part.stages) - 1)
            now = part.stages[at].graph
            change = changes_of(part.stages[at - 1].graph, now) if marked and at == stage else None
            gone = change.gone if change else []
            marks = change.marks | dict.fromkeys(gone, "gone") if change else {}
            opened = open_graph(part, now, names)
            if opened.scopes:
                now, records = opened.graph, NodeRecords(part, f"{k}o", opened, records)
                marks |= {n: marks[old] for n, old in opened.was.items() if old in marks}
                marks |= {n: marks[n.whole] for n in opened.names if n.whole in marks}
                for (node, index), result in opened.results.items():
                    if result in self.summaries:
                        self.summaries.setdefault((opened.names[node], index), self.summaries[result])
            sources = used_states(now, part, gone)
            shown, ids = {*sources, *now.nodes}, records.ids
            owners = first_scopes(now.nodes) if self.by_reader else None
            nodes += [self.state_node(s, ids[s], now, owners) for s in sources]
            orders = order_of(now.nodes, gone)
            nodes += step_nodes(records, [*now.nodes, *gone], marks, orders, k * 1e6)
            updates += [(ids[s], ids[v.node], v.index) for s, v in now.updates.items() if {s, v.node} <= shown]
            results = now.outputs[: len(now.outputs) - len(part.kept)]
            outputs += [(ids[v.node], v.index) for v in results if v.node in shown]
        record = StepRecord(tuple(nodes), tuple(outputs), tuple(updates), self.title, self.note, self.modules)
        if not stage and not names:
            return replace(record, loss=loss_of(record))
        traced = self.record(0)
        order = traced.nodes[traced.loss].order if traced.loss >= 0 else None
        loss = next((i for i, n in enumerate(nodes) if not n.column and n.order == order and n.mark != "gone"), -1)
        if loss < 0 <= traced.loss:  # the last part, if it was opened
            name = traced.nodes[traced.loss].name
            loss = max([i for i, n in enumerate(nodes) if not n.column and n.call == name], default=-1)
        return replace(record, loss=loss)

    def state_node(self, source: Source, id: str, graph: IR, owners: dict[Source, str] | None) -> StepNode:
        spec = source.out_specs[0]
        if source in graph.inputs:
            role = "input"
        elif source.op is CONSTANT:
            role = "constant"
        elif source.read is not None:
            role = "number"
        else:
            role = self.kinds.get(source.name, "buffer")
        owner, _, short = source.name.rpartition(".")
        if owners is not None:
            owner, short = owners.get(source, ""), source.name.rpartition("-")[2]
        elif role == "optimizer state":
            short = short.rpartition("-")[2]
        name = source.name or role
        kind = "input" if role == "input" else "state"
        return StepNode(
            id,
            kind,
            name,
            (str(spec),),
            scope=owner,
            name=name,
            role=role,
            short=short or source.name,
            size=spec.size,
            nbytes=spec.nbytes,
        )

    def stage_counts(self, stage: int, arena: bool = True) -> StageCounts:
        """The effect of a pass. arena: True to plan its memory if that is unknown; else it is None then."""
        record = self.record(stage)
        marks = [n.mark for n in record.nodes if n.kind == "op"]
        number = {mark: marks.count(mark) for mark in ("new", "gone", "changed", "moved")}
        if arena and stage not in self.arenas:
            total = self.stage_counts(stage - 1).arena if self.first_equal[stage] < stage else None
            if total is None:
                total = sum([arena_after(part, stage) for part in self.parts])
            self.arenas[stage] = total
        name = next((p.stages[stage].name for p in self.parts if stage < len(p.stages)), "all passes")
        return StageCounts(name, len(marks) - number["gone"], **number, arena=self.arenas.get(stage))

    # ---- values ------------------------------------------------------------------------------------------------------

    def state_array(self, name: str) -> Array | None:
        """The current array of a parameter, buffer or state."""
        return next((s.array for part in self.parts for s in part.graph.states if s.name == name), None)

    def find_operation(self, name: str) -> tuple[Any, Any, Value | None]:
        """(part, node, its first value) of an operation of the plan, by name."""
        for part in self.parts:
            for node, known in part.names.items():
                if known == name:
                    return part, node, Value(node, 0, node.out_specs[0])
        return None, None, None

    def call_seconds(self) -> dict[str, float]:
        """Operation name -> seconds of its call: in the recorded step, else in the last timed call."""
        return self.step_seconds if self.instructions else self.last_call_seconds()

    def last_call_seconds(self) -> dict[str, float]:
        """The seconds of the last timed call, as in `graph.lanes()`."""
        timed = [part for part in self.parts if part.plan.seconds is not None]
        return {part.names[node]: s for part in timed for node, s in zip(part.plan.nodes, part.plan.seconds)}

    def record_step(
        self,
        arrays: list[Array],
        generators: Iterable[Any],
        before: Callable = lambda: None,
        after: Callable = lambda: None,
        warm: bool = False,
    ) -> None:
        """Run a step call by call, keep the results of each, and restore everything.

        before: called before each run. after: called after the recorded one. warm: True if a call was timed after the
        first.
        """
        cold = not self.parts[0].plan.runs
        states = [s for part in self.parts for s in part.graph.states]
        links = [s.link for s in states if s.link is not None]
        generators = [*generators, default_generator]

        def run_step(watch_of: Callable | None) -> None:
            before()
            for k, part in enumerate(self.parts):
                run(part.plan, arrays if not k else [], watch_of is None, watch_of and watch_of(part))

        def replay(watch_of: Callable) -> None:
            arrays, lock = [s.array for s in states], current_context().plan_lock
            with self.preserving(), lock, restore_on_exit(arrays, generators, links), uninterrupted():
                run_step(watch_of)

        with restore_on_exit([s.array for s in states], generators, links) as restore:
            self.prepare_recording(arrays)
            parameters = [s for s in states if self.kinds.get(s.name) == "parameter"]
            earlier = [s.array.copy() for s in parameters]
            with current_context().plan_lock, uninterrupted():
                run_step(self.make_watch)
                after()
            if any(i.phase == "optimizer" for i in self.instructions):
                self.updates = {s.name: self.change_of(s.array, old) for s, old in zip(parameters, earlier)}
            self.instructions.sort(key=lambda i: COLUMNS.get(i.phase, 0))
            self.step_seconds = {i.name: i.seconds for i in self.instructions}
            self.timed_step = "the first, cold step" if cold else "this recorded step"
            if warm:
                self.step_seconds, self.timed_step = self.last_call_seconds(), "the last timed call"
            elif sum(self.step_seconds.values()) < MAX_REPEATED_STEP:
                self.measure_again(lambda: run_step(None), restore)
        self.replay, self.inputs = replay, arrays

    def measure_again(self, step: Callable[[], None], restore: Callable[[], None]) -> None:
        """Time the step as in training: the first run of a plan is slow, as are calls with summaries between."""
        earlier = [part.plan.seconds for part in self.parts]
        runs: list[dict[str, float]] = []
        end = time.perf_counter() + REPEAT_SECONDS
        while not runs or (time.perf_counter() < end and len(runs) < 2):
            restore()
            with current_context().plan_lock, uninterrupted():
                step()
            runs.append(self.last_call_seconds())
        self.step_seconds, self.timed_step = min(runs, key=lambda times: sum(times.values())), "this step, run again"
        for part, seconds in zip(self.parts, earlier):
            part.plan.seconds = seconds

    def make_watch(self, part: CompiledPart) -> Callable:
        """A callback for each call of a plan, which keeps a summary of its results."""
        clock = time.perf_counter
        last = [clock()]
        views, phases = views_of(part), phases_of(part.graph.nodes)

        def watch(node: Node, arrays: list[Array]) -> None:
            seconds = clock() - last[0]
            outs = tuple([self.summarize(a) for a in arrays])
            name = part.names[node]
            run_index, previous = len(self.instructions), self.instructions[-1].name if self.instructions else ""
            self.instructions.append(Instruction(name, phases[node], seconds, outs, run_index, previous))
            for i, out in enumerate(outs):
                self.summaries[name, i] = out
            for view in views.get(node, ()):
                array = part.plan.array_of(Value(view, 0, view.out_specs[0]))
                self.summaries[part.names[view], 0] = self.summarize(array)
            last[0] = clock()

        return watch

    def record_inside(self, name: str) -> None:
        """Compute the values inside an opened operation and its gradient: they are not stored by a step, so it is run
        again, and the parts are run on what the operation reads. Everything is restored.
        """
        if self.replay is None or name in self.inside:
            return
        calls = [(part, node) for part in self.parts for node in part.plan.nodes if node.op.composite]
        called = [(part, node) for part, node in calls if part.name_of(node) == name and isinstance(node.origin, Node)]
        names = frozenset([name, *[part.name_of(node.origin) for part, node in called]])  # a gradient by its forward
        chosen = [part.name_of(node) for part, node in calls if is_chosen(part, node, names)]
        self.inside |= dict.fromkeys([name, *chosen], "")
        copies: list[tuple[CompiledPart, list[Node], InputCopies]] = []

        def watch_of(part: CompiledPart) -> Callable:
            nodes = [node for node in part.plan.nodes if is_chosen(part, node, names)]
            kept = InputCopies(part, nodes, self.inputs if part is self.parts[0] else [])
            copies.append((part, nodes, kept))

            def watch(node: Node, arrays: list[Array]) -> None:
                kept.after(node)
                if node in nodes and str(summary_of(arrays[0])) != str(self.summaries[part.names[node], 0]):
                    note = "of a step run now: the state or the inputs have changed since the recorded one"
                    self.inside |= dict.fromkeys(chosen, note)

            return watch

        if chosen:
            self.replay(watch_of)
        for part, nodes, kept in copies:
            for node in nodes:
                for inside, outs in values_inside(part, node, kept.of(node)):
                    for k, out in enumerate(outs):
                        self.summaries.setdefault((inside, k), self.summarize(out))

    def prepare_recording(self, arrays: Sequence[Array]) -> None:
        """Prepare for recording a step with these inputs."""
        for source, array in zip(self.parts[0].graph.inputs, arrays):
            self.summaries[source.name, -1] = self.summarize(array)
        states = [s for part in self.parts for s in part.graph.states]
        for s in states:
            if s.read is not None and not s.array.ndim:  # a learning rate; reading a generator's state would advance it
                s.array[...] = s.read()
        self.states_before = {s.name: summary_of(s.array, 0) for s in states}
        for part in self.parts:
            for root, views in views_of(part).items():
                for view in views if isinstance(root, Source) and root.array is not None else ():
                    array = part.plan.array_of(Value(view, 0, view.out_specs[0]))
                    self.summaries[part.names[view], 0] = self.summarize(array)

    def summarize(self, array: Array, every: bool = False) -> Summary:
        """The summary of an array of the recorded step. The maps of all of them share one limit of memory.

        every: True to keep maps of all leading indices, as of filters.
        """
        summary = summary_of(array, max(1, min(self.map_cells, MAX_CELLS)), every)
        self.map_cells -= summary.tiles.cells if summary.tiles else 0
        return summary

    def change_of(self, array: Array, earlier: Array) -> Summary:
        with backend_of_array(array).silent():
            return self.summarize(array - earlier, every=True)

    def value_summary(self, name: str, output: int, is_state: bool) -> Summary | None:
        """The values that an operation of the recorded step read: the output of an operation, or a state."""
        if is_state:
            return self.summaries.get((name, -1)) or self.states_before.get(name)
        return self.summaries.get((name, output))

    def gradient_summary(self, name: str) -> Summary | None:
        """The gradient of a parameter: from the recorded step, else from the last call."""
        if name in self.gradients:
            return self.gradients[name]
        array = self.gradient(name)
        return None if array is None else summary_of(array, every=True)


def views_of(part: CompiledPart) -> dict[Node, list[Node]]:
    """node -> its views that have no call, because their address is fixed."""
    called = set(part.plan.nodes)
    result: dict[Node, list[Node]] = {}
    for node in part.graph.nodes:
        if node.op.is_view and node not in called:
            result.setdefault(part.plan.uses.root[Value(node, 0, node.out_specs[0])].node, []).append(node)
    return result


# ---- models of a graph -----------------------------------------------------------------------------------------------


def graph_explorer_model(graph: Any, args: tuple = (), kwargs: dict | None = None, step: bool = False) -> ExplorerModel:
    """The ExplorerModel of an nn.Graph: of its last plan; given inputs, of the plan for these, with a recorded step.

    Operations that were fused are shown and run one by one. step: record a step also for a graph without inputs.

    Raises GraphError if the graph was not called and no inputs are given.
    """
    if not args and not kwargs and not step:
        if graph._last is None:
            what = f"{graph.name} has not been called yet, so there is nothing to explore"
            fail(GraphError, what, "call the graph once, or give the inputs: explore(graph, x, y)", graph=graph.name)
        return explorer_model_of(graph, graph._last)
    with preserve_last_call(graph):
        compiled = graph.compiled_for(args, kwargs or {})
        return with_recorded_step(graph, compiled, input_arrays(compiled, args, kwargs or {}))


def with_recorded_step(graph: Any, compiled: Any, arrays: list[Array]) -> ExplorerModel:
    """The ExplorerModel with a step recorded on these inputs."""
    model = explorer_model_of(graph, compiled)
    model.preserving = lambda: preserve_last_call(graph)

    def keep_gradients() -> None:
        result = {name: model.gradient(name, True) for name in kinds_of(graph)}
        model.gradients |= {name: model.summarize(array, True) for name, array in result.items() if array is not None}

    timed = all([part.plan.seconds is not None for part in model.parts])
    warm = compiled.runs > 1 and compiled.steps == 1 and timed
    model.record_step(arrays, compiled.build.trace.draws, after=keep_gradients, warm=warm)
    return model


def explorer_model_of(graph: Any, compiled: Any) -> ExplorerModel:
    modules = {path: type(module).__name__ for path, module in graph.all_modules()}
    kinds, parts = kinds_of(graph), compiled.unfused
    for part in parts:
        for s in part.graph.states:
            if s.name not in kinds and s.name.rpartition("-")[0] in kinds:
                kinds[s.name] = "optimizer state"

    def gradient(name: str, ran: bool = False) -> Array | None:
        for part in parts if ran else compiled.parts:
            if (ran or compiled.runs) and f"grad {name}" in part.kept:
                return part.plan.array_of(part.graph.outputs[part.kept[f"grad {name}"]])
        return None

    notes = [fused_note(compiled, ", which graph.plan lists")]
    if compiled.steps > 1:
        notes.append(f"One call runs the operations of {compiled.steps} parts of the batch, then the update.")
    return ExplorerModel(graph.name, parts, modules, kinds, gradient, " ".join(notes).strip())


def fused_note(compiled: Any, more: str = "") -> str:
    """A note on the fused operations that a call runs instead of those shown."""
    if compiled.exact:
        return ""
    fused = sum([len(part.graph.nodes) for part in compiled.parts])
    return f"Calls run {fused} fused operations instead{more}."


def kinds_of(graph: Any) -> dict[str, str]:
    """Name of a parameter or buffer -> "parameter" or "buffer"."""
    kinds: dict[str, str] = {}
    for path, module in graph.all_modules():
        kinds |= {f"{path}.{name}": "parameter" for name, p in module._parameters.items() if p is not None}
        kinds |= {f"{path}.{name}": "buffer" for name, p in module._buffers.items() if p is not None}
    return kinds


# ---- making records --------------------------------------------------------------------------------------------------


def used_states(graph: IR, part: CompiledPart, gone: list[Node]) -> list[Source]:
    """Inputs, and the states that are read or written."""
    used = {x.node for n in (*graph.nodes, *gone) for x in n.inputs if x.__class__ is Value}
    used |= {v.node for v in graph.outputs} | {*graph.updates}
    return [*graph.inputs, *[s for s in graph.states if s in used]]


def first_scopes(nodes: list[Node]) -> dict[Source, str]:
    """The scope in which each state is read first."""
    result: dict[Source, str] = {}
    for node in nodes:
        for x in node.inputs:
            if x.__class__ is Value and isinstance(x.node, Source) and node.phase == "forward":
                result.setdefault(x.node, node.scope.partition("/")[0])
    return result


def order_of(nodes: list[Node], gone: list[Node]) -> dict[Node, float]:
    """The position of each node in the program: its number in the trace; nodes added by a pass follow their inputs."""
    result: dict[Node, float] = {}
    for node in (*nodes, *gone):
        if node.number is not None:
            result[node] = float(node.number)
    for i, node in enumerate(nodes):
        if node not in result:
            behind = max([result.get(x.node, 0.0) for x in node.inputs if x.__class__ is Value], default=0.0)
            result[node] = behind + 1e-3 * (1 + i / len(nodes))
    for node in gone:
        result.setdefault(node, 0.0)
    return result


class NodeRecords(dict):
    """The records of the operations of a part, keyed by node and everything that a pass may change: stages in which a
    node is the same share its record. ids: node -> its id.
    opened: the graph, if operations are opened in it. closed: the records of the other operations.
    """

    def __init__(
        self, part: CompiledPart, prefix: str, opened: OpenedGraph | None = None, closed: NodeRecords | None = None
    ):
        self.part, self.opened, self.closed = part, opened, closed
        self.ids: dict[Node, str] = defaultdict(map(f"{prefix}{{}}".format, count()).__next__)
        if opened is not None and closed is not None:
            self.ids |= closed.ids
            self.ids |= {node: closed.ids[old] for node, old in opened.was.items()}

    def __missing__(self, key: tuple[Node, str, int, str, float, str]) -> StepNode:
        node, mark, column, twin, order, by = key
        part, opened = self.part, self.opened
        if opened is not None and self.closed is not None and node in opened.was:
            if not any(x.node in opened.names for x in values_among(node.inputs)):
                return self.closed[opened.was[node], mark, column, twin, order, by]
        name, whole, stored = part.name_of(node), None, [] if node.op.is_view else list(node.out_specs)
        call = name
        if node.whole is not None:
            inner = inner_scope(node.whole)
            if opened is not None and node in opened.names:
                inner, name = opened.scopes[node.whole], opened.names[node]
                call = name
                if node.number not in part.by_number:  # no pass makes it an operation of its own
                    call = part.name_of(node.whole)
                    stored = [spec for k, spec in enumerate(stored) if (node, k) in opened.results]
            whole = Whole(node.whole.scope, inner, whole_text(node.whole), part.name_of(node.whole))
        self[key] = record = StepNode(
            **op_fields(node, self.ids, {}, limit=24),
            phase=node.phase,
            mark=mark,
            name=name,
            whole=whole,
            opens=node.op.composite and node.number is not None and mark != "gone",
            call=call,
            column=column,
            nbytes=sum(s.nbytes for s in stored),
            every=", ".join(f"{name}={short_repr(x, 24)}" for name, x in node.attrs.items()),
            twin=twin,
            order=order,
            view=node.op.is_view,
            by=by,
        )
        return record


def step_nodes(
    records: NodeRecords, listed: list[Node], marks: dict[Node, str], orders: dict[Node, float], later: float
) -> list[StepNode]:
    """The records of these nodes. later: offset that is added to each position in the program."""
    columns = {node: COLUMNS.get(phase, 0) for node, phase in phases_of(listed).items()}
    makers = pass_of(records.part, listed, records.opened.names if records.opened else ())
    by_number = {node.number: node for node in listed if not columns[node] and node.number is not None}

    def twin(node: Node) -> str:
        seen = 0
        while columns.get(node, 0) == 1 and seen < 50:
            seen += 1
            origin = node.origin
            if node.phase == "recompute":
                origin = by_number.get(node.number)
            elif origin is None:
                origin = next((x.node for x in node.inputs if x.__class__ is Value and columns.get(x.node) == 1), None)
            elif origin not in columns:
                origin = by_number.get(origin.number, origin if isinstance(origin.origin, Node) else None)
            if origin is None or isinstance(origin, Source):
                return ""
            node = origin
        return "" if columns.get(node, 1) else records.ids[node]

    return [
        records[
            node,
            marks.get(node, ""),
            columns[node],
            twin(node) if columns[node] == 1 else "",
            orders[node] + later,
            makers.get(node, ""),
        ]
        for node in listed
    ]


def pass_of(part: CompiledPart, listed: list[Node], opened: Container[Node]) -> dict[Node, str]:
    """The name of the pass that added a node, for nodes that are not in the trace. opened: parts that none added."""
    result: dict[Node, str] = {}
    new = [node for node in listed if node.number is None or (node.whole is not None and node not in opened)]
    added = keys_of([node for node in new if node.phase != "recompute"])
    known = set(keys_of(part.stages[0].graph.nodes).values()) if added else set()
    for stage in part.stages[1:] if added else ():
        now = set(keys_of(stage.graph.nodes).values())
        for node, key in added.items():
            if key in now and key not in known:
                result.setdefault(node, stage.name)
        known |= now
    return result
