"""Places that must not wait for the end of a step: each refuses immediately, with the reason, and nothing deadlocks."""

import re
import threading
import weakref

import numpy as np
import pytest
from builders import LONG, ONES, counting_job, job_of, predict_job, raised_error, wait

import minflow as flow
import minflow.typing as tp
from minflow import nn
from minflow.core.base import events
from minflow.core.base.errors import GraphError, JobError
from minflow.introspection.job.explore import job_explorer_model
from minflow.job.queue.events import JobStepped
from minflow.job.queue.stream import current_stream
from minflow.job.session import default_session
from minflow.library import custom_op
from minflow.utils.data import DataLoader, Dataset
from tests.graphs import Predict, Scaled, Training

pytestmark = pytest.mark.usefixtures("clean_queue")


# ---- places: functions of an action that run it once, where a step could not end -------------------------------------


class Once:
    """Run the action only at the first call."""

    def __init__(self, action):
        self.actions = [action]

    def __call__(self, *any):
        if self.actions:
            self.actions.pop()()


def place(function):
    return job_of(function, ONES, result=tp.Callback[tp.Numpy], name="place")


def in_build(action):
    Predict(lambda x: (action(), x + 1)[1])(flow.ones(2))


def in_a_hook_of_a_module_that_is_built(action):
    model = nn.Linear(2, 2)
    model.register_forward_hook(Once(action))
    Predict(model)(flow.ones(1, 2))


def in_a_pass(action):
    graph, once = Predict(lambda x: x + 1), Once(action)
    graph.passes.append(lambda ir: (once(), ir)[1])
    graph(flow.ones(2))


def acting(action):
    """Return a custom op whose kernel runs the action."""
    once = Once(action)

    @custom_op("test_acting(x)", vjp=lambda g: g)
    def op(xp, x):
        once()
        return x + 0

    return op


def in_a_kernel_of_a_graph(action):
    op = acting(action)
    Predict(lambda x: op(x) * 2)(flow.ones(2))


def in_a_kernel_of_a_job(action):
    op = acting(action)
    place(lambda x: op(x))(ONES)


def in_a_schedule_of_a_graph(action):
    model = Scaled(nn.Identity(), 2)
    optimizer, once = flow.optim.SGD(model.parameters(), lr=0.1), Once(action)
    schedule = flow.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    step = schedule.step
    schedule.step = lambda *any: (once(), step())
    Training(model, optimizer, schedule)(flow.ones(2))


def in_a_listener_to_a_step_of_a_graph(action):
    model = Scaled(nn.Identity(), 2)
    with events.subscribe(events.StepDone, Once(action)):
        Training(model, flow.optim.SGD(model.parameters(), lr=0.1))(flow.ones(2))


def in_a_job_function(action):
    place(lambda x: (action(), x + 1)[1]).compile()


class Freed:
    def __init__(self, action):
        self.action = action

    def __del__(self):
        self.action()


def in_a_del_during_build(action):
    Predict(lambda x: (Freed(action) and None, x + 1)[1])(flow.ones(2))


def in_a_weakref_callback_in_a_kernel(action):
    def frees():
        thing = Freed(lambda: None)
        weakref.finalize(thing, action)

    in_a_kernel_of_a_graph(frees)


def in_a_del_while_another_call_submits(action):
    ready, once = current_stream().start_worker, Once(action)
    current_stream().start_worker = lambda: (once(), ready())  # inside `submit`, like the garbage collector
    try:
        counting_job("place").submit((ONES,), {})
    finally:
        del current_stream().start_worker


def in_a_callback(action):
    counting_job("place").submit((ONES,), {}, Once(action))


def in_a_late_callback(action):
    step = predict_job("place", result=tp.Callback[tp.Numpy])(ONES)
    wait_for(step.finished)
    step(lambda result: action())


def in_a_handler_of_watch(action):
    once = Once(action)
    place(lambda x: (flow.watch(x, lambda value: once()), x + 1)[1])(ONES)


def in_a_listener_to_the_stream(action):
    job, once = predict_job("place", result=tp.Callback[tp.Numpy]), Once(action)
    with events.subscribe(JobStepped, lambda record: once() if record.job is job else None):
        wait_for(job(ONES).finished)


class Acting(Dataset):
    def __init__(self, action):
        self.once = Once(action)

    def __len__(self):
        return 2

    def __getitem__(self, i):
        self.once()
        return np.float32(i)


def walk(action):
    for _ in DataLoader(Acting(action), num_workers=1):
        pass


def in_a_worker_of_a_loader_in_a_callback(action):
    in_a_callback(lambda: walk(action))


def in_a_worker_of_a_loader_in_build(action):
    in_build(lambda: walk(action))


def wait_for(gate):
    assert gate.wait(LONG)


PLACES = {  # place -> its name in the error
    in_build: "inside the build of Predict_",
    in_a_hook_of_a_module_that_is_built: "inside the build of Predict_",
    in_a_pass: "inside an operation of a graph or job that runs or is built",
    in_a_kernel_of_a_graph: "inside an operation of a graph or job that runs or is built",
    in_a_kernel_of_a_job: "inside an operation of a graph or job that runs or is built",
    in_a_schedule_of_a_graph: "inside an operation of a graph or job that runs or is built",
    in_a_listener_to_a_step_of_a_graph: "inside an operation of a graph or job that runs or is built",
    in_a_job_function: "inside the job function place",
    in_a_del_during_build: "inside the build of Predict_",
    in_a_weakref_callback_in_a_kernel: "inside an operation of a graph or job that runs or is built",
    in_a_del_while_another_call_submits: "inside another call of a job",
    in_a_callback: "inside a callback",
    in_a_late_callback: "inside a callback",
    in_a_handler_of_watch: "inside a callback",
    in_a_listener_to_the_stream: "inside a callback",
    in_a_worker_of_a_loader_in_a_callback: "inside a callback",
    in_a_worker_of_a_loader_in_build: "inside the build of Predict_",
}
BETWEEN_STEPS = {in_a_callback, in_a_late_callback, in_a_handler_of_watch, in_a_listener_to_the_stream}
NEED_THE_WORKER = BETWEEN_STEPS | {
    in_a_del_while_another_call_submits,
    in_a_kernel_of_a_job,
    in_a_worker_of_a_loader_in_a_callback,
}

# name -> how the error names the wait, and the places that allow it
WAITS = {
    "call": ("calling eval_job", set()),
    "call without waiting": ("calling other", set()),
    "start": ("starting a run", set()),
    "save": ("CheckPoint.save", set()),
    "save a dict": ("flow.checkpoint.save", set()),
    "get": ("waiting for a step of other", set()),
    "result": ("waiting for a run", set()),
    "read": ("waiting for the queue", BETWEEN_STEPS),  # copies of elements, between two steps
    "read all": ("waiting for the queue", BETWEEN_STEPS),
    "write": ("waiting for the queue", set()),
    "load": ("flow.load_variables", set()),
    "explore": ("waiting for the queue", set()),
    "sync": ("waiting for the queue", set()),
    "clear": ("waiting for the queue", set()),
}


@pytest.fixture
def waits(tmp_path, worker_hold):
    """Return name -> action, on a queue with one step whose callback is running and one that needs what the places
    hold.
    """
    job, look = counting_job("other"), predict_job()
    look(ONES)
    run = flow.start(counting_job("running"), [ONES])
    run.result(LONG)
    variable = default_session().variables["a"]
    worker_hold.by(job)
    queued = job(ONES)
    return {
        "call": lambda: look(ONES),
        "call without waiting": lambda: job(ONES),
        "start": lambda: flow.start(look, [ONES]),
        "save": lambda: flow.train.CheckPoint().save(str(tmp_path / "saved")),
        "save a dict": lambda: flow.checkpoint.save(str(tmp_path / "saved"), {"x": ONES}),
        "get": queued.get,
        "result": run.result,
        "read": variable.numpy,
        "read all": flow.get_all_variables,
        "write": lambda: variable.set(np.zeros(4, "f")),
        "load": lambda: flow.load_variables({"a": np.zeros(4, "f")}),
        "explore": lambda: job_explorer_model(look),
        "sync": flow.sync_default_session,
        "clear": flow.clear_default_session,
    }


# build reads the variables that the action closes over
@pytest.mark.filterwarnings("ignore::minflow.MinflowWarning")
@pytest.mark.parametrize("where", PLACES, ids=lambda place: place.__name__)
def test_no_place_waits_for_a_step_that_cannot_end(where, waits, worker_hold):
    outcomes = {}

    def actions():
        for name, action in waits.items():
            try:
                action()
                outcomes[name] = "ended"
            except JobError as error:
                outcomes[name] = error.what

    if where in NEED_THE_WORKER:
        worker_hold.go.set()
    thread = threading.Thread(target=where, args=(actions,), daemon=True)
    thread.start()
    thread.join(LONG)
    assert not thread.is_alive(), current_stream().thread_locations()
    worker_hold.go.set()
    assert current_stream().wait_until_idle(LONG), current_stream().thread_locations()
    assert outcomes.keys() == WAITS.keys()
    for name, (text, allowed) in WAITS.items():
        if where in allowed:
            assert outcomes[name] == "ended", name
        else:
            assert outcomes[name].startswith(f"{text} {PLACES[where]}"), name
    flow.sync_default_session(LONG)  # the error is raised where it occurred, and nothing remains
    assert predict_job()(ONES)[0] == default_session().variables["a"].numpy()[0] + 1


def test_plan_does_not_run_inside_itself():
    """Its arena is in use: a kernel or __del__ that calls its own graph would overwrite the values of the running
    step.
    """
    seen = []

    def again():
        with pytest.raises(GraphError, match=r"called while it runs(.|\n)*it runs +test_acting") as caught:
            graph(flow.ones(2))
        seen.append(caught.value)

    op = acting(again)
    graph = Predict(lambda x: op(x * 3) + 1)
    assert graph(flow.ones(2)).tolist() == [4, 4] and len(seen) == 1
    other = Predict(lambda x: x * 5)
    op2 = acting(lambda: seen.append(other(flow.ones(2)).tolist()))
    assert Predict(lambda x: op2(x * 3) + 1)(flow.ones(2)).tolist() == [4, 4] and seen[1] == [5, 5]
    assert graph(flow.zeros(2)).tolist() == [1, 1]


def test_loader_cannot_wait_for_its_own_run(worker_hold):
    """Neither in the loop's thread nor in a worker of its loader; the loader may do anything else."""
    job, look, outcomes = counting_job(), predict_job(), []

    def asks(i):
        wait(started)
        try:
            run.result()
        except JobError as error:
            outcomes.append(error.what)
        look(ONES)  # waits for the queue, but not for the run
        flow.sync_default_session(LONG)
        return ONES

    class Asks(Dataset):
        __len__ = lambda self: 1
        __getitem__ = lambda self, i: asks(i)

    for loader in ((asks(i) for i in range(1)), DataLoader(Asks(), None, num_workers=1)):
        started = threading.Event()
        run = flow.start(job, loader)
        started.set()
        run.result(LONG)
    assert outcomes == ["waiting for the run of train_job inside its own loader: it would wait for itself"] * 2


@pytest.mark.parametrize("timeout", [float("nan"), "1", [2]])
def test_timeout_must_be_a_number_of_seconds(timeout):
    step = counting_job()(ONES)
    run = flow.start(predict_job(), [ONES])
    for waits in (step.get, flow.sync_default_session, run.result):
        raised_error(waits, JobError, rf"number of seconds(.|\n)*{re.escape(repr(timeout))}", timeout)
    assert run.result(LONG) is not None and step.get(float("inf")) is not None
