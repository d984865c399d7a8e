"""Scripts in pages are only ours, and a canvas detects dark pages, in node with pages like JupyterLab's and VS
Code's.
"""

import re
from pathlib import Path

import pytest
from minflow_widgets import frontends

from minflow.views.draw import theme
from tests.cases import in_cases
from tests.widgets.scripts import in_node, needs_node

CLEAR = "rgba(0, 0, 0, 0)"
PAGE = """given.reduceRight((parent, [backgroundColor, color]) => ({ backgroundColor, color, parentElement: parent,
                                                                   getRootNode: () => ({}) }), null)"""


@needs_node
@in_cases("elements, dark", [
    ([[CLEAR, "rgba(255, 255, 255, 0.87)"], ["rgb(17, 17, 17)", "white"]], True),       # JupyterLab Dark
    ([[CLEAR, "rgba(0, 0, 0, 0.87)"], ["rgb(255, 255, 255)", "black"]], False),          # JupyterLab Light
    ([[CLEAR, "rgb(204, 204, 204)"], [CLEAR, "rgb(204, 204, 204)"]], True),              # VS Code: the frame is clear
    ([["rgb(255, 255, 255)", "rgb(204, 204, 204)"], ["rgb(30, 30, 30)", "#fff"]], False),  # its white widget background
    ([["rgba(255, 255, 255, 0.1)", "rgb(230, 230, 230)"], ["rgb(30, 30, 30)", "rgb(0, 0, 0)"]], True),
    ([[CLEAR, "rgb(0, 0, 0)"], [CLEAR, "rgb(0, 0, 0)"]], False),
])  # fmt: skip
def test_visible_background_decides_before_the_text(elements, dark):
    assert in_node(f"(globalThis.getComputedStyle = (e) => e, isDark({PAGE}))", elements) is dark


def test_live_colors_match_static_ones_and_text_is_readable():
    script = frontends.script("page_theme.js")
    lines = re.search("const LINES = {(.*)}", script)[1]
    assert set(re.findall("#......", lines)) <= set(theme.LINE_COLORS)
    for name, grounds in (("LIGHT", theme.PAGE_BACKGROUNDS[:1]), ("DARK", theme.PAGE_BACKGROUNDS[1:])):
        colors = dict(re.findall(r'(\w+): "(#......)"', re.search(f"const {name} = {{(.*)}}", script)[1]))
        for ink in ("ink", "soft", "red"):
            assert all(theme.contrast(colors[ink], ground) >= 4.5 for ground in (*grounds, colors["card"])), (name, ink)


@pytest.mark.parametrize("file", sorted(Path(frontends.__file__).parent.rglob("*.js")), ids=lambda file: file.name)
def test_scripts_are_small_and_set_only_text(file):
    text = file.read_text(encoding="utf-8")
    assert len(text.encode()) < 15_000, "more is not read at one sitting: split the file"
    assert not re.search(r"innerHTML|eval\(|import |http(?!://www\.w3\.org/2000/svg)", text)
