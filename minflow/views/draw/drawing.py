"""SVG of boxes, lines and frames at given positions. Layout engines only compute positions; this module draws.

So a picture looks the same with every engine, each box is as large as its text needs in any font, and no text passes
through another program. Read next: `layout.py` and `graphviz_layout.py`, the layouts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from . import svg_writer as svg
from .boxes import Box, Diagram, Edge
from .fonts import text_width
from .theme import LINE, MUTED, PLAIN

FONT_SIZE, SMALL_FONT_SIZE = 12, 11  # font sizes in pixels: boxes; labels of edges and frames
LINE_HEIGHT = 16  # line height
BASELINE = 0.36 * SMALL_FONT_SIZE  # from the center of a label down to its baseline
PAD_X, PAD_Y, MARGIN = 10, 6, 6
RIM_GAP = 3  # between the two edges of a folded box
ARROW_LENGTH = 6  # length of an arrow
DASHES = {"dashed": "5 3", "dotted": "2 3"}


@dataclass(frozen=True)
class Line:
    """An edge with its route: Bezier points (an end, two control points, the next end, ...), the tip of the arrow, and
    the center of the label.
    """

    edge: Edge
    points: tuple[tuple[float, float], ...]
    tip: tuple[float, float]
    label: tuple[float, float] | None = None


@dataclass(frozen=True)
class Frame:
    """Sides of a frame, and the vertical center of its name. index: into the frames of the Diagram."""

    index: int
    name: str
    left: float
    top: float
    right: float
    bottom: float
    name_y: float


def line_widths(box: Box) -> list[float]:
    """Widths of the lines of text; the first line is bold if there are others."""
    return [text_width(line, FONT_SIZE, bold=i == 0 and len(box.lines) > 1) for i, line in enumerate(box.lines)]


def size_of(box: Box) -> tuple[float, float]:
    """(width, height) in pixels; an oval encloses the corners of all its lines."""
    widths, tall = line_widths(box), len(box.lines) * LINE_HEIGHT
    if box.shape != "ellipse":
        more = 2 * RIM_GAP * box.double
        return max(widths, default=0) + 2 * PAD_X + more, tall + 2 * PAD_Y + more
    b = 0.62 * tall + 4
    across = [
        (width / 2 + 3) / math.sqrt(1 - ((abs(i - (len(widths) - 1) / 2) * LINE_HEIGHT + 0.5 * FONT_SIZE) / b) ** 2)
        for i, width in enumerate(widths)
    ]
    return 2 * max(across, default=0), 2 * b


def label_size(words: str) -> tuple[float, float]:
    """(width, height) of an edge's or a frame's label with its halo, or with the sign that a script adds."""
    return text_width(words, SMALL_FONT_SIZE) + 2 * svg.PADDING, 1.5 * SMALL_FONT_SIZE


def diagram_svg(
    diagram: Diagram, boxes: Iterable[tuple[Box, float, float]], lines: Iterable[Line], frames: Iterable[Frame]
) -> str:
    """The picture as SVG. boxes: each with its center.  frames: outer ones first.

    Attributes for `../html/picture.js`: `data-frame` and `data-name` are the index of a frame, `data-box` is that of a
    box, `data-label` that of an edge. `data-in` lists the frames around, outermost first (of a frame, with itself),
    `data-ends` the boxes at the ends of an edge. `data-legend` is a line of the legend,
    `data-inside` the full name of the module that a box replaces.
    """
    places, lines, frames = [(box, x, y, *size_of(box)) for box, x, y in boxes], list(lines), list(frames)
    indices = {place[0].id: i for i, place in enumerate(places)}
    paths = {box.frames[: i + 1] for box in diagram.boxes for i in range(len(box.frames))}
    around = {path[-1]: " ".join(map(str, path)) for path in paths}
    parts = []
    for f in frames:
        look = {"rx": 6, "fill": "none", "stroke": LINE, "stroke_width": ".8"}
        marks = {"data_frame": str(f.index), "data_in": around.get(f.index)}
        parts.append(svg.rect(f.left, f.top, f.right - f.left, f.bottom - f.top, **look, **marks))
    for line in lines:
        ends = f"{indices[line.edge.source]} {indices[line.edge.target]}"
        parts.append(svg.group([edge_svg(line)], data_ends=ends))
    labels = [(f.left + 6 + label_size(f.name)[0] / 2, f.name_y, f.name) for f in frames]
    labels += [(*line.label, line.edge.label) for line in lines if line.label]
    names: list[str] = []
    for f in frames:
        title = svg.titled("".join(diagram.titles[f.index : f.index + 1]).split("\n"))
        name = svg.text(f.left + 6 + svg.PADDING, f.name_y + BASELINE, f.name)
        names.append(svg.group([title, name], data_name=str(f.index)))
    for i, line in enumerate(lines):
        if line.label:
            x, y = line.label
            names.append(svg.text(x, y + BASELINE, line.edge.label, text_anchor="middle", data_label=str(i)))
    parts.append(svg.group(names, font_size=SMALL_FONT_SIZE, fill=MUTED, **svg.HALO))
    for i, place in enumerate(places):
        inside = [
            svg.titled(place[0].title.split("\n")) if place[0].title else "",
            shape_of(*place),
            text_svg(*place[:3]),
        ]
        marks = {"data_in": " ".join(map(str, place[0].frames)), "data_inside": place[0].inside}
        parts.append(svg.group(inside, data_box=str(i), **marks))
    corners = [(f.left, f.top, f.right, f.bottom) for f in frames]
    corners += [(x, y, x, y) for line in lines for x, y in (*line.points, line.tip)]
    corners += [(x - w / 2, y - h / 2, x + w / 2, y + h / 2) for _, x, y, w, h in places]
    corners += [(x - w / 2, y - h / 2, x + w / 2, y + h / 2) for x, y, words in labels for w, h in [label_size(words)]]
    left, top = (math.floor(min((c[i] for c in corners), default=0)) - MARGIN for i in (0, 1))
    right, bottom = (math.ceil(max((c[i] for c in corners), default=20)) + MARGIN for i in (2, 3))
    for words, fill, rim in diagram.legend:  # a line for each, below the picture
        sample = svg.rect(left + MARGIN, bottom + 4, 24, 12, fill=fill, stroke=rim)
        name = svg.label(left + MARGIN + 30 + svg.PADDING, bottom + 14, words, size=SMALL_FONT_SIZE)
        parts.append(svg.group([sample, name], data_legend="line"))
        right = max(right, left + math.ceil(text_width(words, SMALL_FONT_SIZE)) + 30 + 2 * svg.PADDING + 2 * MARGIN)
        bottom += 20
    return svg.picture(parts, right - left, bottom - top, left=left, top=top, font_size=FONT_SIZE)


def edge_svg(line: Line) -> str:
    """The curve and its arrow."""
    (x0, y0), (x, y), color = line.points[-1], line.tip, line.edge.color or LINE
    d = "M" + svg.number(line.points[0][0]) + " " + svg.number(line.points[0][1])
    d += "C" + " ".join(svg.number(n) for point in line.points[1:] for n in point)
    far = math.hypot(x - x0, y - y0) or 1.0
    dx, dy = (x - x0) / far * ARROW_LENGTH, (y - y0) / far * ARROW_LENGTH
    head = [(x, y), (x - dx - dy / 2, y - dy + dx / 2), (x - dx + dy / 2, y - dy - dx / 2)]
    return svg.path(d, fill="none", stroke=color, stroke_dasharray=DASHES.get(line.edge.style)) + svg.path(
        "M" + "L".join(f"{svg.number(a)} {svg.number(b)}" for a, b in head) + "Z", fill=color
    )


def shape_of(box: Box, x: float, y: float, w: float, h: float) -> str:
    """A box or an oval. A dashed rim is drawn over the fill, so that it is visible on any page."""
    edge, dashed = {"stroke": box.color or LINE, "stroke_width": box.thick or None}, "dashed" in box.style
    outer = {"fill": box.fill or PLAIN, **(edge if not dashed else {})}
    if box.shape == "ellipse":
        return svg.element("ellipse", cx=x, cy=y, rx=w / 2, ry=h / 2, **outer)
    inset = RIM_GAP if box.double else 1
    inner = {**edge, "stroke_dasharray": DASHES["dashed"]} if dashed else {"stroke": edge["stroke"]}
    rim = (
        svg.rect(
            x - w / 2 + inset, y - h / 2 + inset, w - 2 * inset, h - 2 * inset, rx=5 - inset / 2, fill="none", **inner
        )
        if box.double or dashed
        else ""
    )
    return svg.rect(x - w / 2, y - h / 2, w, h, rx=5, **outer) + rim


def text_svg(box: Box, x: float, y: float) -> str:
    """The lines of text, centered in the box."""
    first = y - (len(box.lines) - 1) * LINE_HEIGHT / 2 + 0.36 * FONT_SIZE
    title, *rest = [svg.text(x, first + i * LINE_HEIGHT, line) for i, line in enumerate(box.lines)]
    return svg.group(
        [title], font_weight="bold" if rest else None, text_anchor="middle", fill=box.text_color
    ) + svg.group(rest, text_anchor="middle", fill=box.text_color or MUTED)
