"""Ctrl-C at every line of a job's call, a handle's wait, a callback's registration and flow.start.

Afterwards no lock is held, no mode is left, steps are complete, no run continues without a handle, the queue accepts
steps, and the next call is correct.
"""

import threading
from pathlib import Path

import numpy as np
import pytest
from builders import LONG, ONES, counting_job

import minflow as flow
import minflow.typing as tp
from minflow import job as room
from minflow.compiler.executor import INSIDE, holds_lock
from minflow.core.context import current_context
from minflow.core.mode import DEFAULT, MODE
from minflow.job.queue.stream import current_stream
from minflow.job.session import default_session
from tests.interrupts import Interrupter

pytestmark = pytest.mark.usefixtures("clean_queue")
FILES = {str(path) for folder in (".", "queue", "graphs") for path in Path(room.__file__).parent.glob(f"{folder}/*.py")}


class CountingGraph(flow.nn.Graph):
    """A graph whose weight is the number of its steps."""

    def __init__(self):
        super().__init__()
        self.model = flow.nn.Linear(4, 1, bias=False)
        flow.nn.init.zeros_(self.model.weight)
        self.add_optimizer(flow.optim.SGD(self.model.parameters(), 1.0, maximize=True))

    def build(self, x):
        loss = self.model(x).sum()
        loss.backward()
        return loss


def ended(handle):
    assert handle.finished.wait(LONG)
    return handle


def run(jobs):
    return flow.start(jobs["later"], [ONES] * 3)


def paused(jobs, seen):
    """The run waits for its second batch, so that it is still there to be paused, resumed and stopped."""
    go = threading.Event()

    def batches():
        yield ONES
        assert go.wait(LONG)
        yield ONES

    try:
        it = flow.start(jobs["later"], batches())
        it.pause(), it.resume(), it.stop()
    finally:
        go.set()
    ended(it)


def failed(jobs, seen):
    """The error of a callback is raised at the next call, or by the interrupt."""
    step = jobs["later"](ONES)
    step(lambda loss: seen.append(1 // 0))
    ended(step)
    with pytest.raises(flow.MinflowError, match="ZeroDivisionError"):
        flow.sync_default_session()


def defined_and_compiled(jobs, seen):
    jobs["sync"] = counting_job("sync", result=tp.Numpy)
    jobs["sync"](ONES)


ACTIONS = {
    "call": lambda jobs, seen: jobs["sync"](ONES),
    "call without waiting": lambda jobs, seen: [jobs["later"](ONES) for _ in range(3)],  # the third waits for room
    "get": lambda jobs, seen: jobs["later"](ONES).get(),
    "register": lambda jobs, seen: jobs["later"](ONES)(seen.append),
    "register late": lambda jobs, seen: ended(jobs["later"](ONES))(seen.append),
    "synchronize": lambda jobs, seen: (jobs["later"](ONES), flow.sync_default_session()),
    "read": lambda jobs, seen: (jobs["later"](ONES), default_session().variables["a"].numpy()),
    "start": lambda jobs, seen: run(jobs).result(),
    "submit": lambda jobs, seen: [jobs["graph"].submit(flow.ones(4)) for _ in range(3)],
    "submit and register": lambda jobs, seen: jobs["graph"].submit(flow.ones(4))(seen.append),
    "wait for a submitted graph": lambda jobs, seen: (jobs["graph"].submit(flow.ones(4)), jobs["graph"](flow.ones(4))),
    "start a graph": lambda jobs, seen: flow.start(jobs["graph"], [flow.ones(4)] * 3).result(),
    "pause": paused,
    "fail": failed,
}


def defined():
    flow.clear_default_session()
    jobs = {"sync": counting_job("sync", result=tp.Numpy), "later": counting_job("later"), "graph": CountingGraph()}
    jobs["sync"](ONES), jobs["later"](ONES).get(), jobs["graph"].submit(flow.ones(4)).get()
    flow.sync_default_session()
    return jobs


def check(jobs, place):
    """Check that steps are complete, no lock is held, and the next calls are correct."""
    wait_for_the_end(place)
    assert (
        not holds_lock() and not current_stream().submitting._is_owned() and not current_stream().starting._is_owned()
    ), place
    assert current_context().plan_lock.acquire(timeout=LONG), place
    current_context().plan_lock.release()
    assert MODE.get() is DEFAULT and INSIDE.get() == "", place
    try:
        flow.sync_default_session(LONG)
    except flow.MinflowError as error:  # the interrupt came before it was raised
        assert "ZeroDivisionError" in str(error), place
    a, b = default_session().variables["a"].numpy(), default_session().variables["b"].numpy()
    steps = sum(default_session().steps.values())
    assert np.array_equal(a, -steps * ONES) and np.array_equal(b, a), place
    assert jobs["sync"](ONES)[0] == -2 * steps, place
    seen = []
    jobs["later"](ONES)(seen.append)
    flow.sync_default_session(LONG)
    assert [loss[0] for loss in seen] == [-2 * steps - 2], place
    graph = jobs["graph"]
    steps = graph._steps
    assert graph.model.weight.tolist() == [[steps] * 4] and graph(flow.ones(4)).item() == 4 * steps, place
    assert flow.jobs() == [] and not current_stream().errors and not current_stream().queue, place


def wait_for_the_end(place):
    """Wait for what the interrupt left running: steps in progress, and a run that was told to stop or to pause."""
    for run in current_stream().runs:
        run.resume()
        assert run.finished.wait(LONG), place
    assert current_stream().wait_until_idle(LONG), place


def interrupted_everywhere(action, least):
    jobs = defined()
    action(jobs, [])
    wait_for_the_end("")
    tracer = Interrupter(FILES)
    assert not tracer.run(lambda: action(jobs, []))
    wait_for_the_end("")
    places, came = tracer.places(), 0
    for i in places:
        tracer = Interrupter(FILES, i)
        seen = []
        runs = len(current_stream().runs)
        came += tracer.run(lambda: action(jobs, seen))  # noqa: B023
        if i < len(tracer.lines):  # the number of waits depends on the worker
            code, line = tracer.lines[i]
            place = f"{Path(code.co_filename).name}:{line} in {code.co_name}"
        else:
            place = "not reached"
        if action is ACTIONS["start"] and tracer.interrupted_in("start"):
            assert len(current_stream().runs) <= runs + 1 and all(
                run.is_ending() or run.done() for run in current_stream().runs
            ), place
        check(jobs, place)
        assert len(seen) <= 1, place
    assert len(places) >= least and came >= 0.8 * len(places)


@pytest.mark.parametrize("name", ACTIONS)
def test_interrupt_at_any_line(name):
    interrupted_everywhere(ACTIONS[name], 25)


@pytest.mark.slow
def test_interrupt_at_any_line_of_a_first_call():
    interrupted_everywhere(defined_and_compiled, 250)
