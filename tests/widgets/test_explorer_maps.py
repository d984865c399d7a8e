"""The maps of the explorer's details, in node: their sizes, names, colors, and the elements that are read from them."""

import numpy as np

from minflow.views.explorer.tiles import tiles_of, tiles_page
from minflow.views.renderers.tensor_picture import DIVERGING_COLORS, NONFINITE_SIGN, SEQUENTIAL_COLORS
from tests.cases import in_cases
from tests.widgets.scripts import in_node, needs_node

MAPS = "explorer/maps.js"


@needs_node
@in_cases("shape, room, scale", [
    ([32, 28, 28], 800, 3), ([32, 8, 8], 800, 9), ([16, 112, 112], 800, 1), ([64, 5, 5], 800, 14),
    ([6, 28, 28], 800, 4), ([1, 50, 10], 800, 5), ([1, 256, 256], 800, 1), ([1, 100, 1600], 800, 0.5),
])  # fmt: skip
def test_small_maps_are_enlarged_by_whole_pixels(shape, room, scale):
    assert in_node("scaleOfMaps(given[0], given[1])", [shape, room], MAPS) == scale


@needs_node
def test_maps_are_named_by_their_indices():
    names = in_node(
        "given.map(([number, leading]) => nameOfMap(number, leading))", [[35, [4, 32]], [7, [8]], [0, []]], MAPS
    )
    assert names == ["[1, 3]", "[7]", ""]


@needs_node
def test_elements_are_read_and_colored():
    x = np.array([[[-2, 0.5], [np.nan, 2]]] * 4, "f4")[None]
    page = tiles_page(tiles_of(x))
    read = "[[0, 0], [0, 1], [1, 0]].map(([row, column]) => readElement(given, valuesOf(given), 3, row, column))"
    assert in_node(read, page, MAPS) == [
        "[0, 3] row 0, column 0: -2", "[0, 3] row 0, column 1: 0.5", "[0, 3] row 1, column 0: NaN"
    ]  # fmt: skip
    colors = in_node("[-2, 0, 2, NaN, 9].map((x) => colorOfElement(x, given))", page, MAPS)
    low, middle, high = map(list, DIVERGING_COLORS)
    assert colors == [low, middle, high, list(NONFINITE_SIGN), high]
    ones = tiles_page(tiles_of(np.arange(3.0)[:, None] * np.ones((1, 2))))
    assert in_node("[0, 1, 2].map((x) => colorOfElement(x, given))", ones, MAPS) == [list(c) for c in SEQUENTIAL_COLORS]
