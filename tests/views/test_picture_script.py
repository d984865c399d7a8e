"""The script of a picture, without a page: the strips that folding takes out, and edges that end at a folded frame."""

import json
import subprocess

import pytest

from minflow.views.html.page import picture_script
from tests.widgets.scripts import NODE, needs_node

pytestmark = needs_node


def in_node(code: str):
    """Return the JSON value of JavaScript code after the functions of the script."""
    functions = picture_script().removeprefix("(() => {").removesuffix("return livePicture;\n})()")
    done = subprocess.run(
        [NODE, "-e", f"{functions}\nconsole.log(JSON.stringify({code}))"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def squeezed(folded, kept, at) -> list[float]:
    return in_node(f"{json.dumps(at)}.map(squeezed({json.dumps(folded)}, {json.dumps(kept)}))")


def test_folded_range_shrinks_to_its_size_and_all_behind_moves():
    before, start, middle, end, behind = squeezed([[100, 300, 50]], [[0, 90], [320, 400]], [50, 100, 200, 300, 400])
    assert (before, start, end, behind) == (50, 100, 150, 250) and start < middle < end


def test_range_that_others_need_stays():
    assert squeezed([[100, 300, 50]], [[150, 290]], [100, 150, 290, 300]) == [100, 100, 240, 240]
    assert squeezed([[100, 300, 50]], [[0, 400]], [100, 300, 400]) == [100, 300, 400]


def test_folded_frame_grows_to_the_size_of_its_words():
    assert squeezed([[100, 120, 50]], [], [100, 120, 200]) == [100, 150, 230]
    assert squeezed([[100, 120, 50]], [[0, 200]], [100, 120, 200]) == [100, 150, 230], "even where nothing is free"


def test_two_folded_ranges_that_overlap_keep_the_size_of_each():
    a, b, c, d = squeezed([[0, 200, 60], [100, 400, 80]], [], [0, 200, 100, 400])
    assert b - a >= 60 and d - c >= 80 and d - a < 200


def test_nothing_folded_moves_nothing():
    assert squeezed([], [[3, 5]], [-1, 4, 9]) == [-1, 4, 9]


@pytest.mark.parametrize("low, high", [(60, 100), (10, 90)])
def test_edge_ends_where_it_enters_the_frame(low, high):
    curve = [[0, 0], [0, 20], [0, 40], [0, 50], [0, 60], [0, 70], [0, 80]]
    frame = json.dumps({"left": -20, "right": 20, "top": low, "bottom": high})
    cut = in_node(f"clipped({json.dumps(curve)}, {frame})")
    assert cut[-1] == pytest.approx([0, low], abs=0.1) and cut[0] == [0, 0] and len(cut) % 3 == 1
    assert len(cut) == (7 if low > 50 else 4), "only the curve that enters is cut"


def test_edge_that_does_not_enter_is_whole():
    curve = [[0, 0], [0, 20], [0, 40], [0, 50]]
    assert in_node(f"clipped({curve}, {{ left: 10, right: 20, top: 0, bottom: 50 }})") == curve


def test_script_is_small_and_without_comments():
    source = picture_script()
    assert len(source.encode()) < 15_000 and "//" not in source and "\n " not in source
