"""Buttons of a curve: the loop is held between two steps in its own thread; a stop is a KeyboardInterrupt there."""

import os
import signal
import threading

import numpy as np
import pytest
from minflow_widgets import LossCurve, watch
from minflow_widgets.control import IN_CALLBACK

import minflow as flow
import minflow.typing as tp
from minflow import nn
from minflow.core.base import events
from minflow.job.queue.events import JobCalled
from minflow.job.queue.stream import current_stream
from tests.widgets.scripts import in_node, needs_node
from tests.widgets.watching import X, eager_step, header, job, model_and_optimizer, until

x = flow.from_numpy(X)


class Step(nn.Graph):
    def __init__(self, model, optimizer):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)

    def build(self, x):
        loss = self.model(x).square().mean()
        loss.backward()
        return loss


def graph_loop():
    graph = Step(*model_and_optimizer())
    return watch(graph), lambda: graph(x), lambda: graph.model.weight.numpy().copy()


def submitted_loop():
    graph = Step(*model_and_optimizer())
    return watch(graph), lambda: graph.submit(x), lambda: graph.model.weight.numpy().copy()


def submitted_optimizer_loop():
    model, optimizer = model_and_optimizer()
    graph = Step(model, optimizer)
    return watch(model, optimizer), lambda: graph.submit(x), lambda: model.weight.numpy().copy()


def eager_loop():
    model, optimizer = model_and_optimizer()
    return watch(model, optimizer), lambda: eager_step(model, optimizer), lambda: model.weight.numpy().copy()


def compiled_optimizer_loop():
    model, optimizer = model_and_optimizer()
    graph = Step(model, optimizer)
    return watch(model, optimizer), lambda: graph(x), lambda: model.weight.numpy().copy()


def job_loop(annotation):
    train = job(annotation)
    train.compile()
    return watch(train), lambda: train(X), lambda: train.session.variables["fc-weight"].numpy().copy()


def added_loop():
    curve, steps = LossCurve(), iter(range(10**9))
    return curve, lambda: curve.add(next(steps), loss=1.0), lambda: 0


LOOPS = {
    "graph": graph_loop,
    "submitted graph": submitted_loop,
    "optimizer in a submitted graph": submitted_optimizer_loop,
    "eager": eager_loop,
    "optimizer in a graph": compiled_optimizer_loop,
    "sync job": lambda: job_loop(tp.Numpy),
    "async job": lambda: job_loop(tp.Callback[tp.Numpy]),
    "added values": added_loop,
}


class Loop(threading.Thread):
    """Endless steps in a `with` block of another thread. steps: their number.  left: the exception that ended it."""

    def __init__(self, kind):
        super().__init__()
        self.curve, self.step, self.state = LOOPS[kind]()
        self.steps, self.left = 0, None
        self.end = False

    def run(self):
        try:
            with self.curve:
                while not self.end:
                    self.step()
                    self.steps += 1
        except BaseException as error:
            self.left = error


@pytest.fixture(params=LOOPS)
def loop(request, front):
    loop = Loop(request.param)
    loop.start()
    until(lambda: loop.steps > 3)
    yield loop
    loop.end = True
    loop.curve.control.resume()
    loop.join(60)


def held(loop):
    """Pause, and return the number of steps once no further step is taken, and those in the queue have ended."""
    loop.curve.control.pause()
    until(lambda: loop.curve.control.resumed.waiters)
    assert current_stream().wait_until_idle(60)
    return loop.steps


def test_pause_holds_the_loop_and_resume_continues(loop):
    curve = loop.curve
    assert header(curve)["controls"] and header(curve)["state"] == "running"
    steps = held(loop)
    assert header(curve)["state"] == "paused" and "paused" in curve._status()
    state = loop.state()
    until(lambda: curve._pauses)
    assert loop.steps == steps and np.array_equal(loop.state(), state)
    curve.control.resume()
    until(lambda: loop.steps > steps + 3)
    until(lambda: len(curve._pauses[-1]) == 2)
    assert header(curve)["state"] == "running"


def test_stop_is_an_interrupt_after_a_whole_step(loop, front):
    held(loop)
    loop.curve.control.stop()
    loop.join(60)
    assert type(loop.left) is KeyboardInterrupt and not loop.is_alive()
    assert loop.curve._note == "stopped by the stop button" and len(front.left) == 1
    assert header(loop.curve)["state"] == "ended"
    if "loss" in loop.curve.data and loop.curve._source is not None:
        steps, _ = loop.curve.data["loss"]
        assert len(steps) in (loop.steps, loop.steps + 1), "the held step was a whole one"


def test_stop_of_a_running_loop(loop):
    loop.curve.control.stop()
    loop.join(60)
    assert type(loop.left) is KeyboardInterrupt


def test_no_listener_until_there_is_something_to_obey(front):
    train = job()
    with watch(train) as curve:
        listening = dict(events.LISTENERS)
        assert JobCalled not in listening
        curve.control.pause()
        assert JobCalled in events.LISTENERS
        curve.control.resume()
        assert listening == events.LISTENERS
        train(X)
    assert not events.LISTENERS


def test_loop_that_goes_on_after_its_stop(front):
    """A caught KeyboardInterrupt is one: the next step is free, and so is the next stop."""
    graph, caught = Step(*model_and_optimizer()), 0
    with watch(graph) as curve:
        for i in range(6):
            if i in (2, 4):
                curve.control.stop()
                assert header(curve)["state"] == "stopped"
            try:
                graph(x)
            except KeyboardInterrupt:
                caught += 1
        assert curve.control.state == "running"
    assert caught == 2 and len(curve.data["loss"][0]) == 6 and curve._note == ""


def test_interrupt_during_a_pause(front):
    """Ctrl-C reaches a paused loop; the note names it, not the button."""
    import _thread

    graph = Step(*model_and_optimizer())
    with pytest.raises(KeyboardInterrupt), watch(graph) as curve:
        curve.control.pause()
        threading.Thread(
            target=lambda: (until(lambda: curve.control.resumed.waiters), _thread.interrupt_main())
        ).start()
        graph(x)
    assert curve._note == "stopped by KeyboardInterrupt"


def test_several_loops_share_the_buttons(front):
    """Both threads are held, and each is stopped once."""
    graphs = [Step(*model_and_optimizer()) for _ in range(2)]
    left = []

    def endless(graph):
        try:
            while True:
                graph(x)
        except KeyboardInterrupt as error:
            left.append(error)

    with watch(*graphs) as curve:
        threads = [threading.Thread(target=endless, args=(graph,)) for graph in graphs]
        for thread in threads:
            thread.start()
        until(lambda: len(curve.data) >= 2)
        curve.control.pause()
        until(lambda: len(curve.control.resumed.waiters) == 2)
        curve.control.stop()
        for thread in threads:
            thread.join(60)
    assert len(left) == 2


def test_several_runs_share_the_buttons(front):
    go = threading.Event()
    runs = []
    for name in "ab":
        train = job(tp.Callback[tp.Numpy])
        runs.append(flow.start(train, [X] * 100_000, callback=lambda loss: go.wait(0.002)))
    curve = watch(*runs, names=["a", "b"])
    curve.control.pause()
    assert [run.state for run in runs] == ["paused", "paused"] and header(curve)["state"] == "paused"
    runs[0].resume()
    assert header(curve)["state"] == "running"
    curve.control.resume()
    assert [run.state for run in runs] == ["running", "running"]
    curve.control.stop()
    until(lambda: front.left)
    assert [run.state for run in runs] == ["stopped", "stopped"]


def test_callback_of_a_job_cannot_be_held(front):
    """The worker must not wait; the page says so instead of promising anything."""
    train = job(tp.Callback[tp.Numpy])
    with LossCurve() as curve:
        train(X)(lambda loss: curve.add(loss=loss))
        flow.sync_default_session()
        curve.control.pause()
        train(X)(lambda loss: curve.add(loss=loss))
        flow.sync_default_session()
        assert header(curve)["note"] == IN_CALLBACK and not header(curve)["controls"]
        assert header(curve)["state"] == "running"


def test_control_of_the_caller_is_left_to_the_caller(front):
    class Control:
        state = "running"

        def pause(self):
            self.state = "paused"

    curve = LossCurve(control=Control())
    curve.control.pause()
    curve.add(loss=1.0)
    assert header(curve)["state"] == "paused"
    curve.finish()


def test_end_of_a_curve_frees_its_loop(front):
    loop = Loop("graph")
    loop.start()
    until(lambda: loop.steps > 3)
    steps = held(loop)
    loop.curve.finish()
    until(lambda: loop.steps > steps + 3)
    loop.end = True
    loop.join(60)
    assert loop.left is None


def test_messages_of_a_page_are_acknowledged(front):
    live_curve = pytest.importorskip("minflow_widgets.curve.live_curve")
    pytest.importorskip("anywidget")
    curve = LossCurve()
    curve.add(1, loss=1.0)
    widget = live_curve.live_widget(curve)
    hello = {"method": "custom", "content": {"wish": "hello ab.1", "data": "ignored"}}
    widget._handle_msg({"content": {"data": hello}})
    widget._handle_msg({"content": {"data": {"method": "custom", "content": ["ignored"]}}})
    assert header(curve)["heard"] == ["ab.1"] and curve.control.state == "running"
    widget.wish = "pause ab.2"
    assert header(curve)["heard"] == ["ab.1", "ab.2"] and curve.control.state == "paused"
    curve.finish()
    widget.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_fork_of_a_paused_loop_takes_steps():
    curve, step, _ = eager_loop()
    with curve:
        step()
        curve._loop.pause()
        if (pid := os.fork()) == 0:
            signal.alarm(20)  # ends a child that waits for a button
            step()
            os._exit(0)
        curve._loop.resume()
    assert os.waitpid(pid, 0)[1] == 0


HEAD = {"status": "step 5 of 9 · 2 steps/s · 2 s · 17 s left", "state": "running", "controls": True, "heard": ["ab.1"]}
BUTTONS = "buttonsOf(given.head, given.gone, { number: 'ab.1', at: 10 }, given.news ?? 20, given.now ?? 20)"


def buttons(**given):
    return in_node(BUTTONS, {"head": HEAD, "gone": False} | given)


@needs_node
def test_page_that_is_heard_has_buttons():
    shown = buttons()
    assert not shown["disabled"] and not shown["hidden"] and shown["said"] == "" and shown["status"] == HEAD["status"]
    paused = buttons(head=HEAD | {"state": "paused"})
    assert paused["label"] == "resume" and not paused["disabled"]


@needs_node
def test_page_whose_clicks_wait_for_the_cell_promises_nothing():
    late = buttons(head=HEAD | {"heard": ["other.1"]})
    assert late["disabled"] and late["said"] == "this page's clicks arrive after the cell: use the interrupt button"
    early = buttons(head=HEAD | {"heard": []}, now=12, news=12)
    assert early["disabled"] and early["said"] == "", "the answer may still come"
    assert buttons(head=None)["disabled"]


@needs_node
def test_page_without_a_kernel_has_no_run():
    gone = buttons(gone=True)
    assert gone["hidden"] and gone["disabled"]
    assert gone["status"] == "the kernel is gone, and this run with it · step 5 of 9 · 2 steps/s · 2 s"
    silent = buttons(now=40)
    assert silent["disabled"] and silent["status"].startswith("no news for 20 s: the kernel may be gone · step 5")
    ended = buttons(head=HEAD | {"state": "ended", "status": "step 9 of 9"}, gone=True, now=90)
    assert ended["hidden"] and ended["status"] == "step 9 of 9"
