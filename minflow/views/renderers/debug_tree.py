"""The build log of a graph as a collapsible tree: `graph.debug(1)` to `(3)` in a notebook.

Pure functions of the lines that a terminal gets: nested `<details>` with inline styles, in the colors of the theme, for
mouse and keyboard. Where scripts run, `debug_tree.js` adds a search and links. Read next: `debug_lines.py`, one line;
`../../introspection/graph/listing/build_log.py`, which writes the lines.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from ...core.ir import Where
from ..html.page import ERROR_STYLE, FAINT_STYLE, NO_MATH, ROW_STYLE, SUMMARY_STYLE
from ..html.script import with_script
from ..text.listing import clean, count, cut
from ..text.trees import MAX_BYTES, outer_lines, outer_rows, within_limit
from .debug_lines import (
    PHASES,
    Line,
    SharedFacts,
    is_plain,
    line_html,
    place_html,
    seconds_text,
    shared_facts,
    spec_of,
    where_html,
)

MAX_LINES = 10_000  # lines that are shown
MAX_LINE_CHARS = 2000  # characters of a line
MAX_OPEN_ROWS = 45  # rows that are initially visible
FIRST_LINES, LATEST_LINES = 12, 24  # lines that are shown during a build: the first, and the latest
SHOWN_BEFORE = 5  # modules and operations before one that failed that are not folded
MIN_SECONDS = 1e-3  # build times that are shown
MIN_SHARE = 0.2  # smallest share of the build time of a module that is called the slowest
INPUT_OUTPUT = "(INPUT:", "(OUTPUT:"
MODULE_PATTERN = re.compile(r"\(MODULE:[^:]*:")
NUMBERED_PATTERN = re.compile(r"(-[a-z]\w*)-\d+")  # an operation's name, and its number among those of that name
# lines that open or close a phase, without lines of their own: the title has them
PHASE_PATTERN = re.compile(r"^\(GRAPH:.*\)(?: start building graph\.|'s total time to build | end building )", re.S)


class Branch(NamedTuple):
    """A line, its text, and the lines nested in it."""

    line: Line
    text: str
    below: list[Branch]


def tree_of(lines: Sequence[Line]) -> list[Branch]:
    """Nest each line in the closest earlier line with less indentation."""
    top: list[Branch] = []
    open_: list[tuple[int, list[Branch]]] = [(-1, top)]
    for line in lines:
        while open_[-1][0] >= line.indent:
            open_.pop()
        branch = Branch(line, line.text, [])
        open_[-1][1].append(branch)
        open_.append((line.indent, branch.below))
    return top


def plain_text(lines: Sequence[Line]) -> str:
    """The lines as in a terminal."""
    return "\n".join(
        ["  " * line.indent + clean(part) if part else "" for line in lines for part in line.text.split("\n")]
    )


class Row(NamedTuple):
    """A row of the tree. shapes: of the inputs and outputs of a module. places: source lines, written below it. times,
    to: number of modules that it represents, name of the last one. seconds: build time of all of them. around: place in
    the program of the row around it.
    """

    depth: int
    branch: Branch
    shapes: str
    places: tuple[str, ...]
    times: int
    to: str
    seconds: float
    around: Where | None


class Tree(NamedTuple):
    """All that is drawn. first: index of the row to open, which failed or is the slowest; -1 if there is none. seconds:
    build time of all modules. notes: HTML above the rows; a name in bold type is that of a row.
    """

    rows: list[Row]
    sizes: dict[int, tuple[int, int]]
    facts: SharedFacts
    first: int
    seconds: float
    notes: list[str]


def debug_html(title: str, lines: Sequence[Line], so_far: str = "", limit: int = MAX_BYTES) -> str:
    """The tree as HTML of at most `limit` bytes. title: the graph, and the progress of its build. so_far: sentence
    about a build that goes on, of which `lines` are a part.
    """
    tree = layout(lines, so_far)
    rest = (
        f'<div style="{FAINT_STYLE}">... {len(lines) - MAX_LINES:,} lines more</div>' if len(lines) > MAX_LINES else ""
    )
    notes = "".join(f'<div style="{FAINT_STYLE}">{x}</div>' for x in tree.notes)
    around = (
        f'<div {NO_MATH} style="{ROW_STYLE}"><div style="font-weight:600">{escape(clean(title))}</div>{notes}',
        f"{rest}</div>",
    )
    opened, heads = open_at_first(tree), functools.cache(lambda i: head_html(tree.rows[i], tree))
    return within_limit(lambda most: rows_html(tree, heads, opened, most).join(around), limit)


def layout(lines: Sequence[Line], so_far: str = "") -> Tree:
    kept = [*lines[:MAX_LINES], *(line for line in lines[MAX_LINES:] if line.error)]
    shown = [shortened(line) for line in kept if line.text.strip("\n") and not PHASE_PATTERN.match(line.text)]
    branches = tree_of(shown)
    fold_before_failure(branches)
    facts = shared_facts(line.text for line in shown)
    rows, sizes = rows_of(branches, facts), {} if so_far else sizes_of(branches)
    notes = [escape(clean(so_far))] if so_far else []
    first = next((i for i, row in enumerate(rows) if row.branch.line.error), -1)
    name = module_name(rows[first].branch) if first >= 0 else ""
    own = own_seconds(branches)
    slowest, total = max(own, key=own.__getitem__, default=""), sum(own.values())
    if name:
        notes.append(f"\u2717 fails in <b>{escape(name)}</b>")
    elif first < 0 and len(own) > 1 and own[slowest] >= max(MIN_SECONDS, MIN_SHARE * total):
        first = next((i for i, row in enumerate(rows) if module_name(row.branch) == slowest), -1)
        times = f"{seconds_text(own[slowest])} of {seconds_text(total)}"
        notes.append(f"slowest to build: <b>{escape(slowest)}</b>, {times}")
    return Tree(rows, sizes, facts, first, total, notes + [escape(clean(facts.note))] * bool(facts.note))


def shortened(line: Line) -> Line:
    text = cut(line.text.strip("\n"), MAX_LINE_CHARS)
    return line if text == line.text else line._replace(text=text)


def own_seconds(branches: list[Branch]) -> dict[str, float]:
    """Build time of each module by name, without that of the modules inside."""
    order = list(branches)
    own: dict[str, float] = {}
    for branch in order:
        if branch.line.seconds:
            name = module_name(branch)
            inside = sum(inner.line.seconds for inner in branch.below)
            own[name] = own.get(name, 0) + branch.line.seconds - inside
        order += [inner for inner in branch.below if inner.below or inner.line.seconds]
    return own


def fold_before_failure(branches: list[Branch]) -> None:
    """Move the many modules and operations before one that failed, or before one around it, into a branch of their own,
    so that the failure is in view.
    """
    order: list[tuple[Branch, list[Branch], int]] = [(branch, branches, -1) for branch in branches]
    for i, (branch, _, _) in enumerate(order):
        order += [(inner, branch.below, i) for inner in branch.below]
    at = next((i for i, (branch, _, _) in enumerate(order) if branch.line.error), -1)
    while at >= 0:
        branch, beside, at = order[at]
        before = beside[: next(i for i, other in enumerate(beside) if other is branch)]
        early = [other for other in before if other.text.startswith(("(MODULE", "(OPERATOR"))][:-SHOWN_BEFORE]
        if len(early) > SHOWN_BEFORE:
            first = before.index(early[0])
            moved = {id(other) for other in early}
            beside[: len(before)] = [
                *before[:first],
                Branch(Line(0, "earlier"), "earlier", early),
                *[other for other in before[first:] if id(other) not in moved],
            ]


def rows_of(branches: list[Branch], facts: SharedFacts) -> list[Row]:
    """All rows, parents first. Adjacent equal modules are merged; a module's row has its inputs and outputs, that of an
    operation its source lines, which the next one from the same lines does not repeat.
    """
    rows: list[Row] = []
    latest: dict[int, tuple[str, ...]] = {}  # depth -> source lines of the latest operation there
    stack: list[tuple[int, Where | None, tuple]] = [
        (0, None, (branch, 1, "", branch.line.seconds)) for branch in reversed(branches)
    ]
    while stack:
        depth, around, (branch, times, to, seconds) = stack.pop()
        below, where = branch.below, branch.line.where
        places: tuple[str, ...] = ()
        shapes = ""
        latest.pop(depth + 1, None)
        if branch.text.startswith("(OPERATOR"):
            lines = tuple([b.text for b in below if b.text.startswith("at ")])
            below = [b for b in below if not b.text.startswith("at ")]
            places = () if latest.get(depth) == lines else lines
            latest[depth] = lines
        elif branch.text.startswith("(MODULE"):
            shapes = shapes_text(branch)
            below = [b for b in below if not (b.text.startswith(INPUT_OUTPUT) and is_plain(b.text, facts))]
        branch = branch._replace(below=below)
        rows.append(Row(depth, branch, shapes, places, times, to, seconds, around))
        grouped = below if branch.text in PHASES or branch.text.startswith("(OPERATOR") else group_by_phase(below)
        stack += [(depth + 1, where or around, group) for group in reversed(merge_equal(grouped))]
    return rows


def merge_equal(branches: list[Branch]) -> list[tuple[Branch, int, str, float]]:
    """(first branch, number of branches, name of the last one if several, build time of all) of the rows of sibling
    branches; more than two adjacent modules that differ only in names share a row.
    """
    runs: list[list[Branch]] = []
    before = ""
    kinds = [module_kind(branch) for branch in branches]
    for i, branch in enumerate(branches):
        beside = kinds[i] and kinds[i] in kinds[max(i - 1, 0) : i] + kinds[i + 1 : i + 2]
        now = anonymous_text(branch) if beside else ""
        if now and now == before:
            runs[-1].append(branch)
        else:
            runs.append([branch])
        before = now
    merged: list[tuple[Branch, int, str, float]] = []
    for run in runs:
        if len(run) > 2:
            merged.append((run[0], len(run), module_name(run[-1]), sum(branch.line.seconds for branch in run)))
        else:
            merged += [(branch, 1, "", branch.line.seconds) for branch in run]
    return merged


def module_kind(branch: Branch) -> str:
    """`Linear(in_features=4, ...)` for a module, else ""."""
    return branch.text.split(":", 2)[2] if MODULE_PATTERN.match(branch.text) else ""


def module_name(branch: Branch) -> str:
    return clean(branch.text.split(":", 2)[1]) if MODULE_PATTERN.match(branch.text) else ""


def anonymous_text(branch: Branch) -> str:
    """A module as text without module names and operation numbers, to compare it with its siblings."""
    around = module_name(branch).rpartition(".")[0]
    lines, stack = [], [(0, branch)]
    while stack:
        depth, other = stack.pop()
        lines.append(f"{depth} {other.text}{other.line.error}")
        stack += [(depth + 1, inner) for inner in reversed(other.below)]
    text = "\n".join(lines).replace("(INPUT:_", "(INPUT:").replace("(OUTPUT:_", "(OUTPUT:")
    if around:
        text = re.sub(rf"(?<![\w.]){re.escape(around)}\.[^\s.\-:/,()]+", "", text)
    return NUMBERED_PATTERN.sub(r"\1", text)


def rows_around(rows: list[Row], i: int) -> list[int]:
    """The row i and those that contain it, innermost first."""
    path = [i] if 0 <= i < len(rows) else []
    while path and rows[path[-1]].depth:
        depth = rows[path[-1]].depth
        path.append(next(j for j in range(path[-1], -1, -1) if rows[j].depth < depth))
    return path


def open_at_first(tree: Tree) -> set[int]:
    """The rows that are initially open: down to the one that failed, only these; else down to the slowest, and others,
    one after the other, until a screen is full, so that the source lines of the first operations are visible.
    """
    rows = tree.rows
    below: dict[int, int] = {}  # row -> number of rows that opening it reveals
    around: list[int] = []
    outer: dict[int, int] = {}
    for i, row in enumerate(rows):
        del around[row.depth :]
        if around:
            outer[i] = around[-1]
            below[around[-1]] = below.get(around[-1], 0) + 1 + len(row.places)
        around.append(i)
    result = set(rows_around(rows, tree.first))
    if result and rows[tree.first].branch.line.error:
        return result
    seen = sum(not row.depth for row in rows) + sum(below.get(i, 0) for i in result)
    for i in below:
        row = rows[i]
        first = not row.depth
        if i not in result and (
            first or (outer[i] in result and seen + below[i] <= MAX_OPEN_ROWS and row.branch.text not in PHASES)
        ):
            result.add(i)
            seen += below[i]
    return result


def head_html(row: Row, tree: Tree) -> str:
    branch, line = row.branch, row.branch.line
    head = line_html(line.text, tree.facts) + (f" <b>x{row.times:,}</b>, to {escape(row.to)}" if row.to else "")
    more = [row.shapes]
    if branch.below and (contents := contents_text(branch, tree.sizes)):
        more.append(contents + (" (each)" if row.to else ""))
    if row.seconds >= max(MIN_SECONDS, MIN_SHARE / 2 * tree.seconds):
        more.append(f"built in {seconds_text(row.seconds)}")
    more = [escape(text) for text in more if text]
    if line.where is not None and not row.places:
        more.append(where_html(line.where, row.around))
    if more:
        head += f' <span style="{FAINT_STYLE}">{" · ".join(more)}</span>'
    head += "".join(f'<div style="{FAINT_STYLE};padding-left:2.2em">{place_html(x)}</div>' for x in row.places)
    if line.error:
        message, *places = line.error.split("\n")
        below = "".join("\n" + place_html(place) for place in places)
        head += f'<pre style="{ERROR_STYLE};text-indent:0">\u2717 {escape(clean(message))}{below}</pre>'
    return head


def shapes_text(branch: Branch) -> str:
    """`float32[3, 4] \u2192 float32[3, 5]`: the inputs and outputs of a module."""
    ins, outs = (
        ", ".join(filter(None, [spec_of(inner.text) for inner in branch.below if inner.text.startswith(kind)]))
        for kind in INPUT_OUTPUT
    )
    return f"{ins} \u2192 {outs}" if ins and outs else ins


def rows_html(tree: Tree, heads: Callable[[int], str], opened: set[int], most: int) -> str:
    """At most `most` rows, children in the `<details>` of their parent; always the last one, where the build is, and
    the one to open.
    """
    rows = tree.rows
    wanted = rows_around(rows, len(rows) - 1) + rows_around(rows, tree.first)
    if tree.first >= 0:
        inside = itertools.takewhile(lambda i: rows[i].depth > rows[tree.first].depth, range(tree.first + 1, len(rows)))
        wanted += itertools.islice(inside, MAX_OPEN_ROWS)
    parts: list[str] = []
    open_ = [-1]  # depths of the `<details>` that are still open
    for i, depth, hidden in outer_rows([row.depth for row in rows], most, wanted):
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
            grouped.append(Branch(Line(0, phase), phase, [branch]) if phase else branch)
    return grouped


def sizes_of(branches: list[Branch]) -> dict[int, tuple[int, int]]:
    """id of a branch -> (modules, operations) in it, itself included; an operation counts as one, with its parts."""
    order = list(branches)
    for branch in order:
        order += branch.below
    sizes: dict[int, tuple[int, int]] = {}
    for branch in reversed(order):
        modules, operations = int(branch.text.startswith("(MODULE:")), int(branch.text.startswith("(OPERATOR:"))
        for inner in branch.below if not operations else ():
            modules, operations = modules + sizes[id(inner)][0], operations + sizes[id(inner)][1]
        sizes[id(branch)] = modules, operations
    return sizes


def contents_text(branch: Branch, sizes: dict[int, tuple[int, int]]) -> str:
    """ "3 modules, 12 operations": the contents of a branch."""
    totals = [sum(sizes.get(id(inner), (0, 0))[k] for inner in branch.below) for k in (0, 1)]
    return ", ".join(count(n, name) for n, name in zip(totals, ("module", "operation")) if n)


# ---- the bundles ----------------------------------------------------------------------------------------------------


@functools.cache
def script() -> str:
    return Path(__file__).with_suffix(".js").read_text("utf-8")


def debug_bundle(title: str, lines: Sequence[Line], graph: str = "") -> dict[str, str]:
    """MIME type -> data, when the build has ended. graph: its name, by which the script finds its explorer."""
    html = debug_html(title, lines, limit=MAX_BYTES - len(script()))
    hidden = sum(int(n.replace(",", "")) for n in re.findall(r">\.\.\. ([\d,]+) (?:more rows?|lines more)<", html))
    return {
        "text/html": with_script(html, script(), {"graph": graph, "hidden": hidden}),
        "text/plain": outer_lines(plain_text(lines)),
    }


def live_bundle(title: str, lines: Sequence[Line], so_far: str) -> dict[str, str]:
    """MIME type -> data, during the build: a few lines, so that its cost does not grow with the graph."""
    shown = [line._replace(seconds=0.0) for line in latest_lines(lines)]
    return {"text/html": debug_html(title, shown, so_far), "text/plain": f"{clean(title)}\n{plain_text(shown)}"}


def latest_lines(lines: Sequence[Line]) -> list[Line]:
    """The first lines, a count of those left out, and the latest ones below the lines around them."""
    start = len(lines) - LATEST_LINES
    if start <= FIRST_LINES:
        return list(lines)
    around: list[Line] = []
    indent = lines[start].indent
    for i in range(start - 1, FIRST_LINES - 1, -1):
        if lines[i].indent < indent:
            around.insert(0, lines[i])
            indent = lines[i].indent
        if not indent:
            break
    left_out = start - FIRST_LINES - len(around)
    gap = [Line(around[0].indent if around else indent, f"... {count(left_out, 'more line')}")] if left_out else []
    return [*lines[:FIRST_LINES], *gap, *around, *lines[start:]]
