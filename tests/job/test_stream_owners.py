"""Owners of steps: an error or Ctrl-C cancels, and is reported to, only the thread or run that submitted the steps."""

import random
import threading

import pytest
from builders import LONG, ONES, counting_job, fails, predict_job, raised_error, thread, wait

import minflow as flow
import minflow.typing as tp
from minflow.core.base.errors import JobError
from minflow.job.queue.stream import Stream
from minflow.job.session import default_session

pytestmark = pytest.mark.usefixtures("empty_session", "clean_queue")


class Owner:
    """The interface of a run that a stream uses."""

    def __init__(self):
        self.errors, self.callback = [], None

    def is_ending(self):
        return bool(self.errors)

    def failed(self, error):
        self.errors.append(error)


@pytest.mark.parametrize("seed", range(20))
def test_error_cancels_only_steps_of_its_owner(seed):
    """Random steps of several owners, all queued before the first runs; some steps fail, some callbacks fail."""
    rng, go, stream, ran = random.Random(seed), threading.Event(), Stream(depth=100), []
    owners = [None, *[Owner() for _ in range(3)]]
    stream.submit("first", lambda: wait(go), owner=Owner())
    steps, expected, broken = [], [], set()
    for i in range(40):
        k, how = rng.randrange(4), rng.choice(["good"] * 8 + ["work", "callback"])

        def work(i=i, how=how):
            ran.append(i)
            if how == "work":
                raise ValueError(i)

        def callback(result, how=how):
            if how == "callback":
                raise KeyError("no")

        steps.append(stream.submit(f"job{k}", work, callback, owner=owners[k]))
        expected.append("cancelled" if k in broken else "failed" if how == "work" else "done")
        if how != "good":
            broken.add(k)
    go.set()
    assert stream.wait_until_idle(LONG)
    assert [step.state for step in steps] == expected
    assert ran == [i for i in range(40) if expected[i] != "cancelled"]
    assert [len(owner.errors) for owner in owners[1:]] == [int(k in broken) for k in (1, 2, 3)]
    if 0 in broken:
        raised_error(stream.sync, JobError, "of job0 raised")
    stream.sync()
    for step, state in zip(steps, expected):
        if state == "cancelled":
            raised_error(step.get, JobError, rf"was cancelled(.|\n)*of {step.name} failed before it")


def test_failing_callback_does_not_affect_a_run(worker_hold):
    train, other = counting_job(), counting_job("other")
    run = flow.start(train, [ONES] * 6, callback=lambda loss: worker_hold(loss) if train.steps == 1 else None)
    wait(worker_hold.entered)  # the run's first callback blocks the worker; its second step is queued
    with thread(lambda: other(ONES)(fails)):
        worker_hold.go.set()
    run.result(LONG)
    assert run.state == "done" and run.steps == 6 and train.steps == 6
    raised_error(
        flow.sync_default_session,
        JobError,
        r"callback fails of step 1 of other(.|\n)*then +the steps that the same caller had queued",
        LONG,
    )


def test_failing_run_does_not_affect_others(worker_hold):
    train, other, look = counting_job(), counting_job("other"), predict_job(result=tp.Callback[tp.Numpy])
    worker_hold.by(look)
    good, bad = flow.start(other, [ONES] * 5), flow.start(train, [ONES] * 5, callback=fails)
    worker_hold.go.set()
    steps = [look(ONES) for _ in range(5)]
    raised_error(
        bad.result,
        JobError,
        r"callback fails of step 1 of train_job(.|\n)*then +the steps that the same run had queued",
        LONG,
    )
    good.result(LONG)
    assert good.steps == 5 and good.state == "done" and bad.state == "failed" and 1 <= train.steps <= 2
    assert all(step.get(LONG) is not None for step in steps)
    flow.sync_default_session(LONG)


def test_each_thread_gets_the_errors_of_its_own_steps():
    """At its next call; `sync_default_session` on another thread raises them too; no other thread is affected."""
    job, failed, again, told = counting_job(), threading.Event(), threading.Event(), []

    def caller():
        step = job(ONES)
        step(fails)
        assert step.finished.wait(LONG)
        failed.set()
        wait(again)
        for _ in range(2):
            try:
                told.append(job(ONES).get(LONG)[0])
            except JobError as error:
                told.append(error.step)

    with thread(caller):
        wait(failed)
        assert job(ONES).get(LONG)[0] == -2  # its steps are not cancelled, and it gets no errors of others
        assert flow.get_all_variables()["a"].numpy()[0] == -2
        raised_error(flow.sync_default_session, JobError, "step 1 of train_job", LONG)
        flow.sync_default_session(LONG)  # once
        again.set()
    assert told == [1, -4]  # once here, too; and its next step runs


def test_errors_of_an_ended_thread_go_to_the_next_caller():
    job, failed, ends = counting_job(), threading.Event(), threading.Event()

    def caller():
        step = job(ONES)
        step(fails)
        assert step.finished.wait(LONG)
        failed.set()
        wait(ends)

    with thread(caller):
        wait(failed)
        assert job(ONES).get(LONG)[0] == -2
        ends.set()
    raised_error(job, JobError, "step 1 of train_job", ONES)
    assert job(ONES).get(LONG)[0] == -4


def test_interrupt_cancels_only_steps_of_its_caller(worker_hold):
    stream, ends, go, theirs = Stream(depth=9), threading.Event(), threading.Event(), []
    submitted = threading.Event()
    stream.submit("first", lambda: wait(go), owner=Owner())
    with thread(lambda: (theirs.append(stream.submit("theirs", lambda: 5)), submitted.set(), wait(ends))):
        wait(submitted)
        run = stream.submit("run", lambda: 6, owner=Owner())
        mine = stream.submit("mine", lambda: 7)
        stream.handle_interrupt()  # the running step belongs to another owner: there is nothing to wait for
        assert [step.state for step in (*theirs, run, mine)] == ["queued", "queued", "cancelled"]
        assert mine not in stream.list()
        go.set()
        assert theirs[0].get(LONG) == 5 and run.get(LONG) == 6
        ends.set()
    assert stream.submit("mine", lambda: 8).get(LONG) == 8


def test_run_stopped_during_a_concurrent_pause_ends():
    """`pause` closes the gate just after `stop` has opened it."""
    entered, landed, go = threading.Event(), threading.Event(), threading.Event()

    def batches():
        yield ONES
        entered.set()
        wait(go)
        yield ONES

    run = flow.start(counting_job(), batches(), callback=lambda loss: landed.set())
    wait(entered)
    wait(landed)
    done = run.done
    run.done = lambda: (run.stop(), done())[1]  # as if it came in the middle of `pause`
    run.pause()
    go.set()
    assert run.finished.wait(LONG) and run.state == "stopped" and run.steps == 1


def test_run_shuffles_like_a_loop():
    """Starting a run draws no order from the loader that a loop would not draw."""

    def loader():
        data = flow.utils.data.TensorDataset(flow.arange(8).float())
        return flow.utils.data.DataLoader(data, 4, shuffle=True, generator=flow.Generator().manual_seed(3))

    look, run, batches = predict_job(result=tp.Callback[tp.Numpy]), [], loader()
    flow.start(look, batches, epochs=2, callback=lambda result: run.append(result.tolist())).result(LONG)
    batches = loader()
    assert run == [batch[0].tolist() for _ in range(2) for batch in batches]


def losses_of(job, steps):
    return [job(ONES).get(LONG).tolist() for _ in range(steps)]


@pytest.mark.parametrize("paused", [False, True])
def test_old_run_does_not_train_a_cleared_session(paused):
    alone = losses_of(counting_job(), 3)
    flow.clear_default_session()
    loading, go, landed = threading.Event(), threading.Event(), threading.Event()

    def batches():
        yield ONES
        loading.set()
        wait(go)
        yield ONES
        yield ONES

    run = flow.start(counting_job(), batches(), callback=lambda loss: landed.set())
    wait(landed)
    wait(loading)
    if paused:
        run.pause()
        go.set()
    flow.clear_default_session()
    new = counting_job()
    first = losses_of(new, 1)
    go.set()  # only now the old run gets its next batch
    run.result(LONG)
    assert run.state == "stopped" and run.steps == 1
    assert first + losses_of(new, 2) == alone and new.steps == 3


def test_run_stopped_during_its_build_creates_no_variables():
    job, run = counting_job(), None
    build = type(job).plan_for

    def stopped_first(self, by_device, owner=None):
        run.stop()
        return build(self, by_device, owner)

    ready = threading.Event()

    def batches():
        wait(ready)
        yield ONES

    type(job).plan_for = stopped_first
    try:
        run = flow.start(job, batches())
        ready.set()
        assert run.result(LONG) is None and run.state == "stopped"
    finally:
        type(job).plan_for = build
    assert not default_session().variables


def test_loader_may_clear_the_session_of_its_own_run():
    def batches():
        yield ONES
        flow.clear_default_session()
        yield ONES

    run = flow.start(counting_job(), batches())
    run.result(LONG)
    assert run.state == "stopped" and not default_session().variables
