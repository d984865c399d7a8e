"""Records as DOT text, the language of Graphviz: the same text for the same record, and every name escaped.

What is said by colour is said by shape or line too: leaves are ovals, what gets no gradient is dashed, a folded box
has a double edge, the result a thick one. Also reads back the part of DOT that is written here, for our own layout.
Read next: `engines.py`, from DOT to a picture.
"""

from __future__ import annotations

from dataclasses import replace
from textwrap import wrap

from .fold import BOXES, fold, levels
from ..records.structure import GraphRecord, NodeRecord, TapeRecord, module_name
from ..text.listing import clean

STYLES = {  # kind -> attributes of its boxes
    "op": 'shape=box style="rounded,filled" fillcolor="#f3f5f8" color="#5b6775"',
    "leaf": 'shape=ellipse style=filled fillcolor="#e2efff" color="#1f5fa8"',
    "input": 'shape=ellipse style=filled fillcolor="#e6f5ea" color="#1d7a46"',
    "state": 'shape=ellipse style=filled fillcolor="#e2efff" color="#1f5fa8"',
    "folded": 'shape=box style="rounded,filled" peripheries=2 fillcolor="#f3f5f8" color="#5b6775"',
    "constant": 'shape=box style="rounded,dashed" color="#6b7280" fontcolor="#57606a"',
}
MARKS = {  # mark -> (sign before the name, attributes that replace those of the kind)
    "failed": ("\u2717 ", 'fillcolor="#fff0ee" color="#b42318" fontcolor="#8f1d14" penwidth=3'),
    "differs": ("\u2717 ", 'fillcolor="#fff0ee" color="#b42318" fontcolor="#8f1d14" penwidth=3'),
    "equal": ("\u2713 ", 'fillcolor="#e6f5ea" color="#1d7a46"'),
    "ghost": ("", 'style="rounded,dashed" color="#8a6100" fontcolor="#7a5600"'),
    "only": ("? ", 'fillcolor="#fff8e5" color="#8a6100"'),
}
# Of these the order of the inputs says nothing, so a and b are not written at their arrows.
SYMMETRIC = frozenset("add mul maximum minimum eq ne logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor".split())
LONGEST = 34  # characters of a line in a box
NOTE_LINES = 4  # of a note in a box


def quoted(text: str) -> str:
    """A DOT string: quotes, backslashes, line ends and entities come out as they went in."""
    text = "\n".join(map(clean, text.split("\n")))
    return '"' + text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def in_two(text: str) -> list[str]:
    """Numbers as a line, or as two where they are too many for one: the second begins after a comma."""
    at = text.rfind(", ", 0, LONGEST) + 1 if len(text) > LONGEST else 0
    return [cut(text[:at]), cut(text[at + 1 :])] if at else [cut(text)]


def dot_text(record: TapeRecord | GraphRecord, limit: int = BOXES) -> str:
    """The DOT text of a tape or a graph: data flows down, modules are frames around their operations."""
    record = fold(record, limit)
    lines = [
        "digraph minflow {",
        '  graph [rankdir=TB bgcolor="#ffffff" fontname="Helvetica" fontsize=11 nodesep=0.3 ranksep=0.4 margin=0.1]',
        '  node [fontname="Helvetica" fontsize=11 margin="0.12,0.06" height=0.3]',
        '  edge [fontname="Helvetica" fontsize=10 color="#5b6775" fontcolor="#57606a" arrowsize=0.7]',
    ]
    outs = {n.id: n.outs for n in record.nodes}
    boxes = {n.id for n in record.nodes if n.kind == "folded"}
    phases = {n.id: n.phase for n in record.nodes}
    ghosts = {n.id for n in record.nodes if n.mark == "ghost"}
    updates = counted((state, id) for state, id, _ in record.updates)
    # A folded optimizer writes what nearly every other box holds: said in its box, a line to each would hide the rest.
    back = {id for id in boxes if phases[id] == "optimizer"}
    written = counted(id for state, id, _ in record.updates if id in back and state != id)
    nodes = [replace(n, attrs=f"{n.attrs}\nupdates {written[n.id]} states of other boxes") if n.id in written else n for n in record.nodes]
    lines += frames(tuple(nodes), {id for id, _ in record.outputs})
    for node in record.nodes:
        if node.id in boxes:
            reads = counted(x.ref for x in node.inputs if x.ref)
            lines += [edge(ref, node, n, phases[ref]) for ref, n in reads.items() if node.id not in back or (ref, node.id) not in updates]
            continue
        named = len([x for x in node.inputs if x.ref or "[" in x.text]) > 1 and not either_way(node)
        for i, x in enumerate(node.inputs):
            label = x.name if named else ""
            if len(outs.get(x.ref, ())) > 1 and x.ref not in boxes:
                label = f"{label} (output {x.index})".strip()
            solid = x.ref and node.needs and x.ref not in ghosts
            attrs = ([f"label={quoted(label)}"] if label else []) + ([] if solid else ["style=dashed"])
            if not x.ref and "[" not in x.text:
                continue  # a Python number stands in the box itself
            source = x.ref or f"{node.id}_{i}"
            if not x.ref:
                lines.append(f"  {quoted(source)} [label={quoted(cut(x.text))} {STYLES['constant']}]")
            lines.append(f"  {quoted(source)} -> {quoted(node.id)}" + (f" [{' '.join(attrs)}]" if attrs else ""))
    for (state, id), n in updates.items():
        if id in back:
            continue
        label = quoted(f"{n} updates" if n > 1 else "update")
        lines.append(f"  {quoted(id)} -> {quoted(state)} [label={label} style=dotted constraint=false]")
    return "\n".join([*lines, "}"]) + "\n"


def either_way(node: NodeRecord) -> bool:
    """Whether its inputs could be exchanged; one that failed is told with their names."""
    names = [x.name for x in node.inputs]
    return names == ["a", "b"] and node.label.rpartition(": ")[2] in SYMMETRIC and node.mark != "failed"


def short_name(node: NodeRecord) -> str:
    """A parameter inside the frame of its module, by the module and its own name, as errors call it: "fc1.weight"."""
    modules = node.scope.partition("/")[0]
    if node.kind in ("leaf", "state") and modules and node.label.startswith(f"{modules}."):
        return f"{module_name(modules.split('.'))}{node.label[len(modules) :]}"
    return node.label


def counted(items) -> dict:
    """item -> how often it occurs, in the order of the first time."""
    found: dict = {}
    for item in items:
        found[item] = found.get(item, 0) + 1
    return found


def edge(ref: str, node: NodeRecord, values: int, phase: str) -> str:
    """What goes into a folded box: one line, however many values; a faint one for what forward keeps for backward."""
    kept = node.phase in ("backward", "recompute") and not phase
    attrs = ([f'label="{values} values"'] if values > 1 and not kept else []) + ([] if node.needs else ["style=dashed"])
    attrs += ['color="#a3adb8"'] if kept else []
    return f"  {quoted(ref)} -> {quoted(node.id)}" + (f" [{' '.join(attrs)}]" if attrs else "")


def frames(nodes: tuple[NodeRecord, ...], results: set[str]) -> list[str]:
    """The boxes, inside nested frames for the modules they belong to."""
    tree: dict = {"": []}
    for node in nodes:
        place = tree
        for name in levels(node.scope) if node.scope else ():
            place = place.setdefault(name.lstrip("./") or name, {"": []})
        place[""].append(node)
    lines: list[str] = []
    number = 0
    stack: list = [(tree, None, 0)]  # (what is in a frame, its name, level) or a finished line
    while stack:
        entry = stack.pop()
        if isinstance(entry, str):
            lines.append(entry)
            continue
        place, name, level = entry
        pad = "  " * (level + 1)
        if name is not None:
            lines.append(f'{pad[2:]}subgraph "cluster_{number}" {{')
            lines.append(f'{pad}graph [label={quoted(cut(name))} labeljust=l margin=12 color="#b6bfca" style=rounded fontcolor="#57606a"]')
            number += 1
            stack.append(f"{pad[2:]}}}")
        lines += [f"{pad}{box_text(n, n.id in results)}" for n in place[""]]
        inner = [key for key in place if key]
        stack += [(place[key], key, level + 1) for key in reversed(inner)]
    return lines


def box_text(node: NodeRecord, result: bool) -> str:
    """One node statement."""
    numbers = [x.text for x in node.inputs if not x.ref and "[" not in x.text] if node.kind == "op" else []
    title = short_name(node) if node.kind != "op" else f"{node.label} {' '.join(numbers)}".rstrip()
    sign, look = MARKS.get(node.mark, ("", ""))
    parts = [cut(sign + title)]
    if node.attrs and node.kind in ("op", "folded"):
        parts += map(cut, node.attrs.split("\n"))
    made = node.outs if node.kind != "folded" else () if node.phase else node.outs[:1] if len(node.outs) > node.held else ()
    parts += [cut(spec) for spec in made[:3]] + (["..."] if len(made) > 3 else [])
    parts += in_two(f"value {node.value}") if node.value else []
    parts += in_two(f"grad {node.grad}") if node.grad else []
    parts += [line for note in node.notes for line in note_lines(note)]
    style = STYLES[node.kind]
    if look:
        style = f'{style[: style.index(" fillcolor")]} {look}'
    if not node.needs and node.kind == "op" and not look:
        style = style.replace('"rounded,filled"', '"rounded,filled,dashed"')
    if result:
        style += " penwidth=2.4"
    return f"{quoted(node.id)} [label={quoted(chr(10).join(parts))} {style}]"


def note_lines(note: str) -> list[str]:
    """A note in a box, wrapped; cut where it is long, the whole of it stands beside the picture."""
    lines = wrap(clean(note), LONGEST + 8, subsequent_indent="    ", break_on_hyphens=False)
    return lines if len(lines) <= NOTE_LINES else [*lines[: NOTE_LINES - 1], lines[NOTE_LINES - 1][: LONGEST] + " ..."]
