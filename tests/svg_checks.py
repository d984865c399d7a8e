"""Checks of static pictures: SVG and scripts in a bundle, the pixels of a PNG, and texts outside their backgrounds.

Texts are measured in the widest common font.
"""

import base64
import json
import re
import struct
import xml.etree.ElementTree as ET
import zlib
from pathlib import Path

import minflow_widgets
import numpy as np

import minflow as flow
from minflow.views.draw import theme
from minflow.views.draw.fonts import text_width
from minflow.views.html.script import lean

INHERITED = "fill", "font-size", "font-weight", "text-anchor", "paint-order", "stroke", "stroke-width"


OWN_SCRIPT = re.compile(
    r"<script>\(\(\)=>\{const box=[^<]*?try\{\((.*?)\)\(box,([^<]*)\)\}catch\(error\)[^<]*</script>", re.S
)
PACKAGES = [Path(package.__file__).parent for package in (flow, minflow_widgets)]
OWN_SOURCES = {path.read_text("utf-8").strip() for package in PACKAGES for path in package.rglob("*.js")}
OWN_SOURCES |= set(map(lean, OWN_SOURCES))


def without_scripts(html: str) -> str:
    """The HTML without a script of a package's file, whose data is JSON (see `views/html/script.py`)."""

    def checked(match):
        json.loads(match[2])
        assert match[1].replace("<\\/script", "</script") in OWN_SOURCES, match[1][:80]
        return ""

    return OWN_SCRIPT.sub(checked, html)


def svg_in(html: str) -> str:
    """Return the first picture of an HTML text."""
    return base64.b64decode(re.search(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)", html)[1]).decode()


def map_values(page):
    """Return the elements of a page of maps, as the explorer's script reads them."""
    return np.frombuffer(base64.b64decode(page["data"]), "<f4").reshape(page["shape"])


def pixels_of(image: bytes) -> np.ndarray:
    """Return the pixels of a PNG that `png` wrote: filters none and up, eight bits."""
    assert image.startswith(b"\x89PNG\r\n\x1a\n")
    at, chunks = 8, {}
    while at < len(image):
        size, name = struct.unpack(">I4s", image[at : at + 8])
        data = image[at + 8 : at + 8 + size]
        assert struct.unpack(">I", image[at + 8 + size : at + 12 + size])[0] == zlib.crc32(name + data)
        chunks[name], at = data, at + 12 + size
    width, height, _, kind = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    depth = {4: 2, 2: 3, 6: 4}.get(kind, 1)
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + depth * width)
    rows = []
    for line in lines:
        rows.append(line[1:] if line[0] == 0 else line[1:] + rows[-1])
    return np.stack(rows).reshape((height, width, depth) if depth > 1 else (height, width))


def inside(x: float, y: float, width: float, height: float, oval: bool) -> bool:
    """True if a box contains a point, relative to its upper left corner; coordinates have one decimal."""
    if oval:
        return (2 * x / width - 1) ** 2 + (2 * y / height - 1) ** 2 <= 1.02
    return -0.2 <= x <= width + 0.2 and -0.2 <= y <= height + 0.2


def texts_without_background(picture: str, grounds=theme.FILL_COLORS) -> list[str]:
    """Return the texts that have no light rectangle or oval behind them and no halo, or too little contrast with it."""
    found: list[str] = []
    boxes: list[tuple[float, ...]] = []

    def walk(e, look, dx, dy):
        look = look | {key: e.get(key) for key in INHERITED if e.get(key)}
        moved = re.match(r"translate\(([\d.-]+)[ ,]([\d.-]+)\)", e.get("transform", ""))
        dx, dy = (dx + float(moved[1]), dy + float(moved[2])) if moved else (dx, dy)
        if e.tag.endswith("}rect") and e.get("fill") in grounds:
            x, y, width, height = (float(e.get(key)) for key in ("x", "y", "width", "height"))
            boxes.append((x + dx, y + dy, width, height, False))
        elif e.tag.endswith("}ellipse") and e.get("fill") in grounds:
            x, y, rx, ry = (float(e.get(key)) for key in ("cx", "cy", "rx", "ry"))
            boxes.append((x - rx + dx, y - ry + dy, 2 * rx, 2 * ry, True))
        elif e.tag.endswith("}text"):
            parts = [(e.text or "", look.get("font-weight")), *[(p.text, p.get("font-weight")) for p in e]]
            width = sum([text_width(words, float(look.get("font-size", 11.5)), bool(bold)) for words, bold in parts])
            x, y = float(e.get("x")) + dx, float(e.get("y")) + dy
            x -= width * {"middle": 0.5, "end": 1}.get(look.get("text-anchor"), 0)
            corners = [(p, q) for p in (x, x + width) for q in (y, y - 0.75 * float(look.get("font-size", 11.5)))]
            halo = look.get("paint-order") == "stroke" and look.get("stroke") in grounds
            held = [1] * (halo and float(look["stroke-width"]) >= 3)
            held += [1 for a, b, w, h, oval in boxes if all(inside(p - a, q - b, w, h, oval) for p, q in corners)]
            if not held or look.get("fill", theme.TEXT_COLOR) not in theme.TEXT_COLORS:
                found.append("".join(words for words, _ in parts))
        for inner in e:
            walk(inner, look, dx, dy)

    walk(ET.fromstring(picture), {}, 0.0, 0.0)
    return found
