"""Points made by a known rule."""

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import OutOfRangeError
from minflow.data import points

PLANES = {"blobs": 3, "moons": 2, "spiral": 2}


def test_the_line_has_the_slope_and_offset_that_are_promised():
    x, y = points("line", 50, noise=0)
    assert x.shape == y.shape == (50,) and x.dtype == y.dtype == np.float32
    assert x.min() >= -1 and x.max() < 1
    assert np.allclose(y, 3 * x - 1, atol=1e-6)
    x, y = points("line", 20_000)
    slope, offset = np.polyfit(x.astype("float64"), y, 1)
    assert abs(slope - 3) < 0.02 and abs(offset + 1) < 0.02
    assert abs((y - 3 * x + 1).std() - 0.2) < 0.01


@pytest.mark.parametrize("kind", PLANES)
def test_classes_in_the_plane(kind):
    x, y = points(kind, 100)
    assert x.shape == (100, 2) and x.dtype == np.float32 and y.shape == (100,) and y.dtype == np.int64
    counts = np.bincount(y)
    assert len(counts) == PLANES[kind] and counts.max() - counts.min() <= 1
    assert abs(x).max() < 2 and (np.diff(y) != 0).sum() > 25  # mixed, so that any part holds all classes
    assert points(kind, 1)[0].shape == (1, 2)


@pytest.mark.parametrize("kind", ["line", *PLANES])
def test_the_same_again_and_another_with_another_seed(kind):
    for one, same, other in zip(points(kind), points(kind, seed=0), points(kind, seed=1), strict=True):
        assert np.array_equal(one, same) and not np.array_equal(one, other)


def test_the_rules_of_moons_and_spiral():
    x, y = points("moons", 500, noise=0)
    middle = np.where((y == 0)[:, None], [-0.5, -0.25], [0.5, 0.25])
    assert np.allclose(np.linalg.norm(x - middle, axis=1), 1, atol=1e-6)
    x, y = points("spiral", 500, noise=0)
    radius = np.linalg.norm(x, axis=1)
    assert radius.min() >= 0.1 and radius.max() <= 1
    angle = 3 * np.pi * (radius - 0.1) / 0.9 + np.pi * y
    assert np.allclose(x, (radius * [np.cos(angle), np.sin(angle)]).T, atol=1e-5)


def test_a_straight_border_is_enough_for_blobs_only():
    right = {}
    for kind in PLANES:
        x, y = points(kind)
        inputs = np.hstack([x, np.ones((200, 1))])
        scores = inputs @ np.linalg.lstsq(inputs, np.eye(PLANES[kind])[y], rcond=None)[0]
        right[kind] = (scores.argmax(1) == y).mean()
    assert right["blobs"] > 0.99 and 0.8 < right["moons"] < 0.95 and right["spiral"] < 0.7


@pytest.mark.parametrize("arguments, said", [
    (("lines",), ["kind 'lines'", '"line"']), (("circle",), ["kind 'circle'", '"moons"']),
    (("line", 0), ["n 0", "n=200"]), (("line", 2.5), ["n 2.5"]), (("line", True), ["n True"]),
    (("line", 5, -1), ["noise -1", "noise=0.2"]), (("blobs", 5, float("nan")), ["noise nan", "noise=0.25"]),
    (("line", 5, None, -1), ["seed -1"]), ((["line"],), ["kind"]),
])  # fmt: skip
def test_mistakes(arguments, said):
    with pytest.raises(OutOfRangeError) as error:
        flow.data.points(*arguments)
    assert all(word in " ".join(str(error.value).split()) for word in said)
