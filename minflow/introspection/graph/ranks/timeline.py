"""The timeline of all ranks in one step: the calls of each rank's plan, as its last profiled call has recorded them.

Read next: `../listing/threads.py`, which records; `../../../views/renderers/ranks.py`, the picture.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ....core.base.errors import GraphError
from ....core.context import world
from ....core.ops.global_tensors import boxing
from ....core.source_location import fail
from ....views.records.reports import RankBar, RankLanes
from ..listing.reports import require_compiled
from .shards import sent_bytes


def rank_lanes(graph: Any) -> RankLanes:
    """The record of `graph.rank_timeline()`. All ranks call it, and get the same."""
    everyone, compiled = world(), require_compiled(graph)
    found = everyone.exchange(everyone.fingerprint("graph.rank_timeline"), recorded_calls(compiled, everyone.rank))
    missing = [rank for rank, recorded in enumerate(found) if recorded is None]
    if missing:
        what = f"{graph.name}: no call has been watched yet on the ranks {missing}"
        fail(GraphError, what, "graph.profile() on all ranks, then call the graph", graph=graph.name)
    begins = [calls[0][2] if calls else 0.0 for calls, _ in found]
    if everyone.machines == 1:  # one clock
        begins = [min(begins)] * len(found)
    bars = tuple(
        [
            RankBar(rank, name, communicates, start - begin, stop - begin)
            for rank, ((calls, _), begin) in enumerate(zip(found, begins))
            for name, communicates, start, stop in calls
        ]
    )
    seconds = max([bar.stop for bar in bars], default=0.0)
    return RankLanes(f"{graph.name}: one step", len(found), seconds, tuple([sent for _, sent in found]), bars)


def recorded_calls(compiled: Any, rank: int) -> tuple[list[tuple[str, bool, float, float]], int] | None:
    """The calls of this rank, with their times, and the bytes that boxing sent in them; None before a profiled call."""
    if compiled.recorded is None:
        return None
    named = {part.names[node]: node for part in compiled.parts for node in part.graph.nodes if node.op.communicates}
    calls = [(name, name in named, start, stop) for name, _, start, stop in compiled.recorded[1]]
    times = Counter([name for name, communicates, *_ in calls if communicates])
    sent = [n * sent_bytes(named[name], rank) for name, n in times.items() if named[name].op is boxing]
    return calls, sum(sent)
