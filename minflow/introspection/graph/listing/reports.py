"""Records of a graph for views, made from the plan that runs, so that a pass that removes a node changes them all.

Each method returns an object with `.record` (plain data) that prints as text. Read next:
`views/records/reports.py`.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ....compiler.arena import least
from ....compiler.call_merging import memory_of
from ....compiler.passes import RENAMED_PASSES
from ....compiler.passes.localization import is_global
from ....core.backend import backend_of
from ....core.base.errors import GraphError
from ....core.ir import CONSTANT, Graph as IR, Node, Source, Value, outputs_of, where_text
from ....core.source_location import fail
from ....core.spec import cpu
from ....core.tensor import Tensor
from ....nn.graph.python_state import PLAIN_TYPES
from ....nn.graph.tree import leaves
from ....nn.module import Module, extra_text
from ....nn.recursion_limit import SHOWN_LEVELS, levels_below
from .pass_changes import arena_after, changes_of

if TYPE_CHECKING:  # display code is imported on first use
    from ....views.records.graph import GraphRecord, PartsRecord
    from ....views.records.opening import Opening
    from ....views.records.reports import FrozenValues, TreeRow
    from ....views.text.reports import Report

PASS_PURPOSES = {  # pass -> its purpose
    "trace": "the operations as they were written",
    "dead_code": "removes operations without users",
    "decompose": "replaces composite operations without a kernel by the operations that define them",
    "constant_folding": "computes constant values once, now",
    "common_subexpressions": "computes equal operations once",
    "copies": "removes copies whose aliasing cannot be observed",
    "layout": "keeps images in blocks of 16 channels, from convolution to convolution",
    "dense": "adds the bias and applies the activation within a matrix product",
    "clusters": "fuses adjacent elementwise operations of one shape",
    "reduce_memory": "reorders, so that fewer values are alive at a time",
}
PHASES = ("forward", "backward", "recompute", "optimizer")


class GraphReports:
    """Mixin of nn.Graph for records of itself."""

    def tree(self: Any, depth: int | None = None) -> Report:
        """The modules with the shapes of their inputs and outputs, equal neighbors folded, and badges.

        Badges: never ran, no gradient, frozen, not registered (called in build, but not an attribute of the graph or of
        a module in it, so that an optimizer does not find it). depth: number of levels below the members; None for all.
        """
        from ....views.records.reports import GraphTree

        rows = [row for row in fold_repeats(list(tree_rows(self))) if depth is None or row.depth <= depth]
        return report(GraphTree(f"{self.name}: modules", tuple(rows)))

    def stages(self: Any) -> Report:
        """The effect of each pass: operations left, removed and added, and the bytes of the arena after it."""
        from ....views.records.reports import StageRow, Stages

        rows, parts = [], require_compiled(self).parts
        for part in parts:
            for i, stage in enumerate(part.stages):
                change = changes_of(part.stages[max(i - 1, 0)].graph, stage.graph)
                name = stage.name if len(parts) == 1 else f"{part.name}: {stage.name}"
                added = sum(mark == "new" for mark in change.marks.values())
                counts = len(change.after), len(change.gone), added, arena_after(part, i)
                rows.append(StageRow(name, *counts, stage.seconds, PASS_PURPOSES.get(stage.name, "")))
        return report(Stages(f"{self.name}: passes", tuple(rows)))

    def changes(self: Any, name: str | int, part: int = 0) -> Report:
        """The operations before and after one pass, by its name or its index in `passes`. part: of gradient
        accumulation.
        """
        from ....views.records.reports import Change

        compiled = require_compiled(self).parts[part]
        stages = compiled.stages
        if isinstance(name, int) and 0 <= name < len(stages) - 1:
            at = name + 1
        else:
            now = RENAMED_PASSES.get(str(name), name)
            if now != name:
                warnings.warn(f"the pass {name} is now {now}", DeprecationWarning, stacklevel=2)
            at = next((i for i, stage in enumerate(stages) if i and stage.name == now), 0)
        if not at:
            known = ", ".join(stage.name for stage in stages[1:])
            fail(GraphError, f"{self.name}: no pass {name!r} was run", f"one of {known}", passes=known)
        change = changes_of(stages[at - 1].graph, stages[at].graph)
        title = f"{self.name}: {stages[at].name}, {len(change.before)} operations before, {len(change.after)} after"
        return report(Change(title, tuple(change.lines(lambda node: operation_text(node, compiled)))))

    def profile(self: Any, calls: int = 1) -> None:
        """Time every operation of the next calls, for `plan`, `lanes()`, `threads()` and `flow.roofline(graph)`.

        The last of them runs once for you, and then up to seven times more, for two seconds at most, with all effects
        undone (parameters, buffers, optimizer state, random numbers): the run with the median duration is shown. Not
        repeated: a call of more than a second, of several ranks, or with operations that you defined in Python. Without
        `profile`, the times are those of the second call, operation by operation, which takes longer.
        """
        self.__dict__["_timed"] = int(calls)

    def lanes(self: Any, slowest: int = 10) -> Report:
        """Forward, backward, recompute and optimizer: operations, bytes written, and times (see `profile`)."""
        from ....views.records.reports import Lane, Lanes, Operation

        counts: dict[str, list] = {phase: [0, 0, None] for phase in PHASES}  # operations, bytes, seconds
        slow = []
        views = 0
        for part in require_compiled(self).parts:
            plan, seconds = part.plan, part.plan.seconds
            phases, calls = phases_of(part.graph.nodes), set(plan.nodes)
            for node in part.graph.nodes:
                if node not in calls:
                    counts[phases[node]][0] += 1
                    views += 1
            for i, node in enumerate(plan.nodes):
                lane = counts[phases[node]]
                nbytes = 0 if node.op.is_view else sum(s.nbytes for s in node.out_specs)
                lane[0] += 1
                lane[1] += nbytes
                if seconds is not None:
                    lane[2] = (lane[2] or 0.0) + seconds[i]
                    line, spec = where_text(node.where), str(node.out_specs[0])
                    slow.append(Operation(part.names[node], phases[node], line, spec, nbytes, seconds[i], node.scope))
        lanes = tuple([Lane(phase, *lane) for phase, lane in counts.items() if lane[0]])
        slow.sort(key=lambda x: -x.seconds)
        several = require_compiled(self).steps
        title = f"{self.name}: one step" + (f", a micro-step (of {several}) and the update" if several > 1 else "")
        return report(Lanes(title, lanes, tuple(slow[:slowest]), views, require_compiled(self).timing))

    def memory(self: Any, part: int = 0) -> Report:
        """The arena: offset, size and lifetime of each value. part: 1 for the update of gradient accumulation."""
        from ....views.records.reports import Block, MemoryMap

        compiled = require_compiled(self).parts[part]
        plan = compiled.plan
        phases = phases_of(plan.graph.nodes)
        blocks = []
        for v, place in plan.places.items():
            phase = phases.get(v.node, v.node.phase)
            blocks.append(Block(compiled.names[v.node], str(v.spec), *place, phase, where_text(v.node.where)))
        states = sum(s.array.nbytes for s in plan.graph.states)
        title = f"{self.name}: memory" + (f" of the {compiled.name}" if len(require_compiled(self).parts) > 1 else "")
        total, outputs = sum(b.nbytes for b in blocks), sum(v.spec.nbytes for v in plan.fresh)
        sizes = plan.arena_bytes, least(plan.needs), total, len(plan.graph.nodes), states
        pool = None
        if plan.device is not cpu:
            memory = backend_of(plan.device).memory()
            pool = str(plan.device), memory.allocated, memory.reserved, memory.free, memory.total
        inputs = sum(array.nbytes for _, array in plan.inputs if array is not None)
        around = inputs, memory_of(plan.calls), pool
        return report(MemoryMap(title, *sizes, len(plan.in_place), outputs, tuple(blocks), *around))

    def timeline(self: Any) -> Report:
        """The first call of the current plan: trace, each pass, plan, first and second run."""
        from ....views.records.reports import FirstCallTimeline

        last = require_compiled(self)
        bars = [("trace", last.seconds["trace"])]
        for part in last.parts:
            label = f" of the {part.name}" if len(last.parts) > 1 else ""
            bars += [(stage.name + label, stage.seconds) for stage in part.stages[1:]]
        bars += [(name, last.seconds[name]) for name in ("plan", "first run", "second run") if name in last.seconds]
        return report(FirstCallTimeline(f"{self.name}: the first call", tuple(bars)))

    def frozen(self: Any) -> Report:
        """The values that the current plan has fixed, and those that it reads at each call."""
        return report(frozen_record(self, require_compiled(self)))

    def why(self: Any) -> Report:
        """The plans that were made, each with its reason: what changed since the previous plan, old and new."""
        from ....views.records.reports import PlanReasons, PlanRow

        rows = []
        for s in self._history:
            inputs = tuple([(name, str(spec)) for name, spec in s.inputs])
            rows.append(PlanRow(s.number, inputs, s.nodes, sum(s.seconds.values()), s.reason, plan_hints(s), s.note))
        title = f"{self.name}: {self._plan_count} plan{'s' * (self._plan_count != 1)} made, {len(self._plans)} kept"
        return report(PlanReasons(title, tuple(rows)))


def report(record: Any) -> Report:
    from ....views.text.reports import Report

    return Report(record)


def phases_of(nodes: Iterable[Node]) -> dict[Node, str]:
    """The phase of each node. Copies of gradients at the end, outside all modules, count as backward."""
    phases: dict[Node, str] = {}
    for node in nodes:
        phase = node.phase
        if phase == "forward" and not node.scope:
            if any(x.__class__ is Value and phases.get(x.node) in ("backward", "recompute") for x in node.inputs):
                phase = "backward"
        phases[node] = phase
    return phases


def require_compiled(graph: Any) -> Any:
    if graph._last is None:
        what = f"{graph.name} has not been called yet, so there is nothing compiled"
        fail(GraphError, what, "call the graph once", graph=graph.name)
    return graph._last


# ---- the tree --------------------------------------------------------------------------------------------------------


def tree_rows(graph: Any) -> Iterator[TreeRow]:
    last = graph._last
    calls: dict[int, list] = {}
    for call in last.build.top.walk() if last else ():
        calls.setdefault(id(call.module), []).append(call)
    reached = last.build.reached if last and last.build.backwards else None
    result = [(p, m) for p, m in graph._nonmembers if "." not in p]
    seen: set[int] = set()
    for name, member in [*graph.named_members(), *result]:
        stack = [(name, member, 0)]
        while stack:
            path, module, depth = stack.pop()
            shared = id(module) in seen
            row = tree_row(path, module, depth, calls.get(id(module), []), last is not None, reached, shared)
            deep = levels_below(module) if depth == SHOWN_LEVELS else 0
            row = replace(row, extra=f"... {deep:,} more level{'s' * (deep > 1)} inside") if deep else row
            outside = depth == 0 and row.params and any(module is m for _, m in result)
            yield replace(row, badges=("not registered", *row.badges)) if outside else row
            if not shared and not deep:
                children = [(name, child) for name, child in reversed(module._modules.items()) if child is not None]
                stack += [(f"{path}.{name}", child, depth + 1) for name, child in children]
            seen.add(id(module))


def tree_row(path: str, module: Any, depth: int, calls: list, ran: bool, reached: set | None, shared: bool) -> TreeRow:
    from ....views.records.reports import TreeRow

    badges = ["shared"] if shared else []
    own = {n: p for n, p in module._parameters.items() if p is not None}
    if ran and not calls and not shared and not is_container(module):
        badges.append("never ran")
    if own and not any(p._needs for p in own.values()):
        badges.append("frozen")
    elif reached is not None:
        without = [n for n, p in own.items() if p._needs and id(p) not in reached]
        if without:
            badges.append("no gradient" if len(without) == len(own) else f"no gradient: {', '.join(without)}")
    if module.__dict__.get("_checkpointing"):
        badges.append("checkpointed")
    first = calls[0] if calls else None
    ins = specs_of([*first.args, *first.kwargs.values()]) if first else ()
    outs = specs_of(first.output) if first else ()
    params = sum({id(p): p.numel() for _, p in module._named_tensors("_parameters", "", True, True)}.values())
    text, count = extra_text(module), len(calls) if ran else None
    return TreeRow(path, depth, type(module).__name__, text, ins, outs, params, count, tuple(badges))


def specs_of(values: Any) -> tuple[str, ...]:
    """The specs of the tensors in lists and dicts."""
    return tuple([str(x.spec) for _, x in leaves(values) if isinstance(x, Tensor)])


def is_container(module: Any) -> bool:
    """True for ModuleList and its kind, which hold modules and are never called themselves."""
    return type(module).forward is Module.forward


def fold_repeats(rows: list[TreeRow]) -> list[TreeRow]:
    """Equal neighbors, with their contents, as one row with their number."""
    starts = [i for i, row in enumerate(rows) if row.depth == rows[0].depth]
    blocks = [rows[start:end] for start, end in itertools.pairwise([*starts, len(rows)])]
    result: list[TreeRow] = []
    for _, run in itertools.groupby(blocks, content_of):
        equal = list(run)
        if len(equal) > 2 or (len(equal) == 2 and len(equal[0]) > 1):
            first, *inside = equal[0]
            equal = [[replace(first, count=len(equal)), *inside]]
        for first, *inside in equal:
            result += [first, *fold_repeats(inside)]
    return result


def content_of(block: list[TreeRow]) -> tuple[str, list[TreeRow]]:
    """The parent of a module, and its rows with their own names, without that of the module itself."""
    rows = [replace(row, path=row.path.rpartition(".")[2] if k else "") for k, row in enumerate(block)]
    return block[0].path.rpartition(".")[0], rows


# ---- operations ------------------------------------------------------------------------------------------------------


def operation_text(node: Node, part: Any) -> str:
    """`model.fc1-matmul-0(x, model.fc1.weight) -> float32[64, 10]` with the names of the trace; for a fused node also
    the names of its parts.
    """
    does = f", for {', '.join(map(part.name_of, node.parts))}" if len(node.parts) > 1 else ""
    reads = ", ".join([value_name(x, part) if x.__class__ is Value else repr(x) for x in node.inputs])
    return f"{part.name_of(node)}({reads}) -> {', '.join(str(v.spec) for v in outputs_of(node))}{does}"


def value_name(value: Value, part: Any) -> str:
    if isinstance(value.node, Source):
        return value.node.name or str(value.node.op)
    return part.name_of(value.node) + (f".{value.index}" if value.node.op.many else "")


# ---- frozen values ---------------------------------------------------------------------------------------------------


def frozen_record(graph: Any, last: Any) -> FrozenValues:
    from ....views.records.reports import FrozenValues

    built_in: list[tuple[str, str]] = []
    modules = graph.all_modules()
    training = {path for path, m in modules if m.training}
    modes = sorted({m.training for _, m in modules})
    if len(modes) == 1:
        built_in.append(("all modules", "train()" if modes[0] else "eval()"))
    elif modes:
        for mode, paths in (("train()", training), ("eval()", {p for p, _ in modules} - training)):
            outermost = [p for p in sorted(paths) if p.rpartition(".")[0] not in paths]
            built_in.append((f"modules in {mode}", ", ".join(outermost[:8]) + (", ..." if len(outermost) > 8 else "")))
    built_in += [("input " + name, str(spec)) for name, spec in last.inputs]
    shown = {name: text for (owner, name), text in last.fingerprint.shown.items() if owner == "self" and name != "name"}
    built_in += [
        (f"self.{name}", text) for name, text in shown.items() if isinstance(vars(graph).get(name), PLAIN_TYPES)
    ]
    for i, (optimizer, _) in enumerate(graph.optimizers):
        for j, group in enumerate(optimizer.param_groups):
            label = type(optimizer).__name__ + (f" {i}" if len(graph.optimizers) > 1 else "")
            label += f" group {j}" if len(optimizer.param_groups) > 1 else ""
            fixed = {k: v for k, v in group.items() if k not in ("params", "param_names", "lr", "initial_lr")}
            built_in.append((label, ", ".join(f"{k}={v}" for k, v in fixed.items()) or "nothing"))
    constants = [s for part in last.parts for s in part.graph.states if s.op is CONSTANT]
    if constants:
        listed = ", ".join(f"{s.name} {s.out_specs[0]}" for s in constants[:6])
        built_in.append(("constants", listed + (", ..." if len(constants) > 6 else "")))
    built_in += [(f"Python at {where_text(n.where)}" if n.where else "Python", n.text) for n in last.build.notices]
    built_in += [(read.name, f"{read.what}: as it was when the graph was built") for read in last.reads]
    built_in.append(("recording of gradients", str(last.mode[0])))
    built_in.append(("default dtype", str(last.mode[1])))
    names = dict.fromkeys([s.name for part in last.parts for s in part.graph.states if s.op is not CONSTANT])
    captured = {name for name, _ in last.build.captured}
    tensors = [n for n in names if n not in captured and n not in ("lr", "generator", "micro-step number")]
    free = [("parameters, buffers and optimizer state", f"{len(tensors)} tensors, by reference")]
    for name, t in last.build.captured:
        free.append((f"captured tensor {name}", f"{t.spec}: writes into it are seen, a new {name} is not"))
    if "lr" in names:
        free.append(("learning rate", str(graph.lr)))
    if "generator" in names:
        free.append(("random numbers", "seed and counter of the generator"))
    return FrozenValues(f"{graph.name}: frozen values", tuple(built_in), tuple(free))


def plan_hints(summary: Any) -> tuple[str, ...]:
    texts = []
    changed = {what: (old, new) for what, old, new in summary.reason}
    names = {name for name, _ in summary.inputs}
    if any(name in names for name in changed) and summary.source is None:
        texts.append("if it is a smaller last batch, DataLoader(..., drop_last=True); plans that take turns are kept")
    if any(what.endswith(".training") for what in changed):
        texts.append("train() and eval() have a plan each; both are kept")
    if any(what.endswith((".requires_grad", ".momentum", ".weight_decay")) for what in changed):
        texts.append("only the learning rate can change without a new plan")
    return tuple(texts)


def picture_record(graph: Any, opening: Opening | None = None) -> GraphRecord | PartsRecord:
    """The operations that run, for `show(graph)`; with gradient accumulation both graphs."""
    from ....views.records.graph import GraphRecord, PartsRecord

    if graph._last is None:
        hint = "call the graph once, and its operations can be shown"
        return GraphRecord((), (), (), f"{graph.name}: not called yet", hint)
    several = len(graph._last.parts) > 1
    names = [graph.name + (f", {part.name}" if several else "") for part in graph._last.parts]
    records = [part_record(part, name, opening) for part, name in zip(graph._last.parts, names)]
    if not several:
        return records[0]
    return PartsRecord(tuple(records), f"{graph.name}: one call is {graph._last.steps} micro-steps and one update")


def part_record(part: Any, title: str, opening: Opening | None = None) -> GraphRecord:
    """The operations of one compiled graph, after all passes."""
    from ....views.records.graph import graph_record
    from ....views.text.listing import count

    # Leave out states that have lost their readers in a pass.
    used = {x.node for n in part.graph.nodes for x in n.inputs if x.__class__ is Value}
    used |= {v.node for v in part.plan.results} | {*part.graph.updates}
    states = [s for s in part.graph.states if s in used]
    shown = IR(part.graph.inputs, part.graph.nodes, part.plan.results, states, part.graph.updates)
    describe = None
    if is_global(part.stages[0].graph):
        from ..ranks.shards import describe_shards, without_order

        shown, describe = without_order(shown), describe_shards(part)
    counts = f"{count(len(shown.nodes), 'operation')}, {count(len(states), 'state')}"
    return graph_record(shown, f"{title}: {counts}", opening, describe)
