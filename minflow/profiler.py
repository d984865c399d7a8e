"""Profiler (`flow.profiler`): the time of each eager op, of each call of a graph and of each block that you name.

PyTorch's interface. The plan of a graph is one event; `graph.profile()` lists its ops, `flow.timeline()` the steps of a
job. On a GPU the times are those of the calls, which do not wait for the kernels. Read next: `core/mode.py`.
"""

from __future__ import annotations

import functools
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from enum import Enum
from typing import Any

from .core.base.errors import OutOfRangeError, StateError
from .core.base.events import subscribe
from .core.files.atomic import write
from .core.ir import where_text
from .core.messages.suggestions import name_hints as _name_hints
from .core.mode import MODE
from .core.source_location import caller, fail, here

__all__ = [
    "EventList",
    "FunctionEvent",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
clock = time.perf_counter_ns
ACTIVE: list[profile] = []  # the profiles that are running, the innermost last


class ProfilerActivity(Enum):
    """Devices whose work is recorded. All are: the argument is accepted for programs that pass it."""

    CPU = 0
    XPU = 1
    CUDA = 2


class ProfilerAction(Enum):
    """The action of a profile in one step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def kineto_available() -> bool:
    """Return True: profiles are recorded."""
    return True


def supported_activities() -> set[ProfilerActivity]:
    """Return the activities that are recorded."""
    return {ProfilerActivity.CPU, ProfilerActivity.CUDA}


class FunctionEvent:
    """One op or block, or the sum of several of one name. Times are in microseconds.

    key: its name.  count: number of calls.  cpu_time_total: with the ops inside it; self_cpu_time_total: without.
    input_shapes: with record_shapes.  cpu_memory_usage: bytes of its results, with profile_memory.
    """

    def __init__(self, key: str, start: int, shapes: Any = None, stack: tuple[str, ...] = ()):
        self.key, self.start, self.end, self.inner, self.count = key, start, start, 0, 1
        self.input_shapes, self.stack, self.thread = shapes, list(stack), threading.get_ident()
        self.cpu_memory_usage = 0

    name = property(lambda self: self.key, doc="The name of the op or block.")
    cpu_time_total = property(lambda self: (self.end - self.start) / 1e3, doc="Microseconds, with the ops inside.")
    self_cpu_time_total = property(lambda self: (self.end - self.start - self.inner) / 1e3, doc="Without them.")
    self_cpu_memory_usage = property(lambda self: self.cpu_memory_usage, doc="The same as cpu_memory_usage.")
    cpu_time = property(lambda self: self.cpu_time_total / self.count, doc="Microseconds of one call.")
    device_time_total = self_device_time_total = cuda_time_total = self_cuda_time_total = xpu_time_total = 0.0

    def add(self, other: FunctionEvent) -> None:
        """Add the times of another event of the same name."""
        self.end += other.end - other.start
        self.inner, self.count = self.inner + other.inner, self.count + other.count
        self.cpu_memory_usage += other.cpu_memory_usage


def duration(microseconds: float) -> str:
    """A duration with its unit, such as "1.500ms"."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:.3f}{unit}"
    return f"{microseconds:.3f}us"


class EventList(list):
    """List of events, with `table()`."""

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """The events as text, the largest first. sort_by: "cpu_time_total", "self_cpu_time_total", "count", ..."""
        rows = list(self)
        if sort_by is not None:
            if not hasattr(FunctionEvent("", 0), sort_by):
                what = f"profiler: unknown column {sort_by!r}"
                fail(OutOfRangeError, what, '"cpu_time_total", "self_cpu_time_total", "cpu_time", "count"')
            rows.sort(key=lambda event: getattr(event, sort_by), reverse=True)
        total = sum(event.self_cpu_time_total for event in self)
        columns: dict[str, Callable] = {
            "Name": lambda e: e.key[:max_name_column_width],
            "Self CPU %": lambda e: f"{100 * e.self_cpu_time_total / total if total else 0:.2f}%",
            "Self CPU": lambda e: duration(e.self_cpu_time_total),
            "CPU total %": lambda e: f"{100 * e.cpu_time_total / total if total else 0:.2f}%",
            "CPU total": lambda e: duration(e.cpu_time_total),
            "CPU time avg": lambda e: duration(e.cpu_time),
            "CPU Mem": lambda e: f"{e.cpu_memory_usage:,} b",
            "# of Calls": lambda e: str(e.count),
            "Input Shapes": lambda e: str(e.input_shapes)[:max_shapes_column_width],
            "Source Location": lambda e: ", ".join(e.stack)[:max_src_column_width],
        }
        shown = {"CPU Mem": "cpu_memory_usage", "Input Shapes": "input_shapes", "Source Location": "stack"}
        for title, attribute in shown.items():
            if not any(getattr(event, attribute) for event in rows):
                del columns[title]
        cells = [list(columns), *[[text(event) for text in columns.values()] for event in rows[:row_limit]]]
        widths = [max(map(len, column)) for column in zip(*cells)]
        lines = ["  ".join([f"{cell:>{w}}" for cell, w in zip(row, widths)]) for row in cells]
        rule = "  ".join(["-" * width for width in widths])
        body = [rule, lines[0], rule, *lines[1:], rule, f"Self CPU time total: {duration(total)}"]
        return "\n".join([*([header] if header else []), *body, ""])

    def total_average(self) -> FunctionEvent:
        """The sum of all events."""
        total = FunctionEvent("Total", 0)
        total.count = 0
        for event in self:
            total.add(event)
        return total

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events."""
        return sum(event.self_cpu_time_total for event in self)

    def __str__(self) -> str:
        return self.table()


class Profiling:
    """Mixin for a mode class: records the time of each op."""

    profiler: profile

    def run(self, op: Any, inputs: Any, attrs: Any) -> Any:
        if not self.profiler.recording:
            return super().run(op, inputs, attrs)  # type: ignore[misc]
        event = self.profiler.begin(op.name, inputs)
        try:
            result = super().run(op, inputs, attrs)  # type: ignore[misc]
            if self.profiler.profile_memory:
                outs = result if isinstance(result, tuple | list) else [result]
                event.cpu_memory_usage = sum(x.spec.nbytes for x in outs if hasattr(x, "spec") and x._alias is None)
            return result
        finally:
            self.profiler.finish(event)

    def before_run(self, graph: Any, parts: Any) -> None:
        super().before_run(graph, parts)  # type: ignore[misc]
        if self.profiler.recording:
            self.profiler.graphs[id(graph)] = self.profiler.begin(f"nn.Graph {type(graph).__name__}", ())


@functools.cache
def profiling_class(kind: Any) -> type:
    return type(f"Profiling{kind.__name__}", (Profiling, kind), {})


class profile:
    """Record the time of ops in a `with` block, or from start() to stop(), in this thread.

    activities: accepted.  schedule: the action of each step, see `schedule`; call `step()` at the end of a step.
    on_trace_ready: called with the profile after the last step to record, and at the end.  record_shapes: record the
    shapes of inputs.  profile_memory: count the bytes of results.  with_stack: record the line that called the op.
    """

    def __init__(
        self,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        use_cuda: bool | None = None,
        *,
        enabled: bool = True,
    ):
        if with_flops or execution_trace_observer is not None:
            what = "profiler: operations are not counted, and no execution trace is written"
            fail(StateError, what, "model.summary(x) counts multiplications; export_chrome_trace writes the events")
        self.schedule, self.on_trace_ready, self.enabled = schedule, on_trace_ready, enabled
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.recorded: EventList = EventList()
        self.open: list[FunctionEvent] = []
        self.graphs: dict[int, FunctionEvent] = {}
        self.step_num, self.recording = 0, False
        self.step_event: FunctionEvent | None = None
        self.before: Any = None

    # ---- recording --------------------------------------------------------------------------------------------------

    def begin(self, name: str, inputs: Iterable[Any] = ()) -> FunctionEvent:
        """Begin an event."""
        shapes = [list(getattr(x, "shape", ())) for x in inputs] if self.record_shapes else None
        event = FunctionEvent(name, 0, shapes, (where_text(caller()),) if self.with_stack else ())
        self.open.append(event)
        event.start = clock()
        return event

    def finish(self, event: FunctionEvent) -> None:
        """End an event, and those inside it."""
        event.end = clock()
        if event not in self.open:  # begun before the events were cleared
            return
        del self.open[self.open.index(event) :]
        if self.open:
            self.open[-1].inner += event.end - event.start
        self.recorded.append(event)

    def graph_ran(self, ran: Any) -> None:
        """End the event of a graph's call."""
        if event := self.graphs.pop(id(ran.graph), None):
            self.finish(event)

    @property
    def action(self) -> ProfilerAction:
        """The action in this step."""
        return ProfilerAction.RECORD if self.schedule is None else self.schedule(self.step_num)

    def start(self) -> None:
        """Begin to record, in this thread."""
        from .nn.graph.compiled import GraphRan

        if not self.enabled:
            return
        self.before = MODE.get()
        kind: Any = type(self.before)
        mode = self.before.replace(profiler=self)
        mode.__class__ = profiling_class(kind)
        MODE.set(mode)
        self.listening = ExitStack()
        self.listening.enter_context(subscribe(GraphRan, self.graph_ran))
        ACTIVE.append(self)
        self.begin_step()

    def stop(self) -> None:
        """End recording."""
        if self.before is None:
            return
        self.end_step()
        self.listening.close()
        ACTIVE.remove(self)
        MODE.set(self.before)
        was_recording, self.recording, self.before = self.recording, False, None
        if was_recording and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def step(self) -> None:
        """End a step: the schedule decides what happens in the next one."""
        action = self.action
        self.end_step()
        if action is ProfilerAction.RECORD_AND_SAVE and self.on_trace_ready is not None:
            self.on_trace_ready(self)
        self.step_num += 1
        if action is ProfilerAction.RECORD_AND_SAVE and self.action is not ProfilerAction.NONE:
            self.recorded = EventList()
        self.begin_step()

    def begin_step(self) -> None:
        """Begin to record, or not, as the schedule says."""
        recording = self.action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if recording and not self.recording:
            self.recorded = EventList()
        self.recording = recording
        if recording and self.schedule is not None:
            self.step_event = self.begin(f"ProfilerStep#{self.step_num}")

    def end_step(self) -> None:
        """End the event of the step."""
        if self.step_event is not None:
            self.finish(self.step_event)
            self.step_event = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.stop()

    # ---- results ----------------------------------------------------------------------------------------------------

    def events(self) -> EventList:
        """All events, in the order in which they ended."""
        return self.recorded

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """The events of each name (and input shapes, or line) as one."""
        grouped: dict[tuple, FunctionEvent] = {}
        for event in self.recorded:
            shapes = event.input_shapes if group_by_input_shape else None
            stack = tuple(event.stack[:group_by_stack_n])
            key = event.key, str(shapes), stack
            if key not in grouped:
                grouped[key] = FunctionEvent(event.key, 0, shapes, stack)
                grouped[key].count = 0
            grouped[key].add(event)
        return EventList(grouped.values())

    def total_average(self) -> FunctionEvent:
        """The sum of all events."""
        return self.recorded.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events."""
        return self.recorded.self_cpu_time_total

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """key_averages().table(...)."""
        return self.key_averages().table(sort_by, row_limit, **options)

    def export_chrome_trace(self, path: str) -> None:
        """Write the events as JSON, for chrome://tracing and Perfetto; compressed if the path ends in .gz."""
        import gzip

        events = [
            {
                "ph": "X",
                "cat": "user_annotation" if event.key.startswith("ProfilerStep") else "cpu_op",
                "name": event.key,
                "pid": os.getpid(),
                "tid": event.thread,
                "ts": event.start / 1e3,
                "dur": event.cpu_time_total,
                "args": {"Input Dims": event.input_shapes} if event.input_shapes else {},
            }
            for event in self.recorded
        ]
        text = json.dumps({"schemaVersion": 1, "traceEvents": events})
        write(path, gzip.compress(text.encode()) if str(path).endswith(".gz") else text, "export_chrome_trace", here)

    def __str__(self) -> str:
        return str(self.key_averages())


class record_function:
    """Give a name to a `with` block, or to a decorated function, in the profile that is running."""

    def __init__(self, name: str, args: str | None = None):
        self.name, self.args = name, args
        self.begun: list[tuple[profile, FunctionEvent]] = []

    def __enter__(self) -> record_function:
        self.begun = [(each, each.begin(self.name)) for each in ACTIVE[-1:] if each.recording]
        return self

    def __exit__(self, *error: Any) -> None:
        for each, event in self.begun:
            each.finish(event)

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return recorded


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Return the action of each step: wait steps of nothing, warmup steps, active steps that are recorded.

    repeat: number of such cycles, 0 for no limit.  skip_first: steps before the first one.  skip_first_wait: 1 for no
    wait in the first cycle.
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active < 1:
        values = dict(wait=wait, warmup=warmup, active=active, repeat=repeat, skip_first=skip_first)
        fail(OutOfRangeError, "profiler.schedule: active must be at least 1, the others 0", "active=3", **values)

    def action(step: int) -> ProfilerAction:
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle, place = divmod(step, wait + warmup + active)
        if step < 0 or (repeat and cycle >= repeat) or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == wait + warmup + active - 1 else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """Return an on_trace_ready that writes a file for chrome://tracing into a folder for each cycle."""

    def handler(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' * use_gzip}"
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handler


__getattr__ = _name_hints("flow.profiler", globals())
