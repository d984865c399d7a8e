"""What a graph says while it is built, as a tree to open and close: `graph.debug(1)` to `(3)` in a notebook.

Pure functions of lines, (indent, text), the same lines that a terminal gets: nested `<details>` with inline styles, in
the colours of the theme, by mouse or keyboard. Read next: `../nn/graph/listing/build_log.py`, who says the lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from ..text.listing import cut
from ..html.page import FAINT, NO_MATH, ROW
from ..text.listing import clean

Line = tuple[int, str]
MOST = 3000  # lines of the tree; the plain text has all
LONG = 2000  # characters of a line of it
OPEN = 45  # lines, up to which modules are open at first
KIND = re.compile(r"^\((MODULE|OPERATOR|PARAMETER|BUFFER|INPUT|OUTPUT|CONFIG): ?([^:(]+)(.*)\)$", re.S)
GRAPH = re.compile(r"^\(GRAPH:[^)]*\)(?:'s)? ?")


class Branch(NamedTuple):
    """A line and those below it."""

    text: str
    below: list[Branch]


def tree_of(lines: Sequence[Line]) -> list[Branch]:
    """Lines under the line before them that is indented less."""
    top: list[Branch] = []
    open_: list[tuple[int, list[Branch]]] = [(-1, top)]
    for indent, text in lines:
        while open_[-1][0] >= indent:
            open_.pop()
        branch = Branch(text, [])
        open_[-1][1].append(branch)
        open_.append((indent, branch.below))
    return top


def plain_text(lines: Sequence[Line]) -> str:
    """The lines as a terminal shows them."""
    return "\n".join("  " * indent + clean(part) if part else "" for indent, text in lines for part in text.split("\n"))


def debug_html(title: str, lines: Sequence[Line]) -> str:
    """The tree. title: whose it is, and how far it is."""
    shown = [(indent, cut(text.strip("\n"), LONG)) for indent, text in lines[:MOST]]
    shown = [(indent, text) for indent, text in shown if text and " end building " not in text]
    parts: list[str] = []
    stack: list[tuple[Branch, int] | str] = [(branch, 0) for branch in reversed(tree_of(shown))]
    all_open = len(shown) <= OPEN
    while stack:
        entry = stack.pop()
        if isinstance(entry, str):
            parts.append(entry)
            continue
        branch, depth = entry
        if not branch.below:
            parts.append(f'<div style="padding-left:1.1em;{WRAP}">{line_html(branch.text)}</div>')
            continue
        opened = " open" if depth == 0 or (all_open and branch.text not in PHASES) else ""
        head = f'{line_html(branch.text)} <span style="{FAINT}">{inside(branch)}</span>'
        parts.append(f'<details{opened}><summary style="cursor:pointer;{WRAP}">{head}</summary><div '
                     'style="padding-left:1.4em">')
        stack.append("</div></details>")
        stack += [(child, depth + 1)
                  for child in reversed(branch.below if branch.text in PHASES else by_phase(branch.below))]
    rest = (f'<div style="{FAINT}">... {len(lines) - MOST} lines more, in the plain text of this output</div>'
            if len(lines) > MOST else "")
    return (f'<div {NO_MATH} style="{ROW}"><div style="font-weight:600">{escape(clean(title))}</div>'
            f'{"".join(parts)}{rest}</div>')


def by_phase(branches: list[Branch]) -> list[Branch]:
    """Operations of backward, recomputation or the optimizer that follow each other, as one branch to open."""
    grouped: list[Branch] = []
    for branch in branches:
        phase = next((name for name in PHASES if f"), {name}, device=" in branch.text
                      and branch.text.startswith("(OPERATOR")), "")
        if phase and grouped and grouped[-1].text == phase:
            grouped[-1].below.append(branch)
        else:
            grouped.append(Branch(phase, [branch]) if phase else branch)
    return grouped


PHASES = ("backward", "recompute", "optimizer")
WRAP = "overflow-wrap:anywhere"


def inside(branch: Branch) -> str:
    """ "3 modules, 12 operations" of all that is below it."""
    counts = {"MODULE": 0, "OPERATOR": 0}
    stack = list(branch.below)
    while stack:
        other = stack.pop()
        stack += other.below
        kind = other.text[1 : other.text.find(":")] if other.text[:1] == "(" else ""
        if kind in counts:
            counts[kind] += 1
    names = {"MODULE": "module", "OPERATOR": "operation"}
    return ", ".join(f"{n} {names[kind]}{'s' * (n != 1)}" for kind, n in counts.items() if n)


def line_html(text: str) -> str:
    """The kind faint, the name bold, the rest as it is."""
    match = KIND.match(text)
    if match is None:
        return "<br>".join(escape(clean(part)) for part in GRAPH.sub("", text).split("\n"))
    kind, name, rest = match.groups()
    return f'<span style="{FAINT}">{kind.lower()}</span> <b>{escape(clean(name.strip()))}</b>{escape(clean(rest))}'


def debug_bundle(title: str, lines: Sequence[Line]) -> dict[str, str]:
    """mime type -> data."""
    return {"text/html": debug_html(title, lines), "text/plain": plain_text(lines)}
