"""A profiled call of a graph: the times of its operations, and the chunks of work that each thread took.

One call says little: caches are cold, another program may run. So the call is repeated with all of its effects undone,
and the run with the median duration is kept: all views show that run. Read next: `threads.py`, the picture;
`platforms/compiled/runtime/recorder.py`, which records the chunks.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ....compiler.executor import run
from ....core.base.interrupts import uninterrupted
from ....core.context import current_context
from ....core.ir import Node
from ....core.random import default_generator
from ....core.spec import cpu
from ....platforms.compiled.runtime import threads as machine
from ....views.records.reports import Timing
from ..compare.restore import preserve_last_call, restore_on_exit, states_of
from .reports import phases_of

MAX_RUNS, MAX_SECONDS = 7, 2.0  # repetitions of a profiled call, and the seconds after which no further one begins
CallTime = tuple[str, str, float, float]  # of a call: its name, its phase, start and end
clock = time.perf_counter


class RecordedRun(NamedTuple):
    """A run. calls: in running order.  chunks: by their start.  seconds: for each part, those of each call of its plan,
    summed over micro-steps.
    """

    caller: int
    calls: list[CallTime]
    chunks: list[machine.Chunk]
    seconds: list[list[float]]

    @property
    def total(self) -> float:
        return sum(map(sum, self.seconds))


class UnitRun(NamedTuple):
    """One run of a unit of a plan. part, first: the index of the part, and that of the unit's first call. merged: True
    for compiled calls that run as one program. programs: those that ran, each with its records.
    """

    part: int
    first: int
    start: float
    stop: float
    merged: bool
    programs: list[tuple[Any, Any]]

    def chunks(self) -> list[list[machine.Chunk]]:
        """The chunks of each call of the unit."""
        read = [program.read(notes) for program, notes in self.programs]
        return read[0] if self.merged else [[chunk for calls in read for call in calls for chunk in call]]


class PlanRecorder:
    """Records runs of the plans of these parts. Adjacent compiled kernels stay merged, as in any run; a plan of a GPU
    runs call by call, and has the times of the device.
    """

    def __init__(self, parts: list[Any]):
        self.parts, self.runs = parts, list[UnitRun]()
        self.on_device = any([part.plan.device is not cpu or part.plan.moved for part in parts])
        phases = [phases_of(part.graph.nodes) for part in parts]
        self.labels = [[(x.names[node], of[node]) for node in x.plan.nodes] for x, of in zip(parts, phases)]
        self.communicates = any([node.op.communicates for part in parts for node in part.plan.nodes])
        self.single: Any = None  # recorder of compiled calls that are not merged
        self.merged: Any = None  # class of programs that record themselves
        if "minflow.platforms.compiled.runtime.tasks" in sys.modules:
            from ....platforms.compiled.runtime import recorder

            self.single = recorder.StepRecorder()
            self.merged = None if recorder.ALONE or self.on_device else recorder.RecordedProgram

    def recorded(self, part: int, first: int, call: Any, merged: bool = False) -> Callable[[], None]:
        """The call, which adds each of its runs to `runs`."""

        def run_one() -> None:
            start = clock()
            call()
            stop = clock()
            programs = [(call, call.notes.copy())] if merged else self.single.take() if self.single else []
            self.runs.append(UnitRun(part, first, start, stop, merged, programs))

        return run_one

    def recorded_units(self, k: int) -> tuple[list[Callable], list[Node]]:
        """The units of a plan of the CPU, recorded, and the first node of each."""
        plan = self.parts[k].plan
        if self.merged is None:
            return [self.recorded(k, i, call) for i, call in enumerate(plan.calls)], plan.nodes
        units, nodes = plan.units
        position = {node: i for i, node in enumerate(plan.nodes)}
        firsts = [position[node] for node in nodes]
        result = []
        for unit, first, end in zip(units, firsts, [*firsts[1:], len(plan.calls)]):
            joins = hasattr(plan.calls[first], "join")
            call = self.merged([call.steps or [] for call in plan.calls[first:end]]) if joins else unit
            result.append(self.recorded(k, first, call, joins))
        return result, nodes

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Record all runs in the block."""
        plans = [part.plan for part in self.parts]
        before = [(plan.calls, plan.units, plan.static_io) for plan in plans]
        recorders = [self.single] * (self.single is not None)
        machine.RECORDERS.extend(recorders)
        try:
            for k, plan in enumerate(plans):
                if self.on_device:
                    plan.calls = [self.recorded(k, i, call) for i, call in enumerate(plan.calls)]
                else:
                    plan.units, plan.static_io = self.recorded_units(k), None
            yield
        finally:
            del machine.RECORDERS[len(machine.RECORDERS) - len(recorders) :]
            for plan, (calls, units, static_io) in zip(plans, before):
                plan.calls, plan.units, plan.static_io = calls, units, static_io

    def take(self) -> RecordedRun:
        """All that ran since the last call of this method, as one run."""
        seconds = [[0.0] * len(labels) for labels in self.labels]
        calls: list[CallTime] = []
        chunks: list[machine.Chunk] = []
        lost, end = 0.0, self.runs[0].start if self.runs else 0.0
        for one in self.runs:
            # Recording takes time between units, which is cut out; ranks wait for each other, so theirs stays.
            lost += 0.0 if self.communicates else one.start - end
            own, start, end = one.chunks(), one.start, one.stop
            for i, notes in enumerate(own):
                last = i == len(own) - 1
                stop = end if last else min(end, max([start, *[note[3] for note in notes]]))
                name, phase = self.labels[one.part][one.first + i]
                calls.append((name, phase, start - lost, stop - lost))
                chunks += [(thread, chunk, a - lost, b - lost) for thread, chunk, a, b in notes]
                seconds[one.part][one.first + i] += stop - start
                start = stop
        self.runs.clear()
        if self.on_device:
            seconds = [part.plan.seconds or [] for part in self.parts]
        return RecordedRun(threading.get_ident(), calls, sorted(chunks, key=lambda chunk: chunk[2]), seconds)


def profiled_call(graph: Any, compiled: Any, arrays: list) -> Any:
    """Run a call and record it. The last of the calls that `graph.profile` asked for is repeated, its effects undone,
    and the run with the median duration is kept in `compiled.recorded` and in the plans.
    """
    recorder = PlanRecorder(compiled.parts)
    with current_context().plan_lock, recorder.attached():
        result = compiled.run(graph, arrays, recorder.on_device)
        runs = [recorder.take()]
        why = why_once(compiled, runs[0]) if not graph._timed else "the last call is repeated"
        if not why:
            runs = repeated(graph, compiled, arrays, recorder)
    runs.sort(key=lambda run: run.total)
    chosen = runs[len(runs) // 2]
    compiled.recorded = chosen
    compiled.timing = Timing(chosen.total, runs[0].total, runs[-1].total, len(runs), why)
    for part, seconds in zip(compiled.parts, chosen.seconds):
        part.plan.seconds = seconds
    return result


def why_once(compiled: Any, run: RecordedRun) -> str:
    """Why a call is not repeated; empty if it is."""
    nodes = [node for part in compiled.parts for node in part.plan.nodes]
    if any([node.op.communicates for node in nodes]):
        return "other ranks take part in it"
    if any([node.op.custom for node in nodes]):
        return "it runs operations of your own, which may do more than compute"
    return f"it takes more than {MAX_SECONDS / 2:g} s" if run.total > MAX_SECONDS / 2 else ""


def repeated(graph: Any, compiled: Any, arrays: list, recorder: PlanRecorder) -> list[RecordedRun]:
    """Record an odd number of runs, so that one of them is the median, and restore all that they write."""
    runs: list[RecordedRun] = []
    links = [s.link for part in compiled.parts for s in part.graph.states if s.link is not None]
    generators = [*compiled.build.trace.draws, default_generator]
    end = clock() + MAX_SECONDS
    with preserve_last_call(graph), restore_on_exit(states_of(compiled), generators, links):
        while len(runs) < MAX_RUNS and clock() < end:
            with uninterrupted():
                if compiled.steps > 1:
                    compiled.accumulate(arrays, recorder.on_device)
                else:
                    run(compiled.plan, compiled.contiguous_inputs(arrays), recorder.on_device)
            runs.append(recorder.take())
    return runs[: len(runs) - 1 + len(runs) % 2]
