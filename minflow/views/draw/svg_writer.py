"""SVG as text: elements with every attribute and word escaped, and numbers in one format.

A picture has no background: its lines take the colors `theme.LINES`, and its text is in a light box or a `label`.
Read next: `../renderers/memory_map.py`, a picture made with these.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from ...core.base.errors import clean
from .fonts import FONT_SIZE, text_width
from .theme import PLAIN, TEXT_COLOR

FONT = "Helvetica, Arial, sans-serif"
PADDING = 6  # pixels between the text of a label and the sides of its plate
LINE_HEIGHT = 1.36  # line height of a label, in font sizes
# Light around dark letters: they are readable on lines and on dark pages, and a light page shows nothing of it.
HALO = {"stroke": PLAIN, "stroke_width": 4, "stroke_linejoin": "round", "paint_order": "stroke"}


def number(x: float) -> str:
    """A coordinate in pixels with at most one decimal. Fractions such as an opacity are passed as text: ".35"."""
    return f"{x:.1f}".removesuffix(".0")


def attributes(**look: object) -> str:
    """` stroke-width="2"` for `stroke_width=2`; None and empty values are left out."""
    shown = [(name.replace("_", "-"), x) for name, x in look.items() if x is not None and x != ""]
    return "".join(f' {name}="{escape(x, True) if isinstance(x, str) else number(x)}"' for name, x in shown)


def element(tag: str, *inside: str, **look: object) -> str:
    """An SVG element.

    inside: elements, or escaped text.
    """
    content = "".join(inside)
    return f"<{tag}{attributes(**look)}>{content}</{tag}>" if content else f"<{tag}{attributes(**look)}/>"


def rect(x: float, y: float, width: float, height: float, *inside: str, **look: object) -> str:
    return element("rect", *inside, x=x, y=y, width=width, height=height, **look)


def path(d: str, *inside: str, **look: object) -> str:
    """A path, or nothing if `d` is empty."""
    return element("path", *inside, d=d, **look) if d else ""


def titled(lines: Iterable[str]) -> str:
    """A title inside an element: its tooltip, where the picture is part of the page."""
    return element("title", escape("\n".join(map(clean, lines))))


def text(x: float, y: float, words: str, **look: object) -> str:
    return element("text", escape(clean(words)), x=x, y=y, **look)


def label(
    x: float,
    y: float,
    *lines: str,
    size: float = FONT_SIZE,
    anchor: str = "start",
    bold: bool = False,
    text_color: str = TEXT_COLOR,
    fill: str = "",
    rest: str = "",
) -> str:
    """Lines of text with a light halo, or on a plate of the color `fill`, wide enough for the widest in any font;
    y is the baseline of the first.

    anchor: x is the "start", the "middle" or the "end" of the lines; a plate is PADDING wider on each side.
    rest: color of the lines after the first; only the first is bold then.
    """
    width = max(text_width(clean(line), size, bold and not (rest and i)) for i, line in enumerate(lines))
    left = x - width * {"start": 0, "middle": 0.5, "end": 1}[anchor]
    height = (len(lines) - 1) * LINE_HEIGHT * size + size * 1.5
    words = [text(x, y + i * LINE_HEIGHT * size, line) for i, line in enumerate(lines)]
    look = {"font_size": size, "text_anchor": anchor if anchor != "start" else None, **({} if fill else HALO)}
    heads = len(words) if not rest else 1
    plate = rect(left - PADDING, y - 1.1 * size, width + 2 * PADDING, height, rx=4, fill=fill) if fill else ""
    return (
        plate
        + group(words[:heads], **look, fill=text_color, font_weight="bold" if bold else None)
        + group(words[heads:], **look, fill=rest)
    )


def span(words: str, **look: object) -> str:
    """A part of a text with its own attributes."""
    return element("tspan", escape(clean(words)), **look)


def group(parts: Iterable[str], **look: object) -> str:
    """Elements with common attributes, or nothing if there are none."""
    inside = "".join(parts)
    return element("g", inside, **look) if inside else ""


def picture(
    parts: Iterable[str], width: float, height: float, label: str = "", left: float = 0, top: float = 0, **look: object
) -> str:
    """The whole picture, with a transparent background. label: text for screen readers."""
    frame = {"xmlns": "http://www.w3.org/2000/svg", "width": width, "height": height}
    frame["viewBox"] = " ".join(map(number, (left, top, width, height)))
    said = {"role": "img", "aria_label": clean(label)} if label else {}
    # geometricPrecision: glyph widths are those of the font, not rounded to whole pixels.
    look = {"font_family": FONT, "font_size": 11.5, "fill": TEXT_COLOR, "text_rendering": "geometricPrecision", **look}
    return element("svg", *parts, **frame, **said, **look)
