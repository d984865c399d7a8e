"""What there is to see of an nn.Graph, as plain frozen records: tree, passes, plan, lanes, memory, timeline, frozen,
why; and what the processor can do, to compare with.

`nn/graph/listing/reports.py` makes them from live objects; they hold texts and numbers only. Seconds and bytes are
numbers. Read next: `../text/reports.py`, their text forms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class TreeRow:
    """A module. inputs, outputs: specs of its first call.  calls: how often it ran, None before the first call of the
    graph.

    badges: "never ran", "no gradient: weight", "frozen", "checkpointed", "not registered".
    count: how many equal neighbours this row stands for.
    """

    path: str
    depth: int
    kind: str
    extra: str = ""
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    params: int = 0
    calls: int | None = None
    badges: tuple[str, ...] = ()
    count: int = 1


@dataclass(frozen=True)
class GraphTree:
    """The modules of a graph, parents first."""

    title: str
    rows: tuple[TreeRow, ...]

    def modules(self, first: int, n: int) -> int:
        """How many modules `n` rows from `first` on stand for."""
        around: list[int] = []  # of the row and of those around it: how many modules each stands for
        total = 0
        for i, row in enumerate(self.rows[: first + n]):
            del around[row.depth :]
            around.append(row.count * (around[-1] if around else 1))
            total += around[-1] if i >= first else 0
        return total


@dataclass(frozen=True)
class StageRow:
    """The graph after a pass. removed, added: nodes; moved: nodes that stand elsewhere.  arena: bytes that a plan would
    take.

    does: what the pass is for, in a few words.
    """

    name: str
    nodes: int
    removed: int
    added: int
    arena: int
    seconds: float
    does: str = ""


@dataclass(frozen=True)
class Stages:
    title: str
    rows: tuple[StageRow, ...]


@dataclass(frozen=True)
class Change:
    """Before and after one pass. lines: (mark, text), mark "-" or "+", " " for what stayed."""

    title: str
    lines: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Lane:
    """One phase of a step. ops: its operations, views too.  nbytes: written by them.  seconds: None before a timed
    run."""

    phase: str
    ops: int
    nbytes: int
    seconds: float | None


@dataclass(frozen=True)
class Operation:
    """One operation of a timed run. where: the line that called it.  module: the one in which that was."""

    name: str
    phase: str
    where: str
    spec: str
    nbytes: int
    seconds: float
    module: str = ""


@dataclass(frozen=True)
class Lanes:
    """lanes: in the order of a step.  slowest: operations, the slowest first.  views: operations that run without a
    call."""

    title: str
    lanes: tuple[Lane, ...]
    slowest: tuple[Operation, ...]
    views: int = 0


@dataclass(frozen=True)
class Ceilings:
    """What the processor does at most. flops: operations on float32 a second.  copies: (bytes read and written, bytes a
    second) of copies, small ones first.  threads: that took part.  compiled: by the kernels of the machine?"""

    flops: float
    copies: tuple[tuple[int, float], ...]
    threads: int = 1
    compiled: bool = False

    def copying(self, nbytes: int) -> float:
        """Bytes a second of the measured copy whose size is nearest."""
        return min(self.copies, key=lambda copy: abs(math.log(copy[0] / max(nbytes, 1))))[1]

    def least(self, call: PlanCall) -> float:
        """Seconds that a call takes at least: to compute, or to read and write, whichever is more."""
        return max((call.flops or 0) / self.flops, call.moved / self.copying(call.moved))

    def computes(self, call: PlanCall) -> bool:
        """Is it held up by computing, not by reading and writing?"""
        return (call.flops or 0) / self.flops >= call.moved / self.copying(call.moved) > 0


@dataclass(frozen=True)
class PlanCall:
    """One call of a plan. step: when it runs.  where: the lines that asked for it.  inputs, outputs: specs.

    offset: of its first result in the arena, None where that is elsewhere: `place` says where.  nbytes: of its results.
    flops: operations on numbers, None where nobody counts them.  moved: bytes that it reads and writes.
    seconds: of the last timed call of the graph, None before one.
    """

    step: int
    name: str
    op: str
    phase: str
    module: str
    where: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    offset: int | None
    place: str
    nbytes: int
    flops: int | None
    moved: int
    seconds: float | None = None


@dataclass(frozen=True)
class PlanListing:
    """calls: in the order in which they are shown.  arena: its bytes.  ceilings: None before a timed call."""

    title: str
    calls: tuple[PlanCall, ...]
    arena: int
    ceilings: Ceilings | None = None


@dataclass(frozen=True)
class Roofline:
    """The ceilings, and the timed calls of a graph below them."""

    title: str
    ceilings: Ceilings
    calls: tuple[PlanCall, ...] = ()


@dataclass(frozen=True)
class ThreadBar:
    """What a thread did. thread: its number, 0 the one that called the graph; -1: a whole call of the plan.

    name: of the call.  start, stop: seconds since the step began.
    """

    thread: int
    name: str
    phase: str
    start: float
    stop: float


@dataclass(frozen=True)
class Threads:
    """One step. count: how many threads worked, at_once: how many of them at the same time.  seconds: how long it took.
    bars: in the order of the calls; what threads did in a call stands behind it."""

    title: str
    count: int
    at_once: int
    seconds: float
    bars: tuple[ThreadBar, ...]


@dataclass(frozen=True)
class Block:
    """A value in the arena: bytes [offset, offset + nbytes) from step `first` to step `last`. phase: in which it is
    computed."""

    name: str
    spec: str
    offset: int
    nbytes: int
    first: int
    last: int
    phase: str = ""


@dataclass(frozen=True)
class MemoryMap:
    """arena: its bytes.  least: what no placement could do without.  total: the sum over all values.  steps: of the
    plan.

    states: bytes of parameters, buffers and optimizer state.  in_place: updates written straight into a state.
    fresh: bytes of outputs that are new at each call.
    """

    title: str
    arena: int
    least: int
    total: int
    steps: int
    states: int
    in_place: int
    fresh: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Timeline:
    """The first call. bars: (what, seconds)."""

    title: str
    bars: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Frozen:
    """built_in: (what, value) that the present plan has fixed.  free: what is read anew at each call."""

    title: str
    built_in: tuple[tuple[str, str], ...]
    free: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class PlanRow:
    """A plan that was made. reasons: (what, old, new) since the plan before.  hints: what to do about it, if
    anything."""

    number: int
    inputs: tuple[tuple[str, str], ...]
    nodes: int
    seconds: float
    reasons: tuple[tuple[str, str, str], ...]
    hints: tuple[str, ...]


@dataclass(frozen=True)
class Why:
    title: str
    plans: tuple[PlanRow, ...]


GraphReport = (
    GraphTree | Stages | Change | PlanListing | Roofline | Threads | Lanes | MemoryMap | Timeline | Frozen | Why
)
