"""flow.timeline on real jobs: what counts as loading, which steps it includes, and its displays."""

import itertools
import threading
import time

import pytest
from builders import BAD, GOOD, LONG, ONES, counting_job, failing_job, predict_job, raised_error, thread, wait

import minflow as flow
import minflow.typing as tp
from minflow.core.base.errors import JobError
from minflow.job.queue.stream import Stream, current_stream
from tests.clocks import set_clock, until

pytestmark = pytest.mark.usefixtures("clean_queue")


def spans(steps):
    return [x for s in steps for x in s.loads]


@pytest.fixture
def callers_wait(monkeypatch):
    """The worker begins a step once its caller waits for it: otherwise the result may be there before the caller is."""
    work = Stream.work

    def late(stream, step):
        if step.waited_for:
            until(lambda: step.computed.waiters)
        work(stream, step)

    monkeypatch.setattr(Stream, "work", late)


def test_sync_job_waits_and_async_job_does_not(callers_wait):
    job = counting_job(result=tp.Numpy)
    for _ in range(6):
        job(ONES)
    t = flow.timeline(job)
    assert t.mode == "sync" and len(t) == 6 and t.best >= 1
    for before, after in itertools.pairwise(t.record.steps):
        assert after.waits and after.waits[-1][1] >= before.compute[1]
        assert all(a >= end or b <= begin for a, b in after.loads for begin, end in after.waits)
    flow.clear_default_session()
    job = counting_job()
    for _ in range(6):
        job(ONES)
        time.sleep(0.001)
    flow.sync_default_session()
    assert flow.timeline().mode == "async"


def test_waiting_does_not_count_as_loading(worker_hold, clock):
    job = counting_job()

    def slow(result):
        worker_hold(result)
        clock.work(1.0)

    job(ONES)(slow)
    wait(worker_hold.entered)
    job(ONES)
    worker_hold.go.set()
    job(ONES)  # there is no room until the callback has ended
    step = job(ONES)
    step.get()
    flow.sync_default_session()
    job(ONES).get()
    steps = flow.timeline(job).record.steps
    assert len(steps) == 5
    assert max(s.load for s in steps[1:]) < 0.1
    blocked = steps[2].waits[-1]
    assert blocked[1] - blocked[0] >= 1.0


def test_explicit_get_of_each_step_is_sync():
    job = counting_job()
    for _ in range(5):
        job(ONES).get()
    assert flow.timeline(job).mode == "sync"


def test_work_of_the_loop_counts_as_loading(clock):
    job = counting_job()
    job(ONES).get()
    for _ in range(4):
        clock.rest(0.03)
        job(ONES)
    flow.sync_default_session()
    t = flow.timeline(job)
    assert 0.03 <= t.load < 0.031 and t.step >= 0.03 and t.compute < t.load
    assert "loader sets the pace" in t.verdict


def test_slow_callback_makes_the_loop_wait_for_room(clock):
    job = counting_job(size=4)
    job(ONES).get()
    for _ in range(12):
        clock.sleep(0.002)
        job(ONES)(lambda result: clock.work(0.05))
    flow.sync_default_session()
    t = flow.timeline(job, steps=12)
    assert max(b - a for s in t.record.steps for a, b in s.waits) >= 0.05  # it did wait
    assert t.mode == "async" and t.text.startswith("train_job, async: steps 2 to 13 in")
    assert t.verdict.startswith("The callback is the slowest"), t.text
    assert "max(load, compute + callback)" in t.text and "waits for every step" not in t.text


def test_waiting_for_the_queue_after_each_step_is_sync():
    job = counting_job()
    for _ in range(6):
        job(ONES)(lambda result: time.sleep(0.002))
        flow.sync_default_session()
    assert flow.timeline(job).mode == "sync"
    for _ in range(6):
        step = job(ONES)
        assert step.finished.wait(LONG)
        step(lambda result: time.sleep(0.02))  # it comes late: the step has ended
        flow.sync_default_session()
    assert flow.timeline(job, steps=6).mode == "sync"
    handles = []
    for _ in range(8):  # the result of a step is requested when the next one is in the queue
        handles.append(job(ONES))
        if len(handles) > 1:
            handles[-2].get()
    assert flow.timeline(job, steps=8).mode == "async"


def test_time_of_another_job_in_the_loop_is_counted(clock):
    train, test = counting_job("train", result=tp.Numpy), counting_job("test")
    for _ in range(8):
        clock.rest(0.02)
        train(ONES)
        clock.rest(0.015)  # for the batch of the other job
        test(ONES)(lambda result: clock.work(0.05))
        flow.sync_default_session()
    t = flow.timeline("train")
    loading, working = t.record.other_jobs
    assert loading >= 0.015 and working >= 0.05 and loading + working < t.step
    assert t.record.sequential_seconds == pytest.approx(t.step, rel=0.01) and t.load + t.compute < 0.3 * t.step
    assert t.mode == "sync" and "Other jobs of the same loop take" in t.text and "other jobs" in t.svg
    assert flow.timeline("test").mode == "sync"


def test_loop_that_waits_for_two_jobs_is_sync(callers_wait):
    train, test = [counting_job(name, result=tp.Numpy) for name in ("train", "test")]
    for _ in range(6):
        train(ONES)
        test(ONES)
    for name in ("train", "test"):
        line = flow.timeline(name, steps=5)
        assert line.mode == "sync", name
        own = [wait for step in line.record.steps[1:] for wait in step.waits]
        computes = [step.compute for step in line.record.steps]
        assert all(any(end <= b <= begin for _, b in own) for (_, end), (begin, _) in itertools.pairwise(computes))


def test_run_has_its_own_steps_and_a_pause_is_not_loading(clock):
    job, gate, calls = counting_job(), threading.Event(), []

    def batches():
        for i in range(6):
            if i == 3:
                gate.set()
                wait(paused)
            yield ONES

    paused = threading.Event()
    run = flow.start(job, batches())
    wait(gate)
    run.pause()
    paused.set()
    job(ONES)(calls.append)  # another caller meanwhile
    until(lambda: run.resumed.waiters)
    clock.sleep(1.0)
    run.resume()
    run.result(LONG)
    flow.sync_default_session()
    t = flow.timeline(run)
    assert [s.number for s in t.record.steps] == [1, 2, 3, 4, 5, 6] and len(calls) == 1
    assert "steps 1 to 6" not in t.text and flow.timeline(job).record.steps[-1].number == 7
    again = flow.start(job, [ONES] * 3)
    again.result(LONG)
    assert [s.number for s in flow.timeline(again).record.steps] == [1, 2, 3]  # as the points of its curve
    assert max(s.load for s in t.record.steps) < 0.1
    assert max(b - a for s in t.record.steps for a, b in s.waits) >= 1.0


def test_which_steps():
    job = counting_job()
    for _ in range(8):
        job(ONES)
    flow.sync_default_session()
    assert [s.number for s in flow.timeline(job, 3).record.steps] == [6, 7, 8]
    assert [s.number for s in flow.timeline("train_job", range(2, 5)).record.steps] == [2, 3, 4]
    other = predict_job()
    other(ONES)
    assert flow.timeline().record.name == "eval_job" and flow.timeline(job).record.name == "train_job"
    flow.clear_default_session()
    job = counting_job()
    job(ONES).get()
    assert len(flow.timeline(job)) == 1  # the session was cleared: another loop
    assert len(flow.timeline(job, 4)) == 4  # requested, beyond its start


def test_new_cell_begins_a_new_loop(clock):
    job = counting_job()
    for _ in range(3):
        job(ONES).get()
    current_stream().on_cell_start()
    clock.sleep(1.0)  # the user is thinking
    for _ in range(2):
        job(ONES).get()
    t = flow.timeline(job)
    assert len(t) == 2 and all(s.load < 0.1 for s in t.record.steps)


def test_loading_time_is_per_thread():
    job = counting_job()
    job(ONES).get()

    def other():
        for _ in range(3):
            job(ONES).get()

    with thread(other):
        pass
    assert len(flow.timeline(job)) == 3
    callers = [r.caller for r in list(current_stream().records)[-4:]]
    assert len(set(callers)) == 2 and len(set(callers[1:])) == 1


def test_compare_and_displays(tmp_path):
    job = counting_job(result=tp.Numpy)
    for _ in range(5):
        time.sleep(0.002)
        job(ONES)
    a = flow.timeline(job)
    flow.clear_default_session()
    job = counting_job()
    for _ in range(5):
        time.sleep(0.002)
        job(ONES)
    flow.sync_default_session()
    both = flow.timeline(job).compare(a)
    assert both.first.mode == "sync" and both.second.mode == "async"
    assert both.gain == pytest.approx(a.step / both.second.step) and both.best == a.best
    for shown in (a, both):
        bundle = shown._repr_mimebundle_()
        assert bundle["text/plain"] == repr(shown) == shown.text and shown.verdict in shown.text
        assert bundle["text/html"].count("<img") == 1 and "base64" in bundle["text/html"]
        assert bundle["image/svg+xml"] == shown.svg
        shown.save(tmp_path / "a.svg"), shown.save(tmp_path / "a.txt")
        assert (tmp_path / "a.svg").read_text() == shown.svg and (tmp_path / "a.txt").read_text() == shown.text + "\n"
    assert "measured:" in both.text and "max(load, compute)" in both.text
    raised_error(a.save, JobError, "a.png", tmp_path / "a.png")


def test_running_steps_are_included(worker_hold):
    job = counting_job()
    worker_hold.by(job)
    job(ONES)
    t = flow.timeline(job)
    assert len(t) == 1 and t.record.steps[0].callback[1] > t.record.steps[0].callback[0] and t.text and t.svg


def test_failed_step_is_marked():
    job = failing_job()
    job(GOOD).get()
    raised_error(job(BAD).get, JobError, "step 2")
    steps = flow.timeline(job).record.steps
    assert [s.failed for s in steps] == [False, True]
    t = flow.timeline(job)
    assert "!" in t.text and t.text.endswith("\nFailed of train_job, sync: step 2.")
    assert ">Failed of train_job, sync: step 2.<" in t.svg
    job(GOOD).get()
    for _ in range(2):
        raised_error(job(BAD).get, JobError, "step")
    assert "Failed of train_job, sync: 3 steps, step 2 first." in flow.timeline(job).text


def test_mistakes():
    raised_error(flow.timeline, JobError, "nobody_called_it", counting_job("nobody_called_it"))
    raised_error(flow.timeline, JobError, "list", [1])
    for steps in (0, -3, True, 2.5, "all"):
        raised_error(flow.timeline, JobError, "steps must be", "x", steps)
    job = counting_job()
    job(ONES).get()
    raised_error(flow.timeline, JobError, r"range\(50, 60\)", job, range(50, 60))
    raised_error(flow.timeline(job).compare, JobError, "compare", 3)


def test_records_do_not_outlive_the_clock_of_a_test():
    """Otherwise the timelines of later tests contain steps of the future."""
    with pytest.MonkeyPatch.context() as monkeypatch, set_clock(monkeypatch) as clock:
        clock.sleep(1000)
        counting_job()(ONES).get()
        assert current_stream().records[-1].submitted > time.perf_counter() + 900
    assert not current_stream().records and current_stream().callers.since is None
    counting_job()(ONES).get()
    assert current_stream().records[-1].submitted < time.perf_counter()
