"""The build log of a graph as a collapsible tree: `graph.debug(1)` to `(3)` in a notebook.

Pure functions of lines, (indent, text), the same ones that a terminal gets: nested `<details>` with inline styles, in
the colors of the theme, for mouse and keyboard. Read next:
`../../introspection/graph/listing/build_log.py`, which writes the lines.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

from ..html.page import FAINT_STYLE, NO_MATH, ROW_STYLE, SUMMARY_STYLE
from ..text.listing import clean, count, cut
from ..text.trees import outer_lines, outer_rows, within_limit

Line = tuple[int, str]
MAX_LINES = 10_000  # lines that are shown
MAX_LINE_CHARS = 2000  # characters of a line
MAX_OPEN_ROWS = 45  # rows that are initially visible
KIND_PATTERN = re.compile(r"^\((MODULE|OPERATOR|PARAMETER|BUFFER|INPUT|OUTPUT|CONFIG): ?([^:(]+)(.*)\)$", re.S)
MODULE_PATTERN = re.compile(r"\(MODULE:[^:]*:")
NUMBERED_PATTERN = re.compile(r"(-[a-z]\w*)-\d+")  # an operation's name, and its number among those of that name
GRAPH_PATTERN = re.compile(r"^\(GRAPH:[^)]*\)(?:'s)? ?")


class Branch(NamedTuple):
    """A line and the lines nested in it."""

    text: str
    below: list[Branch]


def tree_of(lines: Sequence[Line]) -> list[Branch]:
    """Nest each line in the closest earlier line with less indentation."""
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
    """The lines as in a terminal."""
    return "\n".join("  " * indent + clean(part) if part else "" for indent, text in lines for part in text.split("\n"))


class Row(NamedTuple):
    """A row of the tree. places: source lines, written below it.  to: name of the last module that it represents."""

    depth: int
    branch: Branch
    places: tuple[str, ...] = ()
    times: int = 1
    to: str = ""


def debug_html(title: str, lines: Sequence[Line]) -> str:
    """The tree as HTML. title: the graph, and the progress of its build."""
    shown = [(indent, cut(text.strip("\n"), MAX_LINE_CHARS)) for indent, text in lines[:MAX_LINES]]
    branches = tree_of([(indent, text) for indent, text in shown if text and " end building " not in text])
    rows, sizes = rows_of(branches), sizes_of(branches)
    rest = (
        f'<div style="{FAINT_STYLE}">... {len(lines) - MAX_LINES:,} lines more</div>' if len(lines) > MAX_LINES else ""
    )
    around = (
        f'<div {NO_MATH} style="{ROW_STYLE}"><div style="font-weight:600">{escape(clean(title))}</div>',
        f"{rest}</div>",
    )
    opened, heads = open_at_first(rows), functools.cache(lambda i: head_html(rows[i], sizes))
    return within_limit(lambda most: rows_html(rows, heads, opened, most).join(around))


def rows_of(branches: list[Branch]) -> list[Row]:
    """All rows, parents first; adjacent equal modules are merged, and operations carry their source lines and parts."""
    rows: list[Row] = []
    stack = [Row(0, branch) for branch in reversed(branches)]
    while stack:
        row = stack.pop()
        below, operation = row.branch.below, row.branch.text.startswith("(OPERATOR")
        if operation:
            places = tuple([b.text for b in below if b.text.startswith("at ")])
            below = [b for b in below if not b.text.startswith("at ")]
            row = row._replace(places=places, branch=Branch(row.branch.text, below))
        rows.append(row)
        below = below if operation or row.branch.text in PHASES else group_by_phase(below)
        stack += [inner._replace(depth=row.depth + 1) for inner in reversed(merge_equal(below))]
    return rows


def merge_equal(branches: list[Branch]) -> list[Row]:
    """Rows of sibling branches; more than two adjacent modules that differ only in names become one row."""
    runs: list[list[Branch]] = []
    before: list[Line] | None = None
    kinds = [module_kind(branch) for branch in branches]
    for i, branch in enumerate(branches):
        beside = kinds[i] and kinds[i] in kinds[max(i - 1, 0) : i] + kinds[i + 1 : i + 2]
        now = anonymous_lines(branch) if beside else None
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
    """`Linear(in_features=4, ...)` for a module, else ""."""
    return branch.text.split(":", 2)[2] if MODULE_PATTERN.match(branch.text) else ""


def module_name(branch: Branch) -> str:
    return clean(branch.text.split(":", 2)[1])


def anonymous_lines(branch: Branch) -> list[Line]:
    """The lines of a module without module names and operation numbers, to compare it with its siblings."""
    around = module_name(branch).rpartition(".")[0]
    beside = re.compile(rf"(?<![\w.]){re.escape(around)}\.[^\s.\-:/,()]+" if around else r"$^")
    lines, stack = [], [(0, branch)]
    while stack:
        depth, other = stack.pop()
        lines.append(
            (
                depth,
                NUMBERED_PATTERN.sub(
                    r"\1", beside.sub("", other.text.replace("(INPUT:_", "(INPUT:").replace("(OUTPUT:_", "(OUTPUT:"))
                ),
            )
        )
        stack += [(depth + 1, inner) for inner in reversed(other.below)]
    return lines


def open_at_first(rows: list[Row]) -> set[int]:
    """The rows that are initially open: one after the other until a screen is full, so that the source lines of the
    first operations are visible.
    """
    below: dict[int, int] = {}  # row -> number of rows that opening it reveals
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
        if first or (outer[i] in result and seen + below[i] <= MAX_OPEN_ROWS and row.branch.text not in PHASES):
            result.add(i)
            seen += below[i]
    return result


def head_html(row: Row, sizes: dict[int, tuple[int, int]]) -> str:
    head = line_html(row.branch.text) + (f" <b>x{row.times:,}</b>, to {escape(row.to)}" if row.to else "")
    if row.branch.below:
        each = " (each)" if row.to else ""
        head += f' <span style="{FAINT_STYLE}">{contents_text(row.branch, sizes)}{each}</span>'
    return head + "".join(f'<div style="{FAINT_STYLE};padding-left:2.2em">{line_html(x)}</div>' for x in row.places)


def rows_html(rows: list[Row], heads: Callable[[int], str], opened: set[int], most: int) -> str:
    """At most `most` rows, children in the `<details>` of their parent; always the last one, where the build is."""
    last = [i for i in range(len(rows) - 1, -1, -1) if i == len(rows) - 1]
    while last and rows[last[-1]].depth:
        last.append(next(i for i in range(last[-1], -1, -1) if rows[i].depth < rows[last[-1]].depth))
    parts: list[str] = []
    open_ = [-1]  # depths of the `<details>` that are still open
    for i, depth, hidden in outer_rows([row.depth for row in rows], most, last):
        while open_[-1] >= depth:
            open_.pop()
            parts.append("</div></details>")
        if hidden:
            parts.append(f'<div style="{FAINT_STYLE};padding-left:1.1em">... {count(hidden, "more row")}</div>')
            continue
        if not rows[i].branch.below:
            parts.append(f'<div style="padding-left:1.1em">{heads(i)}</div>')
            continue
        parts.append(
            f'<details{" open" if i in opened else ""}><summary style="{SUMMARY_STYLE}">{heads(i)}'
            '</summary><div style="padding-left:1.4em">'
        )
        open_.append(depth)
    return "".join(parts) + "</div></details>" * (len(open_) - 1)


def group_by_phase(branches: list[Branch]) -> list[Branch]:
    """Group consecutive operations of backward, recomputation or the optimizer into one branch."""
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
    """id of a branch -> (modules, operations) in it, itself included; an operation counts as one, with its parts."""
    order = list(branches)
    for branch in order:
        order += branch.below
    sizes: dict[int, tuple[int, int]] = {}
    for branch in reversed(order):
        modules, operations = branch.text.startswith("(MODULE:"), branch.text.startswith("(OPERATOR:")
        for inner in branch.below if not operations else ():
            modules, operations = modules + sizes[id(inner)][0], operations + sizes[id(inner)][1]
        sizes[id(branch)] = modules, operations
    return sizes


def contents_text(branch: Branch, sizes: dict[int, tuple[int, int]]) -> str:
    """ "3 modules, 12 operations": the contents of a branch."""
    totals = [sum(sizes[id(inner)][k] for inner in branch.below) for k in (0, 1)]
    return ", ".join(count(n, name) for n, name in zip(totals, ("module", "operation")) if n)


def line_html(text: str) -> str:
    """The line with its kind faint and its name bold."""
    match = KIND_PATTERN.match(text)
    if match is None:
        return "<br>".join(escape(clean(part)) for part in GRAPH_PATTERN.sub("", text).split("\n"))
    kind, name, rest = match.groups()
    return (
        f'<span style="{FAINT_STYLE}">{kind.lower()}</span> <b>{escape(clean(name.strip()))}</b>{escape(clean(rest))}'
    )


def debug_bundle(title: str, lines: Sequence[Line]) -> dict[str, str]:
    """MIME type -> data."""
    return {"text/html": debug_html(title, lines), "text/plain": outer_lines(plain_text(lines))}
