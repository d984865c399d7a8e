"""Thread counts, and the recorder of chunks: each chunk is recorded once with its thread and times, and results do not
change. Distribution of chunks to threads: `test_task_scheduler.py`.
"""

import contextlib
import os
import threading
import time

import numpy as np
import pytest
from graph_models import Predict

import minflow as flow
from minflow import nn
from minflow.compat.namespaces.threads import Settings
from minflow.platforms.compiled.runtime import threads
from minflow.platforms.compiled.runtime.threads import RECORDERS


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    monkeypatch.setattr(Settings, "threads", 2)


def test_thread_count(monkeypatch):
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Settings, "threads", None)
    assert 1 <= threads.number() <= os.cpu_count()
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads.number() == 3
    monkeypatch.setattr(Settings, "threads", 5)
    assert threads.number() == 5


@contextlib.contextmanager
def recording(recorder):
    RECORDERS.append(recorder)
    try:
        yield recorder
    finally:
        RECORDERS.remove(recorder)


def within(notes, begun, ended):
    return all(begun <= start <= end <= ended for _, _, start, end in notes)


def test_chunks_of_tasks():
    pytest.importorskip("numba", reason="steps are compiled by numba, which is not installed")
    from minflow.platforms.compiled.codegen.llvm import number_at, put
    from minflow.platforms.compiled.runtime.instructions import instruction
    from minflow.platforms.compiled.runtime.recorder import StepRecorder
    from minflow.platforms.compiled.runtime.task_scheduler import ALONE
    from tests.single_tasks import run_tasks

    @instruction
    def doubled(chunk, scratch, x, out):
        put(scratch, 0, number_at(x, chunk) * np.float32(2))
        put(out, chunk, number_at(scratch, 0))

    x, y, z = np.arange(300, dtype="f4"), np.empty(300, "f4"), np.empty(300, "f4")
    steps = [doubled(300, x, y, scratch=16), doubled(100, y, z, scratch=16), doubled(0, x, y), doubled(1, x, z)]
    begun = time.perf_counter()
    with recording(StepRecorder()) as recorder:
        run_tasks(steps)
    assert (y == 2 * x).all() and (z[1:100] == 4 * x[1:100]).all() and z[0] == 0
    chunks = [chunk for program, notes in recorder.take() for call in program.read(notes) for chunk in call]
    assert [chunk for _, chunk, _, _ in chunks] == ([] if ALONE else [*range(300), *range(100), 0])
    assert within(chunks, begun - 1e-5, time.perf_counter() + 1e-5)
    assert {thread for thread, *_ in chunks} <= {thread.ident for thread in threading.enumerate()}
    assert threads.RECORDERS == recorder.take() == []


def test_chunks_of_a_graph(on):
    """A profiled call of a graph records the chunks of its compiled kernels and gives the same results."""
    model = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
    graph, x = Predict(model), flow.rand(20, 16, 16, 16)
    first = graph(x)
    graph.profile()
    assert flow.equal(graph(x), first)
    _caller, calls, chunks, _ = graph._last.recorded
    program = [step for call in graph._last.parts[0].plan.calls for step in getattr(call, "steps", ())]
    assert len(chunks) >= sum(step.chunks for step in program) > 10, "writes to a new output are split too"
    assert all(any(start <= note[2] and note[3] <= end for _, _, start, end in calls) for note in chunks)
    assert sum(bar.thread >= 0 for bar in graph.threads().record.bars) >= len(chunks)
