"""The maps of an array with three axes or more, in the explorer's panel."""

import base64

import numpy as np
import pytest
from minflow_widgets import explore

import minflow as flow
import minflow.nn as nn
from minflow.core.backend import backend_of
from minflow.introspection.graph.explore.array_summary import summary_of
from minflow.introspection.graph.explore.details import histogram
from minflow.views.explorer.tiles import tiles_of, tiles_picture
from minflow.views.renderers.tensor_picture import COLOR_LEVELS, PAPER_INDEX, palette
from tests.strict_backend import counted
from tests.svg_checks import pixels_of


def drawn(tiles):
    """Return the palette indices of the PNG, its width on the screen, and its caption."""
    uri, width, words, *_ = tiles_picture(tiles)
    found = pixels_of(base64.b64decode(uri.removeprefix("data:image/png;base64,")))
    return found, width, words


def test_channels_of_the_first_image_are_tiled():
    x = np.zeros((3, 10, 4, 5), "f4")
    x[0, :, 1, 2] = np.arange(10)
    x[1:] = 1000
    cells, width, words = drawn(tiles_of(x))
    assert words == "maps [0, 0] to [0, 9] of 3 × 10, each 4 × 5; white 0 to dark blue 9" and width == 174
    across = (cells.shape[1] + 1) // 6
    bright = [cells[k // across * 5 + 1, k % across * 6 + 2] for k in range(10)]
    assert bright == [round(k / 9 * (COLOR_LEVELS - 1)) for k in range(10)], (
        "one scale for all, from the first image only"
    )
    assert (cells[:, 5] == PAPER_INDEX).all() and (cells[4] == PAPER_INDEX).all() and cells[0, 0] == 0


@pytest.mark.parametrize(("shape", "words"), [
    ((50, 1, 8, 8), "maps [0, 0] to [31, 0] of 50 × 1, each 8 × 8"),  # gray images: one tile each
    ((4, 3, 8, 8), "maps [0, 0] to [3, 2] of 4 × 3, each 8 × 8"),
    ((2, 64, 28, 28), "maps [0, 0] to [0, 15] of 2 × 64, each 28 × 28"),
    ((1, 6, 224, 100), "maps [0, 0] to [0, 5] of 1 × 6, each 224 × 100; one row and column of 7 is drawn"),
    ((1, 1, 2, 2), "maps [0, 0] of 1 × 1, each 2 × 2"),
    ((8, 5, 6), "maps [0] to [7] of 8, each 5 × 6"),  # a batch of sequences
    ((2, 4, 3, 5, 5), "maps [0, 0, 0] to [1, 3, 2] of 2 × 4 × 3, each 5 × 5"),
    ((3, 2, 6, 5, 5), "maps [0, 0, 0] to [0, 0, 5] of 3 × 2 × 6, each 5 × 5"),
])  # fmt: skip
def test_tiles_are_limited_by_the_width(shape, words):
    tiles = tiles_of(np.random.default_rng(0).normal(size=shape))
    assert tiles.words.startswith(words + "; blue -") and len(tiles.cells) <= 12_544
    cells, width, _ = drawn(tiles)
    assert cells.size < 16_000 and width <= 272 and tiles_picture(tiles)[0].startswith("data:image/png")


def test_signs_and_non_finite_values_are_explained():
    x = np.zeros((1, 4, 2, 2), "f4")
    x[0, 0, 0], x[0, 1, 1, 1], x[0, 3, 0, 0] = (-4, 2), np.nan, -np.inf
    tiles = tiles_of(x)
    assert tiles.words.endswith("; blue -4, white 0, orange 4; 2 cells not finite, dark red")
    cells, _, _ = drawn(tiles)
    assert cells[0, 0] == 0 and (palette(True)[cells[0, 1]] > (200, 120, 60)).all()
    assert tuple(palette(True)[cells[1, 4]]) == (122, 31, 21)
    assert tiles_of(np.full((1, 4, 3, 3), np.nan)).words.endswith("each 3 × 3; 36 cells not finite, dark red")
    assert tiles_of(np.full((1, 4, 3, 3), 1e308)).words.endswith("all 1e+308")
    assert tiles_of(np.zeros((2, 4, 1, 1))) is tiles_of(np.zeros((4, 4))) is tiles_of(np.zeros((0, 4, 4, 4))) is None
    assert tiles_of(np.arange(64, dtype="i4").reshape(1, 4, 4, 4)).words.endswith("white 0 to dark blue 63")


def test_panel_shows_tiles_instead_of_a_corner():
    flow.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU())
    explorer = explore(model, flow.rand(2, 1, 12, 12))
    explorer.session.act({"do": "step", "to": 0})
    told = explorer.session.detail()["hists"][-1]
    low, high, scale = told[8][3:]
    assert low == "-" + high and high == told[8][2].rpartition(" ")[2] and scale.startswith("data:image/png")
    assert told[5] == [] and told[8][2].startswith("maps [0, 0] to [0, 7] of 2 × 8, each 12 × 12")
    assert len(told[4]) == 24
    kernel = histogram("weight now", summary_of(np.ones((8, 1, 3, 3), "f4")))
    assert len(kernel[5]) == 3 and kernel[8], "a small array is also printed"


@pytest.mark.parametrize("shape", [(), (5,), (4, 7), (2, 8, 9, 9)])
def test_the_summary_of_an_array_on_a_device_copies_numbers(cuda, shape):
    x = np.random.default_rng(0).normal(size=shape).astype("f4")
    there = backend_of(cuda).from_host(x)
    with counted() as copies:
        assert summary_of(there) == summary_of(x)
    whole = {place for place in copies if place.startswith("to_host")}
    assert {place.split(" in ")[1] for place in whole} <= {"corner", "tiles_of"}
    x.reshape(-1)[0] = np.nan
    assert str(summary_of(backend_of(cuda).from_host(x))) == str(summary_of(x))
