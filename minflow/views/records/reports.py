"""What there is to see of an nn.Graph, as plain frozen records: tree, passes, lanes, memory, timeline, frozen, why.

`nn/graph/listing/reports.py` makes them from live objects; they hold texts and numbers only. Seconds and bytes are
numbers. Read next: `../text/reports.py`, their text forms.
"""

from __future__ import annotations

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


GraphReport = GraphTree | Stages | Change | Lanes | MemoryMap | Timeline | Frozen | Why
