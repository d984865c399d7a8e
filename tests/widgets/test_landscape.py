"""Loss landscapes: drawn values are the computed ones, the path is where training went, a sentence states the
result.
"""

import re

import numpy as np
import pytest
from minflow_widgets.figures import Landscape, landscape, landscape_text

import minflow as flow
from minflow.core.base.errors import DTypeError, ShapeError
from tests.widgets.plotting import HOSTILE

pytestmark = pytest.mark.usefixtures("agg")


def bowl(w, b):
    return (w - 1) ** 2 + 2 * (b + 0.4) ** 2 + 0.25


def test_heights_and_path_match_the_loss():
    asked = []
    land = Landscape(lambda w, b: asked.append((w, b)) or bowl(w, b), (-3, 5), (-4, 4), [[0, 0], [0.5, -0.2]])
    land.step(np.float32(1), flow.tensor(-0.4, dtype=flow.float64))
    assert all(type(x) is float for place in asked for x in place) and len(asked) == 41 * 41 + 3
    assert np.allclose(land.heights, bowl(*np.meshgrid(np.linspace(-3, 5, 41), np.linspace(-4, 4, 41))))
    assert land.path == [(0, 0), (0.5, -0.2), (1, -0.4)]
    assert np.allclose(land.losses, [1.57, bowl(0.5, -0.2), 0.25])
    ax = land.plot()
    ax.figure.canvas.draw()
    lines = {line.get_label(): line.get_xydata() for line in ax.get_lines()}
    assert np.allclose(lines["start"], [[0, 0]]) and np.allclose(lines["step 2"], [[1, -0.4]])
    assert np.allclose(ax.get_lines()[2].get_xydata(), land.path)
    low = lines["lowest"][0]
    assert bowl(*low) == land.heights.min()
    assert ax.get_xlim() == (-3, 5) and ax.get_ylim() == (-4, 4) and ax.get_xlabel() == "w"
    assert ax.get_title() == "loss 1.57 at the start, 0.25 after 2 steps\nw = 1, b = -0.4"


def test_start_step_and_minimum_do_not_rely_on_color():
    ax = landscape(bowl, (-3, 5), (-4, 4), [(0, 0), (1, 1)])
    assert len({line.get_marker() for line in ax.get_lines() if not line.get_label().startswith("_")}) == 3
    assert len(ax.texts) >= 4  # numbers on the contours
    from matplotlib.figure import Figure

    given = Figure().subplots()
    assert landscape(bowl, (-3, 5), (-4, 4), ax=given) is given


def test_end_of_the_walk_is_seen_next_to_the_lowest_place():
    ax = landscape(bowl, (-3, 5), (-4, 4), [(0, 0), (1, -0.4)])
    drawn = {line.get_label(): line for line in ax.get_lines()}
    assert drawn["step 1"].get_markersize() > 2 * drawn["lowest"].get_markersize()
    assert all(number.get_zorder() <= drawn["step 1"].get_zorder() for number in ax.texts)


def test_text_is_a_map_and_a_sentence():
    lines = landscape_text(bowl, (-3, 5), (-4, 4), [(0, 0), (0.4, -0.2), (1, -0.4)]).splitlines()
    letters = lines[:21]
    assert {len(line) for line in letters} == {41} and set("".join(letters)) == set("0123456789SE*")
    assert letters[10][15] == "S" and letters[11][20] == "E" and letters[10][17] == "*"
    assert letters[0][-1] == "9" and letters[11][21] == "0"
    assert lines[21:] == [
        "The loss over w from -3 to 5 and b from -4 to 4: from 0.25 at w = 1, b = -0.4 up to 55. The walk: "
        "loss 1.57 at the start, 0.25 after 2 steps, w = 1, b = -0.4."
    ]
    assert landscape_text(bowl, (-3, 5), (-4, 4)).endswith("b = -0.4 up to 55.")


def test_path_leaving_the_map_and_non_finite_loss():
    land = Landscape(bowl, (-1, 1), (-1, 1), [(0, 0), (50, 0)])
    assert land.plot().get_title().endswith("after 1 step\nw = 50, b = 0, outside the picture")
    assert [line.get_text() for line in land.plot().get_legend().get_texts()] == ["lowest", "start"]
    assert land.text().splitlines()[10].count("E") == 0
    land.step(float("nan"), 0.0)
    land.plot().figure.canvas.draw()
    assert "nan after 2 steps" in land.text()
    half = Landscape(lambda w, b: np.sqrt(w), (-1, 1), (-1, 1))
    assert half.text().splitlines()[0].startswith("xxxxxxxxxxxxxxxxxxxx0") and "lowest" in half.plot().get_title()
    nowhere = Landscape(lambda w, b: float("inf"), (-1, 1), (-1, 1))
    assert nowhere.plot().get_title() == "the loss is nowhere finite" and "xxx" in nowhere.text()
    flat = landscape(lambda w, b: 2, (-1, 1), (-1, 1))
    flat.figure.canvas.draw()


def test_gradients_are_not_recorded():
    x, y = map(flow.tensor, flow.data.points("line", 20))
    w = flow.tensor(1.0, requires_grad=True)
    seen = []
    land = Landscape(lambda a, b: seen.append(((a * w * x + b - y) ** 2).mean()) or seen[-1], (-1, 7), (-5, 3))
    assert not any(loss.requires_grad for loss in seen) and flow.is_grad_enabled()
    assert abs(land._lowest()[0] - 3) < 0.2


def test_notebook_gets_text_with_the_picture():
    land = Landscape(bowl, (-3, 5), (-4, 4), [(0, 0), (1, 1)])
    bundle = land.bundle()
    assert set(bundle) == {"text/html", "image/svg+xml", "text/plain"} and bundle["text/plain"] == land.text()
    assert re.search(r'<img alt="The loss over w from -3 to 5 .*The walk: loss 1.57 at the start', bundle["text/html"])
    assert bundle == land.bundle()  # without date or run id
    assert landscape(bowl, (-3, 5), (-4, 4), [(0, 0), (1, 1)]).figure._repr_mimebundle_() == bundle
    assert sum(map(len, bundle.values())) < 300_000


def test_names_are_escaped():
    land = Landscape(bowl, (-3, 5), (-4, 4), [(0, 0), (1, 1)], names=(HOSTILE, "_b"))
    bundle = land.bundle()
    assert "no picture" not in bundle["text/plain"] and "\x1b" not in bundle["text/plain"]
    assert "<script" not in bundle["text/html"] and "<script" not in bundle["image/svg+xml"]


@pytest.mark.parametrize("arguments, kind, said", [
    ((3, (0, 1), (0, 1)), DTypeError, ["loss", "int 3", "lambda w, b"]),
    ((bowl, 3, (0, 1)), ShapeError, ["w", "int 3", "w=(-1, 5)"]),
    ((bowl, (0, 1), (1, 0)), ShapeError, ["b", "(1, 0)"]),
    ((bowl, (0, 1), (0, float("inf"))), ShapeError, ["b", "inf"]),
    ((bowl, "w", (0, 1)), DTypeError, ["w", "str 'w'"]),
    ((bowl, (0, 1), (0, 1), [1, 2, 3]), ShapeError, ["path", "[3]", "[[0, 0], [0.5, -0.2]]"]),
    ((lambda w, b: np.ones(3), (0, 1), (0, 1)), DTypeError, ["the loss", "(3,)", ".mean()"]),
])  # fmt: skip
def test_mistakes(arguments, kind, said):
    with pytest.raises(kind) as error:
        Landscape(*arguments)
    assert all(word in str(error.value) for word in said), str(error.value)
    with pytest.raises(DTypeError, match="names"):
        Landscape(bowl, (0, 1), (0, 1), names="wb")
    with pytest.raises(DTypeError, match="b must be one number, got str"):
        Landscape(bowl, (0, 1), (0, 1)).step(0, "x")
