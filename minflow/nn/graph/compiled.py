"""What a build became: passes, plans, and how to run them. One for each key that a graph was called with.

Read next: `../../compiler/passes/__init__.py`, `../../compiler/plan.py`.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from ...compiler.executor import LOCK, run
from ...compiler.names import op_names
from ...compiler.passes import Stage, run_passes
from ...compiler.plan import Plan
from ...core.base import events
from ...core.base.interrupts import uninterrupted
from ...core.ir import Node
from ...core.messages.notices import look_at_results
from ...core.mode import MODE
from ...core.spec import spec_of
from ...core.tensor import Tensor
from ...core.where import NOTICES
from .build import Build, Part
from .tree import unflatten


class CompiledPart:
    """stages: the trace, and the graph after each pass.  plan: what runs.  kept: name -> position among its outputs.

    names: node -> its name, the same through all passes.
    """

    def __init__(self, part: Part, passes: list):
        start = time.perf_counter()
        self.name, self.kept = part.name, part.kept
        self.stages: list[Stage] = run_passes(part.graph, passes)
        middle = time.perf_counter()
        self.graph = self.stages[-1].graph
        self.by_number = {node.number: name for node, name in op_names(part.graph.nodes).items()}
        self.added = op_names([node for node in self.graph.nodes if node.number is None])
        self.names = {node: self.name_of(node) for node in self.graph.nodes}
        self.plan = Plan(self.graph, len(self.graph.outputs) - part.results, part.cells)
        self.pass_seconds, self.plan_seconds = middle - start, time.perf_counter() - middle


    def name_of(self, node: Node) -> str:
        """The name of a node of any stage."""
        return self.by_number.get(node.number) or f"{self.added.get(node, node.op)}-added"


class Summary(NamedTuple):
    """What stays of a plan in its graph's history. inputs: (name, Spec).  reason: (what, old, new).  seconds: by
    phase."""

    number: int
    inputs: tuple
    reason: tuple
    seconds: dict
    nodes: int


class GraphRan(NamedTuple):
    """The event that a call of an nn.Graph has ended; of a training graph, after its optimizers' StepDone.

    step: number of this step, from 1; 0 of a graph that does not train.  result: what the call gives.
    lr: of each group of the first optimizer at this step; nothing of a graph that does not train.
    """

    graph: Any
    step: int
    result: Any
    lr: tuple[float, ...]


class Compiled:
    """A plan of a graph, with everything that there is to look at.

    build: the trace and the calls of modules.  parts: the step; or a micro-step and an update.
    reason: (what, old, new) of everything that changed since the plan before, empty for the first.
    seconds: of trace, passes, plan, the first and the second run.  number: the how manyeth plan of its graph, from 0.
    """

    def __init__(self, graph: Any, build: Build, parts: list[Part], number: int):
        self.build, self.number = build, number
        self.parts = [CompiledPart(part, graph.passes) for part in parts]
        self.out_tree = build.out_tree
        self.seconds = {
            "trace": build.seconds["trace"],
            "passes": sum(p.pass_seconds for p in self.parts),
            "plan": sum(p.plan_seconds for p in self.parts),
        }
        self.reason: list[tuple[str, str, str]] = []
        self.fingerprint: Any = None
        self.reads: list[Any] = []  # see `outside.Read`
        self.inputs_key: tuple = ()
        self.steps = graph.config.accumulation
        self.trains = bool(graph.optimizers)
        self.writes = self.trains or any(p.plan.written for p in self.parts)
        self.runs = 0
        self.captured = [(t, t.array, t.needs, name) for name, t in build.captured]
        self.simple = self.out_tree == "tensor"

    def summary(self) -> Summary:
        return Summary(self.number, self.inputs_key[0], tuple(self.reason), dict(self.seconds), sum(len(p.graph.nodes) for p in self.parts))

    def stale(self) -> list[tuple[str, str, str]]:
        """Captured tensors that look at another storage now, or whose requires_grad changed."""
        return [(name, f"requires_grad={needs}" if t.array is array else "a tensor",
                 f"requires_grad={t.needs}" if t.array is array else "another storage")
                for t, array, needs, name in self.captured if t.array is not array or t.needs is not needs]  # fmt: skip

    def run(self, graph: Any, arrays: list[np.ndarray], timed: bool = False) -> Any:
        """One call: results in the structure that build gave. The step of a training graph ends with its
        bookkeeping."""
        plan, start = self.parts[0].plan, time.perf_counter() if self.runs < 2 else 0.0
        mode = MODE.get()
        mode.before_run(graph, self.parts)
        with LOCK, uninterrupted(self.writes):
            if self.steps == 1:
                results = run(plan, arrays, timed)
            else:
                results = self.accumulate(arrays, timed)
            for cell in plan.cells if self.steps == 1 else self.cells():
                cell.version, cell.where = cell.version + 1, mode.entered
            self.runs += 1
            heard = mode.hears(GraphRan)
            lr = graph.optimizers[0][0].learning_rates() if heard and self.trains else ()  # before a schedule goes on
            if self.trains:
                if NOTICES.on and mode.looks_for_mistakes():
                    look_at_results(graph.name, results, self.steps, graph._steps + 1,
                                    lambda: [rate for optimizer, _ in graph.optimizers for rate in optimizer.learning_rates()])  # fmt: skip
                graph.stepped(self)
        if self.runs <= 2:
            self.seconds["first run" if self.runs == 1 else "second run"] = time.perf_counter() - start
        result = graph.give(results[0]) if self.simple else unflatten(self.out_tree, [graph.give(array) for array in results])
        if heard:
            events.emit(GraphRan(graph, graph._steps if self.trains else 0, result, lr))
        return result

    def cells(self) -> list:
        return [cell for part in self.parts for cell in part.plan.cells]

    def accumulate(self, arrays: list[np.ndarray], timed: bool) -> list[np.ndarray]:
        """The parts of the batch one after the other, then the update: scalars stacked, others joined along axis 0.

        timed: the seconds of the micro-step's calls are those of all parts together.
        """
        micro, update = self.parts
        found: list[list[np.ndarray]] = []
        seconds: list[list[float]] = []
        try:
            for k in range(self.steps):
                self.build.micro = k
                found.append(run(micro.plan, part_of(arrays, k, self.steps), timed))
                if timed:
                    seconds.append(micro.plan.seconds)
        finally:
            self.build.micro = 0  # who runs the first part alone, to compare or to explore, adds to nothing
        if timed:
            micro.plan.seconds = [sum(column) for column in zip(*seconds)]
        run(update.plan, [], timed)
        return [np.stack(a) if not a[0].ndim else np.concatenate(a) for a in zip(*found)]

    def kept(self, name: str) -> Tensor | None:
        """A copy of a value that stayed readable after the last run; None if there is no such name."""
        for part in self.parts:
            if name in part.kept:
                with LOCK:  # another thread may run it
                    array = np.array(part.plan.array_of(part.graph.outputs[part.kept[name]]), order="C")
                return Tensor(array, spec_of(array))
        return None


def part_of(batch: list, k: int, steps: int) -> list:
    """Of arrays or tensors the k-th of `steps` equal parts along axis 0: what a micro-step takes."""
    return batch if steps == 1 else [x[k * (len(x) // steps) : (k + 1) * (len(x) // steps)] for x in batch]
