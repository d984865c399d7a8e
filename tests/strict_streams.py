"""Streams of the stand-in for a GPU. By default work is done at once; in `delayed`, only when something waits for it.

A program that does not wait then reads elements that were never computed (NaN or 0), as on a GPU it may. While a
stream is captured, its work is recorded and not done; a launch of the recording does it with the same arguments.
"""

import contextlib
import functools
import threading
import time
import weakref
from collections import deque

import numpy as np

LOCK = threading.RLock()  # of all queues
DELAYED: list[str] = [""]  # the last one: whose work waits
LOCAL = threading.local()
STREAMS: weakref.WeakSet = weakref.WeakSet()


class CaptureError(RuntimeError):
    """A program has waited for a stream that is captured, or copied from the host to it."""


class StrictStream:
    """A queue of functions. name: "default" for the stream that every thread begins with."""

    def __init__(self, name="stream"):
        self.name, self.queue = name, deque()
        self.recording: list | None = None
        STREAMS.add(self)

    @property
    def ptr(self) -> int:
        return 0 if self is DEFAULT else id(self)

    @property
    def done(self) -> bool:
        return not self.queue

    def wait(self) -> None:
        self.run()

    def waits(self) -> bool:
        delayed = DELAYED[-1] == "all" or (DELAYED[-1] == "others" and self is not DEFAULT)
        return delayed or self.recording is not None or len(self.queue) > 0

    def submit(self, work) -> None:
        if self.recording is not None:
            self.recording.append(work)
        elif self.waits():
            self.queue.append(work)
        else:
            work()

    def run(self, event=None) -> None:
        """Do all work; up to an event if it is given."""
        if self.recording is not None:
            raise CaptureError("operation not permitted when stream is capturing")
        with LOCK:
            while self.queue and not (event is not None and event.done):
                self.queue.popleft()()


DEFAULT = StrictStream("default")


class StrictEvent:
    """The end of the work that a stream has been given until `record`."""

    def __init__(self):
        self.done, self.time, self.stream = True, 0.0, DEFAULT

    def record(self, stream):
        self.stream, self.done = stream, False
        stream.submit(self.reach)

    def reach(self):
        self.done, self.time = True, time.perf_counter()

    def wait(self):
        """Do the work before this event."""
        if not self.done:
            self.stream.run(self)


def current() -> StrictStream:
    return getattr(LOCAL, "stream", DEFAULT)


@contextlib.contextmanager
def delayed(which="others"):
    """Delay the work of all streams but the default one, or of "all"."""
    DELAYED.append(which)
    try:
        yield
    finally:
        DELAYED.pop()


def wait() -> None:
    """Wait for the current stream, as a copy to the host does."""
    current().run()


def refuse_capture() -> None:
    """Refuse a copy from the host, whose memory a recording would read at each launch."""
    if current().recording is not None:
        raise CaptureError("a copy from the host while the stream is capturing")


def poisoned(result) -> np.ndarray:
    array = np.empty(np.shape(result), np.asarray(result).dtype)
    array.fill(np.nan if array.dtype.kind in "fc" else 0)
    return array


def perform(compute, inputs=(), in_place=False):
    """The result of `compute()`, whose elements may come later.

    inputs: arrays of which a result may be a view, which exists at once.  in_place: True if it has no new results.
    """
    stream = current()
    if not stream.waits():
        return compute()
    if in_place:
        stream.submit(compute)
        return None
    result = compute()
    items = result if result.__class__ in (tuple, list) else [result]
    if not all([isinstance(x, np.ndarray | np.generic | bool) for x in items]):
        return result
    if any([np.may_share_memory(x, y) for x in items if isinstance(x, np.ndarray) for y in inputs]):
        return result
    new = [poisoned(x) for x in items]

    def work():
        again = compute()
        for array, x in zip(new, again if again.__class__ in (tuple, list) else [again]):
            array[...] = x

    stream.submit(work)
    return result.__class__(new) if result.__class__ in (tuple, list) else new[0]


def capture(calls):
    """Record the work of calls, as `Backend.capture` does."""
    before, LOCAL.stream = current(), StrictStream("capture")
    LOCAL.stream.recording = recording = []
    done = 0
    try:
        for call in calls:
            call()
            done += 1
    except Exception as error:
        return None, done, error
    finally:
        LOCAL.stream = before
    return functools.partial(launch, recording), done, None


def launch(recording) -> None:
    """Do the work of a recording once more."""
    for work in recording:
        current().submit(work)


def synchronize() -> None:
    """Do the work of all streams."""
    for stream in [*STREAMS]:
        stream.run()
