"""Shared by graphs and jobs: a traced Part, its compiled form, and the cache of plans of one graph or job.

Knows no modules: the part of a plan's key besides the inputs is a fingerprint, which the owner of the cache computes.
Read next: `plan.py`, `executor.py`.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

from ..core.context import current_context
from ..core.ir import Graph, Node, Source, Value, VersionCounter, outputs_of
from ..core.mode import mutation_counter
from ..core.tensor import Tensor
from .executor import BUILD_LOCK, age_objects, collector_waiting
from .names import op_names
from .passes import Pass, Stage, run_passes
from .passes.decomposition import expand
from .passes.localization import is_global, localize
from .plan import Plan
from .target import HOST, Target

# Plans that one graph or job keeps: PLANS, and up to MANY_PLANS while their arenas take at most ARENA_BYTES in all.
PLANS, MANY_PLANS, ARENA_BYTES = 16, 64, 1 << 28
NONE = None, None, None


class Part:
    """A graph with its interface: the whole step, or one of the two halves of gradient accumulation.

    leaves: those of its trace.  results: how many outputs the caller gets; the rest stays readable.  kept: name ->
    index among the outputs.
    """

    def __init__(self, name: str, graph: Graph, leaves: dict[Value, Tensor], results: int, kept: dict[str, int]):
        self.name, self.graph, self.leaves, self.results, self.kept = name, graph, leaves, results, kept

    @property
    def version_counters(self) -> list[VersionCounter]:
        """The version counters of the states that the plan itself writes."""
        written = [s for v, s in self.leaves.items() if v.node in self.graph.updates and v.node.link is None]
        return [s._version_counter for s in written if s._version_counter is not None]

    def keep_inner(self, name: str, number: float) -> None:
        """Keep the value of the node with this number, within a composite op: the graph gets the parts in its place."""
        graph = expand(self.graph, lambda node: node.op.composite and node.number == int(number))
        node = next(node for node in graph.nodes if node.number == number)
        self.kept[name] = len(graph.outputs)
        graph.outputs.append(outputs_of(node)[0])
        self.graph = graph


def by_index(node: Node) -> float:
    return node.number or 0


class CompiledPart:
    """A part with its stages and its plan.

    stages: the trace, and the graph after each pass.  plan: the plan that runs.  kept: name -> index among its outputs.
    names: node -> its name, the same in all stages.
    """

    def __init__(self, part: Part, passes: Iterable[Pass], platforms: Sequence[str]):
        start = time.perf_counter()
        self.name, self.kept = part.name, part.kept
        steps = [localize, *passes] if is_global(part.graph) else passes
        self.stages: list[Stage] = run_passes(part.graph, steps)
        middle = time.perf_counter()
        self.graph = self.stages[-1].graph
        traced = dict.fromkeys([node.whole or node for node in part.graph.nodes])
        self.by_number = {node.number: name for node, name in op_names(traced).items()}
        inner = {node.number: node for s in reversed(self.stages) for node in s.graph.nodes if node.whole is not None}
        self.by_number |= {node.number: name for node, name in op_names(sorted(inner.values(), key=by_index)).items()}
        self.added = op_names([node for node in self.graph.nodes if node.number is None])
        self.names = {node: self.name_of(node) for node in self.graph.nodes}
        self.platforms = platforms
        self.make_plan(part)
        self.pass_seconds, self.plan_seconds = middle - start, time.perf_counter() - middle

    def make_plan(self, part: Part) -> None:
        """Make the plan of the graph, with its states as they are linked now."""
        for state in self.graph.states:
            if isinstance(state.origin, Source):  # of a global tensor
                state.link, state.array = state.origin.link, state.origin.array
        self.plan = Plan(
            self.graph, len(self.graph.outputs) - part.results, part.version_counters, self.name_of, self.platforms
        )

    def plan_again(self, part: Part) -> None:
        """Make the plan again; values kept from the last run stay readable."""
        before = self.plan
        self.make_plan(part)
        for value in before.kept if before.runs else ():
            if value in self.plan.env:
                self.plan.env[value][...] = before.array_of(value)
            else:
                self.plan.slots[self.plan.slot_of[value]] = before.array_of(value)

    def name_of(self, node: Node) -> str:
        """Return the name of a node of any stage."""
        return self.by_number.get(node.number) or f"{self.added.get(node, node.op)}-added"


class Compiled:
    """The result of one build.

    parts: the step; or a micro-step and an update.  seconds: of trace, passes and plan.  fingerprint: what it depends
    on besides its inputs.  exact: True if results have the bits of eager code.
    """

    fingerprint: Any = None

    def __init__(self, parts: Sequence[Part], passes: Iterable[Pass], trace_seconds: float, target: Target = HOST):
        self.exact = not target.passes
        self.traced, self.passes = list(parts), list(passes)
        passes = target.insert_passes(self.passes)
        self.parts = [CompiledPart(part, passes, target.platforms) for part in parts]
        self.seconds = {
            "trace": trace_seconds,
            "passes": sum(p.pass_seconds for p in self.parts),
            "plan": sum(p.plan_seconds for p in self.parts),
        }

    @cached_property
    def unfused(self) -> list[CompiledPart]:
        """The parts without fusion, to inspect or to run beside `parts`, whose states and inputs they share."""
        return self.parts if self.exact else [CompiledPart(part, self.passes, HOST.platforms) for part in self.traced]

    def stale(self) -> list[tuple[str, str, str]]:
        """Return (what, old, new) of the tensors that it refers to and whose storage was replaced.

        If there are any, it cannot be used any more.
        """
        return []

    def relink(self) -> None:
        """Follow states whose tensors were replaced since the last call, after the mutation counter has moved."""


class PlanCache(OrderedDict):
    """Plans of one graph or job: (fingerprint, inputs) -> Compiled. Bounded; evicts the least recently used.

    fingerprint: as it was at `epoch`; `take` computes the current one. Two are equal if their `key` is;
    `contents_changed()` is True if a container that one refers to has other contents.  last: the plan that was used
    last.  recent: key and plan that were found last.  dropped: (what, old, new), reasons why plans were dropped since
    one was added.
    """

    def __init__(self, take: Callable[[], Any]):
        super().__init__()
        self.take, self.epoch = take, -1
        self.fingerprint: Any = None
        self.last: Any = None
        self.recent: tuple = NONE
        self.dropped: list[tuple[str, str, str]] = []

    def find(self, inputs: tuple) -> Any:
        """Return the plan for these inputs, or None.

        Compares the mutation counter, and the fingerprint only if that has moved; but the contents of containers and
        the tensors of variables always, if the fingerprint has some.
        """
        if mutation_counter.count != self.epoch or (self.fingerprint.contents and self.fingerprint.contents_changed()):
            self.look()
        fingerprint, known, compiled = self.recent
        if fingerprint is not self.fingerprint or inputs != known:
            key = self.fingerprint, inputs
            if (compiled := self.get(key)) is None:
                return None
            self.recent = *key, compiled
            try:
                self.move_to_end(key)
            except KeyError:  # another thread removed it
                self.recent = NONE
            compiled.relink()
        self.last = compiled
        return compiled

    def look(self) -> None:
        """Compute the fingerprint again (keeping the known one if equal), and drop stale plans.

        The epoch is updated last, so that an interrupt only means that the next call looks again.
        """
        epoch, now = mutation_counter.count, self.take()
        known = [self.fingerprint, *[compiled.fingerprint for compiled in self.values()]]
        self.fingerprint = next((f for f in known if f is not None and f.key == now.key), now)
        for key, compiled in list(self.items()):
            if changes := compiled.stale():
                self.dropped = changes
                del self[key]
        self.recent, self.epoch = NONE, epoch

    def compile(self, inputs: tuple, build: Callable[[], Any]) -> Any:
        """Return the plan for these inputs, by `build()` unless another thread has compiled it meanwhile.

        Builds run one at a time.
        """
        with current_context().plan_lock, BUILD_LOCK, collector_waiting():
            compiled = self.get((self.fingerprint, inputs)) or build()
            age_objects()
            return compiled

    def add(self, inputs: tuple, compiled: Any) -> None:
        self.dropped, self.last, compiled.fingerprint = [], compiled, self.fingerprint
        self[self.fingerprint, inputs] = compiled
        while len(self) > PLANS and (len(self) > MANY_PLANS or self.arena_bytes() > ARENA_BYTES):
            self.popitem(last=False)

    def arena_bytes(self) -> int:
        return sum([part.plan.arena_bytes for compiled in self.values() for part in compiled.parts])

    def accept(self, epoch: int, writes: int) -> None:
        """Accept the changes since `epoch`: the `writes` of a run of one of these plans. With those of another thread
        among them, the next call looks at all.
        """
        if self.epoch == epoch and mutation_counter.count == epoch + writes:
            self.epoch = mutation_counter.count

    def clear(self) -> None:
        super().clear()
        self.last, self.recent = None, NONE
