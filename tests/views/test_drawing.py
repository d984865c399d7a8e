"""Box diagrams: drawn alike by every layout engine, in our own sizes; text fits into boxes and has a background."""

import re
import shutil
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hostile_views import VIEWS, bundles
from test_hostile_names import in_html, usual

import minflow as flow
from minflow import nn
from minflow.views.draw import theme
from minflow.views.draw.boxes import BOX_STYLES, MARK_STYLES, Box, Diagram, Edge
from minflow.views.draw.drawing import FONT_SIZE, LINE_HEIGHT, size_of
from minflow.views.draw.engines import ENGINES, render_svg
from minflow.views.draw.fonts import text_width
from minflow.views.draw.graphviz_layout import sizes_text
from minflow.views.show import picture
from tests.svg_checks import texts_without_background

SVG = "{http://www.w3.org/2000/svg}"
TAGS = "rect ellipse circle path text".split()
NAMES = ("conv1", "model.encoder.layers.11.attention.output", "卷积层", '"]; evil <b>\\N\\l</b> & {|}')


def diagram(name: str) -> Diagram:
    """Boxes of every look in a column; names everywhere, a loop, an upward edge, parallel edges."""
    looks = [*BOX_STYLES.values(), *[{**BOX_STYLES["op"], **look} for _, look in MARK_STYLES.values()]]
    boxes = [
        Box(f"{name}{i}", (name, "float32[3, 4]", "grad " + name)[: 1 + i % 3], (0, 1)[: i % 3], **look)
        for i, look in enumerate(sorted(looks, key=lambda look: look.get("shape", "")))
    ]
    boxes.sort(key=lambda box: box.frames)
    edges = [Edge(a.id, b.id, name if i % 2 else "") for i, (a, b) in enumerate(pairwise(boxes))]
    edges += [
        Edge(boxes[0].id, boxes[1].id, "b", "dashed"),
        Edge(boxes[1].id, boxes[1].id, "again"),
        Edge(boxes[-1].id, boxes[0].id, "update", "dotted", back=True),
        Edge("beside", boxes[0].id, "a"),
    ]
    return Diagram(tuple(boxes), (Box("beside", (name,), **BOX_STYLES["constant"]),), tuple(edges), (name, "inside"))


def elements(svg: str) -> list:
    """Return (tag, look including inherited attributes, text) of the drawn elements, in order."""
    found, stack = [], [(ElementTree.fromstring(svg), {})]
    while stack:
        node, inherited = stack.pop()
        look = {**inherited, **node.attrib}
        if node.tag.removeprefix(SVG) in TAGS:
            found.append((node.tag.removeprefix(SVG), look, "".join(node.itertext())))
        stack += [(child, look) for child in reversed(node)]
    return found


def sides(tag: str, look: dict, text: str) -> tuple[float, float, float, float]:
    """Return (left, top, right, bottom)."""
    if tag == "text":
        size, x = float(look["font-size"]), float(look["x"])
        width = text_width(text, size, look.get("font-weight") == "bold") - 0.2  # coordinates have one decimal
        left = x - width * {"start": 0, "middle": 0.5, "end": 1}[look.get("text-anchor", "start")]
        return left, float(look["y"]) - 0.75 * size, left + width, float(look["y"]) + 0.2 * size
    if tag == "ellipse":
        cx, cy, rx, ry = (float(look[name]) for name in ("cx", "cy", "rx", "ry"))
        return cx - rx, cy - ry, cx + rx, cy + ry
    x, y, width, height = (float(look[name]) for name in ("x", "y", "width", "height"))
    return x, y, x + width, y + height


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", NAMES)
def test_texts_have_a_background_with_every_engine(engine, name):
    if engine == "dot" and shutil.which("dot") is None:
        pytest.skip("no program dot")
    drawn, used = render_svg(diagram(name), (engine,))
    assert used == engine and not texts_without_background(drawn)
    texts = [text for tag, _, text in elements(drawn) if tag == "text"]
    assert texts.count(name) >= 6 and {"inside", "update", "again", "a", "b"} <= set(texts)
    left, top, width, height = map(float, ElementTree.fromstring(drawn).get("viewBox").split())
    for tag, look, text in elements(drawn):
        if tag != "path":
            a, b, c, d = sides(tag, look, text)
            assert left <= a and top <= b and c <= left + width and d <= top + height, (tag, look)


@pytest.mark.parametrize("engine", ENGINES)
def test_colors_come_from_the_theme(engine):
    if engine == "dot" and shutil.which("dot") is None:
        pytest.skip("no program dot")
    drawn = render_svg(diagram("fc"), (engine,))[0]
    for tag, look, text in elements(drawn):
        strokes = theme.LINE_COLORS if tag != "text" else (theme.PLAIN,)  # a halo
        assert look.get("stroke", strokes[0]) in strokes, (tag, look)
        assert look["fill"] in {"text": theme.TEXT_COLORS, "path": (*theme.LINE_COLORS, "none")}.get(
            tag, (*theme.FILL_COLORS, "none")
        )


def test_graphviz_gets_no_text():
    text = sizes_text(diagram('"]; evil'))
    assert "evil" not in text and re.search(r"^  0 \[shape=box width=[\d.]+ height=[\d.]+\]$", text, re.M)


def test_oval_fits_its_lines_tightly():
    for lines in (("x",), ("weight", "float32[512, 784]"), ("a", "b" * 20, "c" * 20, "d" * 20)):
        width, height = size_of(Box("x", lines, shape="ellipse"))
        assert len(lines) * LINE_HEIGHT < height < 2 * len(lines) * LINE_HEIGHT + 1
        widest = max(text_width(line, FONT_SIZE) for line in lines)
        assert widest < width < 2.3 * widest + 12


CELLS = {"tensor", "file name"}  # numbers in cells of many colors: tests/browser/test_gallery.py checks them


@pytest.mark.parametrize("what", [what for what in VIEWS if what not in CELLS])
def test_static_pictures_have_text_backgrounds_but_no_page(what):
    for bundle in [*usual(what), *bundles(what, "卷积层_一.全连接")]:
        for drawn in in_html(bundle.get("text/html", ""))[1]:
            assert not texts_without_background(drawn)
            root = ElementTree.fromstring(drawn)
            size = float(root.get("width")) * float(root.get("height"))
            for tag, look, text in elements(drawn):
                if tag == "rect" and look.get("fill") != "none":
                    left, top, right, bottom = sides(tag, look, text)
                    assert (right - left) * (bottom - top) < 0.6 * size, look


def test_folded_box_has_two_borders_and_result_a_thick_one():
    model = nn.Sequential(*[nn.Sequential(nn.Linear(2, 2), nn.ReLU()) for _ in range(3)])
    drawn = picture(model(flow.ones(1, 2)).sum(), names={}, boxes=4).svg
    assert drawn.count('rx="3.5"') >= 2 and drawn.count('stroke-width="2.4"') == 1
