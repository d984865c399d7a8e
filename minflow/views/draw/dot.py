"""A Diagram in DOT, the language of Graphviz: deterministic, with every name escaped.

Read next: `engines.py`, from a Diagram to a picture.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .boxes import Box, Diagram, Edge
from .theme import LINE, MUTED, PLAIN

HEADER = [
    "digraph minflow {",
    f'  graph [rankdir=TB bgcolor="{PLAIN}" fontname="Helvetica" fontsize=11 nodesep=0.3 ranksep=0.4 margin=0.1]',
    '  node [fontname="Helvetica" fontsize=11 margin="0.12,0.06" height=0.3]',
    f'  edge [fontname="Helvetica" fontsize=10 color="{LINE}" fontcolor="{MUTED}" arrowsize=0.7]',
]
FRAME_ATTRIBUTES = f'labeljust=l margin=12 color="{LINE}" style=rounded fontcolor="{MUTED}"'


def dot_text(diagram: Diagram) -> str:
    """DOT for users of Graphviz and for PNG and PDF export: a white page, sizes chosen by Graphviz."""
    return dot_lines(diagram, HEADER, box_statement, lambda _, edge: edge_statement(edge), quoted)


def dot_lines(
    diagram: Diagram,
    head: list[str],
    box: Callable[[Box], str],
    edge: Callable[[int, Edge], str],
    label: Callable[[str], str],
) -> str:
    """DOT of a diagram with nested frames. box, edge: return the statement of each.  label: quotes a frame's name."""
    lines, around = [*head], ()
    for one in diagram.boxes:
        common = sum(a == b for a, b in zip(around, one.frames))  # a frame has one parent, so equal frames come first
        lines += [f"{'  ' * level}}}" for level in range(len(around), common, -1)]
        for level, frame in enumerate(one.frames[common:], common + 1):
            lines.append(f'{"  " * level}subgraph "cluster_{frame}" {{')
            lines.append(f"{'  ' * (level + 1)}graph [label={label(diagram.frames[frame])} {FRAME_ATTRIBUTES}]")
        around = one.frames
        lines.append("  " * (len(around) + 1) + box(one))
    lines += [f"{'  ' * level}}}" for level in range(len(around), 0, -1)]
    beside = {one.id: one for one in diagram.beside}
    for number, one in enumerate(diagram.edges):
        lines += ["  " + box(beside[one.source])] if one.source in beside else []
        lines.append("  " + edge(number, one))
    return "\n".join([*lines, "}"]) + "\n"


def box_statement(box: Box) -> str:
    label = quoted("\n".join(box.lines))
    look = attributes(
        shape=box.shape,
        style=box.style,
        peripheries="2" * box.double,
        fillcolor=box.fill,
        color=box.color,
        fontcolor=box.text_color,
        penwidth=box.thick,
    )
    return f"{quoted(box.id)} [label={label} {look}]"


def edge_statement(edge: Edge) -> str:
    label = f"label={quoted(edge.label)} " if edge.label else ""
    look = (label + attributes(style=edge.style, color=edge.color, constraint="false" * edge.back)).rstrip()
    return f"{quoted(edge.source)} -> {quoted(edge.target)}" + (f" [{look}]" if look else "")


def attributes(**look: str) -> str:
    """Attributes that are not empty, quoted unless they are a word or a number."""
    return " ".join([f"{name}={x}" if re.fullmatch(r"[\w.]+", x) else f'{name}="{x}"' for name, x in look.items() if x])


def quoted(text: str) -> str:
    """Quote a DOT string so that quotes, backslashes, line ends and entities survive."""
    return '"' + text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
