"""Streams and events of GPUs, under PyTorch's names (`flow.cuda`).

A stream is a queue of work: its work runs in order, beside that of other streams. An event is a point in it, for which
another stream or the program can wait. Read next: `backend.py`, whose devices have the streams.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any

from .backend import Array, Backend, backend_of, on_stream
from .base.errors import DeviceError
from .host import HostArray
from .source_location import fail
from .spec import Device

# Arrays, each with the end of the work of a stream that reads it, before which its memory must not be used again.
RELEASED: deque[tuple[Backend, Any, Array]] = deque()


def keep_until(backend: Backend, event: Any, array: Array) -> None:
    """Keep the memory of an array until an event has happened."""
    while RELEASED and RELEASED[0][0].has_ended(RELEASED[0][1]):
        RELEASED.popleft()
    RELEASED.append((backend, event, array))


def copy_without_waiting(array: HostArray, device: Device) -> Array:
    """A copy of an array of the host on a GPU: of pinned memory, which must not change before, when the stream of this
    thread gets there.
    """
    backend = backend_of(device)
    if not backend.is_pinned(array):
        return backend.from_host(array)
    copy = backend.from_pinned(array)
    keep_until(backend, backend.event(), array)
    return copy


class Stream:
    """A queue of work on a GPU; `with stream:` or `with flow.cuda.stream(stream):` submits to it.

    device: None for the GPU that "cuda" means, an index or a device.  priority: lower numbers run first. Raises
    DeviceError without a GPU.
    """

    def __init__(self, device: Any = None, priority: int = 0):
        self.device = gpu(device)
        self.backend = backend_of(self.device)
        self.queue = self.backend.new_stream(priority)

    @property
    def cuda_stream(self) -> int:
        """The address of CUDA's stream."""
        return self.queue.ptr

    def query(self) -> bool:
        """True if all work of this stream has ended."""
        return self.backend.has_ended(self.queue)

    def synchronize(self) -> None:
        """Wait until all work of this stream has ended."""
        self.backend.wait_on_host(self.queue)

    def record_event(self, event: Event | None = None) -> Event:
        """Return an event, by default a new one, that happens when the work of this stream until now has ended."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let later work of this stream begin after an event."""
        if event.point is not None:
            with on_stream(self.backend, self.queue):
                self.backend.wait(event.point)

    def wait_stream(self, stream: Stream) -> None:
        """Let later work of this stream begin when the work of another one until now has ended."""
        self.wait_event(stream.record_event())

    def keep(self, array: Array) -> None:
        """Keep the memory of an array, when the program has released it, until the work of this stream has ended."""
        weakref.finalize(array, self.release, array.view()).atexit = False

    def release(self, array: Array) -> None:
        """Keep an array until the work that this stream has now has ended."""
        keep_until(self.backend, self.backend.event(self.queue), array)

    def __enter__(self) -> Stream:
        self.context = stream(self)
        self.context.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.context.__exit__(*error)

    def __cuda_stream__(self) -> tuple[int, int]:
        """The version of this protocol of other libraries, and the address."""
        return 0, self.cuda_stream

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.device, self.queue) == (other.device, other.queue)

    def __hash__(self) -> int:
        return hash(self.cuda_stream)

    def __repr__(self) -> str:
        return f"<flow.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class Event:
    """A point in the work of a stream, which `record` sets.

    enable_timing: needed by `elapsed_time`.  blocking, interprocess: accepted without effect.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False):
        self.enable_timing = enable_timing
        self.point: Any = None
        self.backend: Any = None

    def record(self, stream: Stream | None = None) -> None:
        """Let this event happen when the work of a stream until now has ended, by default of this thread's."""
        stream = current_stream() if stream is None else stream
        self.backend, self.point = stream.backend, stream.backend.event(stream.queue)

    def wait(self, stream: Stream | None = None) -> None:
        """Let later work of a stream begin after this event, by default of this thread's."""
        (current_stream() if stream is None else stream).wait_event(self)

    def query(self) -> bool:
        """True if this event has happened, or was never recorded."""
        return self.point is None or self.backend.has_ended(self.point)

    def synchronize(self) -> None:
        """Wait until this event has happened."""
        if self.point is not None:
            self.backend.wait_on_host(self.point)

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds from this event to a later one. Raises DeviceError unless both measure time and have
        been recorded.
        """
        for name, event in (("this event", self), ("end_event", end_event)):
            if event.point is None or not event.enable_timing:
                why = "was not recorded" if event.enable_timing else "does not measure time"
                what = f"{name} {why}, and elapsed_time needs both events to"
                hint = "e = flow.cuda.Event(enable_timing=True); e.record()"
                fail(DeviceError, what, hint, recorded=event.point is not None, enable_timing=event.enable_timing)
        return self.backend.seconds_between(self.point, end_event.point) * 1e3

    def __repr__(self) -> str:
        return f"<flow.cuda.Event {'not recorded' if self.point is None else f'on {self.backend.device}'}>"


class StreamContext:
    """Submit the work of this thread to a stream in a block; None changes nothing."""

    def __init__(self, stream: Stream | None):
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.before = self.stream.backend.stream()
            self.stream.backend.use_stream(self.stream.queue)

    def __exit__(self, *error: Any) -> None:
        if self.stream is not None:
            self.stream.backend.use_stream(self.before)


def stream(stream: Stream | None) -> StreamContext:
    """Return a context manager that submits the work of this thread to a stream; None changes nothing."""
    return StreamContext(stream)


def set_stream(stream: Stream | None) -> None:
    """Submit the work of this thread to a stream from now on; None changes nothing."""
    if stream is not None:
        stream.backend.use_stream(stream.queue)


def current_stream(device: Any = None) -> Stream:
    """Return the stream of a GPU to which this thread submits. Raises DeviceError without a GPU."""
    backend = backend_of(gpu(device))
    return wrapped(backend, backend.stream())


def default_stream(device: Any = None) -> Stream:
    """Return the stream of a GPU that threads begin with. Raises DeviceError without a GPU."""
    backend = backend_of(gpu(device))
    return wrapped(backend, backend.default_stream())


def wrapped(backend: Backend, queue: Any) -> Stream:
    """The Stream of a stream of the backend."""
    result = object.__new__(Stream)
    result.device, result.backend, result.queue = backend.device, backend, queue
    return result


def gpu(device: Any) -> Device:
    return Device("cuda", device) if device is None or isinstance(device, int) else Device(device)
