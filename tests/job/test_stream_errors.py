"""Errors of a stream: failures of steps and callbacks are raised once; waits for oneself are refused."""

import threading

import numpy as np
import pytest
from builders import (
    BAD,
    GOOD,
    LONG,
    ONES,
    counting_job,
    cross_entropy,
    failing_job,
    fails,
    job_of,
    predict_job,
    raised_error,
    thread,
    wait,
)

import minflow as flow
from minflow.core.base.errors import JobError
from minflow.job.queue.stream import Stream, current_stream
from minflow.job.session import default_session

pytestmark = pytest.mark.usefixtures("clean_queue")


# ---- errors ----------------------------------------------------------------------------------------------------------


TOUCHES = {
    "call": lambda folder: predict_job()(ONES),
    "sync": lambda folder: flow.sync_default_session(),
    "variables": lambda folder: flow.get_all_variables(),
    "save": lambda folder: flow.train.CheckPoint().save(str(folder / "saved")),
    "numpy": lambda folder: default_session().variables["w"].numpy(),
    "clear": lambda folder: flow.clear_default_session(),
}


@pytest.mark.parametrize("touch", TOUCHES)
def test_step_error_is_raised_once_at_the_next_access(worker_hold, tmp_path, touch):
    job = failing_job()
    job(GOOD).get()
    first = default_session().variables["w"].numpy()
    job(GOOD)(worker_hold)
    wait(worker_hold.entered)
    bad = job(BAD)  # step 3, and the queue is full
    worker_hold.go.set()
    assert current_stream().wait_until_idle(LONG)
    error = raised_error(TOUCHES[touch], JobError, r"step 3 of train_job", tmp_path)
    assert error.step == 3 and error.__cause__.__traceback__ is not None
    assert bad.state == "failed" and job.steps == 2
    assert not (tmp_path / "saved").exists()
    flow.sync_default_session()  # it is not raised a second time
    assert not np.array_equal(default_session().variables["w"].numpy(), first)
    job(GOOD).get()
    assert job.steps == 3
    if touch == "save":
        TOUCHES[touch](tmp_path)
        assert (tmp_path / "saved").is_dir()


def test_steps_behind_a_failed_step_do_not_run(worker_hold):
    config = flow.function_config()
    config.concurrency_width(6)
    train_job, called = failing_job(config), []
    first = train_job(GOOD)
    first(worker_hold)
    wait(worker_hold.entered)
    after = default_session().variables["w"].tensor.array.copy()
    bad = train_job(BAD)
    behind = [train_job(GOOD) for _ in range(4)]
    for step in (bad, *behind):
        step(called.append)
    worker_hold.go.set()
    assert current_stream().wait_until_idle(LONG)
    for step in behind:
        raised_error(
            step.get, JobError, rf"step {step.number} of train_job was cancelled(.|\n)*step 2 of train_job failed"
        )
    raised_error(flow.sync_default_session, JobError, "step 2 of train_job")
    assert [s.state for s in (first, bad, *behind)] == ["done", "failed"] + ["cancelled"] * 4 and called == []
    assert train_job.steps == 1 and np.array_equal(default_session().variables["w"].numpy(), after)


def test_no_step_runs_between_a_failure_and_its_report():
    """The caller has checked for errors, then the previous step fails, then the caller submits: its step must not
    run.
    """
    stream, go, ran = Stream(), threading.Event(), []

    def fail():
        wait(go)
        raise ValueError("no")

    bad = stream.submit("job", fail)
    ready = stream.start_worker

    def late():
        go.set()
        assert bad.finished.wait(LONG)
        ready()

    stream.start_worker = late
    slipped = stream.submit("job", lambda: ran.append(1))
    stream.start_worker = ready
    assert stream.wait_until_idle(LONG) and ran == [] and slipped.state == "cancelled"
    raised_error(stream.sync, JobError, "step 1 of job")
    stream.submit("job", lambda: ran.append(2)).get()
    assert ran == [2]


def test_callback_error_is_kept_with_its_step(worker_hold):
    job, called = counting_job(), []
    worker_hold.by(job)
    bad = job(ONES)
    bad(fails)
    worker_hold.go.set()
    assert current_stream().wait_until_idle(LONG)
    error = raised_error(job, JobError, r"callback fails of step 2 of train_job raised KeyError: 'mean'", ONES)
    assert error.step == 2 and isinstance(error.__cause__, KeyError)
    assert "fails" in str(error.__cause__.__traceback__.tb_next.tb_frame.f_code)
    assert bad.state == "done" and job.steps == 2 and called == []  # the step itself succeeded
    job(ONES)(called.append)
    flow.sync_default_session()
    assert len(called) == 1


def test_only_the_first_error_is_raised():
    stream, go = Stream(depth=3), threading.Event()

    def fail(result):
        raise ValueError("no")

    step = stream.submit("job", lambda: wait(go), callback=fail)
    go.set()
    assert stream.wait_until_idle(LONG)
    assert step.state == "done"
    stream.enqueue_callback(step)  # another callback fails before the first error is raised
    assert stream.wait_until_idle(LONG) and len(stream.errors) == 2
    raised_error(stream.sync, JobError, "step 1 of job")
    stream.sync()


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_no_callback_error_ends_the_worker(error):
    job = counting_job()

    def raises(loss):
        raise error

    job(ONES)(raises)
    raised_error(flow.sync_default_session, JobError, error.__name__)
    worker = current_stream().thread
    job(ONES).get()
    assert current_stream().thread is worker and worker.is_alive() and job.steps == 2


def test_error_raised_by_get_is_not_raised_again():
    job = failing_job()
    step = job(BAD)
    for _ in range(2):
        raised_error(step.get, JobError, "step 1 of train_job")
    flow.sync_default_session()
    job(GOOD).get()


def test_error_from_a_concurrent_get_is_not_raised_again():
    stream = Stream()
    step = stream.submit("job", lambda: 1 / 0)
    raised_error(step.get, JobError, "ZeroDivisionError")
    stream.errors.append((step, step.error))  # as if `get` had been called before the error
    stream.sync()
    assert stream.submit("job", lambda: 5).get() == 5


def test_sync_call_raises_its_own_error():
    eval_job = job_of(cross_entropy, GOOD, name="eval_job")
    assert raised_error(eval_job, JobError, "step 1 of eval_job", BAD).step == 1
    assert np.allclose(eval_job(GOOD), np.log(3))
    flow.sync_default_session()


# ---- waits for oneself -----------------------------------------------------------------------------------------------


def test_full_queue_inside_a_callback_is_refused(worker_hold):
    """The callback ends with this error. `test_stream_deadlocks.py` tries every call in every such place."""
    job, seen = counting_job(), []

    def tries(loss):
        worker_hold(loss)
        seen.append(raised_error(job, JobError, "calling train_job inside a callback", ONES))
        job(ONES)

    job(ONES)(tries)
    wait(worker_hold.entered)
    job(ONES)
    worker_hold.go.set()
    text = "callback tries of step 1 of train_job raised JobError: calling train_job inside a callback"
    error = raised_error(flow.sync_default_session, JobError, text, LONG)
    assert len(seen) == 1 and str(error).count("Try:") == 1 and error.hint == error.__cause__.hint


def test_sync_timeout_names_the_lines_of_both_threads():
    job, lock, entered = counting_job(), threading.Lock(), threading.Event()

    def wants_the_lock(loss):
        entered.set()
        with lock:
            pass

    job(ONES).get()
    with lock:
        job(ONES)(wants_the_lock)
        wait(entered)
        with pytest.raises(JobError) as caught:
            flow.sync_default_session(0.1)
    text = str(caught.value)
    assert "MainThread" in text and "minflow jobs" in text and "0.1" in text
    assert "wants_the_lock" in text and "with lock" in text  # the worker's line, and the caller's
    assert "test_sync_timeout_names_the_lines_of_both_threads" in text
    flow.sync_default_session(LONG)


def test_sync_timeout_on_another_thread_names_it(worker_hold):
    worker_hold.by(counting_job())
    texts = []

    def caller():
        threading.current_thread().name = "a caller"
        texts.append(str(raised_error(flow.sync_default_session, JobError, "minflow jobs", 0.05)))

    with thread(caller):
        pass
    assert "a caller" in texts[0]


def broken(loss):
    return loss.no_such_thing


@pytest.mark.parametrize("how", ["handle", "run"])
def test_callback_error_names_the_callback_and_its_line(how):
    job, end = counting_job(), flow.sync_default_session
    if how == "handle":
        job(ONES)(broken)
    else:
        end = flow.start(job, [ONES], callback=broken).result
    error = raised_error(end, JobError, "the callback broken of step 1 of", LONG)
    assert error.where == f"at test_stream_errors.py:{broken.__code__.co_firstlineno + 1}"
    who = "the same caller" if how == "handle" else "the same run"
    assert error.values["then"] == f"the steps that {who} had queued behind it were cancelled"
    assert "submit the cancelled steps again: the step itself has finished" in error.hint
