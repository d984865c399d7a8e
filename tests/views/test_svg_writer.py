"""SVG elements: escaping, omitted defaults, number format."""

from xml.etree import ElementTree

import pytest

from minflow.views.draw import svg_writer as svg, theme
from tests.svg_checks import texts_without_background


def test_numbers_have_one_decimal_at_most():
    assert [svg.number(x) for x in (3, 3.0, 2.25, 1e6, -0.5)] == ["3", "3", "2.2", "1000000", "-0.5"]
    assert (
        svg.rect(1, 2.04, 3, 4.5, stroke_width=1.5) == '<rect x="1" y="2" width="3" height="4.5" stroke-width="1.5"/>'
    )


def test_texts_and_attributes_are_escaped():
    assert (
        svg.text(0, 0, "<b>\x1b & $x$", fill='"red"')
        == '<text x="0" y="0" fill="&quot;red&quot;">&lt;b&gt;\\x1b &amp; $x$</text>'
    )
    assert svg.span("a<b", dx=8) == '<tspan dx="8">a&lt;b</tspan>'


def test_empty_attributes_are_omitted():
    assert svg.path("") == svg.group([]) == "" and svg.path("M0 0", fill=None, stroke="") == '<path d="M0 0"/>'


def test_picture_has_a_label_and_no_page_background():
    root = ElementTree.fromstring(
        svg.picture([svg.group([svg.path("M0 0")], fill="none")], 30, 20, 'a "b"', left=-5, font_size=11)
    )
    assert root.get("viewBox") == "-5 0 30 20" and root.get("aria-label") == 'a "b"' and root.get("font-size") == "11"
    (group,) = root
    assert len(group) == 1 and root.get("fill") == theme.TEXT_COLOR
    assert "aria-label" not in svg.picture([], 1, 1)


@pytest.mark.parametrize("anchor, left", [("start", 94), ("middle", 100 - 0.5 - 6), ("end", 100 - 1 - 6)])
def test_label_fits_on_its_background(anchor, left, monkeypatch):
    monkeypatch.setattr(svg, "text_width", lambda text, size, bold: float(len(text) > 1))
    drawn = svg.label(100, 50, "a<", "b", size=10, anchor=anchor, text_color="#111111", fill=theme.PLATE)
    plate, words = ElementTree.fromstring(f"<g>{drawn}</g>")
    assert [float(plate.get(name)) for name in ("x", "y", "width", "height")] == [left, 39, 13, 28.6]
    assert plate.get("fill") == theme.PLATE and words.get("fill") == "#111111" and words.get("font-weight") is None
    assert [(t.text, t.get("y")) for t in words] == [("a<", "50"), ("b", "63.6")]


def test_label_without_a_plate_has_a_halo():
    drawn = svg.label(100, 50, "a")
    (words,) = ElementTree.fromstring(f"<g>{drawn}</g>")
    assert words.get("paint-order") == "stroke" and words.get("stroke") == theme.PLAIN
    plain = f'<svg xmlns="http://www.w3.org/2000/svg">{drawn}</svg>'
    assert texts_without_background(plain) == []
    assert texts_without_background(plain.replace('paint-order="stroke"', "")) == ["a"], (
        "the halo would hide the letter"
    )
    assert texts_without_background(plain.replace('stroke-width="4"', 'stroke-width="1"')) == ["a"]
