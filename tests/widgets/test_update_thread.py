"""The update thread of curves and timelines: a failing display costs neither the run nor the user's error."""

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from minflow_widgets import LossCurve, update_thread, watch, watch_timeline

import minflow as flow
import minflow.typing as tp
from tests.widgets.watching import until


def started(n=200, seconds=0.005):
    @flow.global_function()
    def mean(x: tp.Numpy.Placeholder((2,))) -> tp.Callback[tp.Numpy]:
        return flow.math.reduce_mean(x)

    return flow.start(mean, [np.ones(2, "f")] * n, callback=lambda x: time.sleep(seconds))


@pytest.mark.parametrize("made", [watch, watch_timeline])
@pytest.mark.parametrize("failures", [1, 10_000])
def test_failing_display_does_not_prevent_the_end(front, monkeypatch, made, failures):
    """After a single failure the next update displays it. After persistent failure it gives up, but the curve ends
    with the run.
    """
    tried = []

    def update(thing):
        tried.append(thing)
        if len(tried) <= failures:
            raise OSError("the page went away")

    monkeypatch.setattr(front, "update", update)
    run = started(100_000)
    live = made(run)
    until(lambda: len(tried) > 1 if failures == 1 else len(tried) == update_thread.MAX_FAILURES)
    run.stop()
    run.result(60)
    until(lambda: front.left)
    assert failures == 1 or len(tried) == update_thread.MAX_FAILURES
    if made is watch:
        assert len(live.data["loss"][0]) == run.steps < 100_000 and live._finished


@pytest.fixture
def gone(front, monkeypatch):
    """A display that fails at the end; the bundles that it should have left."""
    left = []

    def finish(thing):
        left.append(thing)
        raise RuntimeError("comm is closed")

    monkeypatch.setattr(front, "finish", finish)
    return left


@pytest.mark.parametrize("made", [LossCurve, watch_timeline])
def test_display_failing_at_the_end_hides_no_error(gone, made, notebook):
    with pytest.raises(ValueError, match="the user's own"), made():
        raise ValueError("the user's own")
    with made() as live:
        if made is LossCurve:
            live.add(loss=1.0)
    assert len(gone) == 2 and notebook.shown[-1] == live.bundle(), "the picture is in the display that works"


def test_display_failing_at_the_end_of_a_run(gone, monkeypatch):
    failed = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    curve = watch(started(3, 0.0))
    until(lambda: gone and not curve._update_thread.thread.is_alive())
    assert not failed


@pytest.mark.parametrize("made", [watch, watch_timeline])
def test_second_finisher_waits_for_the_picture(front, monkeypatch, made):
    """The update thread leaves it, on a thread that the end of the program would cut off."""
    left, go = [], threading.Event()

    def finish(thing):
        assert go.wait(60)
        left.append(thing)

    monkeypatch.setattr(front, "finish", finish)
    run = started(3, 0.0)
    live = made(run)
    run.result(60)
    until(lambda: live._finished if made is watch else live.finished)
    assert not left
    threading.Timer(0.3, go.set).start()
    live.finish() if made is watch else live.stop()
    assert left == [live]


def test_concurrent_ends_do_not_deadlock(front, monkeypatch):
    join, given_up = threading.Thread.join, []

    def joined(thread, timeout=None):
        join(thread, 30)
        if thread.is_alive():
            given_up.append(thread)

    monkeypatch.setattr(threading.Thread, "join", joined)
    monkeypatch.setattr(update_thread, "JOIN_TIMEOUT", 60.0)  # longer than the timeout of join
    run = started(3, 0.0)
    with watch(run) as curve:
        run.result(60)
    curve.finish()
    assert len(front.left) == 1 and not given_up


def test_one_expensive_update_does_not_stop_updates_for_long(monkeypatch):
    """As with a garbage collection inside: 0.1 s at a budget of 0.7 % would mean fourteen seconds without another
    update.
    """

    class Owner:
        shown = []

        def _take_new_values(self):
            return True

        def _update(self):
            self.shown.append(update_thread.clock())
            end = update_thread.thread_cpu_time() + (0.15 if len(self.shown) == 1 else 0.0)
            while update_thread.thread_cpu_time() < end:
                pass

        def _cpu_share(self):
            return 0.007

    class Event(threading.Event):
        rests = []

        def wait(self, timeout=None):
            self.rests.append(timeout)
            return super().wait(timeout)

    monkeypatch.setattr(update_thread, "MAX_UPDATE_PERIOD", 0.3)
    monkeypatch.setattr(update_thread, "threading", SimpleNamespace(**{**vars(threading), "Event": Event}))
    owner = Owner()
    thread = update_thread.UpdateThread(owner, idle=0.0)
    until(lambda: len(owner.shown) > 1)
    thread.stop()
    assert owner.shown[1] - owner.shown[0] >= 0.3 == max(Event.rests)
