"""Cleanup of ended widgets: after a day of training the kernel and the page hold no more than after an hour."""

import gc
import signal
import weakref

import pytest

pytest.importorskip("anywidget")
from ipywidgets.widgets import widget as ipywidgets
from minflow_widgets import LossCurve, watch, watch_timeline

from minflow import nn
from minflow.core.base import events
from minflow.core.base.errors import JobError


def test_redisplayed_live_curve_is_the_same(notebook):
    """As in a page that is reloaded without having been saved, while a run continues."""
    with LossCurve() as curve:
        curve.add(loss=1.0)
        curve.explore()
        first, second = notebook.now
        assert first is second and type(first).__name__ == "LiveCurve"
    assert notebook.now[0] == notebook.now[1] == curve.bundle() and "text/html" in curve.bundle()
    curve.explore()
    assert type(notebook.now[2]).__name__ == "LiveCurve" and notebook.now[2] is not curve._front.widget


def curve():
    with LossCurve() as curve:
        curve.add(loss=1.0)
    return weakref.ref(curve)


def timeline():
    with watch_timeline() as live:
        pass
    return weakref.ref(live)


@pytest.mark.parametrize("made", [curve, timeline])
def test_models_of_ended_widgets_are_closed(notebook, made):
    ended = [made() for _ in range(12)]  # more than are kept alive for reloaded pages
    before = len(ipywidgets._instances)
    ended += [made() for _ in range(10)]
    assert len(ipywidgets._instances) == before
    gc.collect()
    assert not [ref for ref in ended if ref() is not None]


SAID = [
    "[]",
    "3",
    "null",
    '"x"',
    "{",
    "",
    "[" * 100_000,
    "1" * 10_000,
    '{"log": []}',
    '{"log": {"a": [1]}, "x": ["time"]}',
    "NaN",
    '{"x": 1e999}',
]


def test_invalid_messages_of_a_page_are_ignored(notebook):
    """Through the path of real messages; no text and no type raises in the kernel."""
    with LossCurve(log=True, x="time") as curve:
        curve.add(loss=1.0)
        widget = notebook.now[0]
        for said in SAID[:8]:
            widget.set_state({"look": said})
        assert (curve.log, curve.x) == (True, "time")
        for said in SAID[8:]:
            widget.set_state({"look": said})
        for wrong in (
            [],
            None,
            3,
            {"look": 3},
            {"look": None},
            {"look": ["{}"]},
            {"wish": {}},
            {"wish": "stop"},
            {"data": "x"},
            {"data": b""},
            {"_esm": "alert(1)"},
            {"layout": "nothing"},
            {3: 4},
        ):
            widget.set_state(wrong)
        assert len(widget.data) > 100 and "alert" not in widget._esm  # possibly a newer picture
        widget.set_state({"look": '{"log": false, "x": "step"}'})
        assert (curve.log, curve.x) == (False, "step")
        for data in (
            [],
            None,
            {},
            {"method": 3},
            {"method": "update"},
            {"method": "update", "state": 3},
            {"method": "custom"},
            {"method": "x"},
            {"method": "update", "state": {"look": "[]"}, "buffer_paths": [["a", 3]]},
        ):
            widget._handle_msg({"content": {"data": data}, "buffers": []})
        widget._handle_msg(
            {"content": {"data": {"method": "update", "state": {"look": '{"log": true}'}}}, "buffers": []}
        )
        assert curve.log


@pytest.mark.parametrize("made", [LossCurve, watch_timeline])
def test_second_interrupt_does_not_lose_the_picture(notebook, made):
    """The button pressed twice: the second press comes while the picture is drawn, and takes effect after it."""
    live, drawn = made(), []
    whole = live.bundle

    def bundle():
        signal.raise_signal(signal.SIGINT)
        drawn.append(whole())
        return drawn[-1]

    live.bundle = bundle
    with pytest.raises(KeyboardInterrupt), live:
        pass
    assert notebook.now[0] is drawn[-1] and signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("made", ["curve", "into", "timeline"])
def test_interrupt_while_waiting_for_the_last_steps(notebook, made, monkeypatch):
    class Job(nn.Graph):
        def build(self, x):
            return x

    def interrupted(*seconds):
        raise KeyboardInterrupt

    curve = LossCurve()
    live = watch_timeline() if made == "timeline" else watch(Job(), into=curve) if made == "into" else watch(Job())
    owner = {"curve": lambda: live._source, "into": lambda: live.sources, "timeline": lambda: live}[made]()
    monkeypatch.setattr(owner, "settle" if made == "timeline" else "wait", interrupted)
    with pytest.raises(KeyboardInterrupt), live:
        pass
    assert not events.LISTENERS
    if made != "into":
        assert type(notebook.now[0]) is dict and "KeyboardInterrupt" in live.text()
    curve.finish()


def test_reentering_a_timeline_is_refused(notebook):
    live = watch_timeline()
    with live:
        pass
    with pytest.raises(JobError, match="This timeline has ended"), live:
        pass


def test_exploring_a_curve_often_leaves_few_models(notebook):
    with LossCurve() as ended:
        ended.add(loss=1.0)
    for _ in range(20):
        ended.explore()
    before = len(ipywidgets._instances)
    for _ in range(20):
        ended.explore()
    assert len(ipywidgets._instances) == before and type(notebook.now[-1]).__name__ == "LiveCurve"
    assert notebook.now[-1].comm is not None


@pytest.mark.parametrize("made", ["curve", "timeline"])
def test_models_of_unreferenced_widgets_are_closed(notebook, made):
    def dropped():
        live = LossCurve() if made == "curve" else watch_timeline()
        live.add(loss=1.0) if made == "curve" else live.start()
        pump = live._update_thread if made == "curve" else live.update_thread
        return pump, weakref.ref(live)

    def drop(n):
        pumps, refs = zip(*[dropped() for _ in range(n)])
        for pump in pumps:
            pump.thread.join(60)
        gc.collect()
        assert not any(ref() for ref in refs)

    drop(20)
    before = len(ipywidgets._instances)
    drop(10)
    assert len(ipywidgets._instances) == before
