"""Steps of job functions on a GPU: they run on a stream of their own, beside the copies of the next step's arguments.

The caller's thread begins to copy the arguments when it submits a step, through pinned memory, which copies to GPUs use
anyway; the worker lets the step wait for them, and waits for its end before callbacks run and the next one starts.
Read next: `stream.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...compiler.executor import run
from ...core.backend import Backend, on_device, on_stream, to_host
from ...core.context import PerContext
from ...core.host import HostArray
from ...core.spec import Device
from .records import clock
from .stream import current_stream

streams: PerContext[dict[Backend, tuple[Any, Any]]] = PerContext(dict)  # of steps, and of copies of their arguments


class DeviceArguments:
    """Arguments of one step, on their devices."""

    def __init__(self, backend: Backend, arrays: Sequence[HostArray], devices: Sequence[Device]):
        self.backend = backend
        self.before = backend.event()  # the end of the caller's work, whose results the step may read
        if backend not in streams():
            streams()[backend] = backend.new_stream(), backend.new_stream()
        self.steps, copies = streams()[backend]
        with on_stream(backend, copies):
            self.arrays = [on_device(*pair) for pair in zip(arrays, devices)]
            self.copied = backend.event()

    def run(self, plan: Any) -> list[HostArray]:
        """Run a plan on them; return its results on the host when the step has ended."""
        backend = self.backend
        with on_stream(backend, self.steps):
            backend.wait(self.before)
            backend.wait(self.copied)
            begun = backend.event()
            results = run(plan, self.arrays)
            ended = backend.event()
            backend.wait_on_host(self.steps)
            now = clock()
            current_stream().records[-1].gpu = now - backend.seconds_between(begun, ended), now
            return [*map(to_host, results)]
