"""Reports of an nn.Graph as plain frozen records: tree, passes, plan, lanes, memory, timeline, frozen, why; and the
measured limits of the processor for comparison.

`introspection/graph/listing/reports.py` makes them from live objects; they contain only texts and numbers. Read next:
`../text/reports.py`, their text forms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """The durations of a profiled call. seconds: that of the run that is shown, the median.  least, most: the smallest
    and the largest.  runs: their number, odd.  note: why there is only one.
    """

    seconds: float
    least: float
    most: float
    runs: int
    note: str = ""


@dataclass(frozen=True)
class TreeRow:
    """A module. inputs, outputs: specs of its first call.  calls: number of calls, None before the first call of the
    graph.

    badges: "never ran", "no gradient: weight", "frozen", "checkpointed", "not registered".
    count: number of equal adjacent modules that this row represents.
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
        """Number of modules that the `n` rows starting at `first` represent."""
        around: list[int] = []  # for the row and its ancestors: how many modules each represents
        total = 0
        for i, row in enumerate(self.rows[: first + n]):
            del around[row.depth :]
            around.append(row.count * (around[-1] if around else 1))
            total += around[-1] if i >= first else 0
        return total


@dataclass(frozen=True)
class StageRow:
    """The graph after a pass. removed, added: nodes; moved: nodes with another position.  arena: bytes that a plan
    would need.

    does: purpose of the pass in a few words.
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
    """Before and after one pass. lines: (mark, text), mark "-", "+", or " " if unchanged."""

    title: str
    lines: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Lane:
    """One phase of a step. ops: its operations, views included.  nbytes: written by them.  seconds: None before a timed
    run.
    """

    phase: str
    ops: int
    nbytes: int
    seconds: float | None


@dataclass(frozen=True)
class Operation:
    """One operation of a timed run. where: the source line of the call.  module: the module it ran in."""

    name: str
    phase: str
    where: str
    spec: str
    nbytes: int
    seconds: float
    module: str = ""


@dataclass(frozen=True)
class Lanes:
    """Time and memory traffic of the phases of a step.

    lanes: in the order of a step.  slowest: operations, slowest first.  views: operations that need no call.  timing:
    None if the call was not profiled.
    """

    title: str
    lanes: tuple[Lane, ...]
    slowest: tuple[Operation, ...]
    views: int = 0
    timing: Timing | None = None


@dataclass(frozen=True)
class RooflinePeaks:
    """Measured limits of the processor. flops: float32 operations per second.  copies: (bytes read and written, bytes
    per second) of copies, small ones first.  threads: number used.  compiled: True if measured with compiled
    kernels.
    """

    flops: float
    copies: tuple[tuple[int, float], ...]
    threads: int = 1
    compiled: bool = False

    def copy_rate(self, nbytes: int) -> float:
        """Bytes per second of the measured copy that is closest in size."""
        return min(self.copies, key=lambda copy: abs(math.log(copy[0] / max(nbytes, 1))))[1]

    def min_seconds(self, call: PlanCall) -> float:
        """Lower bound of the seconds of a call: the larger of compute time and memory time."""
        return max((call.flops or 0) / self.flops, call.moved / self.copy_rate(call.moved))


@dataclass(frozen=True)
class PlanCall:
    """One call of a plan. step: its position.  platform: the one whose kernel runs.  where: the source lines that
    caused it.  inputs, outputs: specs.

    offset: position of its first result in the arena, or None if that is elsewhere, as described by `place`.  nbytes:
    size of its results.  flops: arithmetic operations, None if not counted.  moved: bytes that it reads and writes.
    seconds: in the timed call of the graph, None before one.  tasks: names of its compiled tasks, in order.
    """

    step: int
    name: str
    op: str
    platform: str
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
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlanListing:
    """The calls of a plan.

    calls: in display order.  arena: bytes.  peaks: None before a timed call.  notes: lines below the table.
    """

    title: str
    calls: tuple[PlanCall, ...]
    arena: int
    peaks: RooflinePeaks | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class KernelCall:
    """The calls of an op in eager code with arrays of these specs. platform: the one whose kernel ran."""

    op: str
    platform: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    count: int


@dataclass(frozen=True)
class KernelListing:
    """The kernels that a function ran in eager mode, in the order of their first calls."""

    title: str
    calls: tuple[KernelCall, ...]


@dataclass(frozen=True)
class Roofline:
    """The limits of the processor, and the timed calls of a graph below them. note: why graphs run NumPy's kernels.
    timing: None if the call was not profiled.
    """

    title: str
    peaks: RooflinePeaks
    calls: tuple[PlanCall, ...] = ()
    note: str = ""
    timing: Timing | None = None


@dataclass(frozen=True)
class ThreadBar:
    """One span of a thread. thread: its index; 0 is the calling thread, -1 a whole call of the plan.

    name: name of the call.  start, stop: seconds since the step began.
    """

    thread: int
    name: str
    phase: str
    start: float
    stop: float


@dataclass(frozen=True)
class Threads:
    """One step. count: number of threads that worked; at_once: largest number at the same time.  seconds: its duration.
    bars: in the order of the calls, each call followed by the spans of its threads.  timing: of the profiled call.
    """

    title: str
    count: int
    at_once: int
    seconds: float
    bars: tuple[ThreadBar, ...]
    timing: Timing | None = None


@dataclass(frozen=True)
class RankBar:
    """A call of the plan of a rank. communicates: True if it moves elements between ranks, or waits for them.

    start, stop: seconds since the first rank began the step.
    """

    rank: int
    name: str
    communicates: bool
    start: float
    stop: float


@dataclass(frozen=True)
class RankLanes:
    """One step on all ranks. count: number of ranks.  sent: bytes of boxing that each rank sent.  seconds: its
    duration.
    """

    title: str
    count: int
    seconds: float
    sent: tuple[int, ...]
    bars: tuple[RankBar, ...]

    def busy(self, rank: int, communicates: bool) -> float:
        """Seconds of communication, or of computation, of a rank."""
        return sum([b.stop - b.start for b in self.bars if b.rank == rank and b.communicates is communicates])


@dataclass(frozen=True)
class Block:
    """A value in the arena: bytes [offset, offset + nbytes) from step `first` to step `last`. phase: the phase that
    computes it.  where: its source line.
    """

    name: str
    spec: str
    offset: int
    nbytes: int
    first: int
    last: int
    phase: str = ""
    where: str = ""


@dataclass(frozen=True)
class MemoryMap:
    """The arena of a plan.

    arena: bytes.  least: lower bound for any buffer assignment.  total: sum over all values.  steps: steps of the plan.

    states: bytes of parameters, buffers and optimizer state.  in_place: number of updates written directly into states.
    fresh: bytes of outputs that are allocated at each call.  inputs: of those that are copied to fixed places.
    workspace: of compiled kernels.  device: that of the arena, if it is a GPU, and the bytes
    of its arrays, of its pool, free and in all.
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
    inputs: int = 0
    workspace: int = 0
    device: tuple[str, int, int, int, int] | None = None


@dataclass(frozen=True)
class FirstCallTimeline:
    """The first call. bars: (what, seconds)."""

    title: str
    bars: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class FrozenValues:
    """Values that a plan has fixed, and values that it reads at each call.

    built_in: (name, value) fixed in the current plan.  free: read again at each call.
    """

    title: str
    built_in: tuple[tuple[str, str], ...]
    free: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class PlanRow:
    """A plan. reasons: (name, old, new) of what changed since the previous plan.  hints: how to avoid it, if
    possible.  note: whether build ran for other sizes, and why; "" for other plans.
    """

    number: int
    inputs: tuple[tuple[str, str], ...]
    nodes: int
    seconds: float
    reasons: tuple[tuple[str, str, str], ...]
    hints: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True)
class PlanReasons:
    title: str
    plans: tuple[PlanRow, ...]


@dataclass(frozen=True)
class SbpRow:
    """A row of an op along one axis of ranks. inputs, outputs: sbp of each; "" for a number.  nbytes: that each rank
    sends to box each input.  sums: bytes that each rank sends more to add up partial results.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nbytes: tuple[float, ...]
    sums: float
    chosen: bool = False

    @property
    def total(self) -> float:
        return sum(self.nbytes) + self.sums


@dataclass(frozen=True)
class SbpChoice:
    """The rows of an operation along one axis of ranks. axis: its index, None if there is only one.  have: the sbp
    of each input before boxing.  rows: the cheapest first.  why: the reason for the chosen one.
    """

    axis: int | None
    have: tuple[str, ...]
    rows: tuple[SbpRow, ...]
    why: str


@dataclass(frozen=True)
class SbpCall:
    """An operation on global tensors. inputs: (name, value, spec); spec "" for a number.  choices: along each axis."""

    name: str
    where: str
    inputs: tuple[tuple[str, str, str], ...]
    choices: tuple[SbpChoice, ...]


@dataclass(frozen=True)
class SbpCalls:
    """Why operations have their sbp."""

    title: str
    calls: tuple[SbpCall, ...]


GraphReport = (
    GraphTree
    | Stages
    | Change
    | PlanListing
    | KernelListing
    | Roofline
    | Threads
    | Lanes
    | MemoryMap
    | FirstCallTimeline
    | FrozenValues
    | PlanReasons
    | SbpCalls
    | RankLanes
)
