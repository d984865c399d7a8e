"""What the explorer shows of a compiled graph or job: records of its stages, and a step run call by call with its values.

`Subject` is the one door to live objects; views get plain data. A recorded step starts from the present state, and
everything that it wrote is put back. Read next: `looking.py`, what is told of one node; `../../views/explorer.py`.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...compiler.executor import guarded, run
from ...compiler.plan import Plan
from ...core.errors import GraphError
from ...core.ir import CONSTANT, Node, Source, Value, where_text
from ...core.ir import Graph as IR
from ...core.op import fail
from ...core.random import default_generator
from ...views.explorer import StepNode, StepRecord, StepState
from ...views.records import short
from .compare import put_back
from .compiled import CompiledPart
from .summary import Summary, summary_of

COLUMNS = {"forward": 0, "backward": 1, "recompute": 1, "optimizer": 2}


class StageCounts(NamedTuple):
    """A pass and what it did. arena: bytes that a plan of the graph after it would take."""

    name: str
    nodes: int
    new: int
    gone: int
    changed: int
    moved: int
    arena: int


@dataclass(frozen=True)
class Instruction:
    """One call of a recorded step. outs: a Summary of each result.  seconds: of the call alone."""

    name: str
    phase: str
    seconds: float
    outs: tuple[Summary, ...]


class Subject:
    """A compiled graph or job. parts: what runs in a call, one after the other.  kinds: state's name -> its kind.

    modules: path -> class.  gradient: name of a parameter -> the array of its last gradient, or None.
    """

    def __init__(self, title: str, parts: Sequence[CompiledPart], modules: dict[str, str], kinds: dict[str, str],
                 gradient: Callable[[str], np.ndarray | None], note: str = ""):  # fmt: skip
        self.title, self.parts, self.modules, self.kinds, self.gradient, self.note = title, tuple(parts), modules, kinds, gradient, note
        self.records: dict[int, StepRecord] = {}
        self.nodes: dict[int, list[Node | None]] = {}
        self.arenas: dict[int, int] = {}
        self.instructions: list[Instruction] = []
        self.numbers: dict[tuple[str, int], Summary] = {}  # (name of the operation, output) -> what came out in the recorded step
        self.stages = max(len(part.stages) for part in self.parts)

    # ---- records -------------------------------------------------------------------------------------------------------------

    def record(self, stage: int) -> StepRecord:
        """The step after this many passes (0: as traced), with marks for what the last of them did."""
        if stage not in self.records:
            self.records[stage], self.nodes[stage] = self.made(stage)
        return self.records[stage]

    def made(self, stage: int) -> tuple[StepRecord, list[Node]]:
        nodes: list[StepNode] = []
        states: list[StepState] = []
        live: list[Node] = []
        updates, outputs = [], []
        for k, part in enumerate(self.parts):
            at = min(stage, len(part.stages) - 1)
            now = part.stages[at].graph
            before = part.stages[at - 1].graph if at and stage < len(part.stages) else None
            marks, gone = differences(before, now) if before is not None else ({}, [])
            shown = used_states(now, part, gone)
            state_id = {s: len(states) + i for i, s in enumerate(shown)}
            states += [self.state_record(s, now) for s in shown]
            listed = [*now.nodes, *gone]
            index = {node: len(nodes) + i for i, node in enumerate(listed)}
            orders = order_of(now.nodes, gone)
            nodes += step_nodes(part, listed, index, state_id, marks, set(gone), orders, k)
            live += listed
            updates += [(state_id[s], index[v.node]) for s, v in now.updates.items() if s in state_id and v.node in index]
            for v in now.outputs[: len(now.outputs) - len(part.kept)]:
                known = index.get(v.node, ~state_id[v.node] if v.node in state_id else None)
                if known is not None:
                    outputs.append((known, v.index))
        note = self.note
        return StepRecord(self.title, tuple(nodes), tuple(states), tuple(updates), tuple(outputs), self.modules, note), live

    def state_record(self, source: Source, graph: IR) -> StepState:
        spec = source.out_specs[0]
        if source in graph.inputs:
            kind = "input"
        elif source.op is CONSTANT:
            kind = "constant"
        elif source.read is not None:
            kind = "number"
        else:
            kind = self.kinds.get(source.name, "buffer")
        return StepState(source.name or kind, kind, str(spec), spec.size, spec.nbytes)

    def counts(self, stage: int) -> StageCounts:
        record = self.record(stage)
        marks = [n.mark for n in record.nodes]
        number = {mark: marks.count(mark) for mark in ("new", "gone", "changed", "moved")}
        if stage not in self.arenas:
            total = 0
            for part in self.parts:
                graph = part.stages[min(stage, len(part.stages) - 1)].graph
                total += part.plan.arena_bytes if graph is part.graph else Plan(graph, len(part.plan.kept)).arena_bytes
            self.arenas[stage] = total
        name = next(p.stages[stage].name for p in self.parts if stage < len(p.stages))
        return StageCounts(name, len(marks) - number["gone"], number["new"], number["gone"], number["changed"], number["moved"],
                           self.arenas[stage])  # fmt: skip

    # ---- numbers -------------------------------------------------------------------------------------------------------------

    def state_array(self, name: str) -> np.ndarray | None:
        """The numbers of a parameter, buffer or state as they stand now."""
        return next((s.array for part in self.parts for s in part.graph.states if s.name == name), None)

    def place(self, name: str) -> tuple[Any, Any, Value | None]:
        """(part, node, its first value) of an operation of the plan, by name."""
        for part in self.parts:
            for node, known in part.names.items():
                if known == name:
                    return part, node, Value(node, 0, node.out_specs[0])
        return None, None, None

    def seconds(self) -> dict[str, float]:
        """Name -> seconds of its call: of the recorded step, else of the last timed call."""
        if self.instructions:
            return {i.name: i.seconds for i in self.instructions}
        return {part.names[node]: s for part in self.parts if part.plan.seconds is not None
                for node, s in zip(part.plan.nodes, part.plan.seconds)}  # fmt: skip

    def watcher(self, part: CompiledPart) -> Callable:
        """Called after each call of a plan: keeps a summary of what it gave."""
        clock = time.perf_counter
        last = [clock()]

        def watch(node: Node, arrays: list[np.ndarray]) -> None:
            seconds = clock() - last[0]
            outs = tuple([summary_of(a) for a in arrays])
            name = part.names[node]
            self.instructions.append(Instruction(name, node.phase, seconds, outs))
            for i, out in enumerate(outs):
                self.numbers[name, i] = out
            last[0] = clock()

        return watch

    def input_numbers(self, arrays: Sequence[np.ndarray]) -> None:
        for source, array in zip(self.parts[0].graph.inputs, arrays):
            self.numbers[source.name, -1] = summary_of(array)


# ---- subjects ------------------------------------------------------------------------------------------------------------------


def graph_subject(graph: Any, args: tuple = (), kwargs: dict | None = None) -> Subject:
    """The Subject of an nn.Graph: of its last plan, or with inputs of the plan for them, with a step recorded.

    Raises GraphError if the graph was not called and no inputs are given.
    """
    if not args and not kwargs:
        if graph._last is None:
            fail(GraphError, f"{graph.name} has not been called yet, so there is nothing to explore",
                 "call the graph once, or give the inputs: explore(graph, x, y)", graph=graph.name)  # fmt: skip
        return subject_of(graph, graph._last)
    compiled = graph.compiled_for(args, kwargs or {})
    subject = subject_of(graph, compiled)
    arrays = [np.ascontiguousarray(t.array) for t in compiled.build.inputs_of(args, kwargs or {})]
    states = {id(s.array): s.array for part in compiled.parts for s in part.graph.states}
    held = [(array, array.copy()) for array in states.values()]
    drawn = [(g, g.get_state()) for g in {*compiled.build.trace.draws, default_generator}]
    subject.input_numbers(arrays)
    try:
        with guarded(True):
            if compiled.steps > 1:
                arrays = [a[: len(a) // compiled.steps] for a in arrays]
            for k, part in enumerate(subject.parts):
                run(part.plan, arrays if not k else [], watch=subject.watcher(part))
            subject.after = {s.name: summary_of(s.array) for part in subject.parts for s in part.graph.updates}
    finally:
        put_back(held, drawn)
    return subject


def subject_of(graph: Any, compiled: Any) -> Subject:
    modules = {path: type(module).__name__ for path, module in graph.all_modules()}
    kinds: dict[str, str] = {}
    for path, module in graph.all_modules():
        kinds |= {f"{path}.{name}": "parameter" for name, p in module._parameters.items() if p is not None}
        kinds |= {f"{path}.{name}": "buffer" for name, p in module._buffers.items() if p is not None}
    for part in compiled.parts:
        for s in part.graph.states:
            if s.name not in kinds and s.name.rpartition("-")[0] in kinds:
                kinds[s.name] = "optimizer state"

    def gradient(name: str) -> np.ndarray | None:
        for part in compiled.parts:
            if compiled.runs and f"grad {name}" in part.kept:
                return part.plan.array_of(part.graph.outputs[part.kept[f"grad {name}"]])
        return None

    note = ""
    if compiled.steps > 1:
        note = f"One call runs the operations of {compiled.steps} parts of the batch, then the update."
    return Subject(graph.name, compiled.parts, modules, kinds, gradient, note)


# ---- making records --------------------------------------------------------------------------------------------------------------


def used_states(graph: IR, part: CompiledPart, gone: list[Node]) -> list[Source]:
    """Inputs, and the states that something reads or writes."""
    used = {x.node for n in (*graph.nodes, *gone) for x in n.inputs if x.__class__ is Value}
    used |= {v.node for v in graph.outputs} | {*graph.updates}
    return [*graph.inputs, *[s for s in graph.states if s in used]]


def order_of(nodes: list[Node], gone: list[Node]) -> dict[Node, float]:
    """Where a node stands in the program: its number in the trace; one that a pass added stands behind what it reads."""
    found: dict[Node, float] = {}
    for node in (*nodes, *gone):
        if node.number is not None:
            found[node] = float(node.number)
    for i, node in enumerate(nodes):
        if node not in found:
            behind = max([found.get(x.node, 0.0) for x in node.inputs if x.__class__ is Value], default=0.0)
            found[node] = behind + 1e-3 * (1 + i / len(nodes))
    for node in gone:
        found.setdefault(node, 0.0)
    return found


def step_nodes(part: CompiledPart, listed: list[Node], index: dict[Node, int], state_id: dict[Source, int], marks: dict[Node, str],
               gone: set[Node], orders: dict[Node, float], k: int) -> list[StepNode]:  # fmt: skip
    columns: dict[Node, int] = {}
    for node in listed:
        column = COLUMNS.get(node.phase, 0)
        if not column and not node.scope and any(x.__class__ is Value and columns.get(x.node) == 1 for x in node.inputs):
            column = 1  # what copies a gradient at the end belongs to backward
        columns[node] = column
    by_number = {node.number: node for node in listed if not columns[node] and node.number is not None}

    def twin(node: Node) -> int:
        seen = 0
        while columns.get(node, 0) == 1 and seen < 50:
            seen += 1
            origin = node.origin
            if node.phase == "recompute":
                origin = by_number.get(node.number)
            elif origin is None:
                origin = next((x.node for x in node.inputs if x.__class__ is Value and columns.get(x.node) == 1), None)
            elif origin not in index:
                origin = by_number.get(origin.number, origin if isinstance(origin.origin, Node) else None)
            if origin is None or isinstance(origin, Source):
                return -1
            node = origin
        return index.get(node, -1) if not columns.get(node, 1) else -1

    made = []
    for node in listed:
        inputs = tuple([(index.get(x.node, ~state_id[x.node] if x.node in state_id else -10**9), x.index) if x.__class__ is Value else None
                        for x in node.inputs])  # fmt: skip
        inputs = tuple([None if x is not None and x[0] == -(10**9) else x for x in inputs])
        made.append(StepNode(
            name=part.name_of(node), op=str(node.op), phase=node.phase, column=columns[node], scope=node.scope,
            outs=tuple(map(str, node.out_specs)), nbytes=0 if node.op.is_view else sum(s.nbytes for s in node.out_specs), inputs=inputs,
            attrs=", ".join(f"{name}={short(x, 24)}" for name, x in node.attrs.items()), where=where_text(node.where) if node.where else "",
            twin=twin(node) if columns[node] == 1 else -1, order=orders[node] + k * 1e6,
            mark="gone" if node in gone else marks.get(node, ""), view=node.op.is_view))  # fmt: skip
    return made


def differences(before: IR, now: IR) -> tuple[dict[Node, str], list[Node]]:
    """What a pass did: node -> "new", "changed" or "moved", and the nodes that are gone, in order."""
    old, new = keys_of(before.nodes), keys_of(now.nodes)
    old_at = {key: i for i, key in enumerate(old.values())}
    known = set(new.values())
    marks: dict[Node, str] = {}
    common = []
    old_node = {key: node for node, key in old.items()}
    for node, key in new.items():
        if key not in old_at:
            marks[node] = "new"
        else:
            common.append((node, old_at[key]))
            if said(node, new) != said(old_node[key], old):
                marks[node] = "changed"
    for node in moved(common):
        marks.setdefault(node, "moved")
    return marks, [node for node, key in old.items() if key not in known]


def keys_of(nodes: list[Node]) -> dict[Node, tuple]:
    """A name for each node that stays its own through passes."""
    counts: dict[tuple, int] = {}
    found = {}
    for node in nodes:
        origin = node.origin.number if isinstance(node.origin, Node) else node.origin
        key: tuple = (node.number,)
        if node.number is None or node.phase == "recompute":
            key = node.number, str(node.op), node.scope, origin
        count = counts[key] = counts.get(key, 0) + 1
        found[node] = (*key, count)
    return found


def said(node: Node, keys: dict[Node, tuple]) -> tuple:
    inputs = tuple([(keys.get(x.node, id(x.node)), x.index) if x.__class__ is Value else x for x in node.inputs])
    return str(node.op), inputs, node.out_specs, repr(node.attrs) if node.attrs else ""


def moved(common: list[tuple[Node, int]]) -> list[Node]:
    """The nodes that do not stand in the longest part that kept its order."""
    tails: list[int] = []
    ends: list[int] = []  # position in `common` of each tail
    back: list[int] = []
    for i, (_, at) in enumerate(common):
        k = bisect_left(tails, at)
        back.append(ends[k - 1] if k else -1)
        tails[k:k + 1] = [at]
        ends[k:k + 1] = [i]
    kept, i = set(), ends[-1] if ends else -1
    while i >= 0:
        kept.add(i)
        i = back[i]
    return [node for i, (node, _) in enumerate(common) if i not in kept]
