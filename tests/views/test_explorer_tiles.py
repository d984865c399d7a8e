"""The maps of an array with two axes or more, in the explorer's details."""

import math

import numpy as np
import pytest
from minflow_widgets import explore

import minflow as flow
import minflow.nn as nn
from minflow.core.backend import backend_of
from minflow.introspection.graph.explore import explorer_model
from minflow.introspection.graph.explore.array_summary import summary_of
from minflow.introspection.graph.explore.details import numbers_of
from minflow.views.explorer.tiles import MAX_CELLS, MIN_CELLS, PAGE_CELLS, PAGE_MAPS, tiles_of, tiles_page
from tests.strict_backend import counted
from tests.svg_checks import map_values


def test_channels_of_the_first_image_are_kept():
    x = np.random.default_rng(0).normal(size=(3, 10, 4, 5)).astype("f4")
    x[1:] = 1000
    page = tiles_page(tiles_of(x))
    assert (map_values(page) == x[0]).all() and page["high"] == -page["low"] == abs(x[0]).max()
    assert page["words"].startswith("maps [0, 0] to [0, 9] of 3 × 10, each 4 × 5; blue -")
    assert (page["pages"], page["count"], page["leading"], page["step"]) == (1, 10, (3, 10), 1)


@pytest.mark.parametrize(("shape", "words", "pages"), [
    ((50, 1, 8, 8), "maps [0, 0] to [49, 0] of 50 × 1, each 8 × 8", 1),  # gray images: one map each
    ((4, 3, 8, 8), "maps [0, 0] to [3, 2] of 4 × 3, each 8 × 8", 1),
    ((2, 64, 28, 28), "maps [0, 0] to [0, 63] of 2 × 64, each 28 × 28", 1),
    ((2, 64, 112, 112), "maps [0, 0] to [0, 9] of 2 × 64, each 112 × 112", 7),  # at their own resolution
    ((2, 200, 7, 7), "maps [0, 0] to [0, 63] of 2 × 200, each 7 × 7", 4),
    ((1, 6, 500, 100), "maps [0, 0] to [0, 5] of 1 × 6, each 500 × 100; one row and column of 2 is drawn", 1),
    ((1, 1, 2, 2), "map [0, 0] of 1 × 1, each 2 × 2", 1),
    ((8, 5, 6), "maps [0] to [7] of 8, each 5 × 6", 1),  # a batch of sequences
    ((2, 4, 3, 5, 5), "maps [0, 0, 0] to [1, 3, 2] of 2 × 4 × 3, each 5 × 5", 1),
    ((3, 2, 6, 5, 5), "maps [0, 0, 0] to [0, 0, 5] of 3 × 2 × 6, each 5 × 5", 1),
    ((50, 10), "50 × 10", 1),
])  # fmt: skip
def test_maps_are_paged(shape, words, pages):
    tiles = tiles_of(np.random.default_rng(0).normal(size=shape))
    page = tiles_page(tiles)
    assert page["words"].startswith(words + "; blue -") and page["pages"] == pages
    assert page["shape"][0] <= PAGE_MAPS and math.prod(page["shape"]) <= PAGE_CELLS


def test_pages_contain_all_maps_on_one_scale():
    x = np.random.default_rng(0).normal(size=(70, 3, 3, 3)).astype("f4")
    x[69, 2] = 9
    tiles = tiles_of(x, every=True)
    pages = [tiles_page(tiles, k) for k in range(4)]
    assert (np.concatenate([map_values(page) for page in pages]) == x.reshape(-1, 3, 3)).all()
    assert [page["first"] for page in pages] == [0, 64, 128, 192] and {page["high"] for page in pages} == {9}
    assert pages[3]["words"].startswith("maps [64, 0] to [69, 2] of 70 × 3")
    assert tiles_page(tiles, 99) == pages[3] and tiles_page(tiles, -1) == pages[0], "a page sends any number"
    assert tiles_of(x).shape[0] == 70 * 3 and tiles_of(np.ones((9, 5, 3, 3))).shape[0] == 5, "one image of a batch"


@pytest.mark.parametrize(("limit", "shape", "step"), [
    (MAX_CELLS, (64, 112, 112), 1), (1 << 18, (64, 56, 56), 2), (1, (16, 28, 28), 4)
])  # fmt: skip
def test_limited_maps_are_coarser_before_they_are_fewer(limit, shape, step):
    tiles = tiles_of(np.zeros((2, 64, 112, 112), "f4"), limit)
    assert tiles.shape == shape and tiles.step == step and tiles.cells <= max(limit, MIN_CELLS)


def test_signs_and_non_finite_values_are_explained():
    x = np.zeros((1, 4, 2, 2), "f4")
    x[0, 0, 0], x[0, 1, 1, 1], x[0, 3, 0, 0] = (-4, 2), np.nan, -np.inf
    page = tiles_page(tiles_of(x))
    assert page["words"].endswith("; blue -4, white 0, orange 4; 2 cells not finite, dark red")
    assert (page["low"], page["high"], page["ends"]) == (-4, 4, ["-4", "4"])
    assert tiles_page(tiles_of(np.full((1, 4, 3, 3), np.nan)))["words"].endswith("3 × 3; 36 cells not finite, dark red")
    assert tiles_page(tiles_of(np.full((1, 4, 3, 3), 2.5)))["words"].endswith("all 2.5")
    assert tiles_of(np.zeros((2, 4, 1, 1))) is tiles_of(np.zeros(4)) is tiles_of(np.zeros((0, 4, 4, 4))) is None
    counted_up = tiles_page(tiles_of(np.arange(64, dtype="i4").reshape(1, 4, 4, 4)))
    assert counted_up["words"].endswith("white 0 to dark blue 63") and counted_up["colors"] != page["colors"]


def test_details_have_maps_instead_of_a_corner():
    flow.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 100, 3, padding=1), nn.ReLU())
    explorer = explore(model, flow.rand(2, 1, 12, 12))
    explorer.session.act({"do": "step", "to": 0})
    told = explorer.session.detail()["arrays"][-1]
    assert told["corner"] == [] and len(told["counts"]) == 24
    assert told["maps"]["words"].startswith("maps [0, 0] to [0, 63] of 2 × 100, each 12 × 12")
    explorer.session.act({"do": "maps", "label": told["label"], "to": 1})
    turned = explorer.session.detail()["arrays"][-1]["maps"]
    assert turned["words"].startswith("maps [0, 64] to [0, 99]") and turned["data"] != told["maps"]["data"]
    explorer.session.act({"do": "step", "to": 1})
    assert explorer.session.detail()["arrays"][-1]["maps"]["page"] == 0
    kernel = numbers_of("weight now", summary_of(np.ones((8, 1, 3, 3), "f4")))
    assert len(kernel["corner"]) == 3 and kernel["maps"], "a small array is also printed"
    matrix = numbers_of("weight now", summary_of(np.ones((20, 30), "f4")))
    assert len(matrix["corner"]) == 6 and matrix["maps"]["shape"] == (1, 20, 30), "so is the first of a matrix"


def test_maps_of_a_recording_share_one_limit(monkeypatch):
    monkeypatch.setattr(explorer_model, "MAX_MAP_CELLS", 40_000)
    model = explore(nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU()), flow.rand(2, 1, 28, 28)).session.model
    assert model.map_cells < 40_000 - 32 * 28 * 28
    kept = [s.tiles.cells for s in model.summaries.values() if s.tiles and "relu" not in s.spec]
    assert max(kept) == 32 * 28 * 28 and min(model.map_cells, 0) > -MIN_CELLS * len(kept)
    relu = model.summaries[next(key for key in model.summaries if "relu" in key[0])]
    assert relu.tiles.step == 1 and relu.tiles.shape[0] < 32


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
