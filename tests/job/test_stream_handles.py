"""Handles of steps: get, done, cancel, and the one callback that each accepts, early or late."""

import functools
import threading

import numpy as np
import pytest
from builders import LONG, ONES, counting_job, predict_job, raised_error, switch_interval, thread, wait

import minflow as flow
import minflow.typing as tp
from minflow.core.base.errors import JobError
from minflow.job.queue.stream import Stream, current_stream

pytestmark = pytest.mark.usefixtures("clean_queue")


# ---- handles ---------------------------------------------------------------------------------------------------------


def test_get_waits_until_its_timeout(worker_hold):
    job = counting_job()
    worker_hold.by(job)
    step = job(ONES)
    assert not step.done()
    with pytest.raises(TimeoutError, match=r"step 2 of train_job did not end in 0\.02 s; it is queued"):
        step.get(0.02)
    with pytest.raises(TimeoutError, match="in 0 s"):
        step.get(timeout=0)
    worker_hold.go.set()
    assert np.array_equal(step.get(LONG), -2 * ONES) and step.done() and step.state == "done"
    assert step.get(0) is step.get()


def test_cancel_removes_a_step_from_the_queue(worker_hold):
    job, called = counting_job(), []
    first = worker_hold.by(job)
    second = job(ONES)
    second(called.append)
    assert not first.cancel() and second.cancel() and second.cancel() and second.done()
    assert (first.state, second.state) == ("done", "cancelled")
    raised_error(second.get, JobError, r"step 2 of train_job was cancelled(.|\n)*taken out of the queue")
    worker_hold.go.set()
    flow.sync_default_session()  # cancelling is not an error
    assert called == [] and job.steps == 1 and not second.start_once.take()
    assert np.array_equal(job(ONES).get(), -2 * ONES)
    assert not first.cancel()


def test_steps_record_their_times(worker_hold):
    job = counting_job()
    first = worker_hold.by(job)
    second = job(ONES)
    assert [repr(step) for step in flow.jobs()] == ["<step 1 of train_job: done>", "<step 2 of train_job: queued>"]
    assert first.record.called is not None and first.record.finished is None and second.record.started is None
    worker_hold.go.set()
    flow.sync_default_session()
    a, b = first.record, second.record
    assert a.submitted <= a.started <= a.ended <= a.called <= a.finished <= b.started <= b.ended
    assert b.called is None and list(current_stream().records)[-2:] == [a, b]


# ---- registration ----------------------------------------------------------------------------------------------------


def test_late_callback_runs_on_the_worker_in_order(worker_hold):
    job, seen = counting_job(), []
    early = job(ONES)
    early.get()
    flow.sync_default_session()
    worker_hold.by(job)
    job(ONES)(lambda result: seen.append("third"))
    early(lambda result: seen.append((float(result[0]), threading.current_thread())))
    assert seen == [] and flow.jobs()[-1] is early
    worker_hold.go.set()
    flow.sync_default_session()
    assert seen == ["third", (0.0, current_stream().thread)]


def test_callback_runs_once_at_any_registration_time():
    """The worker looks for a callback while the caller registers it: it must run exactly once."""
    job, seen = predict_job(result=tp.Callback[tp.Numpy]), []
    with switch_interval(1e-6):
        for i in range(2000):
            step = job(ONES)
            for _ in range(i % 40):  # the caller comes at many different times
                pass
            step(lambda result, i=i: seen.append(i))
        flow.sync_default_session()
    assert sorted(seen) == list(range(2000))


def test_callback_found_by_worker_and_caller_runs_once():
    stream, entered, go, seen = Stream(), threading.Event(), threading.Event(), []
    step = stream.submit("job", lambda: (entered.set(), wait(go)))
    wait(entered)
    step.callback_checked = True  # as if the worker had just announced that it looks for a callback
    step(seen.append)
    go.set()
    stream.sync()
    assert seen == [(None, None)]


def test_callback_registered_by_a_callback_is_waited_for(worker_hold):
    job, seen, asked = counting_job(), [], threading.Event()
    first = job(ONES)
    first.get()
    job(ONES)(lambda result: (wait(asked), first(worker_hold)))
    with thread(lambda: (flow.sync_default_session(), seen.append("synchronized"))) as caller:
        asked.set()
        wait(worker_hold.entered)
        caller.join(0.05)  # in vain: the late callback has not ended
        assert seen == [] and caller.is_alive()
        worker_hold.go.set()
    assert seen == ["synchronized"]


def test_second_callback_is_refused(worker_hold):
    job, called = counting_job(), []
    step = job(ONES)
    step(worker_hold)
    for _ in range(2):
        raised_error(step, JobError, r"step 1 of train_job has a callback already(.|\n)*WorkerHold", called.append)
    worker_hold.go.set()
    flow.sync_default_session()
    raised_error(step, JobError, "step 1 of train_job has a callback already", called.append)
    assert called == []


def nothing():
    pass


def two(loss, accuracy):
    pass


def keyword(loss, *, log):
    pass


@pytest.mark.parametrize(
    "callback, text",
    [
        (None, r"not callable(.|\n)*None"),
        (np.ones(2), r"not callable(.|\n)*array\(\[1"),
        (nothing, r"nothing of train_job(.|\n)*\(\)"),
        (two, r"two of train_job(.|\n)*\(loss, accuracy\)"),
        (keyword, r"keyword of train_job(.|\n)*\(loss, \*, log\)"),
        ("abc".upper, r"upper of train_job(.|\n)*\(\)"),
    ],
)
def test_invalid_callback_is_refused_immediately(callback, text):
    job, called = counting_job(), []
    step = job(ONES)
    raised_error(step, JobError, text, callback)
    step(called.append)  # the step is unchanged
    flow.sync_default_session()
    assert len(called) == 1


def test_all_kinds_of_callables_are_accepted():
    job, seen = counting_job(), []

    class Shown:
        def __call__(self, loss, more=None):
            seen.append(loss)

        def method(self, *losses):
            seen.append(losses[0])

    appended = functools.partial(lambda to, loss: to.append(loss), seen)
    for callback in (seen.append, Shown(), Shown().method, appended, lambda *losses: seen.extend(losses)):
        job(ONES).async_get(callback)
    flow.sync_default_session()
    assert [float(loss[0]) for loss in seen] == [0.0, -2.0, -4.0, -6.0, -8.0]
