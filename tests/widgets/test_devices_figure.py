"""Matrices on devices: each part is drawn at its place, and the text names the parts."""

import numpy as np
import pytest
from minflow_widgets.figures import on_devices

import minflow as flow
from minflow.core.base.errors import DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("agg")
X = np.array([[1.0, 2, 3], [5, 6, 7]])


def cells(ax):
    """Element -> corners (row, column) of its cells, from the drawn numbers."""
    found = {}
    for words in ax.texts:
        if words.get_text().replace(".", "").isdigit():
            column, row = words.get_position()
            found.setdefault(words.get_text(), []).append((row - 0.5, column - 0.5))
    return found


@pytest.mark.parametrize(
    "parts, way, places",
    [
        (np.split(X, 2, axis=0), "S0", {"1": [(0, 0)], "5": [(1, 4.5)], "7": [(1, 6.5)]}),
        (np.array_split(X, 2, axis=1), "S1", {"2": [(0, 1)], "3": [(0, 6.5)], "7": [(1, 6.5)]}),
        ([X, X], "B", {"1": [(0, 0), (0, 4.5)], "7": [(1, 2), (1, 6.5)]}),
        ([X, X * 10], "P", {"1": [(0, 0)], "10": [(0, 4.5)]}),
    ],
)
def test_each_element_is_at_its_place_in_the_matrix(parts, way, places):
    ax = on_devices(("x", parts, way))
    found = cells(ax)
    assert {number: found[number] for number in places} == places
    assert len([one for many in found.values() for one in many]) == sum(part.size for part in parts)
    said = [words.get_text() for words in ax.texts]
    assert f"x: {way}" in said and "device 0" in said and "device 1" in said and "device 2" not in said


def test_several_matrices_have_a_row_each():
    ax = on_devices(("x", [X, X], "B"), ("w", [flow.tensor([[8.0]]), flow.tensor([[9.0]])], "S0"))
    found = cells(ax)
    assert found["8"] == [(3.5, 0)] and found["9"] == [(4.5, 4.5)]
    text = ax.figure._repr_mimebundle_()["text/plain"]
    assert text.splitlines()[0] == "x: B, a copy on each" and "  device 1: [[9.]]" in text
    assert "Matrices on 2 devices: x (a copy on each), w (split by rows)." in ax.figure.said[0]


def test_numbers_can_be_left_out():
    ax = on_devices(("x", [X, X], "P"), numbers=False)
    assert not cells(ax) and len(ax.patches) == 2 * (X.size + 1)


@pytest.mark.parametrize(
    "placed, error, words",
    [
        ((), ShapeError, "got no matrix"),
        ((("x", [X], "S2"),), DTypeError, "'S2'"),
        ((("x", [X[0]], "B"),), ShapeError, r"must be a list of matrices, got shapes \[\[3\]\]"),
        ((("x", [], "B"),), ShapeError, "list of matrices"),
    ],
)
def test_mistakes_are_explained(placed, error, words):
    with pytest.raises(error, match=words):
        on_devices(*placed)
