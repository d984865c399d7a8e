"""watch_timeline without a browser: its messages, their rate, and cleanup."""

import gc
import threading
import time
import weakref
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from IPython.core.formatters import IPythonDisplayFormatter
from minflow_widgets import watch_timeline
from minflow_widgets.timeline import live_timeline as module

import minflow as flow
import minflow.typing as tp
from minflow.core.base.errors import JobError
from minflow.introspection.job.timeline import Timeline, TimelineComparison
from minflow.job.queue.stream import current_stream
from minflow.views.timeline.record import LANES
from tests.svg_checks import texts_without_background
from tests.widgets.watching import until

ONES = np.ones(4, "f")


@pytest.fixture(autouse=True)
def clean():
    yield
    current_stream().wait_until_idle(60)
    current_stream().errors.clear()
    flow.clear_default_session()


def adding(result=tp.Callback[tp.Numpy], name="job"):
    def job(x: tp.Numpy.Placeholder((4,))) -> result:
        return x + x

    job.__name__ = name
    return flow.global_function(type="predict")(job)


def test_many_steps_give_few_small_updates_and_a_picture(front):
    job, calls = adding(), 0
    start = time.perf_counter()
    with watch_timeline() as live:
        while (seconds := time.perf_counter() - start) < 0.4 or ((len(front.sent) < 3 or calls < 200) and seconds < 60):
            job(ONES)
            calls += 1
    seconds = time.perf_counter() - start
    assert 3 <= len(front.sent) <= 10 * seconds + 2 and max(map(len, front.sent)) < 20_000
    picture = ET.fromstring(front.sent[-1])
    words = "".join(picture.itertext())
    assert all(lane in words for lane in LANES[:3]) and "max(load, compute)" in words
    assert "a step every" in picture.get("aria-label") and picture.get("role") == "img"
    assert not texts_without_background(front.sent[-1])
    assert len(front.left) == 1 and "<img" in front.left[0]["text/html"]
    assert "a step every" in front.left[0]["text/plain"]
    assert isinstance(live.timeline, Timeline) and len(live.timeline) > 100
    last = live.timeline.record.steps[-1]
    assert last.end is not None  # the block waits for steps in flight


def test_without_news_nothing_is_sent(front):
    with watch_timeline():
        adding()(ONES)
        flow.sync_default_session()
        for _ in range(10):  # until everything has been sent
            before = len(front.sent)
            time.sleep(0.25)
            if len(front.sent) == before > 0:
                break
        assert len(front.sent) == before < 5


def test_sync_and_async_loops_are_shown_side_by_side(front):
    with watch_timeline() as live:
        for job in (adding(name="a"), adding(tp.Numpy, "b")):
            for _ in range(6):
                time.sleep(0.002)
                job(ONES)
            flow.sync_default_session()
    assert isinstance(live.timeline, TimelineComparison) and live.timeline.first.mode == "sync"
    assert "measured:" in front.left[0]["text/plain"]


def test_only_steps_of_the_block_and_the_given_job(front):
    a, b = adding(name="a"), adding(name="b")
    a(ONES).get()
    with watch_timeline(a) as live:
        time.sleep(0.05)
        for _ in range(3):
            a(ONES).get()
            b(ONES).get()
    assert [s.number for s in live.timeline.record.steps] == [2, 3, 4] and live.timeline.record.name == "a"
    with watch_timeline() as live:
        pass
    assert live.timeline is None and front.left[-1] == {"text/plain": "no step has run"}


def test_loop_that_waits_for_two_jobs_is_sync(front):
    one, two = adding(tp.Numpy, "one"), adding(tp.Numpy, "two")
    with watch_timeline() as live:
        for _ in range(6):
            one(ONES)
            two(ONES)
    assert live.now().mode == "sync" and live.timeline.mode == "sync"


def test_run_is_followed_to_its_end_without_a_block(front):
    release = threading.Event()

    def batches():
        yield ONES
        release.wait(60)
        yield ONES

    run = flow.start(adding(), batches())
    live = watch_timeline(run)
    assert not front.left
    release.set()
    run.result(60)
    until(lambda: front.left and live not in module.WATCHED_TIMELINES)
    assert len(front.left) == 1 and len(live.timeline) == 2


def test_submitted_graph_is_followed(front):
    class Doubling(flow.nn.Graph):
        def build(self, x):
            return x + x

    graph = Doubling()
    with watch_timeline(graph) as live:
        for _ in range(5):
            graph.submit(flow.ones(4))
    assert len(live.timeline) == 5 and live.timeline.text.startswith(f"{graph.name}, async")
    run = flow.start(graph, [flow.ones(4)] * 4)
    live = watch_timeline(run)
    run.result(60)
    until(lambda: len(front.left) == 2)
    assert len(live.timeline) == 4 and live.followed[0].mode == "async"


def slowly(n):
    for _ in range(n):
        time.sleep(0.004)
        yield ONES


def test_two_runs_are_drawn_on_one_clock_with_the_gain_so_far(front):
    jobs, drawn = (adding(name="second"), adding(tp.Numpy, "first")), threading.Event()

    def batches():
        yield from slowly(149)
        assert drawn.wait(60)
        yield ONES

    runs = [flow.start(job, batches(), own_session=True) for job in jobs]
    live = watch_timeline(*runs)
    until(lambda: front.sent and b"times as fast as sync so far" in front.sent[-1])
    drawn.set()
    until(lambda: front.left)
    both, line = live.timeline, live.line()
    a, b = sorted(live.followed, key=lambda one: one.mode, reverse=True)
    assert [both.first.record.name, both.second.record.name] == ["first", "second"] and both.first.mode == "sync"
    assert len(both.first) == len(both.second) == 150 and "measured:" in front.left[0]["text/plain"]
    for one, whole in ((a, both.first), (b, both.second)):  # the sums of pieces are those of the whole
        assert one.count == 149
        np.testing.assert_allclose(one.means(), (whole.step, whole.load, whole.record.work), rtol=1e-9)
    words = "".join(ET.fromstring(front.sent[-1]).itertext())
    assert "second, async" in words and "first, sync" in words and "times as fast as sync so far" in words
    assert f"async is {both.gain:.2f} times as fast as sync so far; the formula promises {both.best:.2f}" in line


def test_gain_of_two_runs_of_one_kind_has_no_formula(front):
    runs = [flow.start(adding(name=name), slowly(20), own_session=True) for name in ("one", "two")]
    with watch_timeline(*runs) as live:
        pass
    assert live.line().startswith("two is ") and live.line().endswith(" times as fast as one so far")
    assert "Two runs of the same kind" in front.left[0]["text/plain"]


def test_without_a_block_it_follows_until_stopped(notebook, front):
    live, job = watch_timeline(), adding()
    assert front.places == 0
    display = IPythonDisplayFormatter()
    assert display(live) and front.places == 1  # the last line of a cell: IPython displays nothing else
    assert display(live) and front.places == 1  # already displayed in this cell
    notebook.cell = "cell", "run 2"
    for _ in range(3):
        job(ONES)
    until(lambda: front.sent and b"step 3 " in front.sent[-1])
    display(live)
    assert front.places == 2
    live.stop()
    live.stop()
    assert len(live.timeline) == 3 and len(front.left) == 1 and "3 steps in" in front.left[0]["text/plain"]
    assert not display(live) and front.places == 2 and "<img" in live._repr_mimebundle_()["text/html"]


def test_without_a_block_and_without_widgets(notebook, monkeypatch):
    monkeypatch.setattr(module.frontends, "choose_frontend", lambda *kinds: module.frontends.StaticPicture())
    live = watch_timeline()
    assert not IPythonDisplayFormatter()(live) and live.update_thread is not None
    assert live._repr_mimebundle_() == {"text/plain": "no step has run so far: call a job"}
    adding()(ONES).get()
    assert "<img" in live._repr_mimebundle_()["text/html"]


def test_without_a_block_it_is_not_kept_alive(notebook, front):
    live = watch_timeline()
    live._ipython_display_()
    pump, ref = live.update_thread, weakref.ref(live)
    del live
    pump.thread.join(60)
    gc.collect()
    assert ref() is None and not pump.thread.is_alive()


def test_before_watching_it_says_what_is_missing(notebook, front):
    live = watch_timeline()
    for words in (repr(live), live.bundle()["text/plain"]):
        assert "with watch_timeline():" in words and ".start()" in words and "no step has run" not in words
    live.start()
    assert repr(live) == "no step has run so far: call a job" and b"call a job" in live.encode()
    live.stop()


def test_picture_mentions_an_error(front):
    with pytest.raises(ZeroDivisionError), watch_timeline():
        adding()(ONES).get()
        1 / 0
    assert "stopped by ZeroDivisionError" in front.left[0]["text/plain"]


def test_failing_front_end_stops_nothing(front, monkeypatch):
    def update(timeline):
        raise OSError("gone")

    monkeypatch.setattr(front, "update", update)
    job = adding()
    with watch_timeline() as live:
        for _ in range(3):
            job(ONES).get()
            time.sleep(0.12)
    assert len(live.timeline) == 3 and front.left


def test_lines_in_a_terminal(capsys, monkeypatch):
    monkeypatch.setenv("MINFLOW_LIVE", "0")
    with watch_timeline():
        adding()(ONES).get()
    out = capsys.readouterr().out
    assert out.startswith("job: 1 step in") and "compute" in out and "\\x0a" not in out


def test_mistakes():
    with pytest.raises(JobError, match="list"):
        watch_timeline([1])
    with pytest.raises(JobError, match="Job, Job"):
        watch_timeline(adding(name="a"), adding(name="b"))


def test_paused_run_keeps_its_rate(front, clock):
    job, started = adding(), threading.Event()

    def callback(x):
        clock.sleep(0.005)
        assert started.wait(60)
        if run.steps == 20:
            run.pause()

    run = flow.start(job, [ONES] * 60, callback=callback)
    started.set()
    until(lambda: run.steps >= 20 and run.resumed.waiters)
    current_stream().wait_until_idle()
    clock.sleep(2.0)
    run.resume()
    run.result(60)
    found = flow.timeline(run)
    steps = found.record.steps
    paused, lasted = sum(found.record.pauses), steps[-1].end - steps[0].queued[0]
    assert 2.0 <= paused < 2.1 and "of pauses are left out" in found.text
    assert found.step * len(steps) < lasted - 1.0
