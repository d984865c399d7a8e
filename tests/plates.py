"""Texts of a still picture that leave their plates, measured in the widest usual font, or stand on none."""

import re
import xml.etree.ElementTree as ET

from minflow.views.draw import theme
from minflow.views.draw.fonts import wide

INHERITED = "fill", "font-size", "font-weight", "text-anchor"


def off_their_plates(picture: str, grounds=theme.FILLS) -> list[str]:
    """What the texts say that no rectangle of a light colour holds, drawn before them, or in whose ink none is read."""
    found: list[str] = []
    boxes: list[tuple[float, ...]] = []

    def walk(e, look, dx, dy):
        look = look | {key: e.get(key) for key in INHERITED if e.get(key)}
        moved = re.match(r"translate\(([\d.-]+)[ ,]([\d.-]+)\)", e.get("transform", ""))
        dx, dy = (dx + float(moved[1]), dy + float(moved[2])) if moved else (dx, dy)
        if e.tag.endswith("}rect") and e.get("fill") in grounds:
            x, y, width, height = (float(e.get(key)) for key in ("x", "y", "width", "height"))
            boxes.append((x + dx, y + dy, width, height))
        elif e.tag.endswith("}text"):
            parts = [(e.text or "", look.get("font-weight")), *[(p.text, p.get("font-weight")) for p in e]]
            width = sum([wide(words, float(look.get("font-size", 11.5)), bool(bold)) for words, bold in parts])
            x, y = float(e.get("x")) + dx, float(e.get("y")) + dy
            x -= width * {"middle": 0.5, "end": 1}.get(look.get("text-anchor"), 0)
            held = [1 for a, b, w, h in boxes if a <= x and x + width <= a + w + 0.1 and b < y <= b + h]
            if not held or look.get("fill", theme.INK) not in theme.INKS:
                found.append("".join(words for words, _ in parts))
        for inner in e:
            walk(inner, look, dx, dy)

    walk(ET.fromstring(picture), {}, 0.0, 0.0)
    return found
