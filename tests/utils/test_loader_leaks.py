"""A loop over a DataLoader leaves no thread, process or descriptor behind, however it ends. They are counted."""

import functools
import gc
import multiprocessing
import operator
import os
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import WorkerError
from minflow.utils import data
from minflow.utils.data import DataLoader, Dataset, IterableDataset, workers
from tests.interrupts import Interrupter

LONG = 60  # seconds before a test gives up
FILES = {str(path) for path in Path(data.__file__).parent.glob("*.py")}
THREADS, PROCESSES = dict(num_workers=2), dict(num_workers=2, workers="process")
CREWS = [dict(num_workers=0), THREADS, PROCESSES]
IDS = ["no workers", "threads", "processes"]


def descriptors():
    return len(os.listdir("/proc/self/fd")) if sys.platform.startswith("linux") else 0


def left_behind(before=None):
    """Return the threads and processes that do not end, and the number of open descriptors.

    before: an earlier number. If more are open, wait for another thread to close those that it has just opened.
    """
    gc.collect()
    threads = [t for t in threading.enumerate() if t.name.startswith("minflow-loader")]
    for thread in threads:
        thread.join(LONG)
    for process in multiprocessing.active_children():
        process.join(LONG)
        del process  # it holds descriptors
    gc.collect()
    end = time.monotonic() + LONG
    while before is not None and descriptors() > before and time.monotonic() < end:
        time.sleep(0.01)
        gc.collect()
    return [t for t in threads if t.is_alive()], multiprocessing.active_children(), descriptors()


def check_nothing_is_left(before, where=""):
    """Return the number of open descriptors: fewer than before if an object of an earlier test was freed meanwhile."""
    threads, processes, after = left_behind(before)
    assert (threads, processes) == ([], []) and after <= before, where
    return after


class Numbers(Dataset):
    """Batches large enough for shared memory."""

    def __len__(self):
        return 12

    def __getitem__(self, i):
        return np.full(3000, i, "f")


class Walked(IterableDataset):
    def __iter__(self):
        return (Numbers()[i] for i in range(12))


def numbers(loader):
    return [batch[:, 0].tolist() for batch in loader]


WANTED = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


def whole(crew):
    assert numbers(DataLoader(Numbers(), 4, **crew)) == WANTED


def left_early(crew):
    for _ in DataLoader(Numbers(), 4, **crew):
        break


def closed(crew):
    walk = iter(DataLoader(Numbers(), 4, **crew))
    next(walk)
    walk.close()


def not_started(crew):
    iter(DataLoader(Numbers(), 4, **crew))


def forgotten(crew):
    next(iter(DataLoader(Walked(), 4, **crew)))


def failing(**overrides):
    def walk(crew):
        with pytest.raises(ZeroDivisionError):
            numbers(DataLoader(**({"dataset": Numbers(), "batch_size": 4} | overrides), **crew))

    return walk


def divides(*any):
    return 1 // 0


class Broken(Numbers):
    def __getitem__(self, i):
        return super().__getitem__(i) if i < 9 else 1 // 0


class BrokenWalk(Walked):
    def __iter__(self):
        yield from super().__iter__()
        raise ZeroDivisionError


class BrokenOrder:
    def __init__(self, upto):
        self.upto = upto

    def __iter__(self):
        yield from range(self.upto)
        raise ZeroDivisionError


ENDS = {
    "whole": whole, "left early": left_early, "closed": closed, "not started": not_started, "forgotten": forgotten,
    "in a sample": failing(dataset=Broken()), "in an iterable": failing(dataset=BrokenWalk()),
    "in collate": failing(collate_fn=divides), "in the sampler": failing(sampler=BrokenOrder(6)),
    "in the sampler at once": failing(sampler=BrokenOrder(0)),
}  # fmt: skip


@pytest.mark.parametrize("crew", CREWS, ids=IDS)
@pytest.mark.parametrize("end", ENDS)
def test_no_resource_is_left(end, crew):
    ENDS[end](crew)  # descriptors that Python itself opens on first use stay open
    before = left_behind()[2]
    for _ in range(3):
        ENDS[end](crew)
        before = check_nothing_is_left(before)


@pytest.mark.parametrize("crew", [THREADS, PROCESSES], ids=IDS[1:])
@pytest.mark.parametrize("failing", [0, 1, 2])
def test_workers_that_cannot_be_started(crew, failing, monkeypatch):
    """The workers that were started end."""
    kind, error = (
        (threading.Thread, RuntimeError)
        if crew is THREADS
        else (multiprocessing.get_context(workers.START_METHOD).Process, OSError)
    )
    start, count = kind.start, 0

    def starts(self):
        nonlocal count
        if self.name.startswith("minflow-loader"):
            count += 1
            if count > failing:
                raise error("no more")
        start(self)

    whole(crew)
    before = left_behind()[2]
    monkeypatch.setattr(kind, "start", starts)
    with pytest.raises(WorkerError, match=rf"only {failing} of 3 worker (threads|processes)(.|\n)*no more"):
        next(iter(DataLoader(Numbers(), 4, **crew | {"num_workers": 3})))
    monkeypatch.undo()
    check_nothing_is_left(before)


def test_leaving_a_loop_does_not_wait_for_a_slow_sample(monkeypatch):
    go, entered = threading.Event(), threading.Event()

    class Slow(Numbers):
        def __getitem__(self, i):
            if i >= 2:
                entered.set()
                assert go.wait(LONG)
            return i

    monkeypatch.setattr(workers, "JOIN_TIMEOUT", 0.01)
    for _ in DataLoader(Slow(), 2, num_workers=1):
        assert entered.wait(LONG)
        break
    assert not go.is_set()
    go.set()
    assert left_behind()[0] == []


def interrupts(crew, walk, monkeypatch):
    """Interrupt `walk` at each line of utils/data, first and last time; nothing is left, and the next loop is
    correct.
    """
    walk(crew)
    tracer = Interrupter(FILES)
    assert not tracer.run(lambda: walk(crew))
    before, places, came = left_behind()[2], tracer.places(), 0
    monkeypatch.setattr(sys, "unraisablehook", lambda error: None)  # pytest's would keep the error's objects alive
    for i in places:
        tracer = Interrupter(FILES, i)
        came += tracer.run(lambda: walk(crew))
        code, line = tracer.lines[i]
        before = check_nothing_is_left(before, f"{Path(code.co_filename).name}:{line} in {code.co_name}")
    whole(crew)
    return len(places), came


@pytest.mark.parametrize("walk", [whole, left_early])
def test_interrupt_at_any_line_with_threads(walk, monkeypatch):
    """When the loop is left, Python may call a generator's `close`, which can only print its error."""
    places, came = interrupts(THREADS, walk, monkeypatch)
    assert places > 100 and came > places * 0.8


@pytest.mark.slow
@pytest.mark.skipif(workers.START_METHOD != "fork", reason="processes are started by fork")
@pytest.mark.parametrize("walk", [whole, left_early])
def test_interrupt_at_any_line_with_processes(walk, monkeypatch):
    places, came = interrupts(PROCESSES, walk, monkeypatch)
    assert places > 150 and came > places * 0.8


def test_interrupt_while_waiting_for_a_sample():
    """The loop ends immediately; the thread that holds the sample ends later."""
    go, waiting = threading.Event(), threading.Event()

    class Slow(Numbers):
        def __getitem__(self, i):
            waiting.set()
            assert go.wait(LONG)
            return i

    class Answers(workers.ThreadWorkers):
        def result(self, k, number):
            assert waiting.wait(LONG)
            threading.Timer(0, os.kill, (os.getpid(), __import__("signal").SIGINT)).start()
            return super().result(k, number)

    kinds = dict(workers.WORKER_POOLS)
    workers.WORKER_POOLS["thread"] = Answers
    try:
        with pytest.raises(KeyboardInterrupt):
            for _ in DataLoader(Slow(), 2, num_workers=1):
                pass
    finally:
        workers.WORKER_POOLS.update(kinds)
        go_was_set = go.is_set()
        go.set()
    assert not go_was_set and left_behind()[0] == []


def test_random_numbers_after_an_interrupt():
    """An interrupted loop has used up its epoch: the next one differs, and is correct."""
    loader = DataLoader(Numbers(), 4, shuffle=True, generator=flow.Generator().manual_seed(1), **THREADS)
    tracer = Interrupter(FILES, 60)
    tracer.run(lambda: numbers(loader))
    assert sorted(functools.reduce(operator.iadd, numbers(loader), [])) == list(range(12))
