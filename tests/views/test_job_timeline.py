"""The timeline of a job with given times: its figures and the drawing are known."""

import itertools
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from minflow.views.draw.fonts import text_width
from minflow.views.draw.lanes import SMALL_FONT_SIZE, WIDTH
from minflow.views.timeline.record import (
    DEFAULT_STEPS,
    LANES,
    MAX_STEPS,
    StepTimes,
    TimelineRecord,
    bars,
    formula_text,
    gain_share,
    ms,
    ordered_pair,
    pair_verdict,
    step_range,
    time_range,
    trim_first_load,
    verdict,
)
from minflow.views.timeline.svg import pair_svg, timeline_svg
from minflow.views.timeline.text import pair_text, timeline_text
from tests.svg_checks import texts_without_background


def sync(n=20, load=0.004, comp=0.004, name="train_job", cores=4, **more):
    """Load, wait for the step, load, ..."""
    steps, t = [], 100.0
    for i in range(1, n + 1):
        waits = ((t - comp, t),) if i > 1 else ()
        asked = t + load
        steps.append(StepTimes(i, ((t, asked),), waits, (asked, asked), (asked, asked + comp), got=asked + comp))
        t = asked + comp
    return TimelineRecord(name, tuple(steps), cores, **more)


def hidden(n=20, load=0.004, comp=0.004, name="train_job", cores=4, callback=0.0, depth=2, **more):
    """The next batch is loaded while a step runs; at most `depth` steps are in flight."""
    steps, t, free, ends = [], 50.0, 0.0, []
    for i in range(1, n + 1):
        asked = t + load
        submitted = max(asked, ends[-depth]) if len(ends) >= depth else asked
        start = max(submitted, free)
        end = start + comp
        free = end + callback
        ends.append(free)
        waits, called = ((asked, submitted),) if submitted > asked else (), (end, free) if callback else None
        steps.append(StepTimes(i, ((t, asked),), waits, (submitted, start), (start, end), called))
        t = submitted
    return TimelineRecord(name, tuple(steps), cores, **more)


def words(svg):
    return "".join(ET.fromstring(svg).itertext())


def elements(svg, tag):
    return [e for e in ET.fromstring(svg).iter() if e.tag.endswith(tag)]


@pytest.mark.parametrize(("load", "comp", "best"), [(4, 4, 2.0), (1, 4, 1.25), (4, 1, 1.25), (0, 4, 1.0), (3, 6, 1.5)])
def test_formula_and_measurement(load, comp, best):
    a, b = sync(load=load / 1e3, comp=comp / 1e3), hidden(load=load / 1e3, comp=comp / 1e3)
    assert a.mode == "sync" and b.mode == "async"
    assert a.best == pytest.approx(best) and b.best == pytest.approx(best)
    assert a.step == pytest.approx((load + comp) / 1e3) and b.step == pytest.approx(max(load, comp) / 1e3)
    assert a.overlap == pytest.approx(1) and b.overlap == pytest.approx(best)
    both = ordered_pair(a, b)
    assert both.gain == pytest.approx(best)
    assert f"= {best:.2f}" in formula_text(a) and "max(load, compute)" in formula_text(a)


def test_callback_counts_as_work_of_the_worker():
    a = hidden(load=0.002, comp=0.003, callback=0.003)
    assert a.work == pytest.approx(0.006) and a.step == pytest.approx(0.006) and a.best == pytest.approx(8 / 6)
    assert "callback 3.0 ms" in timeline_text(a)
    assert "callback runs on the worker" in pair_verdict(ordered_pair(sync(load=0.002, comp=0.006), a))


def late_by(record, seconds):
    """A loop that resumes only after a short next step has been computed, although the queue had room earlier."""
    steps = [replace(s, waits=tuple([(a, b + seconds) for a, b in s.waits])) for s in record.steps]
    return replace(record, steps=tuple(steps))


def test_waiting_for_room_is_async_and_limited_by_the_callback():
    a = late_by(hidden(load=0.02, comp=0.0005, callback=0.03), 0.001)
    assert a.mode == "async" and a.step == pytest.approx(a.overlapped_seconds, rel=0.01)
    assert verdict(a).startswith("The callback is the slowest: it sets the pace")
    assert (
        formula_text(a)
        == "(load + compute + callback) / max(load, compute + callback) = (20.0 + 0.5 + 30.0) / 30.5 = 1.66"
    )
    for shown in (timeline_text(a), words(timeline_svg(a))):
        assert "job, async" in shown and "waits for every step" not in shown and "The callback is the slowest" in shown
    nothing = hidden(load=0.0, comp=0.0005, callback=0.03)
    assert nothing.mode == "async" and verdict(nothing).startswith("The callback is the slowest")
    assert verdict(hidden(load=0.002, comp=0.004)).startswith("Computing is the slowest: it sets the pace")
    assert verdict(hidden(load=0.004, comp=0.002)).startswith("Loading is the slowest: it sets the pace")
    assert "waits for every step. Async could be 2.00 times" in verdict(sync())


def test_loading_before_getting_the_result_overlaps_fully():
    a = hidden(load=0.003, comp=0.004)
    asks = [replace(s, got=after.queued[0]) for s, after in zip(a.steps, a.steps[1:])]
    a = replace(a, steps=(*asks, a.steps[-1]))
    assert a.mode == "sync" and verdict(a).endswith("this is as fast as async can be.")


def test_time_of_other_jobs_is_neither_loading_nor_computing():
    steps, t = [], 100.0
    for i in range(1, 9):  # load 4 ms, train 4 ms, test 5 ms, loading its batch 1 ms
        steps.append(
            StepTimes(
                i,
                ((t, t + 0.004),),
                (),
                (t + 0.004,) * 2,
                (t + 0.004, t + 0.008),
                None,
                False,
                t + 0.008,
                (0.001, 0.005),
            )
        )
        t += 0.014
    a = TimelineRecord("train", tuple(steps))
    assert a.mode == "sync" and a.load == pytest.approx(0.004) and a.compute == pytest.approx(0.004)
    assert a.sequential_seconds == pytest.approx(a.step) == pytest.approx(0.014) and a.best == pytest.approx(14 / 9)
    assert formula_text(a) == (
        "(load + load others + compute + other jobs) / max(load + load others, compute + other jobs) "
        "= (4.0 + 1.0 + 4.0 + 5.0) / 9.0 = 1.56"
    )
    for shown in (timeline_text(a), words(timeline_svg(a))):
        assert "Other jobs of the same loop take 6.0 ms between two steps" in shown
        assert "with all jobs of the loop async" in shown
    assert "14.0 ms a step" in words(timeline_svg(a)).split("one after the other")[1]
    assert "ther jobs" not in timeline_text(sync()) + timeline_svg(sync())


def test_bars_are_numbered_from_one_and_heading_has_figures():
    a = replace(sync(54), steps=sync(54).steps[46:])
    assert timeline_text(a).splitlines()[0].startswith("train_job, sync: steps 47 to 54 in 6")
    assert re.fullmatch(r"1+\.+2+\.+3+\.+4+\.+5+\.+6+\.+7+\.+8+", timeline_text(a).splitlines()[1][11:])
    texts = [e.text for e in elements(timeline_svg(a), "text")]
    assert "8" in texts and "54" not in texts and "steps 47 to 54 in" in timeline_svg(a)
    assert [s.number for s in a.steps] == list(range(47, 55))
    assert step_range(a.steps[:1]) == "step 47" and step_range(a.steps[::2]) == "4 steps, number 47 to 53,"
    assert step_range(sync(8).steps) == "8 steps"
    both = ordered_pair(a, hidden(8))
    assert "steps 47 to 54, a step every 8.0 ms" in pair_svg(both)
    assert "steps 47 to 54; load 4.0 ms, compute 4.0 ms; a step every 8.0 ms" in pair_text(both)


@pytest.mark.parametrize("each", (2e-7, 5e-6, 2e-5, 6e-5, 4e-4, 4e-3, 0.4, 40.0))
def test_axis_numbers_are_inside_and_apart(each):
    root = list(ET.fromstring(timeline_svg(sync(3, load=each, comp=each))).iter())
    zero = next(e for e in root if e.text in ("0 µs", "0 ms", "0 s"))
    left, right = 0.0, float(WIDTH)
    numbers = [e for e in root if e.tag.endswith("text") and e.get("y") == zero.get("y")]
    assert 2 <= len(numbers) <= 8
    for number in numbers:
        x, half = float(number.get("x")), text_width(number.text, SMALL_FONT_SIZE) / 2
        assert left <= x - half and x + half <= right, f"{number.text} is outside or meets the number before it"
        left = x + half


def test_dashes_do_not_cross_the_word_waits():
    root = list(ET.fromstring(timeline_svg(sync(3))).iter())
    found = [(box, word) for box, word in itertools.pairwise(root) if word.text == "waits"]
    assert found
    for box, word in found:
        top, base = float(box.get("y")), float(word.get("y"))
        # 11 pixels high, 9 of them above the line
        assert top + 2 < base - 9 and base + 2 < top + float(box.get("height"))
        assert float(box.get("width")) > 40 and box.get("fill") != "none"
    assert "dashed" in timeline_svg(sync(3))
    assert "dashed" not in timeline_svg(hidden(3, load=0.004, comp=0.001, depth=9))


def test_sync_is_above_async_in_either_order():
    a, b = sync(), hidden()
    assert ordered_pair(b, a) == ordered_pair(a, b) and ordered_pair(a, b).first is a
    assert ordered_pair(a, sync()).first is a  # of the same kind: in the given order


def test_speedup_is_the_same_everywhere():
    """Computed per step, from end to end: in the headings, the arrow, the bars and the sentence; the lengths of
    pictures differ.
    """
    both = ordered_pair(sync(20, load=0.0066, comp=0.0066), hidden(20, load=0.0066, comp=0.0066))
    for shown in (pair_text(both), words(pair_svg(both))):
        assert "every 13.2 ms" in shown and "every 6.6 ms" in shown
        assert "13.2 ms / 6.6 ms = 2.00 times as fast, all of the possible gain" in shown
        assert " in 1" not in shown and " in 5" not in shown, "the length of the picture is not a measurement"
    assert "6.6 ms less a step" in pair_svg(both)


def test_gain_above_the_formula_is_explained():
    a = sync(20, load=0.0066, comp=0.0066)
    late = replace(
        a, steps=tuple([replace(s, compute=tuple([t + 0.0002 * i for t in s.compute])) for i, s in enumerate(a.steps)])
    )
    both = ordered_pair(late, hidden(20, load=0.0063, comp=0.0066))
    assert both.gain > 2.02 and both.first.best == pytest.approx(2.0)
    words = pair_verdict(both)
    assert "More than 2.00 times, as in sync 0.2 ms of each step go by between loading and" in words
    assert "loading took 6.3 ms instead of 6.6 ms" in words
    assert "computing took" not in words and "all of the possible" not in pair_text(both)
    assert "times as fast, more than the 2.00 of the formula" in pair_text(both)
    assert "More than" not in pair_verdict(ordered_pair(a, hidden(20, load=0.0066, comp=0.0066)))


def paused(record, after, seconds):
    """The loop pauses before the step after `after`; steps in flight end meanwhile."""

    def moved(s):
        by = [tuple([(a + seconds, b + seconds) for a, b in spans]) for spans in (s.loads, s.waits)]
        shift = lambda x: (x[0] + seconds, x[1] + seconds) if x else None
        return replace(
            s,
            loads=by[0],
            waits=by[1],
            queued=shift(s.queued),
            compute=shift(s.compute),
            callback=shift(s.callback),
            got=s.got and s.got + seconds,
        )

    steps, before = [moved(s) if s.number > after else s for s in record.steps], record.steps[after].loads[0][0]
    steps[after] = replace(steps[after], waits=((before, before + seconds), *steps[after].waits))
    return replace(record, steps=tuple(steps))


@pytest.mark.parametrize("made", [sync, hidden])
def test_pauses_do_not_count_as_step_time(made):
    whole = made(20)
    a = paused(whole, 12, 4.3)
    assert a.step == pytest.approx(whole.step, rel=0.06), "except one load that is not hidden, as the queue is empty"
    assert a.overlap == pytest.approx(whole.overlap, rel=0.06) and a.load == pytest.approx(whole.load)
    assert a.mode == whole.mode and sum(a.pauses) == pytest.approx(4.3, abs=0.01) and not any(whole.pauses)
    for shown in (timeline_text(a), words(timeline_svg(a))):
        assert "4.3 s of pauses are left out" in shown and "pauses" not in timeline_text(whole)
    assert len(a.shown) == 8 and time_range(bars(a.shown))[1] - time_range(bars(a.shown))[0] < 0.1, (
        "the later part is drawn"
    )
    assert "of pauses are left out" in pair_text(ordered_pair(sync(), a))
    assert "of pauses are left out" in pair_svg(ordered_pair(sync(), a))


def test_other_long_waits_are_not_pauses():
    """Waits for a long step, for room in the queue, and for other jobs."""
    assert not any(sync(5, comp=2.0).pauses) and not any(hidden(9, load=0.001, comp=2.0).pauses)
    a = paused(sync(), 12, 0.5)
    other = replace(a, steps=tuple([replace(s, other_jobs=(0.0, 0.5)) if s.number == 13 else s for s in a.steps]))
    assert sum(a.pauses) > 0.4 and not any(other.pauses)


def test_missing_gain_is_explained():
    small = ordered_pair(sync(load=0.0001, comp=0.01), hidden(load=0.0001, comp=0.01))
    assert "only 1 % of a step" in pair_verdict(small)
    large = ordered_pair(sync(load=0.02, comp=0.001), hidden(load=0.02, comp=0.001))
    assert "loader sets the pace" in pair_verdict(large)
    stretched = hidden(load=0.008, comp=0.008)  # both take twice as long when they overlap
    assert ordered_pair(sync(), stretched).gain == pytest.approx(1)
    assert "GIL" in pair_verdict(ordered_pair(sync(), stretched)) and "2.0 times" in pair_verdict(
        ordered_pair(sync(), stretched)
    )
    assert "only one core" in pair_verdict(ordered_pair(sync(cores=1), hidden(load=0.008, comp=0.008, cores=1)))
    good = pair_verdict(ordered_pair(sync(load=0.003), hidden(load=0.003)))
    assert good.startswith("Loading is hidden behind computing")
    assert pair_verdict(ordered_pair(sync(load=0.005), hidden(load=0.005))).startswith(
        "Computing is hidden behind loading"
    )
    assert (
        gain_share(1.9, 2.0) == ", 90 % of the possible gain" and gain_share(2.0, 2.0) == ", all of the possible gain"
    )
    assert gain_share(0.9, 2.0) == ""


def test_waiting_and_loading_are_drawn_separately():
    found = bars(hidden(load=0.001, comp=0.01, n=6).steps)
    waits = [b for b in found if b.kind == "wait"]
    loads = [b for b in found if b.lane == 0 and b.kind == "busy"]
    assert waits and len(loads) == 6 and all(b.stop - b.start == pytest.approx(0.001) for b in loads)
    assert all(w.stop <= x.start or w.start >= x.stop for w in waits for x in loads)


def test_concurrently_waiting_steps_are_in_rows():
    deep = hidden(load=0.001, comp=0.01, depth=4)
    queued = [b for b in bars(deep.steps) if b.lane == 1]
    assert {b.row for b in queued} == set(range(queued[0].rows)) and queued[0].rows >= 3
    for row in range(queued[0].rows):
        here = sorted([(b.start, b.stop) for b in queued if b.row == row])
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(here))


def test_at_most_200_bars_and_the_rest_is_counted():
    few, asked = hidden(400, callback=0.001), hidden(400, callback=0.001, asked=True)
    assert len(few.shown) == DEFAULT_STEPS and len(asked.shown) == MAX_STEPS and asked.shown[-1].number == 400
    assert len(bars(asked.shown)) <= 200
    for text in (timeline_text(asked), words(timeline_svg(asked))):
        assert f"the last {MAX_STEPS} of 400 steps are drawn, the numbers are of all" in text
    both = ordered_pair(sync(30), hidden(400))
    assert f"the last {DEFAULT_STEPS} steps of 30 and 400" in pair_text(both)
    assert f"the last {DEFAULT_STEPS} steps of 30 and 400" in pair_svg(both)
    assert "left" not in hidden(5).left_out and hidden(5).left_out == ""


def test_first_load_does_not_begin_too_early():
    steps = list(sync(5).steps)
    steps[0] = StepTimes(1, ((40.0, 100.004),), (), steps[0].queued, steps[0].compute)
    first = trim_first_load(steps)[0]
    assert first.load == pytest.approx(0.004) and first.loads[0][1] == 100.004
    start, stop = time_range(bars(tuple(trim_first_load(steps))))
    assert stop - start < 0.1


def test_short_last_step_is_visible_as_text():
    steps = sync(2, load=1.0, comp=1e-6).steps
    failed = TimelineRecord("job", (steps[0], replace(steps[1], failed=True)), 4)
    compute = next(line for line in timeline_text(failed).splitlines() if "compute" in line)
    assert compute.split()[1:] == ["1", "!"]


def test_short_work_of_a_gpu_is_visible_as_text():
    steps = [replace(s, gpu=(s.compute[1] - 1e-6, s.compute[1])) for s in sync(2, load=1.0, comp=0.01).steps]
    gpu = next(line for line in timeline_text(TimelineRecord("job", tuple(steps), 4)).splitlines() if "GPU" in line)
    assert gpu.split()[1:] == ["1", "2"]


def test_text_lanes():
    lines = timeline_text(sync(4, load=0.004, comp=0.004)).splitlines()
    assert lines[0] == "train_job, sync: 4 steps in 32 ms"
    loader, compute = lines[1][11:], next(x for x in lines if "compute" in x)[11:]
    assert re.fullmatch(r"1+\.+2+\.+3+\.+4+", loader) and re.fullmatch(r" +1+ +2+ +3+ +4+", compute)
    assert all(a in " ." or b == " " for a, b in zip(loader, compute))  # never both
    assert len(max(pair_text(ordered_pair(sync(), hidden())).splitlines(), key=len)) < 200
    together = pair_text(ordered_pair(sync(12), hidden(12))).splitlines()
    ends = [len(x) for x in together if x.startswith("  compute")]
    assert ends[1] < 0.65 * ends[0]  # equal times are equal columns


def test_picture_has_a_description():
    svg = pair_svg(ordered_pair(sync(), hidden(callback=0.0005)))
    for said in (*LANES[:4], "(load + compute) / max(load, compute)", "of the possible gain", "less"):
        assert said in words(svg), said
    assert ET.fromstring(svg).get("width") == "760"
    assert all(float(e.get("font-size", 12)) >= 11 for e in elements(svg, "text"))
    assert ET.fromstring(svg).get("role") == "img" and "times as fast" in ET.fromstring(svg).get("aria-label")
    assert svg == pair_svg(ordered_pair(sync(), hidden(callback=0.0005)))
    for rect in elements(svg, "rect"):
        assert float(rect.get("x", 0)) >= 0 and float(rect.get("x", 0)) + float(rect.get("width")) <= 760.5


@pytest.mark.parametrize("name", ["job", "训练任务" * 9, "W" * 60])
def test_texts_have_a_background_or_fit_into_a_bar(name):
    assert not texts_without_background(timeline_svg(sync(400, name=name)))
    assert not texts_without_background(timeline_svg(hidden(callback=0.0005, name=name)))
    assert not texts_without_background(pair_svg(ordered_pair(sync(name=name), hidden(callback=0.0005, name=name))))


def test_empty_single_failed_and_running_steps():
    assert verdict(TimelineRecord("job", ())) == "no step has ended yet"
    assert "no step has ended yet" in timeline_svg(TimelineRecord("job", ()))
    one = TimelineRecord("job", sync(1).steps)
    assert one.mode == "" and one.step == pytest.approx(0.008) and "One step alone" in timeline_text(one)
    running = TimelineRecord("job", (StepTimes(1, ((0.0, 1.0),), (), (1.0, 1.1)),))
    assert "no step has ended yet" in timeline_text(running) and "<svg" in timeline_svg(running)
    steps = sync(3).steps
    failed = TimelineRecord(
        "job", (*steps[:2], StepTimes(3, steps[2].loads, (), steps[2].queued, steps[2].compute, failed=True))
    )
    assert "3 failed" in timeline_svg(failed) and "!!!" in timeline_text(failed)


def test_milliseconds():
    assert [ms(x) for x in (0.00412, 0.0846, 12.3, 0.00001)] == ["4.1 ms", "85 ms", "12.3 s", "0.01 ms"]
