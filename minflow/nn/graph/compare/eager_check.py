"""The graph against eager, operation by operation: the same inputs, the same state, and every result compared.

Both run for real, the graph from its plan; then everything they wrote is put back. Read next: `eager_run.py`, eager's
half.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from ....compiler.executor import LOCK, run
from ....core.base.interrupts import uninterrupted
from ....core.ir import where_text
from ....core.random import default_generator
from ....views.text.listing import clean
from ..compiled import part_of
from .eager_run import Step, followed
from ..tree import Leaf, flatten, unflatten


@dataclass(frozen=True)
class Compared:
    """One operation. difference: the largest |graph - eager|; NaN where only one of them is NaN.  same: bit for bit."""

    name: str
    scope: str
    phase: str
    where: str
    spec: str
    difference: float
    same: bool


@dataclass(frozen=True)
class Comparison:
    """rows: the operations compared, in the order of the program.  rest: names of those that only the graph has, such
    as what a pass added; `eager_only`: how many eager ran that no operation of the graph stands for (a pass took them
    out)."""

    title: str
    rows: tuple[Compared, ...]
    rest: tuple[str, ...]
    eager_only: int

    @property
    def largest(self) -> float:
        """The largest difference of all."""
        return max([row.difference for row in self.rows], default=0.0)

    @property
    def first(self) -> Compared | None:
        """The first operation that differs in any bit: where two runs part."""
        return next((row for row in self.rows if not row.same), None)

    def __repr__(self) -> str:
        wrong = [row for row in self.rows if not row.same]
        head = f"{self.title} against eager: {len(self.rows)} operations compared, {len(self.rows) - len(wrong)} bit for bit equal"
        lines = [head]
        if self.rest or self.eager_only:
            lines.append(f"  not compared: {len(self.rest)} that only the graph has, {self.eager_only} that only eager has")
        if wrong:
            lines.append(f"  the first that differs: {wrong[0].name} at {wrong[0].where}")
            worst = sorted(wrong, key=lambda row: -row.difference if row.difference == row.difference else -np.inf)[:10]
            width = max(len(clean(row.name)) for row in worst)
            lines += [f"  {clean(row.name):<{width}}  {row.difference:10.3e}  {row.spec}  {row.where}" for row in worst]
        return "\n".join(map(clean, lines))


def compare(graph: Any, args: tuple, kwargs: dict) -> Comparison:
    """Run both and compare. Parameters, buffers, optimizer and generator are then as they were before."""
    with as_called(graph):
        return compared(graph, graph.compiled_for(args, kwargs), args, kwargs)


@contextmanager
def as_called(*graphs: Any) -> Iterator[None]:
    """At the end of the block `grads` and `values` are those of the last call again, whatever was compiled or run in
    it."""
    last = [(graph, graph._last) for graph in graphs if graph._last is not None]
    plans = [part.plan for _, compiled in last if compiled.runs for part in compiled.parts]
    slots = [list(plan.slots) for plan in plans]
    kept = [(plan.env[v], plan.env[v].copy()) for plan in plans for v in plan.kept if v in plan.env and plan.env[v].flags.writeable]
    try:
        yield
    finally:
        for graph, compiled in last:
            graph.__dict__["_last"] = compiled
        for plan, before in zip(plans, slots):
            plan.slots[:] = before
        put_back(kept, [])


def compared(graph: Any, compiled: Any, args: tuple, kwargs: dict) -> Comparison:
    states = {id(s.array): s.array for part in compiled.parts for s in part.graph.states}
    held = [(array, array.copy()) for array in states.values()]
    owned = {id(t.array): t.array for t, _ in graph.named_tensors()}
    held += [(array, array.copy()) for key, array in owned.items() if key not in states]
    drawn = [(g, g.get_state()) for g in {*compiled.build.trace.draws, default_generator}]
    found: dict[int, list[np.ndarray]] = {}
    part = compiled.parts[0]
    try:
        with LOCK, uninterrupted():
            run(part.plan, rows_of(compiled, args, kwargs), watch=lambda node, arrays: found.setdefault(
                node.number if node.number is not None else -id(node), [a.copy() for a in arrays]))  # fmt: skip
        put_back(held, drawn)
        told = run_eager(graph, args, kwargs, compiled.steps)
    finally:
        put_back(held, drawn)
    return matched(graph, part, found, told)


def put_back(held: list, drawn: list) -> None:
    for array, before in held:
        array[...] = before
    for generator, state in drawn:
        generator.set_state(state)


def run_eager(graph: Any, args: tuple, kwargs: dict, steps: int) -> list[Step]:
    """build, and the optimizer's step, as eager runs them. Of a batch in parts the first."""
    first = first_part(args, kwargs, steps)
    with followed(parameters=[p for optimizer, _ in graph.optimizers for p in optimizer.parameters()], seed=1 / steps) as mode:
        graph.build(*first[0], **first[1])
        for optimizer, _ in graph.optimizers if steps == 1 else ():
            optimizer.clip_grad()
            optimizer.step()
    return mode.steps


def first_part(args: tuple, kwargs: dict, steps: int) -> tuple[tuple, dict]:
    """The inputs of a call; of a batch in parts the first."""
    tree, tensors = flatten((args, kwargs), lambda path, leaf: Leaf(leaf))
    return unflatten(tree, part_of(tensors, 0, steps))


def matched(graph: Any, part: Any, found: dict, told: list[Step]) -> Comparison:
    """Pair the trace with eager's operations by op and shapes, both in the order of the program."""
    trace = part.stages[0].graph.nodes
    ours = [(node.op.name, tuple([s.shape for s in node.out_specs]), inner(node.scope)) for node in trace]
    theirs = [(*step.key, inner(step.scope)) for step in told]
    names = {node.number: name for node, name in part.names.items()}
    rows = []
    for a, b, size in SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks():
        for i in range(size):
            node, arrays = trace[a + i], told[b + i].arrays
            if node.number in found and node.number in names:
                results = found.pop(node.number)
                same = all(x.tobytes() == y.tobytes() for x, y in zip(results, arrays))
                difference = 0.0 if same else max([distance(x, y) for x, y in zip(results, arrays)])
                rows.append(Compared(names[node.number], node.scope, node.phase, where_text(node.where),
                                     str(node.out_specs[0]), difference, same))  # fmt: skip
    rest = tuple([names.get(number, "an added node") for number in found])
    return Comparison(graph.name, tuple(rows), rest, len(told) - len(rows))


def inner(scope: str) -> str:
    """The module without the outermost one, which eager calls by its class and a graph by its attribute."""
    return scope.partition(".")[2]


def distance(x: np.ndarray, y: np.ndarray) -> float:
    """The largest of `gaps_of`; 0 of none."""
    return float(gaps_of(x, y).max()) if x.size else 0.0


def gaps_of(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """|x - y| of each number, 0 where both are the same infinity or both NaN; NaN where one of them is."""
    with np.errstate(all="ignore"):
        gap = np.abs(np.atleast_1d(x).astype("float64") - np.atleast_1d(y).astype("float64"))
        same = np.atleast_1d((x == y) | ((x != x) & (y != y)))
    gap[same] = 0
    gap[~same & (gap == 0)] = 1  # large integers that float64 does not tell apart
    return gap


def rows_of(compiled: Any, args: tuple, kwargs: dict) -> list[np.ndarray]:
    """The arrays that the first part of a step takes, each in one piece; `np.ascontiguousarray` would make a single
    number a row."""
    tensors = compiled.build.inputs_of(args, kwargs)
    return part_of([np.asarray(t.array, order="C") for t in tensors], 0, compiled.steps)
