"""Elements of SVG: what they escape, leave out, and how they write numbers."""

from xml.etree import ElementTree

from minflow.views.draw import svg_writer as svg


def test_numbers_have_one_decimal_at_most():
    assert [svg.number(x) for x in (3, 3.0, 2.25, 1e6, -0.5)] == ["3", "3", "2.2", "1000000", "-0.5"]
    assert (
        svg.rect(1, 2.04, 3, 4.5, stroke_width=1.5) == '<rect x="1" y="2" width="3" height="4.5" stroke-width="1.5"/>'
    )


def test_words_and_attributes_are_escaped():
    assert (
        svg.text(0, 0, "<b>\x1b & $x$", fill='"red"')
        == '<text x="0" y="0" fill="&quot;red&quot;">&lt;b&gt;\\x1b &amp; $x$</text>'
    )
    assert svg.span("a<b", dx=8) == '<tspan dx="8">a&lt;b</tspan>'


def test_what_is_empty_is_left_out():
    assert svg.path("") == svg.group([]) == "" and svg.path("M0 0", fill=None, stroke="") == '<path d="M0 0"/>'


def test_a_picture_has_its_ground_and_its_label():
    root = ElementTree.fromstring(
        svg.picture([svg.group([svg.path("M0 0")], fill="none")], 30, 20, 'a "b"', left=-5, font_size=11)
    )
    assert root.get("viewBox") == "-5 0 30 20" and root.get("aria-label") == 'a "b"' and root.get("font-size") == "11"
    ground, group = root
    assert ground.get("x") == "-5" and ground.get("fill") == "#ffffff" and len(group) == 1
    assert "aria-label" not in svg.picture([], 1, 1)
