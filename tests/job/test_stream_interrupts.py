"""Ctrl-C at every line of a job's call, a handle's wait, a callback's registration and flow.start: the next call is
right.

Afterwards no lock is held, no mode is left, steps are whole, no run goes on without a handle, and the queue accepts.
"""

from pathlib import Path

import numpy as np
import pytest
from interrupting import Interrupting
from builders import LONG, ONES, counting

import minflow as flow
import minflow.typing as tp
from minflow import job as room
from minflow.compiler.executor import INSIDE, LOCK, held
from minflow.core.mode import DEFAULT, MODE
from minflow.job.session import SESSION
from minflow.job.queue.stream import STREAM

pytestmark = pytest.mark.usefixtures("clean")
FILES = {str(path) for path in Path(room.__file__).parent.glob("*.py")}


def call(jobs, seen):
    jobs["sync"](ONES)


def call_without_waiting(jobs, seen):
    jobs["later"](ONES)
    jobs["later"](ONES)
    jobs["later"](ONES)  # waits for room


def get(jobs, seen):
    jobs["later"](ONES).get()


def register(jobs, seen):
    step = jobs["later"](ONES)
    step(seen.append)


def register_late(jobs, seen):
    step = jobs["later"](ONES)
    assert step.over.wait(LONG)
    step(seen.append)


def synchronise(jobs, seen):
    jobs["later"](ONES)
    flow.sync_default_session()


def read(jobs, seen):
    jobs["later"](ONES)
    SESSION.variables["a"].numpy()


def start(jobs, seen):
    run = flow.start(jobs["later"], [ONES] * 3)
    run.result()


def pause(jobs, seen):
    run = flow.start(jobs["later"], [ONES] * 3)
    run.pause()
    run.resume()
    run.stop()
    assert run.over.wait(LONG)


def define_and_compile(jobs, seen):
    jobs["sync"] = counting("sync", result=tp.Numpy)
    jobs["sync"](ONES)


def fail(jobs, seen):
    """The error of a callback is told at the next call, or by the interrupt."""
    step = jobs["later"](ONES)
    step(lambda loss: seen.append(1 // 0))
    assert step.over.wait(LONG)
    with pytest.raises(flow.MinflowError, match="ZeroDivisionError"):
        flow.sync_default_session()


def defined():
    flow.clear_default_session()
    jobs = {"sync": counting("sync", result=tp.Numpy), "later": counting("later")}
    jobs["sync"](ONES), jobs["later"](ONES).get()
    flow.sync_default_session()
    return jobs


def check(jobs, place):
    """Whole steps, nothing held, and the next calls are right."""
    wait_for_the_end(place)
    assert not held() and not STREAM.submitting._is_owned() and not STREAM.starting._is_owned(), place
    assert LOCK.acquire(timeout=LONG), place
    LOCK.release()
    assert MODE.get() is DEFAULT and INSIDE.get() == "", place
    try:
        flow.sync_default_session(LONG)
    except flow.MinflowError as error:  # the interrupt came before it was told
        assert "ZeroDivisionError" in str(error), place
    a, b = SESSION.variables["a"].numpy(), SESSION.variables["b"].numpy()
    steps = sum(SESSION.steps.values())
    assert np.array_equal(a, -steps * ONES) and np.array_equal(b, a), place
    assert jobs["sync"](ONES)[0] == -2 * steps, place
    seen = []
    jobs["later"](ONES)(seen.append)
    flow.sync_default_session(LONG)
    assert [loss[0] for loss in seen] == [-2 * steps - 2], place
    assert flow.jobs() == [] and not STREAM.errors and not STREAM.queue, place


def wait_for_the_end(place):
    """Of what the interrupt left running: steps in hand, and a run that was told to stop."""
    for run in STREAM.runs:
        assert run.over.wait(LONG), place
    assert STREAM.idle(LONG), place


ACTIONS = [call, call_without_waiting, get, register, register_late, synchronise, read, start, pause, fail]


def interrupted_everywhere(action, least):
    jobs = defined()
    action(jobs, [])
    wait_for_the_end("")
    tracer = Interrupting(FILES)
    assert not tracer.run(lambda: action(jobs, []))
    wait_for_the_end("")
    places, came = tracer.places(), 0
    for i in places:
        tracer = Interrupting(FILES, i)
        seen = []
        runs = len(STREAM.runs)
        came += tracer.run(lambda: action(jobs, seen))  # noqa: B023
        if i < len(tracer.lines):  # how often it waits depends on the worker
            code, line = tracer.lines[i]
            place = f"{Path(code.co_filename).name}:{line} in {code.co_name}"
        else:
            place = "not reached"
        if action is start and tracer.interrupted_in("start"):
            assert len(STREAM.runs) <= runs + 1 and all(run.ending() or run.done() for run in STREAM.runs), place
        check(jobs, place)
        assert len(seen) <= 1, place
    assert len(places) >= least and came >= 0.8 * len(places)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.__name__)
def test_an_interrupt_at_any_line(action):
    interrupted_everywhere(action, 25)


@pytest.mark.slow
def test_an_interrupt_at_any_line_of_a_first_call():
    interrupted_everywhere(define_and_compile, 250)
