"""The model of a picture: boxes with lines of text, edges between them, and frames around the boxes of a module.

Nothing is conveyed by color alone: leaves are ovals, boxes without a gradient are dashed, a folded box has a double
edge, the result a thick one. Read next: `drawing.py`, the model as SVG; `dot.py`, the model in DOT.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from textwrap import wrap

from ..records.graph import GraphRecord, NodeRecord, module_name
from ..records.tape import TapeRecord
from ..text.listing import clean, count
from ..text.numbers import nbytes_text
from ..text.tables import cut
from . import theme
from .fold import MAX_BOXES, fold, scope_levels


@dataclass(frozen=True)
class Box:
    """A box with lines of text.

    frames: indices of the frames around the box, outermost first.  double: True for a double rim.  text_color: color
    of the text.  title: lines that browsers show at the pointer.  inside: full name of the module that is folded.
    """

    id: str
    lines: tuple[str, ...]
    frames: tuple[int, ...] = ()
    shape: str = "box"
    style: str = "rounded,filled"
    double: bool = False
    fill: str = ""
    color: str = ""
    text_color: str = ""
    thick: str = ""
    title: str = ""
    inside: str = ""


@dataclass(frozen=True)
class Edge:
    """An edge between two boxes.

    back: True if the edge points upward and must not affect the ranks.
    """

    source: str
    target: str
    label: str = ""
    style: str = ""
    color: str = ""
    back: bool = False


@dataclass(frozen=True)
class Diagram:
    """The boxes, edges and frames of a picture.

    boxes: in order, those of a frame adjacent.  beside: boxes of Python numbers, next to their readers.
    frames: names.  titles: of each frame, its full name, and the lines of the box that replaces it when a reader folds
    it.  legend: (words, fill, rim) of each color that needs words.
    """

    boxes: tuple[Box, ...]
    beside: tuple[Box, ...]
    edges: tuple[Edge, ...]
    frames: tuple[str, ...]
    legend: tuple[tuple[str, str, str], ...] = ()
    titles: tuple[str, ...] = ()


OPERATION_STYLE = {"fill": theme.PLATE, "color": theme.LINE}
STATE_STYLE = {"shape": "ellipse", "style": "filled", "fill": theme.PALE_BLUE, "color": theme.BLUE}
BOX_STYLES = {  # kind -> attributes of its boxes
    "op": OPERATION_STYLE,
    "leaf": STATE_STYLE,
    "input": {**STATE_STYLE, "fill": theme.PALE_GREEN, "color": theme.GREEN},
    "state": STATE_STYLE,
    "folded": {**OPERATION_STYLE, "double": True},
    "constant": {"style": "rounded,filled,dashed", "fill": theme.PLAIN, "color": theme.LINE, "text_color": theme.MUTED},
}
ERROR_STYLE = {"fill": theme.PALE_RED, "color": theme.RED, "text_color": theme.RED_TEXT, "thick": "3"}
WARNING_STYLE = {"fill": theme.PALE_AMBER, "color": theme.AMBER}
MARK_STYLES = {  # mark -> (sign before the name, attributes that override those of the kind)
    "failed": ("\u2717 ", ERROR_STYLE),
    "differs": ("\u2717 ", ERROR_STYLE),
    "equal": ("\u2713 ", {"fill": theme.PALE_GREEN, "color": theme.GREEN}),
    "ghost": ("", {**WARNING_STYLE, "style": "rounded,filled,dashed", "text_color": theme.AMBER_TEXT}),
    "only": ("? ", WARNING_STYLE),
}
# Symmetric ops: their arrows need no input names a and b.
SYMMETRIC_OPS = frozenset(
    "add mul maximum minimum eq ne logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor".split()
)
MAX_FRAME_DEPTH = 12  # nesting limit of frames; deeper modules share one more frame
MAX_LINE_CHARS = 34  # characters in a line of a box
MAX_NOTE_LINES = 4  # lines of a note in a box


def diagram_of(record: TapeRecord | GraphRecord, limit: int = MAX_BOXES) -> Diagram:
    """Diagram of a tape or a graph, folded to `limit` boxes: data flows down, modules are frames."""
    record = fold(record, limit)
    nodes = {n.id: n for n in record.nodes}
    updates = Counter((state, id) for state, id, _ in record.updates)
    # A folded optimizer updates states in nearly every other box. Its box says so; an edge to each would hide the rest.
    writers = {n.id for n in record.nodes if n.kind == "folded" and n.phase == "optimizer"}
    written = Counter(id for state, id, _ in record.updates if id in writers and state != id)
    said = {id: f"\nupdates {count} states of other boxes" for id, count in written.items()}
    copies = device_copies(record)
    shown = [replace(n, attrs=n.attrs + said[n.id]) if n.id in said else n for n in record.nodes if n.id not in copies]
    boxes, frames, titles = boxes_in_frames(tuple(shown), {id for id, _ in record.outputs})
    beside: list[Box] = []
    edges: list[Edge] = []
    for node in shown:
        if node.kind == "folded":
            reads = Counter(x.ref for x in node.inputs if x.ref)
            edges += [
                edge_to_fold(nodes[ref], node, n)
                for ref, n in reads.items()
                if node.id not in writers or (ref, node.id) not in updates
            ]
            continue
        named = len([x for x in node.inputs if x.ref or "[" in x.text]) > 1 and not is_symmetric(node)
        for i, x in enumerate(node.inputs):
            label = x.name if named else ""
            while x.ref in copies:
                label = f"{label}: {copy_text(copies[x.ref])}" if label else copy_text(copies[x.ref])
                x = copies[x.ref].inputs[0]
            source = nodes.get(x.ref)
            if source and len(source.outs) > 1 and source.kind != "folded":
                label = f"{label} (output {x.index})".strip()
            if not source and "[" not in x.text:
                continue  # a Python number is written in the box itself
            if not source:
                beside.append(Box(f"{node.id}_{i}", (clean(short_line(x.text)),), **BOX_STYLES["constant"]))
            solid = source and node.needs and source.mark != "ghost" and source.kind != "constant"
            edges.append(Edge(x.ref or f"{node.id}_{i}", node.id, clean(label), "" if solid else "dashed"))
    for (state, id), n in updates.items():
        if id not in writers:
            edges.append(Edge(id, state, f"{n} updates" if n > 1 else "update", "dotted", back=True))
    return Diagram(boxes, tuple(beside), tuple(edges), frames, sbp_legend(record.nodes), titles)


def device_copies(record: TapeRecord | GraphRecord) -> dict[str, NodeRecord]:
    """The copies to another device that are drawn as edges: all but results, updates and those that a picture is about,
    by id. A folded box reads their boxes.
    """
    kept = {id for id, _ in record.outputs} | {id for _, id, _ in record.updates}
    kept |= {x.ref for n in record.nodes if n.kind == "folded" for x in n.inputs}
    return {n.id: n for n in record.nodes if n.copied and not n.mark and n.id not in kept and n.inputs[0].ref}


def copy_text(node: NodeRecord) -> str:
    """The label of the edge of a copy: "copy to cuda:0, 3.4 kB"."""
    return (
        f"copy to {node.outs[0].rpartition(' on ')[2] if ' on ' in node.outs[0] else 'cpu'}, {nbytes_text(node.copied)}"
    )


SBP_WORDS = {
    "B": "B: whole on each rank",
    "S(0)": "S(0): rows split over the ranks",
    "S(1)": "S(1): columns split over the ranks",
    "S": "S(2), ...: split along a later dim",
    "P": "P: each rank has a term of the sum",
}


def sbp_key(sbp: str) -> str:
    """The key of SBP_COLORS: P if the tensor is a partial sum along an axis of ranks, else its first split, else B."""
    parts = sbp.split(", ")
    first = "P" if "P" in parts else next((x for x in parts if x != "B"), "B")
    return first if first in theme.SBP_COLORS else "S"


def sbp_legend(nodes: tuple[NodeRecord, ...]) -> tuple[tuple[str, str, str], ...]:
    """The colors of global tensors, if there are any, and the meaning of the bytes of boxing."""
    keys = {sbp_key(n.sbp) for n in nodes if n.sbp}
    boxing = [("boxing: the bytes that one rank sends, at most", theme.PLAIN, theme.LINE)]
    colors = [(words, *theme.SBP_COLORS[key]) for key, words in SBP_WORDS.items() if key in keys]
    return tuple(colors + boxing * any([n.sent or n.label == "boxing" for n in nodes]))


def edge_to_fold(source: NodeRecord, node: NodeRecord, values: int) -> Edge:
    """Edge into a folded box: one line for any number of values, dotted if forward saves them for backward."""
    kept = node.phase in ("backward", "recompute") and not source.phase
    if kept:
        return Edge(source.id, node.id, "", "dotted", theme.VIOLET)
    return Edge(source.id, node.id, f"{values} values" if values > 1 else "", "" if node.needs else "dashed")


def is_symmetric(node: NodeRecord) -> bool:
    """True if the inputs could be exchanged. A failed node always shows its input names."""
    names = [x.name for x in node.inputs]
    return names == ["a", "b"] and node.label.rpartition(": ")[2] in SYMMETRIC_OPS and node.mark != "failed"


def boxes_in_frames(
    nodes: tuple[NodeRecord, ...], results: set[str]
) -> tuple[tuple[Box, ...], tuple[str, ...], tuple[str, ...]]:
    """The boxes, each with the nested frames of its modules, and the names and the titles of the frames."""
    tree: dict = {"": []}
    for node in nodes:
        place = tree
        inner = scope_levels(node.scope) if node.scope else []
        for name in (
            [*inner[:MAX_FRAME_DEPTH], "".join(inner[MAX_FRAME_DEPTH:])] if len(inner) > MAX_FRAME_DEPTH else inner
        ):
            place = place.setdefault(name.lstrip("./") or name, {"": []})
        place[""].append(node)
    boxes: list[Box] = []
    names: list[str] = []
    inside: list[list[NodeRecord]] = []  # of each frame
    stack: list[tuple[dict, str | None, tuple[int, ...]]] = [(tree, None, ())]
    while stack:
        place, name, around = stack.pop()
        if name is not None:
            around = (*around, len(names))
            names.append(name)
            inside.append([])
        boxes += [node_box(node, around, node.id in results) for node in place[""]]
        for frame in around:
            inside[frame] += place[""]
        stack += [(inner, key, around) for key, inner in reversed(place.items()) if key]
    paths = {box.frames[: i + 1] for box in boxes for i in range(len(box.frames))}
    full = {path[-1]: ".".join(names[frame] for frame in path) for path in paths}
    order = {node.id: i for i, node in enumerate(nodes)}
    titles = (frame_title(full[i], sorted(held, key=lambda n: order[n.id])) for i, held in enumerate(inside))
    return tuple(boxes), tuple(clean(short_line(name)) for name in names), tuple(titles)


def frame_title(name: str, nodes: list[NodeRecord]) -> str:
    """The full name of a frame, the number of operations in it, and the spec of its last forward result.

    nodes: those in the frame, in order.
    """
    operations = [n for n in nodes if n.kind in ("op", "folded") and n.mark != "ghost"]
    results = [n.outs[0] for n in operations if n.outs and not n.phase]
    return "\n".join([clean(name), count(sum(n.count for n in operations), "operation"), *results[-1:]])


def node_box(node: NodeRecord, frames: tuple[int, ...], result: bool) -> Box:
    numbers = [x.text for x in node.inputs if not x.ref and "[" not in x.text] if node.kind == "op" else []
    title = short_name(node) if node.kind != "op" else f"{node.label} {' '.join(numbers)}".rstrip()
    sign, look = MARK_STYLES.get(node.mark, ("", {}))
    parts = [short_line(sign + title)]
    if node.attrs and node.kind in ("op", "folded"):
        parts += map(short_line, node.attrs.split("\n"))
    if node.sent and node.kind == "folded":
        parts.append(f"boxing sends {nbytes_text(node.sent)}")
    specs = (
        node.outs
        if node.kind != "folded"
        else ()
        if node.phase
        else node.outs[:1]
        if len(node.outs) > node.held
        else ()
    )
    parts += [short_line(spec) for spec in specs[:3]] + (["..."] if len(specs) > 3 else [])
    parts += two_lines(f"value {node.value}") if node.value else []
    parts += two_lines(f"grad {node.grad}") if node.grad else []
    parts += [line for note in node.notes for line in note_lines(note)]
    look = {**BOX_STYLES[node.kind], **look}
    if node.sbp and not node.mark:
        fill, rim = theme.SBP_COLORS[sbp_key(node.sbp)]
        look.update(fill=fill, color=rim, text_color=theme.TEXT_COLOR)
    if not node.needs and node.kind == "op" and not node.mark:
        look["style"] = "rounded,filled,dashed"
    if result:
        look["thick"] = "2.4"
    lines = tuple(map(clean, "\n".join(parts).split("\n")))
    return Box(node.id, lines, frames, **look, title=box_title(node), inside=module_inside(node))


def module_inside(node: NodeRecord) -> str:
    """Full name of the module that a folded box replaces, as a frame of it would be called; empty for other boxes."""
    if node.kind != "folded":
        return ""
    name = node.label.removesuffix(f" {node.phase}").rpartition(".")[2]
    return clean(".".join([level.lstrip("./") for level in scope_levels(node.scope) if node.scope] + [name]))


def box_title(node: NodeRecord) -> str:
    """All that is known of a node, in lines: full name, attributes, shapes, source line, ranks."""
    name = f"{node.scope}: {node.label}" if node.scope and node.kind == "op" else node.label
    specs = [x.text for x in node.inputs if "[" in x.text] if node.kind == "op" else []
    shapes = " → ".join(filter(None, (", ".join(specs), ", ".join(node.outs))))
    parts = (name, node.attrs, shapes, node.where, node.holders)
    return "\n".join(clean(line) for part in parts for line in part.split("\n") if line)


def short_name(node: NodeRecord) -> str:
    """Name of a parameter inside its module's frame, as in errors: "fc1.weight"."""
    modules = node.scope.partition("/")[0]
    if node.kind in ("leaf", "state") and modules and node.label.startswith(f"{modules}."):
        return f"{module_name(modules.split('.'))}{node.label[len(modules) :]}"
    return node.label


def short_line(text: str) -> str:
    return cut(text, MAX_LINE_CHARS)


def two_lines(text: str) -> list[str]:
    """Numbers in one line, or broken after a comma into two if they are too long."""
    at = text.rfind(", ", 0, MAX_LINE_CHARS) + 1 if len(text) > MAX_LINE_CHARS else 0
    return [short_line(text[:at]), short_line(text[at + 1 :])] if at else [short_line(text)]


def note_lines(note: str) -> list[str]:
    """A note wrapped for a box; a long one is cut, and is given in full beside the picture."""
    lines = wrap(clean(note), MAX_LINE_CHARS + 8, subsequent_indent="    ", break_on_hyphens=False)
    return (
        lines
        if len(lines) <= MAX_NOTE_LINES
        else [*lines[: MAX_NOTE_LINES - 1], lines[MAX_NOTE_LINES - 1][:MAX_LINE_CHARS] + " ..."]
    )
