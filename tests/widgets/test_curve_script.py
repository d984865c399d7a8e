"""curve_panel.js in node agrees with curve/panels.py: numbers, steps, times."""

import base64
import json
import re
import zlib

import numpy as np
import pytest
from minflow_widgets import LossCurve
from minflow_widgets.curve import curve_svg, live_curve, scales
from minflow_widgets.curve.curve_svg import thick_line
from minflow_widgets.curve.legend import Row
from minflow_widgets.curve.panels import encode
from minflow_widgets.curve.series import Series, number

from tests.widgets.scripts import in_node, needs_node
from tests.widgets.watching import header

pytestmark = needs_node


def decoded(series, on_time=False):
    """Return the series as decoded by the page."""
    read = "decode(new DataView(Uint8Array.from(given).buffer))"
    lines = (
        f"{f'onTime({read})' if on_time else read}.series.map((s) => ({{...s, x: [...s.x], mx: [...s.mx], y: "
        f"[...s.y]}}))"
    )
    return in_node(lines, list(encode(series, "")))


def test_numbers_are_formatted_as_in_python():
    rng = np.random.default_rng(0)
    values = [
        0,
        1,
        -1,
        0.1,
        1e-4,
        9.9999e-5,
        1.234e-5,
        -7.5e-7,
        1e-300,
        9999.4,
        9999.6,
        12345.6,
        -1234567,
        999_999_999,
        1e9,
        1.2345e12,
        1e300,
    ]
    values += (rng.standard_normal(400) * 10.0 ** rng.integers(-12, 13, 400)).tolist()
    assert in_node("given.map(number)", values) == [number(v) for v in values]
    assert number(1.234e-5) == "1.234e-05" and number(12345.6) == "12,346"


def test_steps_that_restart_each_epoch_have_times():
    loss, val = Series("loss"), Series("val_loss")
    for i in range(300):
        loss.add(i % 50, float("nan") if i == 120 else 1 / (1 + i), 0.1 * i)
    for epoch in range(6):
        val.add(epoch, 1.0, 5.0 * (epoch + 1))
    shown = decoded([loss, val], on_time=True)
    assert shown[0]["x"] == pytest.approx(loss.points("time")[0], abs=1e-4) and shown[0]["bad"] == pytest.approx(12.0)
    assert shown[0]["mx"] == pytest.approx(loss.means("time")[0], abs=1e-4)
    assert shown[1]["x"] == pytest.approx([5.0, 10.0, 15.0, 20.0, 25.0, 30.0])
    assert decoded([loss, val])[0]["x"] == loss.points()[0].tolist()


def test_large_steps_remain_distinct():
    loss = Series("loss")
    for i in range(20):
        loss.add(1.7e9 + i / 8, 1.0, float(i))
    (shown,) = decoded([loss])
    assert shown["x"] == loss.steps.tolist()


def test_ticks_of_nearly_equal_numbers_terminate():
    close = [1.7e9, 1.7e9 + 2.4e-7]
    assert len(in_node("ticks(given[0], given[1], 6)", close)) <= 100
    assert in_node("ticks(0, 10, 5)", None) == [0, 2, 4, 6, 8, 10]


@pytest.mark.parametrize(
    ("low", "high"), [(0.13, 2.2), (1e-5, 40.0), (1.1, 1.9), (0.1, 1000.0), (3.0, 4.0), (1e-30, 1e30)]
)
def test_log_scale_has_the_ticks_of_the_picture(low, high):
    expected = [10**y for y, _ in scales.levels(np.log10(low), np.log10(high), True, 4)]
    assert in_node("logTicks(given[0], given[1], 4)", [low, high]) == pytest.approx(expected) and len(expected) > 1


def test_nearest_point_also_with_restarting_steps():
    assert in_node("given[1].map((x) => nearest(given[0], x))", [[0, 1, 2, 0.2, 1.2, 2.2], [1.15, 0.05, 9]]) == [
        4,
        0,
        5,
    ]


def test_numbers_beyond_float32_are_not_gaps():
    loss = Series("loss")
    for step, value in enumerate([1.0, 1e300, float("nan"), -1e300]):
        loss.add(step, value)
    (shown,) = decoded([loss])
    assert shown["y"] == [1.0, pytest.approx(3.4e38), None, pytest.approx(-3.4e38)]


def test_legend_has_as_many_rows_as_needed():
    rows = [[["val_accuracy 0.99 · highest 0.99 at step 550"], 0, ""], [["NaN from step 9"], None, "bad"]]
    assert laid_out(rows, 180) == [
        [[[0, "val_accuracy 0.99 · highest", ""]], 0, ""],
        [[[0, "0.99 at step 550", ""]], None, ""],
        [[[0, "NaN from step 9", ""]], None, "bad"],
    ]


def laid_out(rows, room):
    """The rows of a legend as on a page where each character is 6 pixels wide."""
    return in_node("legendOf({measureText: (s) => ({width: 6 * s.length})}, given[0], given[1])", [rows, room])


@pytest.mark.parametrize(("room", "texts"), [
    (500, [[0, "a long name"], [104, "0.5"], [154, "0.25"], [210, "1000"]]),
    (200, [[0, "a long name"], [104, "0.5"], [154, "0.25"]]),  # less important columns are dropped
    (80, [[0, "a long\u2026"], [80, "0.5"]]),  # then the name is cut
])  # fmt: skip
def test_table_of_lines_fits_into_the_legend(room, texts, monkeypatch):
    rows = [Row(["", "last", "lowest", "at step"], None, "head"), Row(["a long name", "0.5", "0.25", "1000"], 0)]
    monkeypatch.setattr(curve_svg, "text_width", lambda text, size: 6 * len(text))
    page, picture = laid_out(rows, room)[1], curve_svg.layout(rows, room)[1]
    assert [each[:2] for each in page[0]] == texts and page[1:] == [0, ""]
    assert [list(each[:2]) for each in picture.texts][1:] == texts[1:] and picture.line == 0


@pytest.mark.parametrize(("k", "x", "y", "words"), [
    (0, None, None, None),
    (1, [2, 4], [1.5, 3.5], "thick line: mean of 10 values"),
    (3, [3, 3], [2.5, 2.5], "thick line: smoothed over 14 values"),
])  # fmt: skip
def test_smoothing_of_the_reader_widens_the_mean(k, x, y, words):
    line = {"n": 60, "m": 2, "window": 10, "mx": [2, 4], "my": [1.5, 3.5]}
    found = in_node("smoothed(given[0], 'loss', given[1], false, [])", [line, k])
    assert found == (words and {"x": x, "y": y, "words": words})


def test_mean_of_an_unevenly_measured_norm_is_over_steps():
    norm = Series("gradient norm")
    steps = [*range(1, 101), *range(110, 1001, 10)]
    norm.extend(steps, [1.0 if step <= 100 else 3.0 for step in steps], [step / 10 for step in steps])
    norm.every = 10
    x, means, width = norm.means()
    assert width == 5 * 32 and len(x) == 32 and np.ptp(np.diff(x)[5:-5]) <= 32
    assert means[0] == 1.0 and means[6:].tolist() == [3.0] * 26 and 1.0 < means[3] < 3.0
    assert norm.means("time")[0] == pytest.approx(x / 10)
    words = [in_node(f"smoothed(given.series[0], 'norm', {k}, false, []).words", {"series": [shown]})
             for k in (1, 3) for shown in header(encode([norm], ""))["series"][:1]
             if not shown.update(x=[], y=[], mx=[], my=[])]  # fmt: skip
    assert words == ["thick line: mean over 160 steps", "thick line: smoothed over 224 steps"]
    assert thick_line(norm, "step")[2] == "mean over 160 steps"


def test_many_epoch_means_are_the_thick_line():
    ends = [[k, 1 / k, k / 10] for k in range(1, 41)]
    line = {"n": 60, "m": 2, "window": 10, "mx": [2, 4], "my": [1.5, 3.5], "epochs": ends}
    found = in_node("smoothed(given, 'loss', 1, true, given.epochs)", line)
    assert found["x"][:2] == [0.1, 0.2] and found["y"][:2] == [1, 0.5] and found["words"] == "thick line: epoch means"
    assert [in_node("!!ringed(given)", {**line, "epochs": ends[:n]}) for n in (30, 31)] == [True, False]


def test_saved_output_has_the_whole_curve_and_is_small():
    curve = LossCurve(epoch=60)
    curve._finished, curve._ended = True, curve._started + 6.0
    for step in range(1, 601):
        curve.add(step, loss=2 * np.exp(-step / 90) + 0.1 * np.sin(step), **{"gradient norm": np.cos(step)})
        if step % 60 == 0:
            curve.add(val_loss=1.0 / step)
    html = curve.bundle()["text/html"]
    data = json.loads(re.search(r'\{"code":.*?\}(?=\))', html)[0].replace("\\u003c", "<"))
    assert zlib.decompress(base64.b64decode(data["data"])) == curve.encode() and data["before"] == live_curve.deflated(
        b""
    )
    assert "function render" in zlib.decompress(base64.b64decode(data["code"])).decode()
    assert json.loads(data["look"]) == {"log": None, "x": "step", "smooth": 1}
    assert len(html) < 50_000 and html.index("<img") < html.index("<script>")
    curve._finished = False
    assert "<script>" not in curve.bundle()["text/html"], "a picture that is redrawn ten times a second"
