"""Hostile names in every view, without a browser.

Parsed HTML and SVG must have the same elements and attributes as with a harmless name. tests/browser/test_hostile.py
checks the same in a real JupyterLab.
"""

import base64
import functools
import re
import shutil
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from hostile_views import NAMES, VIEWS, bundles, harmless, labeled, shows, train_graph

from minflow.views.draw import engines as engines, theme
from minflow.views.show import picture
from tests.sampling import sampled
from tests.svg_checks import without_scripts

PICTURE = re.compile(r"data:image/(svg\+xml|png);base64,[A-Za-z0-9+/=]*")
STYLE = re.compile(r"url\s*\(|expression|@import|javascript:|position\s*:\s*fixed", re.I)
TIMED = {"timeline", "timeline that was live"}
# Lines of a legend, a title or an image caption: their number depends on the width of the letters in a name.
WRAPPED = {"curve", "runs", "tensor", "file name", "ONNX file"}
# On a timeline: waits that are long enough to be visible, boxes with and without room for words.
BOXES = {
    ("rect", "fill", "height", "stroke", "stroke-dasharray", "width", "x", "y"),
    ("rect", "fill", "height", "rx", "stroke", "stroke-width", "width", "x", "y"),
    ("path", "d", "fill", "stroke", "stroke-width"),
}
NEVER = {
    "script",
    "iframe",
    "object",
    "embed",
    "link",
    "meta",
    "base",
    "form",
    "foreignobject",
    "style",
    "use",
    "animate",
    "set",
    "a",
}


class Elements(HTMLParser):
    """Collects the elements of an HTML text as (name, attributes), and its text."""

    def __init__(self, html: str):
        super().__init__(convert_charrefs=True)
        self.found, self.text, self.open = [], "", []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in ("img", "br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data):
        self.text += data

    def handle_comment(self, data):
        raise AssertionError(f"a comment: {data[:80]}")

    handle_decl = handle_pi = unknown_decl = handle_comment


def in_html(html: str) -> tuple[list, list[str], str]:
    """Return elements with their attribute names, the SVG pictures, and the text with alts. Assert that nothing is
    executable, but our own script.
    """
    page, found, pictures, text = Elements(without_scripts(html)), [], [], ""
    assert page.open == [], f"not closed: {page.open}"
    for tag, attrs in page.found:
        assert tag not in NEVER, tag
        for key, value in attrs.items():
            assert not key.startswith("on"), key
            if key == "src":
                assert PICTURE.fullmatch(value), value[:80]
                if value.startswith("data:image/svg"):
                    pictures.append(base64.b64decode(value.partition(",")[2]).decode())
            assert key not in ("href", "srcdoc", "action", "id"), key
            if key == "style":
                assert not STYLE.search(value), value
            if key in ("alt", "aria-label", "title"):
                text += "\n" + value
        found.append((tag, *sorted(attrs)))
    return found, pictures, page.text + text


def in_svg(text: str) -> tuple[list, str]:
    """Return elements with their attribute names, and the text. Assert that it is well-formed, and runs or fetches
    nothing.
    """
    assert "<!" not in text and "<?" not in text[5:], "a declaration"
    found, words = [], ""
    for element in ET.fromstring(text.encode("utf-8")).iter():
        tag = element.tag.rpartition("}")[2]
        assert element.tag.startswith("{http://www.w3.org/2000/svg}"), element.tag
        assert tag.lower() not in NEVER, tag
        for key, value in element.attrib.items():
            name = key.rpartition("}")[2]
            assert not name.startswith("on"), key
            assert name != "href" or (tag == "image" and PICTURE.fullmatch(value)), value[:80]
            assert name in ("aria-label", "data-inside") or not STYLE.search(value), value
        found.append((tag, *sorted(element.attrib)))
        words += (element.text or "") + (element.tail or "") + element.attrib.get("aria-label", "")
    return found, words


def inspect_bundle(bundle: dict[str, str]) -> tuple[dict, dict]:
    """Inspect each form of a bundle: return (elements by form, text by form)."""
    elements, words = {}, {}
    assert set(bundle) <= {"text/html", "text/plain", "image/svg+xml"}, set(bundle)
    if "text/html" in bundle:
        elements["html"], pictures, words["html"] = in_html(bundle["text/html"])
        for i, one in enumerate(pictures):
            elements[f"picture {i}"], words[f"picture {i}"] = in_svg(one)
    if "image/svg+xml" in bundle:
        elements["svg"], words["svg"] = in_svg(bundle["image/svg+xml"])
    words["plain"] = bundle["text/plain"]
    for text in bundle.values():
        text.encode("utf-8")  # a lone surrogate would stop the whole message
        strange = {c for c in text if not c.isprintable() and c != "\n"}
        assert not strange, f"control characters of a terminal or a page: {strange}"
    return elements, words


def names_for(what: str) -> dict[str, str]:
    """Return a quarter of the names, different ones for each view; all of them with --complete."""
    return dict(sampled(NAMES.items(), 0.25, lambda item: f"{what} {item[0]}"))


def differing(what: str, found: list[dict], expected: list[dict]) -> list:
    """Return (bundle, form, elements, elements of the harmless name) for each difference."""
    result = [] if len(found) == len(expected) else [(len(found), len(expected))]
    for i, (one, other) in enumerate(zip(found, expected)):
        for form in one | other:
            ours, theirs = one.get(form, []), other.get(form, [])
            if what in TIMED:  # the number of bars depends on run times
                same = form in one and form in other and set(ours) <= set(theirs) | BOXES
            else:
                same = set(ours) == set(theirs) if what in WRAPPED else ours == theirs
            if not same:
                result.append((i, form, ours, theirs))
    return result


@pytest.mark.parametrize("what", VIEWS)
def test_names_inject_nothing_and_are_shown(what, monkeypatch):
    # without a process per picture
    monkeypatch.setattr(engines, "ENGINES", dict.fromkeys(engines.ENGINES, engines.layout_svg))
    known, told, names = [], set(), names_for(what)
    for key, name in names.items():
        elements, words = zip(*map(inspect_bundle, bundles(what, name)))
        if not any(differing(what, elements, expected) == [] for expected in known):
            known.append([inspect_bundle(bundle)[0] for bundle in bundles(what, harmless(name))])
            assert differing(what, elements, known[-1]) == [], key
        if any(shows(text, name) for texts in words for text in texts.values()):
            told.add(key)
    assert told == set(names), "some names are not shown"


@pytest.mark.parametrize("engine", engines.ENGINES)
def test_all_engines_draw_the_same_elements(engine):
    """A graph is drawn by the first engine that exists; a URL in DOT would become a link."""
    if engine == "dot" and shutil.which("dot") is None:
        pytest.skip("no program dot")

    for key, name in names_for(engine).items():
        elements, texts = drawn(name, engine)
        assert elements == drawn(harmless(name), engine)[0], key
        assert shows(texts[1], "v" + name), key


def drawn(name: str, engine: str) -> tuple[list, list[str]]:
    """Return the elements and texts of the pictures of a graph and a tape."""
    graph, (x, y) = train_graph(name), labeled(name)
    pictures = [
        engines.render_svg(view.diagram, (engine,)) for view in (picture(graph), picture(y, names={"v" + name: x}))
    ]
    assert [used for _, used in pictures] == [engine, engine]
    found = [in_svg(svg) for svg, _ in pictures]
    return [elements for elements, _ in found], [text for _, text in found]


@functools.cache
def usual(what: str) -> list[dict[str, str]]:
    return bundles(what, "conv1")


@pytest.mark.parametrize("what", VIEWS)
def test_texts_of_pictures_are_readable(what):
    """At least 11 px, and a contrast of 4.5 with the card or a light box; smaller or fainter texts are reported."""
    for bundle in usual(what):
        for picture_ in in_html(bundle.get("text/html", ""))[1]:
            assert list(texts_of(ET.fromstring(picture_), "#000000", 14.0, 1.0)) or what == "tensor"
            for text, fill, size, unit in texts_of(ET.fromstring(picture_), "#000000", 14.0, 1.0):
                assert fill in LIGHT or theme.contrast(fill, "#ffffff") >= 4.5, (text, fill)
                assert size * unit >= 10.9, (text, size)


LIGHT = {"#fff", "#ffffff", "white"}  # on a dark tile


def texts_of(element, fill, size, unit):
    """Return (text, color, font size, pixels per unit) of all texts; Graphviz's default size is 14."""
    fill, size = element.get("fill", fill), element.get("font-size", size)
    if element.tag.endswith("}svg") and "pt" in element.get("width", ""):
        unit = 4 / 3  # a point
    size = float(str(size).removesuffix("px"))
    if (element.text or "").strip() and element.tag.endswith(("}text", "}tspan")):
        yield element.text, fill, size, unit
    for child in element:
        yield from texts_of(child, fill, size, unit)


def test_checks_detect_unescaped_names():
    """Each of these is the output of a view that does not escape."""
    for html in [
        "<script>x</script>",
        '<img src="x">',
        '<b onclick="x">b</b>',
        '<a href="javascript:x">a</a>',
        "<b>",
        "<!-- -->",
        "</div>",
        '<p style="background:url(http://outside.example/x)">p</p>',
        '<img alt="" src="data:text/html;base64,AAAA">',
    ]:
        with pytest.raises(AssertionError):
            in_html(html)
    space = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    for inside in [
        "<script>x</script>",
        '<image href="http://outside.example/x"/>',
        '<text onload="x">t</text>',
        "<!-- c -->",
        "<text>",
        '<a xlink:href="javascript:x"><text>t</text></a>',
        '<b xmlns="http://www.w3.org/1999/xhtml">b</b>',
    ]:
        with pytest.raises((AssertionError, ET.ParseError)):
            in_svg(f"<svg {space}>{inside}</svg>")
    with pytest.raises(AssertionError, match="control characters"):
        inspect_bundle({"text/plain": "a\x1b[31m"})
