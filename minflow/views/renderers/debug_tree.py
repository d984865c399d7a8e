"""What a graph says while it is built, as a tree to open and close: `graph.debug(1)` to `(3)` in a notebook.

Pure functions of lines, (indent, text), the same lines that a terminal gets: nested `<details>` with inline styles, in
the colours of the theme, by mouse or keyboard. Read next: `../nn/graph/listing/build_log.py`, who says the lines.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

from ..html.page import FAINT, HANGING, NO_MATH, ROW
from ..text.listing import clean, count, cut
from ..text.trees import outer_lines, outer_rows, sized

Line = tuple[int, str]
MOST = 10_000  # lines that are looked at
LONG = 2000  # characters of a line of it
OPEN = 45  # rows that are seen at first
KIND = re.compile(r"^\((MODULE|OPERATOR|PARAMETER|BUFFER|INPUT|OUTPUT|CONFIG): ?([^:(]+)(.*)\)$", re.S)
MODULE = re.compile(r"\(MODULE:[^:]*:")
NUMBERED = re.compile(r"(-[a-z]\w*)-\d+")  # the name of an operation, and which of those of this name it is
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


class Row(NamedTuple):
    """A row of the tree. places: lines of the program, written below it.  to: the last of several it stands for."""

    depth: int
    branch: Branch
    places: tuple[str, ...] = ()
    times: int = 1
    to: str = ""


def debug_html(title: str, lines: Sequence[Line]) -> str:
    """The tree. title: whose it is, and how far it is."""
    shown = [(indent, cut(text.strip("\n"), LONG)) for indent, text in lines[:MOST]]
    branches = tree_of([(indent, text) for indent, text in shown if text and " end building " not in text])
    rows, sizes = rows_of(branches), sizes_of(branches)
    rest = f'<div style="{FAINT}">... {len(lines) - MOST:,} lines more</div>' if len(lines) > MOST else ""
    around = (
        f'<div {NO_MATH} style="{ROW}"><div style="font-weight:600">{escape(clean(title))}</div>',
        f"{rest}</div>",
    )
    opened, heads = open_at_first(rows), functools.cache(lambda i: head_html(rows[i], sizes))
    return sized(lambda most: html_of(rows, heads, opened, most).join(around))


def rows_of(branches: list[Branch]) -> list[Row]:
    """All rows, parents first: modules that follow each other and are alike as one, operations with their places."""
    rows: list[Row] = []
    stack = [Row(0, branch) for branch in reversed(branches)]
    while stack:
        row = stack.pop()
        below = row.branch.below
        if row.branch.text.startswith("(OPERATOR") and all(b.text.startswith("at ") and not b.below for b in below):
            rows.append(row._replace(places=tuple(b.text for b in below), branch=Branch(row.branch.text, [])))
            continue
        rows.append(row)
        below = below if row.branch.text in PHASES else by_phase(below)
        stack += [inner._replace(depth=row.depth + 1) for inner in reversed(alike_as_one(below))]
    return rows


def alike_as_one(branches: list[Branch]) -> list[Row]:
    """Rows of branches beside each other; of more than two modules that differ in their names alone one row."""
    runs: list[list[Branch]] = []
    before: list[Line] | None = None
    kinds = [module_kind(branch) for branch in branches]
    for i, branch in enumerate(branches):
        beside = kinds[i] and kinds[i] in kinds[max(i - 1, 0) : i] + kinds[i + 1 : i + 2]
        now = nameless(branch) if beside else None
        if now is not None and now == before:
            runs[-1].append(branch)
        else:
            runs.append([branch])
        before = now
    return [
        row
        for run in runs
        for row in (
            [Row(0, run[0], times=len(run), to=module_name(run[-1]))] if len(run) > 2 else [Row(0, b) for b in run]
        )
    ]


def module_kind(branch: Branch) -> str:
    """`Linear(in_features=4, ...)` of a module."""
    return branch.text.split(":", 2)[2] if MODULE.match(branch.text) else ""


def module_name(branch: Branch) -> str:
    return clean(branch.text.split(":", 2)[1])


def nameless(branch: Branch) -> list[Line]:
    """The lines of a module without what tells it from those beside it: their names, and the numbers of operations."""
    around = module_name(branch).rpartition(".")[0]
    beside = re.compile(rf"(?<![\w.]){re.escape(around)}\.[^\s.\-:/,()]+" if around else r"$^")
    lines, stack = [], [(0, branch)]
    while stack:
        depth, other = stack.pop()
        lines.append(
            (
                depth,
                NUMBERED.sub(
                    r"\1", beside.sub("", other.text.replace("(INPUT:_", "(INPUT:").replace("(OUTPUT:_", "(OUTPUT:"))
                ),
            )
        )
        stack += [(depth + 1, inner) for inner in reversed(other.below)]
    return lines


def open_at_first(rows: list[Row]) -> set[int]:
    """The rows that stand open at first: one after the other, until a screen is full; so the first operations are seen
    with their lines."""
    below: dict[int, int] = {}  # row -> how many rows appear when it is opened
    around: list[int] = []
    outer: dict[int, int] = {}
    for i, row in enumerate(rows):
        del around[row.depth :]
        if around:
            outer[i] = around[-1]
            below[around[-1]] = below.get(around[-1], 0) + 1 + len(row.places)
        around.append(i)
    result, seen = set(), sum(not row.depth for row in rows)
    for i in below:
        row = rows[i]
        first = not row.depth
        if first or (outer[i] in result and seen + below[i] <= OPEN and row.branch.text not in PHASES):
            result.add(i)
            seen += below[i]
    return result


def head_html(row: Row, sizes: dict[int, tuple[int, int]]) -> str:
    head = line_html(row.branch.text) + (f" <b>x{row.times:,}</b>, to {escape(row.to)}" if row.to else "")
    if row.branch.below:
        return f'{head} <span style="{FAINT}">{inside(row.branch, sizes)}{" (each)" if row.to else ""}</span>'
    return head + "".join(f'<div style="{FAINT};padding-left:2.2em">{line_html(x)}</div>' for x in row.places)


def html_of(rows: list[Row], heads: Callable[[int], str], opened: set[int], most: int) -> str:
    """At most so many rows, what is below a row in its `<details>`; the last one in any case: there the build is."""
    last = [i for i in range(len(rows) - 1, -1, -1) if i == len(rows) - 1]
    while last and rows[last[-1]].depth:
        last.append(next(i for i in range(last[-1], -1, -1) if rows[i].depth < rows[last[-1]].depth))
    parts: list[str] = []
    open_ = [-1]  # depths of the `<details>` that are not closed yet
    for i, depth, hidden in outer_rows([row.depth for row in rows], most, last):
        while open_[-1] >= depth:
            open_.pop()
            parts.append("</div></details>")
        if hidden:
            parts.append(f'<div style="{FAINT};padding-left:1.1em">... {count(hidden, "more row")}</div>')
            continue
        if not rows[i].branch.below:
            parts.append(f'<div style="padding-left:1.1em">{heads(i)}</div>')
            continue
        parts.append(
            f'<details{" open" if i in opened else ""}><summary style="{HANGING}">{heads(i)}'
            '</summary><div style="padding-left:1.4em">'
        )
        open_.append(depth)
    return "".join(parts) + "</div></details>" * (len(open_) - 1)


def by_phase(branches: list[Branch]) -> list[Branch]:
    """Operations of backward, recomputation or the optimizer that follow each other, as one branch to open."""
    grouped: list[Branch] = []
    for branch in branches:
        phase = next(
            (name for name in PHASES if f"), {name}, device=" in branch.text and branch.text.startswith("(OPERATOR")),
            "",
        )
        if phase and grouped and grouped[-1].text == phase:
            grouped[-1].below.append(branch)
        else:
            grouped.append(Branch(phase, [branch]) if phase else branch)
    return grouped


PHASES = ("backward", "recompute", "optimizer")


def sizes_of(branches: list[Branch]) -> dict[int, tuple[int, int]]:
    """id of a branch -> how many modules and operations it is, with all below it."""
    order = list(branches)
    for branch in order:
        order += branch.below
    sizes: dict[int, tuple[int, int]] = {}
    for branch in reversed(order):
        modules, operations = branch.text.startswith("(MODULE:"), branch.text.startswith("(OPERATOR:")
        for inner in branch.below:
            modules, operations = modules + sizes[id(inner)][0], operations + sizes[id(inner)][1]
        sizes[id(branch)] = modules, operations
    return sizes


def inside(branch: Branch, sizes: dict[int, tuple[int, int]]) -> str:
    """ "3 modules, 12 operations" of all that is below it."""
    totals = [sum(sizes[id(inner)][k] for inner in branch.below) for k in (0, 1)]
    return ", ".join(count(n, name) for n, name in zip(totals, ("module", "operation")) if n)


def line_html(text: str) -> str:
    """The kind faint, the name bold, the rest as it is."""
    match = KIND.match(text)
    if match is None:
        return "<br>".join(escape(clean(part)) for part in GRAPH.sub("", text).split("\n"))
    kind, name, rest = match.groups()
    return f'<span style="{FAINT}">{kind.lower()}</span> <b>{escape(clean(name.strip()))}</b>{escape(clean(rest))}'


def debug_bundle(title: str, lines: Sequence[Line]) -> dict[str, str]:
    """mime type -> data."""
    return {"text/html": debug_html(title, lines), "text/plain": outer_lines(plain_text(lines))}
