"""The calls of a plan, compared with the processor's peaks: `graph.plan`, `job.plan`, `flow.roofline`.

Read next: `work.py`, the work of a call; `platforms/compiled/roofline_peaks.py`, the measurements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....compiler.capture import capture_notes
from ....compiler.plan_cache import CompiledPart
from ....core.base.errors import DTypeError
from ....core.ir import Node, Value, outputs_of, where_text
from ....core.source_location import fail
from ....nn.graph.graph import RunningGraph
from ....platforms.compiled import roofline_peaks as machine
from ....platforms.compiled.policy import why_numpy
from ....views.records.reports import PlanCall, PlanListing, Roofline, RooflinePeaks, Timing
from ....views.text.numbers import nbytes_text, step_text
from ....views.text.reports import PlanReport, Report
from .reports import phases_of, require_compiled
from .work import bytes_moved, flops


def peaks() -> RooflinePeaks:
    """The peaks of this processor, as plain data; measured once per process, in about half a second."""
    return RooflinePeaks(*machine.ceilings())


def plan_report(name: str, parts: Sequence[CompiledPart], timing: Timing | None = None) -> PlanReport:
    """The calls of a plan, whose owner, a graph or a job, has this name. timing: of the profiled call, if any."""
    calls = [call for part in parts for call in calls_of(part)]
    timed = [call.seconds for call in calls if call.seconds is not None]
    arena = sum(part.plan.arena_bytes for part in parts)
    title = f"{name}: plan, {len(calls)} calls, arena {nbytes_text(arena)}"
    title += f"; {step_text(sum(timed), timing)}" if timed else ""
    notes = [line for part in parts for line in capture_notes(part.plan)]
    return PlanReport(PlanListing(title, tuple(calls), arena, peaks() if timed else None, tuple(notes)))


def roofline_report(graph: Any = None) -> Report:
    """The peaks, and the calls of a graph if there is one."""
    if graph is not None and not isinstance(graph, RunningGraph):
        fail(DTypeError, f"roofline takes an nn.Graph, not {type(graph).__name__}", "flow.roofline(graph)", graph=graph)
    if graph is None:
        return Report(Roofline("peaks of this processor", peaks(), note=why_numpy()))
    compiled = require_compiled(graph)
    calls = [call for part in compiled.parts for call in calls_of(part)]
    return Report(Roofline(f"{graph.name}: roofline", peaks(), tuple(calls), why_numpy(), compiled.timing))


def calls_of(part: CompiledPart) -> list[PlanCall]:
    """Each call of the plan of a part, with its seconds in the timed run."""
    plan, phases = part.plan, phases_of(part.graph.nodes)
    seconds = plan.seconds or [None] * len(plan.nodes)
    return [call_of(part, step, node, phases[node], time) for step, (node, time) in enumerate(zip(plan.nodes, seconds))]


def call_of(part: CompiledPart, step: int, node: Node, phase: str, seconds: float | None) -> PlanCall:
    plan = part.plan
    first, *rest = outputs_of(node)
    roots = plan.uses.root
    offset = plan.places[first][0] if first in plan.places else None
    place = "state" if first in plan.in_place else "new" if first in plan.slot_of else ""
    lines = ", ".join(dict.fromkeys([where_text(origin.where) for origin in node.parts or (node,)]))
    inputs = tuple([str(x.spec) if x.__class__ is Value else repr(x) for x in node.inputs])
    return PlanCall(
        step,
        part.names[node],
        node.op.name,
        plan.selections[step].platform,
        phase,
        node.scope,
        lines,
        inputs,
        tuple([str(v.spec) for v in (first, *rest)]),
        offset,
        place,
        sum(v.spec.nbytes for v in (first, *rest)),
        flops(node),
        bytes_moved(node, lambda value: roots.get(value, value)),
        seconds,
        tuple([task.name for task in getattr(plan.calls[step], "steps", ())]),
    )
