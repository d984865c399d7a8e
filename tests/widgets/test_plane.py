"""The colored plane: positions have the class that the model predicts, points their own; models are unchanged."""

import numpy as np
import pytest
from minflow_widgets.figures import Plane, plane, plane_text

import minflow as flow
from minflow import nn
from minflow.core.base.errors import DTypeError, ShapeError
from tests.widgets.plotting import HOSTILE, drawn

pytestmark = pytest.mark.usefixtures("agg")

X, Y = np.array([[-1.0, 0.0], [1.0, 1.0], [0.5, 0.5]]), np.array([0, 1, 0])


def corner(x):
    """Class 2 in the upper right quarter, else 1 on the right, else 0."""
    return flow.stack([-x[:, 0], x[:, 0] - 1e-3, x.min(dim=1)[0] * 2], dim=1)


def test_each_position_has_its_class():
    shown = Plane(corner, X, Y)
    x0, x1 = np.meshgrid(shown.across, shown.up)
    expected = np.stack([-x0, x0 - 1e-3, 2 * np.minimum(x0, x1)], axis=-1).astype("float32").argmax(-1)
    assert (shown._grid_classes == expected).mean() > 0.999
    assert shown.across[[0, -1]] == pytest.approx([-1.2, 1.2]) and shown.up[[0, -1]] == pytest.approx([-0.1, 1.1])
    assert shown._point_classes.tolist() == [0, 2, 2]


def test_points_differ_by_markers_and_wrong_ones_are_ringed():
    ax = drawn(plane(corner, X, Y))
    first, second, ring = ax.get_lines()
    assert np.array_equal(first.get_xydata(), X[[0, 2]]) and np.array_equal(second.get_xydata(), X[[1]])
    assert np.array_equal(ring.get_xydata(), X[[1, 2]]) and ring.get_fillstyle() == "none"
    assert first.get_marker() != second.get_marker()
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert words == ["class 0", "class 1", "class 2", "wrong (2)"]
    assert ax.get_title() == "1 of 3 points right (33.3%)"
    from matplotlib.figure import Figure

    given = Figure().subplots()
    assert plane(corner, X, Y, ax=given) is given


@pytest.mark.parametrize("model", [lambda x: x[:, 0], lambda x: x[:, :1], lambda x: flow.cat([-x[:, :1], x[:, :1]], 1)])
def test_single_score_is_that_of_class_1(model):
    text = plane_text(model, X, Y)
    rows = text.splitlines()[:-1]
    assert len(rows) == 21 and all(row[:20] == "0" * 20 and row[21:] == "1" * 20 for row in rows)
    assert text.endswith("x1 from -0.1 to 1.1: 51% is class 0, 49% is class 1. 2 of 3 points right (66.7%).")


def test_map_is_upright():
    rows = plane_text(lambda x: x[:, 1] - 1, X, Y).splitlines()
    assert set(rows[0]) == {"1"} and set(rows[20]) == {"0"}


def test_scores_that_are_not_finite():
    ax = drawn(plane(lambda x: x[:, 0].sqrt(), X, Y))
    assert "places the scores are not finite" in ax.get_title()
    assert plane_text(lambda x: x[:, 0].sqrt(), X, Y).splitlines()[0][:3] == "×××"
    drawn(plane(lambda x: x * float("nan"), X, Y))
    drawn(plane(lambda x: x * 1e38 * 10, X, Y))
    drawn(plane(lambda x: x * 0, X[:1], Y[:1]))


def test_model_is_unchanged():
    model = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Dropout(), nn.Linear(4, 2))
    model[1].eval()
    before = {name: value.numpy().copy() for name, value in model.state_dict().items()}
    state = np.array(flow.get_rng_state()).copy()
    first = plane_text(model, flow.tensor(X), flow.tensor(Y))
    assert first == plane_text(model, X, Y)
    assert model.training and model[2].training and not model[1].training
    assert all(np.array_equal(value.numpy(), before[name]) for name, value in model.state_dict().items())
    assert np.array_equal(np.array(flow.get_rng_state()), state) and model[0].weight.grad is None


def test_draw_calls_the_model_again():
    border = [0.0]
    shown = Plane(lambda x: x[:, 0] - border[0], X, Y)
    assert "51% is class 0" in shown.text()
    border[0] = 5.0
    assert "51% is class 0" in shown.text()
    shown.draw()
    assert "100% is class 0" in shown.text() and shown.plot().get_title().startswith("2 of 3")


SETUP = """
import minflow as flow
from minflow_widgets.figures import Plane
x, y = flow.data.points("moons", 40)
border = [0.0]
shown = Plane(lambda x: x[:, 1] - border[0], x, y)
"""


def test_figure_updates_in_a_notebook(real_kernel):
    real_kernel.fresh(SETUP)
    status, shown = real_kernel.run("for k in range(5):\n    border[0] = k / 4\n    shown.draw()")
    kinds = [kind for kind, _ in shown]
    assert status == "ok" and kinds[0] == "display_data" and set(kinds[1:]) == {"update_display_data"}
    first, last = (shown[k][1]["data"] for k in (0, -1))
    assert first != last and "20 of 40 points right" in last["text/plain"]
    assert "20 of 40 points right" in last["text/html"]


def test_names_are_escaped():
    bundle = Plane(corner, X, Y, names=[HOSTILE, "_b", "c"]).bundle()
    assert "no picture" not in bundle["text/plain"] and "\x1b" not in bundle["text/plain"]
    assert "<script" not in bundle["text/html"] and "<script" not in bundle["image/svg+xml"]
    x = np.random.default_rng(0).normal(size=(300, 2))
    many = Plane(lambda x: x @ flow.ones(2, 10), x, np.arange(300) % 10).bundle()
    assert sum(map(len, many.values())) < 600_000


@pytest.mark.parametrize("arguments, kind, said", [
    ((nn.Linear, X, Y), DTypeError, ["model", "the class Linear"]),
    ((corner, X[0], Y), ShapeError, ["x", "[2]", "(n, 2)"]),
    ((corner, X * np.nan, Y), ShapeError, ["finite"]),
    ((corner, X, Y[:2]), ShapeError, ["[3, 2]", "[2]"]),
    ((corner, X, Y - 1), DTypeError, ["y", "-1"]),
    ((corner, X, Y + 0.5), DTypeError, ["y", "0.5"]),
    ((lambda x: x.sum(), X, Y), ShapeError, ["result", "[]", "(n, classes)"]),
    ((lambda x: x @ flow.ones(2, 11), X, Y), ShapeError, ["11]", "at most 10"]),
    ((lambda x: "cat", X, Y), DTypeError, ["must be numbers", "cat"]),
])  # fmt: skip
def test_mistakes(arguments, kind, said):
    with pytest.raises(kind) as error:
        plane(*arguments)
    assert all(word in str(error.value) for word in said), str(error.value)
    with pytest.raises(ShapeError, match="2 names for 3 classes"):
        plane(corner, X, Y, names=["a", "b"])
