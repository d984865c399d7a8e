"""The stream of job functions: order, bit equality with sync calls, back-pressure, memory, surroundings.

Threads synchronize by events and barriers, never by sleeping; a wait that fails ends its test instead of blocking.
"""

import gc
import sys
import threading
import tracemalloc
import weakref
from collections import deque

import numpy as np
import pytest
from builders import ONES, counting_job, job_of, predict_job, switch_interval, thread, wait

import minflow as flow
import minflow.typing as tp
from minflow.job.queue.stream import SWITCH_INTERVAL, Record, Step, Stream, current_stream
from minflow.job.session import default_session
from tests.clocks import until
from tests.threads import run_in_threads

pytestmark = pytest.mark.usefixtures("clean_queue")


# ---- order -----------------------------------------------------------------------------------------------------------


def test_callbacks_run_once_in_order_and_one_at_a_time():
    job, seen, busy, overlaps, threads = predict_job(result=tp.Callback[tp.Numpy]), [], threading.Lock(), [], set()

    def callback(result):
        if not busy.acquire(blocking=False):
            overlaps.append(len(seen))
            return
        threads.add(threading.current_thread())
        seen.append(int(result[0]))
        busy.release()

    x = np.zeros(4, "f")
    for i in range(500):
        x[:] = i
        job(x)(callback)
    flow.sync_default_session()
    assert seen == list(range(500)) and not overlaps
    assert threads == {current_stream().thread} and threading.current_thread() not in threads


def test_callback_runs_between_its_step_and_the_next():
    job, seen = counting_job(), []
    for i in range(50):
        job(ONES)(
            lambda result: seen.append(
                (float(result[0]), float(default_session().variables["a"].tensor.array[0]), job.steps)
            )
        )
    flow.sync_default_session()
    assert seen == [(-2.0 * i, -1.0 - i, i + 1) for i in range(50)]


def test_jobs_share_one_queue():
    train, look, seen = counting_job(), predict_job(result=tp.Callback[tp.Numpy]), []
    for _ in range(30):
        train(ONES)(lambda result: seen.append("train"))
        look(ONES)(lambda result: seen.append(float(result[0])))
    assert predict_job("peek")(ONES)[0] == -29.0  # a sync call queues, too
    assert seen == [entry for i in range(30) for entry in ("train", float(-i))]


def test_several_threads_submit_concurrently():
    job, seen, lengths = counting_job(), [], []
    job(ONES).get()
    flow.sync_default_session()

    def callback(number, i):
        seen.append((number, i))
        lengths.append(sum(isinstance(entry, Step) for entry in tuple(current_stream().queue)))

    def caller(number):
        x, own = np.full(4, 1.0 + number, "f"), []
        for i in range(50):
            own.append(job(x))
            own[-1](lambda result, i=i: callback(number, i))
        return own

    with switch_interval(1e-5):
        own = run_in_threads(8, caller)
        flow.sync_default_session()
    assert max(lengths) <= 2  # in total, not each
    assert sorted(seen) == [(number, i) for number in range(8) for i in range(50)]
    assert all([i for n, i in seen if n == number] == list(range(50)) for number in range(8))
    assert sorted(step.number for steps in own for step in steps) == list(range(2, 402))
    assert (
        default_session().variables["a"].numpy()[0]
        == default_session().variables["b"].numpy()[0]
        == -1 - 50 * sum(range(1, 9))
    )


# ---- bit equality ----------------------------------------------------------------------------------------------------


def learned(result, interval=None, every=1):
    """Return losses and variables after 40 steps of an MLP with dropout and momentum, and results of an eval job in
    between.
    """
    flow.clear_default_session()
    flow.manual_seed(5)
    rng = np.random.default_rng(1)
    batches = [(rng.standard_normal((8, 12)).astype("f"), rng.integers(0, 5, 8).astype("i")) for _ in range(40)]

    @flow.global_function(type="train")
    def train_job(x: tp.Numpy.Placeholder((8, 12)), y: tp.Numpy.Placeholder((8,), dtype=flow.int32)) -> result:
        w1 = flow.get_variable("w1", (12, 16), initializer=flow.truncated_normal(0.3))
        w2 = flow.get_variable("w2", (16, 5), initializer=flow.truncated_normal(0.3))
        b2 = flow.get_variable("b2", (5,), initializer=flow.zeros_initializer())
        hidden = flow.nn.functional.dropout(flow.nn.functional.relu(flow.matmul(x, w1)), 0.4)
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(y, flow.matmul(hidden, w2) + b2)
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([20], [0.1, 0.05]), momentum=0.9).minimize(loss)
        return loss

    losses = []
    with switch_interval(interval):
        for i, (x, y) in enumerate(batches):
            given = train_job(x, y)
            if result is tp.Numpy:
                losses.append(given.tobytes())
            else:
                given(lambda loss: losses.append(loss.tobytes()))
            if i % every == 0:
                flow.sync_default_session()
        flow.sync_default_session()
    return losses, {name: v.numpy().tobytes() for name, v in default_session().variables.items()}


def test_async_and_sync_give_the_same_bits():
    losses, variables = learned(tp.Numpy)
    assert len(losses) == 40 and len(set(losses)) == 40 and sorted(variables) == ["b2", "w1", "w2"]
    for interval, every in ((None, 40), (1e-5, 40), (None, 7), (1e-4, 40), (1e-5, 3)):
        assert learned(tp.Callback[tp.Numpy], interval, every) == (losses, variables)


def test_arguments_may_be_overwritten_after_the_call():
    job, x, seen = predict_job(result=tp.Callback[tp.Numpy]), np.empty(4, "f"), []
    for i in range(100):
        x[:] = i
        job(x)(lambda result: seen.append(result.copy()))
        x[:] = np.nan
    flow.sync_default_session()
    assert np.array_equal(np.stack(seen), np.arange(100.0)[:, None] + np.zeros(4))


def test_job_returns_copies():
    eval_job = job_of(lambda: flow.get_variable("a", (4,), initializer=flow.ones_initializer()))
    first = eval_job()
    first[:] = 9
    assert np.array_equal(eval_job(), ONES) and np.array_equal(default_session().variables["a"].numpy(), ONES)


# ---- back-pressure and memory ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_at_most_depth_steps_are_in_flight_including_callbacks(worker_hold, depth, monkeypatch):
    config = flow.function_config()
    if depth != 2:  # the default
        config.concurrency_width(depth)
    job, submitted, full, room = counting_job(config=config), [], threading.Event(), current_stream().wait_for
    job(ONES).get()
    flow.sync_default_session()
    step = worker_hold.by(job)
    assert step.done() and step.get().shape == (4,) and flow.jobs() == [step]  # its callback has not ended
    monkeypatch.setattr(current_stream(), "wait_for", lambda gate, timeout=None: (full.set(), room(gate, timeout))[1])
    with thread(lambda: [submitted.append(job(ONES)) for _ in range(8)]):
        wait(full)  # the caller waits for room in the queue
        assert len(submitted) == depth - 1 and len(flow.jobs()) == depth
        assert [step.state for step in submitted] == ["queued"] * (depth - 1)
        worker_hold.go.set()
    flow.sync_default_session()
    assert job.steps == 10 and not flow.jobs()
    assert max(step.record.blocked for step in submitted) > 0


def test_memory_stays_flat_over_two_thousand_steps(monkeypatch):
    job, total = counting_job(size=256), []
    x = np.full(256, 1e-3, "f")
    filled = [Record("filled", i) for i in range(1_000)]
    monkeypatch.setattr(current_stream(), "records", deque(filled, maxlen=1_000))  # its history is bounded

    def steps(count):
        for _ in range(count):
            job(x)(lambda loss: total.append(None) if len(total) < 10 else None)
        flow.sync_default_session()
        gc.collect()

    # Replace all records that were allocated before tracing: 1,000 records are the maximum.
    records = 900 * (sys.getsizeof(Record("", 0)) + 8 * sys.getsizeof(0.0))
    steps(100)
    for _ in range(3):  # other threads may allocate, in one of the tries
        tracemalloc.start()
        try:
            steps(100)
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            steps(1_900)
            after, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        # peak - after: arrays of 1 KiB per step in flight
        flat = after - before < records + 15_000 and peak - after < 200_000
        if flat:
            break
    assert flat, (before, after, peak)
    assert len(current_stream().records) == current_stream().records.maxlen


def test_handle_does_not_hold_the_inputs():
    class Inputs:
        pass

    stream, inputs = Stream(), Inputs()
    dies = weakref.ref(inputs)
    step = stream.submit("job", lambda kept=inputs: 3)
    del inputs
    stream.sync()
    assert dies() is None and step.get() == 3


def test_result_is_freed_with_its_handle():
    job = counting_job()
    for _ in range(2):
        step = job(ONES)
        dies, handle = weakref.ref(step.get()), weakref.ref(step)
        flow.sync_default_session()
        assert dies() is not None
        gc.disable()
        try:
            del step
            job(ONES).get()  # the worker has continued
            assert dies() is None and handle() is None
        finally:
            gc.enable()


def test_idle_worker_holds_no_result():
    job, ended = counting_job(), threading.Event()
    step = job(ONES)
    dies = weakref.ref(step.get())
    flow.sync_default_session()
    current_stream().wake.put(None)  # the worker passes its empty queue
    asked = Stream()
    asked.submit("other", ended.set)
    wait(ended)
    del step
    until(lambda: dies() is None)  # the worker drops it right after it has opened the gate


# ---- surroundings ----------------------------------------------------------------------------------------------------


def test_job_is_redefined_while_the_old_one_runs(worker_hold):
    old = counting_job()
    worker_hold.by(old)
    queued = old(ONES)
    new = counting_job()  # before the queue has drained
    assert default_session().jobs["train_job"] is new and old is not new
    worker_hold.go.set()
    assert np.array_equal(new(ONES).get(), -4 * ONES)  # the values of the variables were kept
    assert queued.state == "done" and new.steps == 3
    assert np.array_equal(old(ONES).get(), -6 * ONES)


def test_redefined_job_may_change_a_shape_while_the_old_one_runs(worker_hold):
    old = counting_job()
    worker_hold.by(old)
    new = counting_job(size=2)
    two_ones = np.ones(2, "f")
    with thread(lambda: new(two_ones).get()):
        worker_hold.go.set()
    assert default_session().variables["a"].shape == (2,) and np.array_equal(new(two_ones).get(), -2 * two_ones)


def test_switch_interval_is_restored(worker_hold):
    job, seen = counting_job(), []
    job(ONES).get()
    with switch_interval(0.02):
        worker_hold.by(job)
        assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL)
        worker_hold.go.set()
        restored(0.02)
        sys.setswitchinterval(1e-5)  # a shorter interval of the user stays
        job(ONES)(lambda loss: seen.append(sys.getswitchinterval()))
        flow.sync_default_session()
        assert seen == [pytest.approx(1e-5)]
        restored(1e-5)
        sys.setswitchinterval(0.02)
        job(ONES)(lambda loss: sys.setswitchinterval(0.03))  # an interval set by a callback stays
        flow.sync_default_session()
        restored(0.03)


def restored(seconds):
    """The worker restores it after the last gate has opened: wait for it."""
    flow.sync_default_session()
    until(lambda: current_stream().interval is None)
    assert sys.getswitchinterval() == pytest.approx(seconds)
