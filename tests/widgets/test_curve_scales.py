"""Automatic features of curves: log scale, dots, gaps at pauses, room for epoch numbers."""

import itertools
import json
import re

import numpy as np
import pytest
from minflow_widgets import LossCurve, frontends
from minflow_widgets.curve import live_curve
from minflow_widgets.curve.panels import spans_decades
from minflow_widgets.curve.scales import isolated, with_gaps

from tests.widgets.watching import header, outlines

pytestmark = pytest.mark.usefixtures("front")


def dots(svg):
    return [(float(x), float(y)) for x, y in re.findall(r'<circle cx="([-\d.]+)" cy="([-\d.]+)"', svg)]


def filled(values, **options):
    with LossCurve(**options) as curve:
        for i, value in enumerate(values):
            curve.add(i + 1, **(value if isinstance(value, dict) else {"loss": value}))
    return curve


def test_huge_first_loss_does_not_flatten_the_rest():
    """Only in that panel, and unless the user has chosen a scale."""
    values = [{"loss": 900_000.0 if i == 0 else 2.0 / i, "accuracy": i / 20} for i in range(20)]
    curve = filled(values)
    assert header(curve)["logs"] == [0] and header(curve)["panels"] == ["loss", "accuracy"]
    svg = curve.svg()
    assert svg.count("log scale: over 4 decades") == 1
    heights = [y for _, y in dots(svg)[:20]]
    assert heights[-1] - heights[1] > 10, "later values are distinguishable"
    for chosen in (True, False):
        curve.log = chosen
        assert "over 4 decades" not in curve.svg()
    assert np.ptp([y for _, y in dots(curve.svg())[1:20]]) < 0.5


def test_scale_includes_the_previous_run():
    curve = filled([2.0, 1.0])
    before = filled([900_000.0, 1.0])
    curve._place.before = [s.downsampled() for s in before._series.values()]
    assert header(curve)["logs"] == [0] and "log scale" in curve.svg()


@pytest.mark.parametrize(("values", "word", "expected"), [
    ([1.0, 9_000.0], "loss", False),
    ([1.0, 11_000.0], "loss", True),
    ([1e-6, 1.0, float("nan"), float("inf")], "loss", True),
    ([1e-6, 1.0], "lr", False),  # a schedule that ends near zero keeps its scale
    ([-1.0, 1e-6, 1.0], "reward", False),
    ([0.0] * 5 + [1e-6, 1.0], "loss", False),  # most would be hidden
    (list(np.linspace(1e-7, 1.0, 500)), "loss", False),  # one is small by chance
    ([0.0] + [3e5] + [1.0] * 50, "loss", True),
    ([], "loss", False),
    ([1e-320, 1e300], "loss", True),
])  # fmt: skip
def test_automatic_logarithmic_scale(values, word, expected):
    assert spans_decades(word, [np.array(values)]) is expected


def test_page_can_choose_scale_and_axis_independently(monkeypatch):
    pytest.importorskip("anywidget")
    curve = filled([900_000.0, 2.0, 1.0])
    widget = live_curve.live_widget(curve)
    assert json.loads(widget.look) == {"log": None, "x": "step", "smooth": 1}
    widget.set_state({"look": '{"log": null, "x": "time"}'})
    assert (curve.log, curve.x) == (None, "time")
    widget.set_state({"look": '{"log": false, "x": "time", "smooth": 3}'})
    assert (curve.log, curve.x, curve.smooth) == (False, "time", 3)
    widget.set_state({"look": '{"smooth": 9}'})
    assert curve.smooth == 1
    frontends.close(widget)


@pytest.mark.parametrize("n", [3, 100])
def test_single_value_before_nan_is_a_dot(n):
    curve = filled([2.3] + [float("nan")] * (n - 1))
    assert len(dots(curve.svg())) == 1
    curve = filled([2.3, 2.2] + [float("nan")] * 50 + [1.0] + [float("nan")] * 50)
    assert len(dots(curve.svg())) == 1, "two values are a line"


def test_points_between_gaps():
    nan = float("nan")
    y = np.array([1.0, nan, 2.0, 3.0, nan, nan, 4.0])
    assert isolated(np.arange(7.0), y) == [(0.0, 1.0), (6.0, 4.0)] and isolated(np.empty(0), np.empty(0)) == []
    x, y = with_gaps(np.array([0.0, 1.0, 2.0, 8.0, 9.0]), np.arange(5.0), [[2.5, 7.5]])
    assert x.tolist() == [0, 1, 2, 5, 8, 9] and np.isnan(y).tolist() == [False, False, False, True, False, False]
    x, y = with_gaps(np.array([0.0, 5.0, 9.0]), np.arange(3.0), [[2.5, 7.5]])
    assert np.isnan(y[(x > 2.5) & (x < 7.5)]).all() and y[0] == 0 and y[-1] == 2, (
        "a mean in the middle of a pause has no time"
    )


def texts(svg):
    return [
        (float(x), float(y), anchor, text)
        for x, y, anchor, text in re.findall(
            r'<text x="([-\d.]+)" y="([-\d.]+)" fill="[^"]*" text-anchor="(\w+)">([^<]*)</text>', svg
        )
    ]


@pytest.mark.parametrize("epochs", [4, 30, 40, 300])
@pytest.mark.parametrize("x", ["step", "time"])
def test_epoch_numbers_overlap_neither_curve_nor_each_other(epochs, x):
    curve = LossCurve(epoch=10, x=x)
    for i in range(10 * epochs):
        curve.put(i + 1, {"accuracy": 1 - 1 / (i + 2)}, when=curve._started + 0.01 * i)
    curve.finish()
    svg = curve.svg()
    found = [t for t in texts(svg) if t[2] == "end" and t[3].isdigit() and t[0] > 55]
    assert len(found) >= 4 and len({y for _, y, *_ in found}) == 1
    for (a, *_, first), (b, *_, second) in itertools.pairwise(found):
        assert b - 6.4 * len(second) - a >= 3, (first, second)
    heights = [y for pieces in outlines(svg) for piece in pieces for _, y in piece]
    assert min(heights) > found[0][1] + 1, "the best values would be under the numbers"


class Control:
    state = "running"

    def pause(self):
        pass


def test_pause_does_not_count_as_training(monkeypatch):
    """While paused no time left is shown; then the rate is the previous one, and a time axis has a gap."""
    now = [100.0]
    monkeypatch.setattr("minflow_widgets.curve.loss_curve.clock", lambda: now[0])
    curve = LossCurve(total=400, control=Control(), x="time")
    curve._start()
    curve._update_thread.stop()

    def steps(n):
        for _ in range(n):
            now[0] += 0.1
            curve.add(loss=1.0 + now[0] % 7)
            curve._take_new_values()

    steps(100)
    assert " s left" in curve._status() and "10 steps/s" in curve._status()
    curve.control.state = "paused"
    curve._take_new_values()
    now[0] += 30
    curve._take_new_values()
    assert "left" not in curve._status() and curve._status().endswith(" · paused")
    curve.control.state = "running"
    curve._take_new_values()
    steps(100)
    assert curve._status().startswith("step 199 of 400 · 10 steps/s · 50 s · 30 s of pauses · 20 s left")
    ((a, b),) = header(curve)["gaps"]
    assert 10 < a < 14 and 36 < b < 40.2
    blue = 'fill="none" stroke="#3f86d2"'
    for pieces in outlines(curve.svg(), blue):
        assert len(pieces) == 2
        assert max(x - before for piece in pieces for (before, _), (x, _) in itertools.pairwise(piece)) < 40
    curve.x = "step"
    whole = outlines(curve.svg(), blue)
    assert whole and all(len(pieces) == 1 for pieces in whole)
    curve.finish()
    assert "10 steps/s · 50 s · 30 s of pauses" in curve._status()
