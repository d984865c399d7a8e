"""The timeline of a job from made-up times: its numbers are known, so is what is drawn."""

import re
import xml.etree.ElementTree as ET

import pytest

from minflow.views.timeline import (
    LANES, MOST, SHOWN, StepTimes, TimelineRecord, bars, extent, formula, ms, pair, pair_text, pair_verdict, share, timeline_text,
    trimmed, verdict,
)  # fmt: skip
from minflow.views.timeline_svg import pair_svg, timeline_svg


def sync(n=20, load=0.004, comp=0.004, name="train_job", cores=4, **more):
    """Load, wait for the step, load, ..."""
    steps, t = [], 100.0
    for i in range(1, n + 1):
        waits = ((t - comp, t),) if i > 1 else ()
        asked = t + load
        steps.append(StepTimes(i, ((t, asked),), waits, (asked, asked), (asked, asked + comp)))
        t = asked + comp
    return TimelineRecord(name, tuple(steps), cores, **more)


def hidden(n=20, load=0.004, comp=0.004, name="train_job", cores=4, callback=0.0, depth=2, **more):
    """The next batch is loaded while a step is computed; at most `depth` are in flight."""
    steps, t, free, ends = [], 50.0, 0.0, []
    for i in range(1, n + 1):
        asked = t + load
        submitted = max(asked, ends[-depth]) if len(ends) >= depth else asked
        start = max(submitted, free)
        end = start + comp
        free = end + callback
        ends.append(free)
        steps.append(StepTimes(i, ((t, asked),), ((asked, submitted),) if submitted > asked else (), (submitted, start), (start, end),
                               (end, free) if callback else None))  # fmt: skip
        t = submitted
    return TimelineRecord(name, tuple(steps), cores, **more)


def elements(svg, tag):
    return [e for e in ET.fromstring(svg).iter() if e.tag.endswith(tag)]


@pytest.mark.parametrize(("load", "comp", "best"), [(4, 4, 2.0), (1, 4, 1.25), (4, 1, 1.25), (0, 4, 1.0), (3, 6, 1.5)])
def test_the_formula_and_what_is_measured(load, comp, best):
    a, b = sync(load=load / 1e3, comp=comp / 1e3), hidden(load=load / 1e3, comp=comp / 1e3)
    assert a.mode == "sync" and b.mode == "async"
    assert a.best == pytest.approx(best) and b.best == pytest.approx(best)
    assert a.step == pytest.approx((load + comp) / 1e3) and b.step == pytest.approx(max(load, comp) / 1e3)
    assert a.overlap == pytest.approx(1) and b.overlap == pytest.approx(best)
    both = pair(a, b)
    assert both.gain == pytest.approx(best)
    assert f"= {best:.2f}" in formula(a) and "max(load, comp)" in formula(a)


def test_a_callback_is_work_of_the_worker():
    a = hidden(load=0.002, comp=0.003, callback=0.003)
    assert a.work == pytest.approx(0.006) and a.step == pytest.approx(0.006) and a.best == pytest.approx(8 / 6)
    assert "callback 3.0 ms" in timeline_text(a)
    assert "callback runs on the worker" in pair_verdict(pair(sync(load=0.002, comp=0.006), a))


def test_sync_stands_above_async_whoever_is_first():
    a, b = sync(), hidden()
    assert pair(b, a) == pair(a, b) and pair(a, b).first is a
    assert pair(a, sync()).first is a  # of the same kind: as they come


def test_why_there_is_nothing_to_win():
    small = pair(sync(load=0.0001, comp=0.01), hidden(load=0.0001, comp=0.01))
    assert "only 1 % of a step" in pair_verdict(small)
    large = pair(sync(load=0.02, comp=0.001), hidden(load=0.02, comp=0.001))
    assert "loader sets the pace" in pair_verdict(large)
    stretched = hidden(load=0.008, comp=0.008)  # both take twice as long beside each other
    assert pair(sync(), stretched).gain == pytest.approx(1)
    assert "GIL" in pair_verdict(pair(sync(), stretched)) and "2.0 times" in pair_verdict(pair(sync(), stretched))
    assert "only one core" in pair_verdict(pair(sync(cores=1), hidden(load=0.008, comp=0.008, cores=1)))
    good = pair_verdict(pair(sync(load=0.003), hidden(load=0.003)))
    assert good.startswith("Loading is hidden behind computing")
    assert pair_verdict(pair(sync(load=0.005), hidden(load=0.005))).startswith("Computing is hidden behind loading")
    assert share(1.9, 2.0) == ", 90 % of the possible gain" and share(2.2, 2.0) == ", all of the possible gain" and share(0.9, 2.0) == ""


def test_waiting_is_drawn_and_loading_is_not_the_wait():
    found = bars(hidden(load=0.001, comp=0.01, n=6).steps)
    waits = [b for b in found if b.kind == "wait"]
    loads = [b for b in found if b.lane == 0 and b.kind == "busy"]
    assert waits and len(loads) == 6 and all(b.stop - b.start == pytest.approx(0.001) for b in loads)
    assert all(w.stop <= x.start or w.start >= x.stop for w in waits for x in loads)


def test_steps_that_wait_at_the_same_time_lie_in_rows():
    deep = hidden(load=0.001, comp=0.01, depth=4)
    queued = [b for b in bars(deep.steps) if b.lane == 1]
    assert {b.row for b in queued} == set(range(queued[0].rows)) and queued[0].rows >= 3
    for row in range(queued[0].rows):
        here = sorted([(b.start, b.stop) for b in queued if b.row == row])
        assert all(a[1] <= b[0] for a, b in zip(here, here[1:]))


def test_at_most_two_hundred_bars_and_it_says_what_is_left_out():
    few, asked = hidden(400, callback=0.001), hidden(400, callback=0.001, asked=True)
    assert len(few.shown) == SHOWN and len(asked.shown) == MOST and asked.shown[-1].number == 400
    assert len(bars(asked.shown)) <= 200
    for text in (timeline_text(asked), "".join(ET.fromstring(timeline_svg(asked)).itertext())):
        assert f"the last {MOST} of 400 steps are drawn, the numbers are of all" in text
    both = pair(sync(30), hidden(400))
    assert f"the last {SHOWN} steps of 30 and 400" in pair_text(both) and f"the last {SHOWN} steps of 30 and 400" in pair_svg(both)
    assert "left" not in hidden(5).left_out and hidden(5).left_out == ""


def test_the_first_loader_does_not_reach_far_back():
    steps = list(sync(5).steps)
    steps[0] = StepTimes(1, ((40.0, 100.004),), (), steps[0].queued, steps[0].compute)
    first = trimmed(steps)[0]
    assert first.load == pytest.approx(0.004) and first.loads[0][1] == 100.004
    start, stop = extent(bars(tuple(trimmed(steps))))
    assert stop - start < 0.1


def test_text_lanes():
    lines = timeline_text(sync(4, load=0.004, comp=0.004)).splitlines()
    assert lines[0] == "train_job, sync: 4 steps in 32 ms"
    loader, compute = lines[1][11:], next(x for x in lines if "compute" in x)[11:]
    assert re.fullmatch(r"1+\.+2+\.+3+\.+4+", loader) and re.fullmatch(r" +1+ +2+ +3+ +4+", compute)
    assert all(a in " ." or b == " " for a, b in zip(loader, compute))  # never both
    assert len(max(pair_text(pair(sync(), hidden())).splitlines(), key=len)) < 200
    together = pair_text(pair(sync(12), hidden(12))).splitlines()
    ends = [len(x) for x in together if x.startswith("  compute")]
    assert ends[1] < 0.65 * ends[0]  # the same seconds are the same columns


def test_the_picture_is_one_light_card_with_words():
    svg = pair_svg(pair(sync(), hidden(callback=0.0005)))
    words = "".join(ET.fromstring(svg).itertext())
    for lane in LANES:
        assert lane in words
    assert "(load + comp) / max(load, comp)" in words and "of the possible gain" in words and "less" in words
    card = elements(svg, "rect")[0]
    assert card.get("fill") == "#ffffff" and card.get("width") == "760"
    assert all(float(e.get("font-size", 12)) >= 11 for e in elements(svg, "text"))
    assert ET.fromstring(svg).get("role") == "img" and "times as fast" in ET.fromstring(svg).get("aria-label")
    assert svg == pair_svg(pair(sync(), hidden(callback=0.0005)))
    for rect in elements(svg, "rect"):
        assert float(rect.get("x", 0)) >= 0 and float(rect.get("x", 0)) + float(rect.get("width")) <= 760.5


@pytest.mark.parametrize("name", [
    "<script>alert(1)</script>", '"><img src=x onerror=y>', "]]>&amp;", "a\x00b\x1b[31m", "x" * 5000, "\u202e\ud800"])
def test_hostile_names_stay_text(name):
    record = hidden(name=name)
    for svg in (timeline_svg(record), pair_svg(pair(sync(name=name), record))):
        ET.fromstring(svg.encode("utf-8", "replace"))
        assert "<script" not in svg and "<img" not in svg
    assert "\x1b" not in timeline_text(record) and len(timeline_text(record)) < 3000


def test_nothing_single_failed_and_running_steps():
    assert verdict(TimelineRecord("job", ())) == "no step has ended yet"
    assert "no step has ended yet" in timeline_svg(TimelineRecord("job", ()))
    one = TimelineRecord("job", sync(1).steps)
    assert one.mode == "" and one.step == pytest.approx(0.008) and "One step alone" in timeline_text(one)
    running = TimelineRecord("job", (StepTimes(1, ((0.0, 1.0),), (), (1.0, 1.1)),))
    assert "no step has ended yet" in timeline_text(running) and "<svg" in timeline_svg(running)
    steps = sync(3).steps
    failed = TimelineRecord("job", (*steps[:2], StepTimes(3, steps[2].loads, (), steps[2].queued, steps[2].compute, failed=True)))
    assert "3 failed" in timeline_svg(failed) and "!!!" in timeline_text(failed)


def test_milliseconds():
    assert [ms(x) for x in (0.00412, 0.0846, 12.3, 0.00001)] == ["4.1 ms", "85 ms", "12.3 s", "0.01 ms"]
