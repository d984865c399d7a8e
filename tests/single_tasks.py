"""Build and run the tasks of one op, with guarded arrays and any number of threads."""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from minflow.compat.namespaces.threads import Settings
from minflow.platforms.compiled.runtime.task_scheduler import ALIGN, Program
from minflow.platforms.compiled.runtime.tasks import Task, prepared
from minflow.platforms.compiled.runtime.threads import RECORDERS

BAND = 4096  # elements of each guard band
FILL = 77
THREADS = (1, 2, 3, 8)


def tasks_of(builder: Callable, arrays: Sequence, outs: Sequence[np.ndarray], **attrs) -> list[Task] | None:
    """Build the tasks, with a workspace of their own. None if the builder declines."""
    found = prepared(builder, arrays, outs, **attrs)
    if found is None:
        return None
    found.settle(np.empty(found.bytes + ALIGN, np.uint8))
    return found.steps


def run_tasks(steps: Sequence[Task]) -> None:
    """Run each task; those with several chunks use several threads."""
    recorder = RECORDERS[0] if RECORDERS else None
    recorder.run(steps) if recorder else Program(steps)()


def guarded_array(shape: Sequence[int], dtype: Any = "f4") -> tuple[np.ndarray, Callable[[], bool]]:
    """Return an array of FILL between two guard bands, and a function that checks that the bands are unchanged."""
    memory = np.full(math.prod(shape) + 2 * BAND, FILL, dtype)
    end = memory.size - BAND
    return memory[BAND:end].reshape(shape), lambda: bool((memory[:BAND] == FILL).all() and (memory[end:] == FILL).all())


def run_builder(builder: Callable, arrays: Sequence, like: Sequence[Any], **attrs) -> list[np.ndarray] | None:
    """Return the outputs of a builder's tasks, or None if there are no tasks. Checks for writes out of bounds.

    like: arrays or specs with the shape and dtype of each output; float64 is replaced by float32.
    """
    dtypes = [np.dtype(getattr(one, "np", one.dtype)) for one in like]
    made = [guarded_array(one.shape, "f4" if dtype == np.float64 else dtype) for one, dtype in zip(like, dtypes)]
    steps = tasks_of(builder, arrays, [array for array, _ in made], **attrs)
    if steps is None:
        return None
    run_tasks(steps)
    assert all(intact() for _, intact in made), "write out of bounds of an output"
    return [array for array, _ in made]


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    before, Settings.threads = Settings.threads, count
    try:
        yield
    finally:
        Settings.threads = before


def same_bits(
    function: Callable[[], Sequence[np.ndarray] | None],
    counts: Iterable[int] = THREADS,
) -> Sequence[np.ndarray] | None:
    """Return the function's result, None or arrays, which must have the same bits for each number of threads."""
    found = []
    for count in counts:
        with threads(count):
            found.append(function())
    first, *others = found
    for other in others:
        assert first is other is None or [a.tobytes() for a in other] == [a.tobytes() for a in first]
    return first
