"""Layout by Graphviz: it receives indices and sizes, never text, and returns positions.

Read next: `drawing.py`, which draws them.
"""

from __future__ import annotations

import json
import math

from .boxes import Box, Diagram, Edge
from .dot import dot_lines
from .drawing import Frame, Line, diagram_svg, label_size, size_of

HEADER = [
    "digraph minflow {",
    '  graph [rankdir=TB fontname="Helvetica" fontsize=14 nodesep=0.3 ranksep=0.4 margin=0]',
    '  node [label="" fixedsize=true]',
    '  edge [fontname="Helvetica" fontsize=14 arrowsize=0.6]',
]
LETTER_WIDTH = 7.5  # lower bound of the width in pixels of an "n" at that size


def placeholder_label(words: str) -> str:
    """A label at least as wide as our plate, in any font that Graphviz may measure with."""
    return "n" * math.ceil(label_size(words)[0] / LETTER_WIDTH)


def sizes_text(diagram: Diagram) -> str:
    """The diagram in DOT, with boxes of the size at which they will be drawn."""
    numbers = {box.id: i for i, box in enumerate((*diagram.boxes, *diagram.beside))}

    def box_size(box: Box) -> str:
        width, height = size_of(box)
        return f"{numbers[box.id]} [shape={box.shape} width={width / 72:.3f} height={height / 72:.3f}]"

    def edge_number(number: int, edge: Edge) -> str:
        label = f" label={placeholder_label(edge.label)}" * bool(edge.label)
        return f"{numbers[edge.source]} -> {numbers[edge.target]} [id={number}{label}{' constraint=false' * edge.back}]"

    return dot_lines(diagram, HEADER, box_size, edge_number, placeholder_label)


def placed_svg(diagram: Diagram, answer: bytes) -> str:
    """The picture. answer: the JSON of `dot -Tjson0`."""
    graph = json.loads(answer)
    top = floats(graph["bb"])[3]  # y of Graphviz grows upwards
    boxes, lines, frames = (*diagram.boxes, *diagram.beside), [], []
    centers = {}
    for place in graph.get("objects", ()):
        if place["name"].startswith("cluster_"):
            left, low, right, high = floats(place["bb"])
            index = int(place["name"].removeprefix("cluster_"))
            frames.append(
                Frame(index, diagram.frames[index], left, top - high, right, top - low, top - floats(place["lp"])[1])
            )
        else:
            x, y = floats(place["pos"])
            centers[int(place["name"])] = x, top - y
    for place in graph.get("edges", ()):
        edge, tip, points = diagram.edges[int(place["id"])], None, []
        for part in place["pos"].split():
            x, y = floats(part.removeprefix("e,"))
            tip, points = ((x, top - y), points) if part.startswith("e,") else (tip, [*points, (x, top - y)])
        x, y = floats(place["lp"]) if edge.label else (0, 0)
        lines.append(Line(edge, tuple(points), tip or points[-1], (x, top - y) if edge.label else None))
    return diagram_svg(diagram, [(box, *centers[i]) for i, box in enumerate(boxes)], lines, frames)


def floats(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]
