"""Runs with a session of their own (`flow.start(..., own_session=True)`), and runs of jobs that wait."""

import threading

import pytest
from builders import LONG, ONES, counting_job, job_of, raised_error, sgd, wait

import minflow as flow
import minflow.typing as tp
from minflow.core.base.errors import JobError
from minflow.job.queue.stream import current_stream
from minflow.job.session import default_session

pytestmark = pytest.mark.usefixtures("empty_session", "clean_queue")


def drawn_job(name="train_job", result=tp.Callback[tp.Numpy]):
    """A job whose variable starts with random elements."""

    def train(x):
        loss = x * flow.get_variable("w", (4,), initializer=flow.random_normal_initializer())
        sgd(loss)
        return loss

    return job_of(train, (4,), kind="train", result=result, name=name)


def test_runs_share_no_variables_and_start_alike():
    flow.manual_seed(3)
    first, second = [flow.start(drawn_job(name), [ONES] * 5, own_session=True) for name in ("a", "b")]
    first.result(LONG), second.result(LONG)
    assert first.values == second.values and len(set(first.values)) == 5
    assert default_session().variables == {} and first.job.steps == second.job.steps == 5
    flow.manual_seed(3)
    third = flow.start(drawn_job(), [ONES] * 5)
    third.result(LONG)
    assert third.values == first.values and list(default_session().variables) == ["w"]


def test_workers_of_several_runs_run_at_the_same_time():
    together = threading.Barrier(2)
    callback = lambda loss: together.wait(LONG)  # one worker could not be in both
    runs = [flow.start(counting_job(name), [ONES] * 3, callback=callback, own_session=True) for name in ("a", "b")]
    for run in runs:
        run.result(LONG)
        assert run.steps == 3 and len(flow.timeline(run)) == 3


def test_clearing_the_session_stops_such_runs_and_their_workers():
    begun = threading.Event()
    run = flow.start(counting_job(), (ONES for _ in range(10**9)), callback=lambda x: begun.set(), own_session=True)
    wait(begun)
    assert run in flow.jobs()
    worker = run.stream.thread
    flow.clear_default_session()
    assert run.finished.wait(LONG) and run.state == "stopped"
    worker.join(LONG)
    assert not worker.is_alive() and run not in flow.jobs()


def test_tensors_of_several_sessions_are_refused():
    t, layer = flow.zeros(4), flow.nn.Linear(4, 4)
    for function, text in ((lambda x: x + t, "captured tensors +1"), (lambda x: layer(x), "modules +Linear")):
        job = job_of(function, (1, 4) if text[0] == "m" else (4,))
        error = raised_error(lambda job=job: flow.start(job, [ONES], own_session=True), JobError, text)
        assert "leave out own_session" in error.hint


@pytest.mark.parametrize("result, ahead", [(tp.Numpy, 0), (tp.Callback[tp.Numpy], 1)])
def test_run_waits_if_its_job_waits(worker_hold, result, ahead):
    """A sync job has the result of a step before its loader prepares the next batch; an async one runs ahead."""
    loaded = threading.Event()

    def batches():
        yield ONES
        loaded.set()
        yield ONES

    hold = lambda: worker_hold.go.wait(LONG)
    other = current_stream().submit("other", hold)  # keeps the worker busy
    run = flow.start(counting_job(result=result), batches())
    assert loaded.wait(LONG if ahead else 0.3) is bool(ahead)
    assert not other.done()
    worker_hold.go.set()
    run.result(LONG)
    assert run.steps == 2 and flow.timeline(run).mode == ("async" if ahead else "sync")


def test_run_that_is_done_stays_done_if_the_session_is_cleared():
    run = flow.start(counting_job(), [ONES])
    run.result(LONG)
    run.stop()
    flow.clear_default_session()
    assert run.state == "done"
