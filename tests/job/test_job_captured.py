"""Tensors that a job captures: each step reads the values from when it was submitted, regardless of later writes."""

import functools
import threading

import numpy as np
import pytest
from builders import job_of as any_job_of, raised_error, thread

import minflow as flow
import minflow.typing as tp
from minflow import nn
from minflow.core.base.errors import JobError
from minflow.core.context import current_context
from minflow.job.queue.stream import current_stream
from tests.clocks import LONG
from tests.graphs import Training

pytestmark = pytest.mark.usefixtures("clean_queue")
X = np.ones((2, 3), "float32")
KINDS = {"async": tp.Callback[tp.Numpy], "sync": tp.Numpy, "future": None}


def job_of(function, kind="async"):
    return any_job_of(lambda x: function(x), X, result=KINDS[kind])


def results(steps):
    return [step if isinstance(step, np.ndarray) else np.asarray(step.get(LONG)) for step in steps]


def linear():
    flow.manual_seed(0)
    return nn.Linear(3, 2)


def set_data(m, i):
    m.weight.data = flow.full((2, 3), float(i))


def step(m, i):
    m.weight.grad, m.bias.grad = flow.ones(2, 3), flow.ones(2)
    flow.optim.SGD(m.parameters(), 0.1 * i).step()


@functools.cache
def training(model):
    return Training(model, flow.optim.SGD(model.parameters(), 0.1))


no_grad = flow.no_grad()

WRITES = {
    "fill_": no_grad(lambda m, i: m.weight.fill_(i)),
    "add_": no_grad(lambda m, i: m.weight.add_(i)),
    "copy_": no_grad(lambda m, i: m.weight.copy_(flow.full((2, 3), float(i)))),
    "a view": no_grad(lambda m, i: m.weight[0].mul_(i + 0.5)),
    "a transposed view": no_grad(lambda m, i: m.weight.t()[1].add_(i)),
    "an index": no_grad(lambda m, i: m.weight.__setitem__((0, 0), float(i))),
    "a mask": no_grad(lambda m, i: m.weight.__setitem__(m.weight > 0, float(i))),
    "out=": no_grad(lambda m, i: flow.add(m.weight, float(i), out=m.weight)),
    "init": lambda m, i: nn.init.constant_(m.weight, i),
    "data": lambda m, i: m.weight.data.mul_(i + 0.5),
    "detach": lambda m, i: m.weight.detach().mul_(i + 0.5),
    "data =": set_data,
    "numpy": lambda m, i: m.weight.detach().numpy().fill(i),
    "a view by numpy": lambda m, i: m.weight.detach()[1].numpy().fill(i),
    "asarray": lambda m, i: np.asarray(m.weight.detach()).__iadd__(i),
    "dlpack": lambda m, i: flow.from_dlpack(m.weight.detach()).add_(i),
    "a parameter": lambda m, i: setattr(m, "weight", nn.Parameter(flow.full((2, 3), float(i)))),
    "load_state_dict": lambda m, i: m.load_state_dict({"weight": flow.full((2, 3), float(i)), "bias": flow.ones(2)}),
    "an optimizer": step,
    "a training graph": lambda m, i: training(m)(flow.tensor(X * i)),
    "half and back": lambda m, i: m.half().float().weight.data.add_(i),
    "zero_grad and requires_grad": lambda m, i: (m.zero_grad(), m.requires_grad_(bool(i % 2))),
}


@pytest.mark.parametrize("write", list(WRITES))
@pytest.mark.parametrize("kind", list(KINDS))
def test_step_reads_values_of_its_submission(write, kind):
    training.cache_clear()
    eager, model = linear(), linear()
    wanted, steps, job = [], [], job_of(model, kind)
    for i in range(6):
        wanted.append(eager(flow.tensor(X)).detach().numpy().copy())
        steps.append(job(X))
        WRITES[write](eager, i)
        WRITES[write](model, i)
    for found, expected in zip(results(steps), wanted):
        assert np.array_equal(found, expected)


def test_write_waits_only_for_steps_that_read_the_tensor(worker_hold):
    read, other, done = flow.ones(2, 3), flow.ones(2, 3), threading.Event()
    worker_hold.by(job_of(lambda x: x + read), X)
    other.add_(1)  # returns, though a step is in flight
    with thread(lambda: (read.add_(1), done.set())):
        assert not done.is_set() and read.tolist()[0][0] == 1  # the callback of the step is still running
        worker_hold.go.set()
    assert read.tolist()[0][0] == 2


CALLBACK_WRITES = {
    "in place": lambda t: t.add_(1),
    "an index": lambda t: t.__setitem__(0, 5.0),
    "copy_": lambda t: t.copy_(flow.zeros(2, 3)),
    "an optimizer": lambda t: flow.optim.SGD([grown(t)], 0.1).step(),
}


def grown(t):
    parameter = nn.Parameter(t)
    parameter.grad = flow.ones(2, 3)
    return parameter


def writing(write, errors):
    """Return a callback that writes, and the list of its JobErrors."""

    def callback(result):
        try:
            write()
        except JobError as error:
            errors.append(error)

    return callback


@pytest.mark.parametrize("name", list(CALLBACK_WRITES))
def test_callback_cannot_write_captured_tensors(name):
    t, errors = flow.ones(2, 3), []
    job = job_of(lambda x: x + t)
    for _ in range(3):
        job(X)(writing(lambda: CALLBACK_WRITES[name](t), errors))
    flow.sync_default_session()
    assert len(errors) == 3 and t.tolist() == [[1.0] * 3] * 2
    assert errors[0].what == "a callback writes a tensor that job job captures"
    assert "by chance" in errors[0].values["why"] and "test_job_captured.py" in errors[0].where
    assert "append to a list" in errors[0].hint


def test_callback_may_write_other_tensors_and_read_all():
    t, free, seen = flow.ones(2, 3), flow.zeros(1), []
    job = job_of(lambda x: x + t)

    def look(result):
        free.add_(1)
        array = t.numpy()
        seen.append((float(array[0, 0]), array.flags.writeable))

    for _ in range(3):
        job(X)(look)
    flow.sync_default_session()
    assert free.item() == 3 and seen == [(1.0, False)] * 3
    t.numpy()[...] = 2
    assert np.array_equal(results([job(X)])[0], X + 2)


def test_watch_handler_of_a_sync_call_may_write():
    t = flow.zeros(2, 3)
    job = job_of(lambda x: (y := x + t, flow.watch(y, lambda array: t.add_(1)))[0], "sync")
    assert [float(job(X)[0, 0]) for _ in range(3)] == [1, 2, 3]


def test_deleted_job_refuses_no_writes():
    t, errors = flow.ones(2, 3), []
    job_of(lambda x: x + t)(X).get(LONG)
    flow.clear_default_session()
    job_of(lambda x: x * 2)(X)(writing(lambda: t.add_(1), errors))
    flow.sync_default_session()
    assert not errors and t.tolist()[0][0] == 2


def test_memory_shared_with_numpy_is_copied_for_each_step():
    a = np.zeros((2, 6), "float32")
    plain, strided, steps, wanted = flow.from_numpy(a[:, :3].copy()), flow.from_numpy(a[:, ::2]), [], []
    job = job_of(lambda x: x + plain + strided)
    for i in range(6):
        a += 1
        plain.numpy()[0] += 10
        wanted.append(X + plain.numpy() + a[:, ::2])
        steps.append(job(X))
    assert all(np.array_equal(found, expected) for found, expected in zip(results(steps), wanted))


def test_field_of_a_record_array_is_refused():
    records = np.zeros((2, 3), [("a", "f4"), ("b", "i2")])
    t = flow.from_numpy(records["a"])
    error = raised_error(job_of(lambda x: x + t), JobError, "captures a field of a NumPy record array", X)
    assert "flow.tensor(array)" in error.hint


def test_run_orders_the_writes_of_its_loader():
    t = flow.zeros(2, 3)
    seen = []

    def batches():
        for _ in range(5):
            t.add_(1)
            yield X

    flow.start(job_of(lambda x: x + t), batches(), callback=lambda a: seen.append(float(a[0, 0]))).result(LONG)
    assert seen == [2, 3, 4, 5, 6]


def test_write_inside_a_custom_op_of_a_graph_is_refused(worker_hold):
    t = flow.ones(2, 3)
    worker_hold.by(job_of(lambda x: x + t), X)
    with current_context().plan_lock:
        error = raised_error(lambda: t.add_(1), JobError, "where its steps cannot be waited for")
    assert "sync_default_session" in error.hint and t.tolist()[0][0] == 1
    worker_hold.go.set()
    current_stream().sync(LONG)
    t.add_(1)
    assert t.tolist()[0][0] == 2
