"""The card of a tensor: its text, marked cells, size, and which tensors stay text."""

import json
import math
import re

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.trace import trace
from minflow.introspection.graph.explore.array_summary import summary_of
from minflow.views.draw import theme
from minflow.views.draw.png import png
from minflow.views.renderers.tensor import (
    MAX_SIDE,
    MAX_TEXT_ELEMENTS,
    array_record,
    numbers_line,
    shown_line,
    tensor_record,
    tensor_text,
)
from minflow.views.renderers.tensor_picture import (
    COLOR_LEVELS,
    INF_INDEX,
    NAN_INDEX,
    NEG_INF_INDEX,
    cell_pixels,
    palette,
    palette_indices,
    tensor_svg,
)
from minflow.views.show import picture
from minflow.views.text.sparkline import curve_line, shaded, sparkline
from minflow.views.text.tables import ruled_table
from tests.svg_checks import pixels_of, svg_in, texts_without_background

LIMIT = 20_000  # bytes of the HTML of one card


def html_of(x) -> str:
    return x._repr_mimebundle_().get("text/html", "")


@pytest.mark.parametrize("shape", [(), (1,), (4, 4), (0, 3), (2, 0, 5), (16,)])
def test_scalars_tiny_and_empty_tensors_stay_text(shape):
    x = flow.zeros(*shape) if shape else flow.tensor(1.5)
    assert x.numel() <= MAX_TEXT_ELEMENTS and x._repr_mimebundle_() == {"text/plain": repr(x)}


@pytest.mark.parametrize("make", [
    lambda: flow.randn(64, 10), lambda: flow.randn(3000, 2000), lambda: flow.randn(20, 28, 28),
    lambda: flow.randn(64, 64, 3, 3),
    lambda: flow.randn(12, 8) * 1e-7, lambda: flow.arange(100_000), lambda: flow.randn(48, 48).half(),
    lambda: flow.randn(12, 8, 5, 5, 5),
    lambda: flow.full((12, 8), math.nan), lambda: flow.ones(2, 3, 1, 1, 9), lambda: flow.arange(48).reshape(6, 8) > 7,
    lambda: flow.randn(1, 28, 28), lambda: flow.full((48, 48), 1e38).double() * flow.randn(48, 48).double(),
])  # fmt: skip
def test_cards_are_small_and_keep_the_text(make):
    x = make()
    bundle = x._repr_mimebundle_()
    html = bundle["text/html"]
    assert set(bundle) == {"text/plain", "text/html"} and bundle["text/plain"] == repr(x)
    assert len(json.dumps(bundle["text/html"])) < LIMIT
    assert "<script" not in html and "<svg" not in html and "<style" not in html and str(x.spec) in html
    assert html == html_of(x)


def test_line_of_statistics():
    x = np.arange(40.0).reshape(5, 8)
    x[0, 0], x[1, 1], x[4, 7] = np.nan, np.inf, -np.inf
    line = numbers_line(array_record(x, "float64[5, 8]"))
    finite = x[np.isfinite(x)]
    assert line == f"40 numbers: min 1, mean {finite.mean():.4g}, max 38; 1 NaN, 1 inf, 1 -inf"
    assert numbers_line(array_record(np.full((4, 5), np.nan), "")) == "20 numbers, none finite: 20 NaN"
    assert numbers_line(array_record(np.arange(30) > 9, "")) == "20 of 30 numbers true"
    assert numbers_line(array_record(np.zeros((5, 5), np.int64), "")) == "25 numbers, all 0"
    half = np.full(100, 60000, np.float16)
    half[0] = 10000
    assert "mean 5.95e+04" in numbers_line(array_record(half, ""))  # the mean of float16 does not overflow


def test_one_nan_in_a_million_is_marked_and_counted():
    x = flow.zeros(1000, 1000)
    x[617, 3] = math.nan
    record = tensor_record(x)
    cells = np.array(record.tiles[0].cells)
    assert cells.shape == (MAX_SIDE, MAX_SIDE) and np.isnan(cells).sum() == 1 and record.nan == 1
    assert list(np.argwhere(np.isnan(cells))[0]) == [617 * MAX_SIDE // 1000, 0]
    assert shown_line(record) == "shown: 48 of 1,000 rows, 48 of 1,000 columns"
    html = html_of(x)
    assert "1 NaN" in html and "× NaN" in svg_in(html)


def test_marks_do_not_rely_on_color():
    found = palette_indices(np.array([[0.0, np.nan, np.inf, -np.inf, 1.0]]), 0.0, 1.0)
    assert found.tolist() == [[0, NAN_INDEX, INF_INDEX, NEG_INF_INDEX, COLOR_LEVELS - 1]]
    drawn = cell_pixels(found, 7)
    assert (drawn[:, :7] == 0).all() and (drawn[:, 28:] == COLOR_LEVELS - 1).all()
    shapes = [drawn[:, 7 * k : 7 * k + 7] >= COLOR_LEVELS + 4 for k in (1, 2, 3)]
    assert all(0 < s.sum() < 49 for s in shapes) and not (shapes[0] == shapes[1]).all()
    assert not (shapes[1] == shapes[2]).all()
    bright = palette(True).astype(int).sum(1)
    assert bright[COLOR_LEVELS + 4] - bright[NAN_INDEX] > 300


def test_png_has_the_painted_pixels():
    cells = np.random.default_rng(0).integers(0, 50, (9, 13)).astype(np.uint8)
    assert (pixels_of(png(cells.repeat(3, 0), palette(False))) == cells.repeat(3, 0)).all()
    for depth in (2, 3, 4):
        colors = np.random.default_rng(0).integers(0, 255, (5, 4, depth)).astype(np.uint8)
        assert (pixels_of(png(colors)) == colors).all()
    assert b"tRNS\xff\xff\xff\0" in png(cells, palette(False), 3)


def test_outlier_does_not_hide_the_others():
    x = np.random.default_rng(0).standard_normal((40, 40))
    x[3, 3] = 1e30
    counts, _low, high = array_record(x, "").histogram
    assert high < 100 and sum(counts) == 1600 and max(counts) < 800
    assert "≥" in tensor_svg(array_record(x, "float64[40, 40]"))


def test_values_are_written_if_they_fit_or_a_reason_is_given():
    fits, wide = (picture(flow.randn(*shape), numbers=True).bundle()["text/html"] for shape in ((16, 12), (20, 20)))
    assert svg_in(fits).count("<text") > 16 * 12 and "colors only" not in svg_in(fits)
    assert len(json.dumps(fits)) < LIMIT + 10_000
    assert "colors only: numbers are written into at most 16 rows and 12 columns" in svg_in(wide)
    assert "colors only" not in svg_in(html_of(flow.randn(20, 20))) and "how often; tallest bar: " in svg_in(wide)


@pytest.mark.parametrize("shape, titles, across", [
    ((2, 4, 10, 10), ["[0, 0]", "[0, 1]", "[0, 2]", "[0, 3]", "[1, 0]", "[1, 1]", "[1, 2]", "[1, 3]"], 4),
    ((50, 1, 28, 28), [f"[{i}, 0]" for i in range(6)], 3),
    ((16, 6, 5, 5), [f"[{i}, {k}]" for i in range(4) for k in range(6)], 6),
    ((64, 64, 3, 3), [f"[{i}, {k}]" for i in range(3) for k in range(8)], 8),
    ((4, 5, 6, 7, 8), [f"[0, {i}, {k}]" for i in range(4) for k in range(6)], 6),
    ((3, 7, 9), ["[0]", "[1]", "[2]"], 3), ((1, 1, 9, 9), [""], 1),
])  # fmt: skip
def test_slices_are_arranged_in_a_grid_by_index(shape, titles, across):
    """The last axis before the matrices runs from left to right, earlier axes downward."""
    x = flow.arange(math.prod(shape)).reshape(*shape).float()
    record = tensor_record(x)
    assert [tile.title for tile in record.tiles] == titles and record.across == across
    for tile in record.tiles:
        index = tuple(json.loads(tile.title)) if tile.title else (0,) * (len(shape) - 2)
        assert tile.cells[0][0] == x.numpy()[index][record.rows // min(record.rows, 28) // 2, 0]
    drawn = svg_in(html_of(x))
    assert all(title in drawn for title in titles)
    assert ("one scale for all" in drawn) == (len(titles) > 1)
    assert (f"{len(titles)} of {record.slices:,} slices" in drawn) == (len(titles) < record.slices)


def test_values_of_small_slices_are_written():
    view = picture(flow.arange(24).reshape(2, 3, 4), numbers=True)
    assert "[1]\n      0   1   2   3\n  0  12  13  14  15\n  1  16" in view.text
    places = {words: (float(x), float(y)) for x, y, words in re.findall(r'<text x="(\S+)" y="(\S+)">(\d+)<', view.svg)}
    assert places["17"][0] > places["7"][0] and places["17"][1] == places["5"][1] < places["21"][1]


@pytest.mark.parametrize("make", [
    lambda: flow.randn(8, 8) * 1e-5, lambda: flow.randn(300_000, 3), lambda: flow.randn(2, 3, 4, 5),
    lambda: flow.ones(5, 5) > 0,
    lambda: nn.Parameter(flow.full((5, 6), -1e38)), lambda: flow.arange(40) * 10**9, lambda: flow.randn(20, 28, 28),
])  # fmt: skip
def test_texts_have_a_background_and_values_are_readable(make):
    x = make()
    x._label = "卷积层" * 40
    plates = texts_without_background(picture(x, numbers=True).svg)
    assert not [words for words in plates if not re.fullmatch(r"[-+.e\d]+|True|inf|nan", words)]
    for diverging in (False, True):
        for color in ["#" + bytes(color).hex() for color in palette(diverging)]:
            assert theme.contrast(theme.text_color_on(color), color) >= 4.5


def test_integers_have_a_bin_each():
    counts, low, high = array_record(np.array([0, 1, 1, 3] * 5), "").histogram
    assert counts == (5, 10, 0, 5) and (low, high) == (0.0, 3.0)


def test_origin_of_a_tensor():
    x = flow.randn(5, 6, requires_grad=True)
    assert "leaf, requires grad" in html_of(x) and "grad:" not in html_of(x)
    y = x.tanh()
    assert re.search(r"result of tanh at test_tensor_card\.py:\d+", html_of(y))
    y.sum().backward()
    assert "grad: " in html_of(x) and "grad    " in tensor_text(tensor_record(x))
    assert "leaf, requires grad (weight)" in html_of(nn.Linear(5, 6).weight) and "requires" not in html_of(x.detach())


def test_symbolic_tensor_describes_itself():
    seen = []

    def program(x):
        y = (x * 2).relu()
        seen.extend([x, y, y._repr_mimebundle_(), x._repr_mimebundle_()])
        return y

    trace(program, [flow.ones(30, 3)])
    result, given = seen[2], seen[3]
    assert "symbolic: result of relu at test_tensor_card.py" in result["text/html"]
    assert "float32[30, 3]" in result["text/html"]
    assert "symbolic: input" in given["text/html"] and "<img" not in given["text/html"]
    assert "when the graph runs" in tensor_text(tensor_record(seen[1]))


def test_repr_never_raises_and_runs_only_on_display(monkeypatch):
    from minflow.views import show

    x = flow.randn(50, 50)
    monkeypatch.setattr(show, "tensor_record", lambda x: 1 / 0)
    (x * 2).sum()
    assert repr(x) and "no picture: ZeroDivisionError" in x._repr_mimebundle_()["text/plain"]


def test_large_tensor_is_shown_quickly():
    x = flow.zeros(6000, 4000)
    x[0, 0] = math.inf
    record = tensor_record(x)
    assert record.sample_size < x.numel() / 10 and "at least 1 inf" in numbers_line(record)
    assert "a sample of" in numbers_line(record)


def test_views_and_transposes_are_shown_correctly():
    x = flow.arange(200).reshape(10, 20)
    record = tensor_record(x.t())
    assert np.array_equal(np.array(record.tiles[0].cells), x.numpy().T)
    assert "<img" in html_of(x[:, ::2]) and "<img" in html_of(x.t())


# ---- lines of text ---------------------------------------------------------------------------------------------------


def test_sparklines():
    assert sparkline([]) == "" and sparkline([2, 2]) == "▁▁" and sparkline([math.nan]) == "×"
    assert sparkline(range(8)) == "▁▂▃▄▅▆▇█" and len(sparkline(range(10_000), 30)) == 30
    assert sparkline([1e308, -1e308]) in ("▁█", "▁▁", "█▁", "××")
    assert curve_line("loss", [0, 1, 2, 3], [1.0, 0.5, math.nan, 0.75]) == (
        "loss █▁×▅ 0.75  min 0.5 at 1, max 1 at 0, NaN from step 2 (1 not finite)"
    )
    assert curve_line("a\nb", [], []) == "a\\x0ab (no values)"
    assert shaded([[0, 1], [math.nan, 0.5]]) == ["  ██", "××▒▒"]


def test_tables_line_up():
    assert ruled_table(["name", "n"], [["a", "10"], ["bcdef", "9"]], right=[1]) == [
        "name    n",
        "---------",
        "a      10",
        "bcdef   9",
    ]


@pytest.mark.parametrize("ends", [(0.0, 1e-310), (0.0, 5e-324), (-1e308, 1e308), (1e200, 1e200)])
def test_subnormal_and_extreme_values_have_a_card(ends):
    x = flow.tensor(np.array(ends * 20))
    bundle = x._repr_mimebundle_()
    assert "text/html" in bundle and "no picture" not in bundle["text/plain"]
    counts = tensor_record(x).histogram[0]
    assert counts == () or (counts[0], counts[-1], sum(counts)) == (20, 20, 40)
    found = summary_of(x.array)
    assert sum(found.counts) == 40 and found.counts[0] in (20, 40)


def test_empty_tensor_can_be_drawn(tmp_path):
    view = picture(flow.zeros(0, 3), numbers=True)
    assert "no numbers" in view.svg
    view.save(tmp_path / "empty.svg")


def test_different_large_integers_are_not_called_equal():
    record = array_record(np.arange(2**60, 2**60 + 60), "int64[60]")
    assert numbers_line(record) == "60 numbers: min 1.153e+18, mean 1.153e+18, max 1.153e+18"
    assert numbers_line(array_record(np.full(60, 7), "int64[60]")) == "60 numbers, all 7"


@pytest.mark.parametrize("shape", [(), (20,), (3, 20), (4, 3, 20), (2, 4, 3, 20)])
def test_complex_tensor_shows_both_parts(shape):
    z = np.random.default_rng(0).standard_normal((*shape, 2)) @ [1, 1j]
    record = array_record(z, "complex128")
    size = 2 * z.size
    assert numbers_line(record).startswith(f"{size:,} real and imaginary parts: min ")
    assert (record.minimum, record.maximum) == (min(z.real.min(), z.imag.min()), max(z.real.max(), z.imag.max()))
    titles = [tile.title for tile in record.tiles]
    where = "" if len(shape) < 3 else f" {[0] * (len(shape) - 2)}"
    assert titles[:2] == [f"real{where}", f"imag{where}"]
    assert record.tiles[1].cells[0][0] == z.imag.reshape(-1)[0]
    bundle = flow.tensor(np.broadcast_to(z, (20, *shape)).copy())._repr_mimebundle_()  # warnings are errors here
    assert "real and imaginary parts" in bundle["text/html"]
