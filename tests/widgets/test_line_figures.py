"""Points with a line, and a slope: drawn values are the computed ones, and a sentence states the result."""

import numpy as np
import pytest
from minflow_widgets.figures import line_and_points, slope_at

import minflow as flow
from minflow.core.base.errors import DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("agg")


def drawn(ax):
    return {line.get_label(): line.get_xydata() for line in ax.get_lines()}


def test_errors_are_segments_from_point_to_line():
    ax = line_and_points(flow.tensor([0.0, 1.0, 2.0]), [1, 3, 5], 1, 2)
    assert drawn(ax)["points"].tolist() == [[0, 1], [1, 3], [2, 5]]
    assert drawn(ax)["line"].tolist() == [[0, 2], [2, 4]]
    (sticks,) = ax.collections
    assert [stick.tolist() for stick in sticks.get_segments()] == [[[0, 1], [0, 2]], [[1, 3], [1, 3]], [[2, 5], [2, 4]]]
    assert ax.get_title() == "w = 1, b = 2: the mean squared error is 0.667"
    text = ax.figure._repr_mimebundle_()["text/plain"]
    assert "mean squared error is 0.667" in text and "line - y" in text and len(text.splitlines()) == 6


def test_many_points_are_abbreviated():
    text = line_and_points(range(30), range(30), 1, 0).figure._repr_mimebundle_()["text/plain"]
    assert text.endswith("and 10 more points")


def test_slope_is_rise_over_run():
    asked = []
    ax = slope_at(lambda x: asked.append(x) or x**2, 3, 0.5, span=(0, 5))
    assert all(type(x) is float for x in asked)
    assert drawn(ax)["two places"].tolist() == [[2.5, 6.25], [3.5, 12.25]]
    assert ax.get_title() == "from 2.5 to 3.5 it rises by 6 over a run of 1: slope 6"
    line = drawn(ax)["slope"]
    assert np.allclose(np.diff(line[:, 1]), 6 * np.diff(line[:, 0]))
    assert drawn(ax)["f(x)"][[0, -1], 0].tolist() == [0, 5]
    text = slope_at(lambda w: -w, 0, names=("w", "$loss$")).figure._repr_mimebundle_()["text/plain"]
    assert "slope -1" in text and "$loss$" in text


def test_invalid_inputs_are_refused():
    with pytest.raises(ShapeError, match=r"(?s)shape \[2\].*shape \[3\]"):
        line_and_points([0, 1], [0, 1, 2], 1, 1)
    with pytest.raises(DTypeError):
        line_and_points(["a"], [1], 1, 1)
