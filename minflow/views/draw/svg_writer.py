"""SVG as text: elements from numbers and words, every attribute and word escaped, all numbers written in one way.

What is drawn is the business of those who call it. Read next: `../kinds/memory_map.py`, a picture made of these.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from ...core.base.errors import clean

FONT = "Helvetica, Arial, sans-serif"
HALO = {"stroke": "#ffffff", "stroke_width": 3, "paint_order": "stroke"}  # of a text that a line may pass behind


def number(x: float) -> str:
    """A coordinate in pixels, with one decimal at most. A share such as an opacity is an attribute of text: ".35"."""
    return f"{x:.1f}".removesuffix(".0")


def attributes(**look: object) -> str:
    """` stroke-width="2"` of `stroke_width=2`; what is None or empty is left out."""
    shown = [(name.replace("_", "-"), x) for name, x in look.items() if x is not None and x != ""]
    return "".join(f' {name}="{escape(x, True) if isinstance(x, str) else number(x)}"' for name, x in shown)


def element(tag: str, *inside: str, **look: object) -> str:
    """inside: elements, or escaped words."""
    return f"<{tag}{attributes(**look)}>{''.join(inside)}</{tag}>" if inside else f"<{tag}{attributes(**look)}/>"


def rect(x: float, y: float, width: float, height: float, **look: object) -> str:
    return element("rect", x=x, y=y, width=width, height=height, **look)


def path(d: str, **look: object) -> str:
    """Lines; nothing where there are none."""
    return element("path", d=d, **look) if d else ""


def text(x: float, y: float, words: str, **look: object) -> str:
    return element("text", escape(clean(words)), x=x, y=y, **look)


def span(words: str, **look: object) -> str:
    """A part of a text with a look of its own."""
    return element("tspan", escape(clean(words)), **look)


def group(parts: Iterable[str], **look: object) -> str:
    """Elements with one look; nothing where there are none."""
    inside = "".join(parts)
    return element("g", inside, **look) if inside else ""


def picture(parts: Iterable[str], width: float, height: float, label: str = "", left: float = 0, top: float = 0,
            **look: object) -> str:
    """The whole on a white ground of its own, the same in light and dark themes. label: what a screen reader says."""
    frame = {"xmlns": "http://www.w3.org/2000/svg", "width": width, "height": height}
    frame["viewBox"] = " ".join(map(number, (left, top, width, height)))
    said = {"role": "img", "aria_label": clean(label)} if label else {}
    look = {"font_family": FONT, "font_size": 11.5, **look}
    return element("svg", rect(left, top, width, height, fill="#ffffff"), *parts, **frame, **said, **look)
