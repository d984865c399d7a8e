"""Displays of curves: axes, epochs, the previous run, long runs at constant cost, and at most ten updates per
second.
"""

import decimal
import json
import sys
import time
import types

import numpy as np
import pytest
from minflow_widgets import LossCurve
from minflow_widgets.curve import live_curve, loss_curve, previous_run, scales
from minflow_widgets.curve.downsampling import ExtremesCache, WindowMeans
from minflow_widgets.curve.loss_curve import duration
from minflow_widgets.curve.panels import encode, panel_rows
from minflow_widgets.curve.series import MAX_POINTS, Series

import minflow as flow
from minflow.core.base.errors import DTypeError, MinflowError
from tests.svg_checks import texts_without_background
from tests.widgets.watching import header, legend


def test_ten_updates_per_second_at_any_rate(front):
    with LossCurve() as curve:
        rows, start, step = curve.feed(), time.perf_counter(), 0
        while (seconds := time.perf_counter() - start) < 0.5 or (len(front.sent) < 3 and seconds < 60):
            step += 1
            rows.append((("loss",), step, time.perf_counter(), 1.0))
            curve.add(step, accuracy=0.5)
            time.sleep(0.0005)
    assert 3 <= len(front.sent) <= 10 * seconds + 2
    assert len(curve.data["loss"][0]) == len(curve.data["accuracy"][0]) == step


def test_long_runs_are_downsampled_as_they_grow():
    rng = np.random.default_rng(1)
    values = rng.standard_normal(30_000)
    values[[17, 29_000]] = np.nan, 50.0
    grown, summed = ExtremesCache(), WindowMeans()
    table = np.stack([np.arange(30_000.0), values, np.arange(30_000.0) / 7])
    for n in [*range(1, 2000, 37), *range(2000, 30_001, 811), 30_000]:
        at = grown.indices(values[:n], MAX_POINTS)
        assert np.array_equal(at, ExtremesCache().indices(values[:n], MAX_POINTS)) and len(at) <= MAX_POINTS
        if n > 50:
            for a, b in zip(summed.means(table[:, :n], 200), WindowMeans().means(table[:, :n], 200)):
                assert np.allclose(a, b, equal_nan=True)
    assert {0, 29_000, 29_999} <= set(at.tolist())


def test_batched_values_equal_single_ones():
    rng = np.random.default_rng(2)
    one, many = Series("accuracy"), Series("accuracy")
    for size in (3, 20, 700, 1, 9):
        values = rng.standard_normal(size).tolist()
        if size == 20:
            values[4], values[7] = float("inf"), float("nan")
        steps = [float(one.count + i) for i in range(size)]
        for step, value in zip(steps, values):
            one.add(step, value, step / 2)
        many.extend(steps, values, [s / 2 for s in steps])
    assert (
        one.best == many.best
        and one.first_nonfinite == many.first_nonfinite == (7.0, float("inf"), 3.5)
        and one.moved == many.moved is True
    )
    assert all(
        np.array_equal(a, b, equal_nan=True)
        for a, b in [(one.steps, many.steps), (one.values, many.values), (one.seconds, many.seconds)]
    )


def test_batches_of_equal_or_non_finite_values():
    series = Series("loss")
    series.extend(range(20), [2.0] * 20, range(20))
    assert not series.moved and series.best == (2.0, 0.0) and series.first_nonfinite is None
    series.extend(range(20, 40), [float("nan")] * 20, range(20))
    assert series.moved and series.best == (2.0, 0.0) and series.first_nonfinite[0] == 20.0


def test_steps_have_correct_times_around_a_pause():
    series = Series("loss")
    for step in range(5000):
        series.add(step, 1.0, step * 0.01 + (30.0 if step >= 3210 else 0.0))
        if step % 400 == 0:
            series.clock()
    clock = series.clock()
    assert len(clock) <= 32
    steps, seconds = zip(*clock)
    assert abs(np.interp(np.arange(5000), steps, seconds) - series.seconds).max() < 0.02
    series.add(10, 1.0, 99.0)
    assert series.clock() == [], "steps that go back have no unique time"


def test_series_with_equal_times_share_a_clock():
    loss, norm, late = Series("loss"), Series("gradient norm"), Series("val_loss")
    for step in range(1, 101):
        loss.add(step, 1.0 / step, step * 0.1)
        if step % 10 == 0:
            norm.add(step, 1.0, step * 0.1)
            late.add(step, 1.0, step * 0.1 + 3.0)
    assert norm.within(loss) and not late.within(loss) and not loss.within(norm) and not Series("a").within(loss)
    head = header(encode([loss, norm, late], "", ("norm",)))
    assert head["clock"][-1] == [100.0, 10.0]
    assert [s.get("clock", [])[-1:] for s in head["series"]] == [[], [], [[100.0, 13.0]]]


def test_sparse_values_are_at_the_current_step(front):
    with LossCurve(epoch=10) as curve:
        for _ in range(25):
            curve.add(loss=1.0)
            if len(curve.data["loss"][0]) % 10 == 0:
                curve.add(val_loss=2.0)
        curve.mark("end")
    assert curve.data["loss"][0].tolist() == list(range(25)) and curve.data["val_loss"][0].tolist() == [9, 19]
    assert [(step, text) for step, _, text in curve.marks()] == [(24, "end"), (10, "1"), (20, "2")]


def test_total_gives_the_remaining_time(front, monkeypatch):
    monkeypatch.setattr(loss_curve, "clock", lambda: 1000.0)
    curve = LossCurve(total=100)
    for step in range(1, 26):
        curve.put(step, {"loss": 1.0}, 1000.0 + step * 0.2)
    monkeypatch.setattr(loss_curve, "clock", lambda: 1005.0)
    assert curve._status() == "step 25 of 100 · 5 steps/s · 5.0 s · 15 s left"
    curve.finish()
    assert "left" not in curve._status()
    assert [duration(s) for s in (7, 200, 7500)] == ["7.0 s", "3 min 20 s", "2 h 5 min"]


def test_rows():
    assert panel_rows(["loss", "lr", "accuracy", "norm", "other"]) == [[0, 2], [4], [1, 3]] and panel_rows(["lr"]) == [
        [0]
    ]
    head = header(encode([], "", ("loss", "norm")))
    assert head["panels"] == ["loss", "norm"] and head["rows"] == [[0], [1]] and head["small"] == [1]


def test_log_scale_and_time_in_the_picture(front):
    curve = LossCurve(log=True, x="time", panels=("loss",))
    for step in range(1, 60):
        curve.put(step, {"loss": 10.0 ** (-step / 10)}, curve._started + step)
    curve.put(60, {"loss": 0.0}, curve._started + 60)  # not positive: a gap
    svg = curve.svg()
    assert ">0.01<" in svg and ">1e-04<" in svg.replace("0.0001", "1e-04") and "seconds since its start" in svg
    assert "nan" not in svg
    curve.finish()


def in_cell(monkeypatch, cell, run):
    parent = {"metadata": {"cellId": cell}, "header": {"msg_id": run}}
    shell = types.SimpleNamespace(kernel=types.SimpleNamespace(get_parent=lambda channel: parent))
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))


def test_previous_run_of_the_same_cell(front, monkeypatch):
    previous_run.CURVES_OF_CELLS.clear()

    def runs(value, curves=1):
        for k in range(curves):
            with LossCurve() as curve:
                curve.add(1, loss=value + k)
        return curve

    in_cell(monkeypatch, "a", "1")
    assert runs(5.0, 2)._place.before == []
    in_cell(monkeypatch, "b", "2")
    assert runs(6.0)._place.before == [], "another cell"
    in_cell(monkeypatch, "a", "3")
    second = runs(7.0, 2)
    assert [s.values.tolist() for s in second._place.before] == [[6.0]], "the second curve of that cell"
    assert "gray: previous run" in second.svg() and header(second.encode_before())["series"][0]["name"] == "loss"
    in_cell(monkeypatch, "a", "4")
    assert runs(8.0)._place.before[0].values.tolist() == [7.0]
    in_cell(monkeypatch, "", "5")
    assert runs(1.0)._place.before == [], "without a cell there is nothing to compare with"
    previous_run.CURVES_OF_CELLS.clear()


def test_live_curve_is_not_displayed_twice(front):
    curve = LossCurve()
    curve.add(1, loss=1.0)
    assert set(curve._repr_mimebundle_()) == {"text/plain"}
    curve.finish()
    assert "text/html" in curve._repr_mimebundle_()


def test_buttons_reach_the_run(front):
    pytest.importorskip("anywidget")
    done = []
    control = types.SimpleNamespace(
        state="running",
        pause=lambda: done.append("pause"),
        resume=lambda: done.append("resume"),
        stop=lambda: done.append("stop"),
    )
    curve = LossCurve(control=control, log=True)
    curve.add(1, loss=1.0)
    widget = live_curve.live_widget(curve)
    assert json.loads(widget.look) == {"log": True, "x": "step", "smooth": 1}
    for wish in ("pause 1", "resume 2", "stop 3", "__class__ 4"):
        widget.wish = wish
    widget.look = '{"log": false, "x": "time"}'
    assert done == ["pause", "resume", "stop"] and (curve.log, curve.x) == (False, "time")
    curve.finish()
    widget.close()


def timed(front, monkeypatch, steps, each, **options):
    """Return a curve whose step k was added k * each seconds after its start."""
    now = [100.0]
    monkeypatch.setattr(loss_curve, "clock", lambda: now[0])
    curve = LossCurve(**options)
    curve._front = front  # no update thread
    curve._started = 100.0
    curve._update_thread = types.SimpleNamespace(wake=lambda: None, stop=lambda: None)
    for step in steps:
        now[0] += each
        curve.put(step, {"loss": 1.0})
    return curve


@pytest.mark.parametrize("steps, each, total, status", [
    (range(100, 10100, 100), 0.1, 20000, "step 10,000 of 20,000 · 1000 steps/s · 10 s · 10 s left"),  # every 100th
    (range(1001, 1101), 0.1, 2000, "step 1100 of 2000 · 10 steps/s · 10 s · 90 s left"),  # resumes from a checkpoint
    (range(1001, 1004), 0.5, 2000, "step 1003 of 2000 · 2 steps/s · 1.5 s · 8 min 18 s left"),
    (list(range(60)) * 2, 0.02, 180, "step 59 of 180 · 50 steps/s · 2.4 s · 1.2 s left"),  # restarts at each epoch
    (list(range(60)) * 4, 0.1, 480, "step 59 of 480 · 10 steps/s · 24 s · 24 s left"),
    (range(1, 6), 30.0, 10, "step 5 of 10 · 0.033 steps/s · 2 min 30 s · 2 min 30 s left"),  # slow: not 0 steps/s
])  # fmt: skip
def test_rate_and_remaining_time_count_steps_not_values(front, monkeypatch, steps, each, total, status):
    assert timed(front, monkeypatch, steps, each, total=total)._status() == status


@pytest.mark.parametrize("values", [[1e308, -1e308], [0.0, 5e-324], [5e-324, 1e-323], [1.7e308] * 3, [-1e-310, 1e-310]])
@pytest.mark.parametrize("log", [False, True])
def test_extreme_values_have_a_picture(values, log):
    curve = LossCurve(log=log)
    curve._finished = True
    for value in values:
        curve.add(loss=value)
    assert "<svg" in curve.svg() and "nan" not in curve.svg() and json.dumps(header(curve.encode()), allow_nan=False)


def test_invalid_steps_and_values_are_reported(front):
    curve = LossCurve()
    with pytest.raises(DTypeError, match="a step is a finite number\n  step  nan"):
        curve.add(float("nan"), loss=1.0)
    with pytest.raises(DTypeError, match="loss must be one number, got int that no float can hold"):
        curve.add(loss=10**400)
    with pytest.raises(MinflowError, match="total must be a number of steps\n  got  inf"):
        LossCurve(total=float("inf"))
    assert curve.data == {}


def test_many_or_no_epochs_cost_nothing():
    curve = LossCurve(epoch=0.001)
    curve._finished = True
    curve.add(-3, loss=1.0)
    assert curve.marks() == []
    curve.add(1e12, loss=1.0)
    assert 20 <= len(curve.marks()) <= 41


def test_objects_watched_together_have_separate_rates(front):
    curve = LossCurve()
    for step in range(1, 61):
        curve.put(step, {"sync loss": 1.0, "sync lr": 0.1}, 100 + step * 0.01, 100.0)
        curve.put(step, {"async loss": 1.0}, 200 + step * 0.005, 200.0)
    assert "step 60 · 2 runs · " in curve._status() and curve._status().endswith(" · lr 0.1")
    assert legend(curve) == [
        ["", "last", "steps/s", "time", "lowest", "at step"],
        ["sync loss", "1", "100", "0.6 s", "1", "1"],
        ["async loss", "1", "200", "0.3 s", "1", "1"],
    ]
    assert ">200<" in curve.svg() and ">0.3 s<" in curve.svg()


def test_validation_of_one_of_several_runs_has_its_times(front):
    curve = LossCurve()
    for step in range(1, 61):
        curve.put(step, {"sync loss": 1.0}, 100 + step * 0.01, 100.0)
        curve.put(step, {"async loss": 1.0}, 200 + step * 0.005, 200.0)
    curve.put(60, {"async val_loss": 2.0}, 200.3)
    assert curve._series["async val_loss"].seconds.tolist() == pytest.approx([0.3])
    assert [(s["name"], *s["look"]) for s in header(curve)["series"]] == [
        ("sync loss", 0, 0),
        ("async loss", 1, 1),
        ("async val_loss", 1, 3),
    ]


def test_data_sets_in_names_are_not_runs(front):
    curve = LossCurve()
    for step in range(3):
        curve.add(step, **{"loss": 1.0, "val_loss": 2.0, "test loss": 3.0})
    assert [s["look"] for s in header(curve)["series"]] == [[0, 0], [1, 1], [2, 2]] and header(curve)["panels"] == [
        "loss"
    ]


def test_objects_watched_together_report_a_value_once(front):
    def status(**rates):
        curve = LossCurve()
        for at, (run, lr) in enumerate(rates.items()):
            for step in (1, 2):
                curve.put(step, {f"{run} loss": 1.0, f"{run} lr": lr}, 100 * at + step, 100.0 * at)
        return curve._status().partition(" runs · ")[2].partition(" s")[2], [row[1:5] for row in legend(curve)]

    head = ["last", "steps/s", "time"]
    assert status(sync=0.1, other=0.1) == (" · lr 0.1", [[*head, "lowest"]] + [["1", "1", "2.0 s", "1"]] * 2)
    either = [[*head, "lr"], ["1", "1", "2.0 s", "0.1"], ["1", "1", "2.0 s", "0.2"]]
    assert status(sync=0.1, other=0.2) == ("", either)
    assert status(**{"lr 0.1": 0.1, "lr 0.2": 0.2}) == ("", [[*head, "lowest"]] + [["1", "1", "2.0 s", "1"]] * 2)


def test_curve_as_last_line_of_its_cell_is_not_displayed_twice(front, monkeypatch):
    shown, run = [], [("cell", "run 1")]
    monkeypatch.setitem(
        sys.modules, "IPython.display", types.SimpleNamespace(display=lambda bundle, raw: shown.append(bundle))
    )
    monkeypatch.setattr("minflow.diagnosis.notebook.running_cell", lambda: run[0])
    monkeypatch.setattr(live_curve, "explore", lambda curve: shown.append("live"))
    curve = LossCurve()
    curve.add(1, loss=2.0)
    curve._ipython_display_()
    assert shown == []
    run[0] = "another cell", "run 2"
    curve._ipython_display_()
    assert shown == ["live"]
    curve.finish()
    curve._ipython_display_()
    assert len(shown) == 2 and "text/html" in shown[1]
    run[0] = "cell", "run 1"
    curve._ipython_display_()
    assert len(shown) == 2


@pytest.mark.parametrize("low, high, log, words", [
    (2.1, 9.3, False, ["4", "6", "8"]), (-5.06, -0.7, True, ["1e-05", "0.001", "0.1"]), (-0.3, 0.4, True, ["1", "2"]),
    (-0.88, 0.35, True, ["0.2", "0.5", "1", "2"]),
    (0.911, 0.976, False, ["0.92", "0.94", "0.96"]), (5.0, 5.0, False, ["5"]),
])  # fmt: skip
def test_scale_needs_two_values(low, high, log, words):
    assert [word for _, word in scales.levels(low, high, log, 2)] == words


def test_previous_run_may_contain_infinity(front, monkeypatch):
    in_cell(monkeypatch, "cell-inf", "1")
    with LossCurve() as curve:
        for step in range(20):
            curve.add(step, loss=float("inf") if step == 7 else 1.0 + step)
    in_cell(monkeypatch, "cell-inf", "2")
    with LossCurve() as curve:
        curve.add(0, loss=1.0)
        curve.add(19, loss=2.0)
    assert "inf" not in curve.svg()


@pytest.mark.filterwarnings("error", "default::DeprecationWarning")
def test_unusual_arguments(front):
    """NumPy scalars as options, a panel as a string, arrays with axes; invalid values raise a four-part error."""
    curve = LossCurve(total=np.int64(100), epoch=np.float32(10), log=np.bool_(True), panels="val_Loss")
    assert curve.panels == ("loss",) and curve.log is True
    for value in (np.array([[0.5]]), np.float16(0.5), decimal.Decimal("0.5"), flow.tensor([0.5])):
        curve.add(loss=value)
    assert curve.data["loss"][1].tolist() == [0.5] * 4
    for wrong in (np.complex64(1 + 2j), np.array(1j), None, [1.0], flow.ones(2)):
        with pytest.raises(DTypeError, match="must be one number"):
            curve.add(loss=wrong)
    with pytest.raises(DTypeError) as caught:
        curve.add(np.zeros(3), loss=1.0)
    assert "step=value.mean()" not in str(caught.value)
    curve.mark(0), curve.mark(None)
    curve.finish()
    assert [text for _, _, text, *_ in curve._epochs.marks] == ["0", "2"] and "<svg" in curve.svg()
    for options in ({"panels": None}, {"panels": (1,)}, {"control": object()}, {"epoch": True}, {"x": ["time"]}):
        with pytest.raises(MinflowError, match="LossCurve: "):
            LossCurve(**options)


@pytest.mark.parametrize("values", [[1e9 / 3 * k for k in range(9)], [1e-7 * k for k in range(30)], [2.0, np.nan, 1.0]])
@pytest.mark.parametrize("names", [["loss"], ["loss", "val_loss", "accuracy", "val_accuracy", "lr"], ["损失函数" * 9]])
def test_texts_of_the_picture_have_a_background(front, names, values):
    curve = LossCurve(epoch=2)
    for step, value in enumerate(values):
        curve.add(step * 10**7 + 1, **{name: value + i for i, name in enumerate(names)})
    curve.finish("a note of many words, longer than the picture is wide; " * 4)
    assert not texts_without_background(curve.svg())
