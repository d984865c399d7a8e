"""Hostile names in every view, without a browser: HTML and SVG are parsed, and must have the elements and attributes
that they have with a harmless name. tests/browser/test_hostile.py asks the same of a real JupyterLab.
"""

import base64
import functools
import re
import shutil
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from hostile_views import NAMES, VIEWS, bundles, harmless, labelled, shows, train_graph

from minflow.views.draw import engines as engines, theme
from minflow.views.show import picture
from tests.sampling import sampled

PICTURE = re.compile(r"data:image/(svg\+xml|png);base64,[A-Za-z0-9+/=]*")
STYLE = re.compile(r"url\s*\(|expression|@import|javascript:|position\s*:\s*fixed", re.I)
TIMED = {"timeline", "timeline that was live"}
# Lines of a legend, of a title, under an image: how many there are depends on how wide the letters of a name are.
WRAPPED = {"curve", "runs", "tensor", "file name", "ONNX file"}
# Of a timeline: where somebody waits long enough for it to be seen.
WAITS = {("rect", "fill", "height", "stroke", "stroke-dasharray", "width", "x", "y")}
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
    """What an HTML text has: elements as (name, attributes), and its text."""

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
    """Elements with the names of their attributes, the SVG pictures, and the text with alts. Asserts that nothing
    runs.
    """
    page, found, pictures, text = Elements(html), [], [], ""
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
    """Elements with the names of their attributes, and the text. It is well-formed; nothing in it runs or is
    fetched.
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
            assert name == "aria-label" or not STYLE.search(value), value
        found.append((tag, *sorted(element.attrib)))
        words += (element.text or "") + (element.tail or "") + element.attrib.get("aria-label", "")
    return found, words


def looked_at(bundle: dict[str, str]) -> tuple[dict, dict]:
    """What each form of a bundle has: (elements by form, text by form)."""
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
        assert not strange, f"characters that a terminal or a page obeys: {strange}"
    return elements, words


def names_for(what: str) -> dict[str, str]:
    """A quarter of the names, another one for each view; all of them with --complete."""
    return dict(sampled(NAMES.items(), 0.25, lambda item: f"{what} {item[0]}"))


def differing(what: str, found: list[dict], expected: list[dict]) -> list:
    """(bundle, form, elements, those of harmless names) where they differ."""
    result = [] if len(found) == len(expected) else [(len(found), len(expected))]
    for i, (one, other) in enumerate(zip(found, expected)):
        for form in one | other:
            ours, theirs = one.get(form, []), other.get(form, [])
            if what in TIMED:  # how many bars there are depends on how long things took
                same = form in one and form in other and set(ours) <= set(theirs) | WAITS
            else:
                same = set(ours) == set(theirs) if what in WRAPPED else ours == theirs
            if not same:
                result.append((i, form, ours, theirs))
    return result


@pytest.mark.parametrize("what", VIEWS)
def test_nothing_is_injected_and_all_is_told(what, monkeypatch):
    # no process for each picture
    monkeypatch.setattr(engines, "ENGINES", dict.fromkeys(engines.ENGINES, engines.layout_svg))
    known, told, names = [], set(), names_for(what)
    for key, name in names.items():
        elements, words = zip(*map(looked_at, bundles(what, name)))
        if not any(differing(what, elements, expected) == [] for expected in known):
            known.append([looked_at(bundle)[0] for bundle in bundles(what, harmless(name))])
            assert differing(what, elements, known[-1]) == [], key
        if any(shows(text, name) for texts in words for text in texts.values()):
            told.add(key)
    assert told == set(names), "some names are not shown"


@pytest.mark.parametrize("engine", engines.ENGINES)
def test_every_engine_draws_the_same_elements(engine):
    """A graph is drawn by the first of them that is there; an address in DOT would become a link."""
    if engine == "dot" and shutil.which("dot") is None:
        pytest.skip("no program dot")

    for key, name in names_for(engine).items():
        elements, texts = drawn(name, engine)
        assert elements == drawn(harmless(name), engine)[0], key
        assert shows(texts[1], "v" + name), key


def drawn(name: str, engine: str) -> tuple[list, list[str]]:
    """Elements and texts of the picture of a graph and of a tape."""
    graph, (x, y) = train_graph(name), labelled(name)
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
def test_texts_of_pictures_can_be_read(what):
    """At least 11 px, and 4.5 to 1 against the card or against a light box; what is set smaller or fainter is found
    here.
    """
    for bundle in usual(what):
        for picture_ in in_html(bundle.get("text/html", ""))[1]:
            assert list(texts_of(ET.fromstring(picture_), "#000000", 14.0, 1.0)) or what == "tensor"
            for text, fill, size, unit in texts_of(ET.fromstring(picture_), "#000000", 14.0, 1.0):
                assert fill in LIGHT or theme.contrast(fill, "#ffffff") >= 4.5, (text, fill)
                assert size * unit >= 10.9, (text, size)


LIGHT = {"#fff", "#ffffff", "white"}  # on a dark tile


def texts_of(element, fill, size, unit):
    """(text, colour, font size, pixels of one unit) of all texts; without a size Graphviz means 14."""
    fill, size = element.get("fill", fill), element.get("font-size", size)
    if element.tag.endswith("}svg") and "pt" in element.get("width", ""):
        unit = 4 / 3  # a point
    size = float(str(size).removesuffix("px"))
    if (element.text or "").strip() and element.tag.endswith(("}text", "}tspan")):
        yield element.text, fill, size, unit
    for child in element:
        yield from texts_of(child, fill, size, unit)


def test_the_judge_finds_what_it_looks_for():
    """Each of these is what a view that does not escape would give."""
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
    with pytest.raises(AssertionError, match="obeys"):
        looked_at({"text/plain": "a\x1b[31m"})
