"""How a canvas finds out whether the page behind it is dark, run by node on pages as JupyterLab and VS Code have."""

import json
import re
import shutil
import subprocess

import pytest
from minflow_widgets import frontends

from minflow.views.draw import theme

NODE = shutil.which("node")
CLEAR = "rgba(0, 0, 0, 0)"
SCRIPT = """
const given = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const getComputedStyle = (e) => e;
const page = given.reduceRight((parent, [backgroundColor, color]) => ({ backgroundColor, color, parentElement: parent,
                                                                         getRootNode: () => ({}) }), null);
console.log(JSON.stringify(isDark(page)));
"""


@pytest.mark.skipif(NODE is None, reason="no node: apt-get install nodejs")
@pytest.mark.parametrize("elements, dark", [
    ([[CLEAR, "rgba(255, 255, 255, 0.87)"], ["rgb(17, 17, 17)", "white"]], True),       # JupyterLab Dark
    ([[CLEAR, "rgba(0, 0, 0, 0.87)"], ["rgb(255, 255, 255)", "black"]], False),          # JupyterLab Light
    ([[CLEAR, "rgb(204, 204, 204)"], [CLEAR, "rgb(204, 204, 204)"]], True),              # VS Code: the frame is clear
    ([["rgb(255, 255, 255)", "rgb(204, 204, 204)"], ["rgb(30, 30, 30)", "#fff"]], False),  # its white ground of widgets
    ([["rgba(255, 255, 255, 0.1)", "rgb(230, 230, 230)"], ["rgb(30, 30, 30)", "rgb(0, 0, 0)"]], True),
    ([[CLEAR, "rgb(0, 0, 0)"], [CLEAR, "rgb(0, 0, 0)"]], False),
])  # fmt: skip
def test_the_ground_that_is_seen_decides_then_the_text(elements, dark):
    source = frontends.script("page_theme.js") + SCRIPT
    done = subprocess.run([NODE, "-e", source], input=json.dumps(elements), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) is dark


def test_live_lines_have_the_colours_of_still_ones_and_words_are_read():
    script = frontends.script("page_theme.js")
    lines = re.search("const LINES = {(.*)}", script)[1]
    assert set(re.findall("#......", lines)) <= set(theme.LINES)
    for name, grounds in (("LIGHT", theme.GROUNDS[:1]), ("DARK", theme.GROUNDS[1:])):
        colors = dict(re.findall(r'(\w+): "(#......)"', re.search(f"const {name} = {{(.*)}}", script)[1]))
        for ink in ("ink", "soft", "red"):
            assert all(theme.contrast(colors[ink], ground) >= 4.5 for ground in (*grounds, colors["card"])), (name, ink)
