"""Geometry of the explorer's picture: rows with three columns, forward (down), backward (up) and update.

A row is a module, a fold or an operation, with its backward twin and its parameters in the other columns. Adjacent rows
are joined by straight arrows; longer links run through the margin, one lane for each source. The result is plain data
(`view_of`), sizes in pixels and texts already cut, which the widget's script and `svg.py` draw. Read next: `svg.py`.
"""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass, field

import numpy as np

from ..draw.fonts import text_width, truncated, truncated_words
from ..draw.svg_writer import number
from ..records.step import StepRecord
from ..text.listing import clean, count, shape_of
from .rows import Item, StepTree, is_first_gradient, is_identity_reshape

# padding between rim and text; gap between the texts of a line; width of the faint text if it may be cut
PADDING, TEXT_GAP, FAINT_TEXT_WIDTH = 8, 8, 96

# heights: a box of two lines, of one line, the header of an open module; gap between rows; a third line
TWO_LINE_HEIGHT, ONE_LINE_HEIGHT, HEADER_HEIGHT, ROW_GAP, THIRD_LINE_HEIGHT = 36, 22, 20, 13, 13
# Least and greatest width of each column; between them, a column is as wide as its texts.
COLUMN_WIDTHS = ((150, 290), (110, 240), (96, 220))
PICTURE_WIDTH = 772  # the output area of a cell in a window of 1280 pixels with JupyterLab's file list open
# (column, least width): how columns are narrowed in turn if they do not fit. The optimizer's texts are also in the
# details, and so are the inputs of an operation after the first.
NARROWING_ORDER = ((2, 180), (0, 240), (2, 150), (1, 160), (0, 150), (1, 110))
# width and number of lanes in a margin; indentation of an inner row, and its greatest level
LANE_WIDTH, MAX_LANES, INDENT, MAX_INDENT_LEVEL = 8, 7, 7, 6
# LAST_LANE_GAP: gap between the last lane and the third column
ROWS_TOP, EDGE_MARGIN, COLUMN_GAP, LAST_LANE_GAP = 30, 8, 20, 10
COLUMN_NAMES_Y = 17  # baseline of the column names
MAX_SHAPES = 2  # inputs, and outputs, whose shapes a box names


@dataclass
class Part:
    """One column of a row. nodes: its operations.  ins, outs: values from and to other rows, as (node, output)."""

    nodes: list[int] = field(default_factory=list)
    ins: dict[tuple[int, int], None] = field(default_factory=dict)
    outs: dict[tuple[int, int], None] = field(default_factory=dict)


@dataclass
class Row:
    item: Item
    level: int
    is_open: bool
    opens: bool  # True if it can be open
    parts: tuple[Part, Part, Part]
    states: list[int]
    marks: tuple[dict[str, int], dict[str, int], dict[str, int]]  # for each column: mark -> count
    kept: bool = False  # True if its backward reads values of forward
    gradients: bool = False  # True if its backward feeds an update
    loss: bool = False  # True if backward was called on its result
    ahead: str = ""  # the row whose backward runs after that of this row, although its forward does as well
    y: float = 0.0
    height: float = TWO_LINE_HEIGHT


def shapes_text(record: StepRecord, part: Part, arrow: str = "→") -> str:
    ins, outs = ([shape_of(record.spec(v)) for v in values] for values in (part.ins, part.outs))
    texts = [
        ", ".join(x[:MAX_SHAPES]) + (f" +{len(x) - MAX_SHAPES}" if len(x) > MAX_SHAPES else "") for x in (ins, outs)
    ]
    return f" {arrow} ".join([x for x in (texts if arrow == "→" else texts[::-1]) if x])


class Grid:
    """The visible rows of a tree, given which items are open, and the links between them."""

    def __init__(self, tree: StepTree, opened: set[str]):
        self.tree, self.record = tree, tree.record
        listed = tree.rows(opened)
        self.row_at = [-1] * len(tree.leaves)  # leaf -> row
        self.rows: list[Row] = []
        for item, level, is_open in listed:
            self.rows.append(Row(item, level, is_open, tree.can_open(item), (Part(), Part(), Part()), [], ({}, {}, {})))
            if not is_open:
                self.row_at[item.first : item.last] = [len(self.rows) - 1] * (item.last - item.first)
        self.links: dict[str, dict[int, set[int]]] = {"forward": {}, "backward": {}, "update": {}}  # kind -> from -> to
        self.fill_rows()
        self.set_heights()

    def row_of(self, node: int) -> int:
        leaf = self.tree.leaf_of[node]
        return self.row_at[leaf.first] if leaf is not None else -1

    def fill_rows(self) -> None:
        """Fill in the nodes, inputs and outputs of each row. Only values that cross rows are visited one by one."""
        record, reads, rows = self.record, self.tree.reads, self.rows
        for row in rows:
            if not row.is_open:
                for column, part in enumerate(row.parts):
                    part.nodes = reads.nodes_between(column, row.item.first, row.item.last)
        for s, leaf in self.tree.leaf_of_state.items():
            rows[self.row_at[leaf.first]].states.append(s)
        row_at = np.array([*self.row_at, -1])
        source, target, columns = row_at[reads.source], row_at[reads.target], reads.column
        for r in np.unique(target[(reads.source_column == 0) & (columns == 1)]).tolist():
            rows[r].kept = True
        other = (source != target) & (source >= 0)
        straight = other & ((reads.source_column == columns) | ((reads.source_column < 0) & (columns == 0)))
        for k in np.flatnonzero(straight).tolist():
            s, t = int(source[k]), int(target[k])
            self.add_link(reads.values[k], s, t, int(columns[k]))
            if columns[k] == 1 and t > s and record.nodes[reads.values[k][0]].by and rows[t].item.kind != "rest":
                rows[s].ahead = rows[t].item.name
        for k in np.flatnonzero((reads.source_column == 1) & (columns == 2)).tolist():
            rows[int(source[k])].gradients = True
            self.links["update"].setdefault(int(source[k]), set()).add(int(target[k]))
        for i in [i for i, node in enumerate(record.nodes) if node.mark]:
            self.count_mark(i)
        for item, (node, index) in self.tree.output_rows.items():
            r, s = self.row_at[item.first], self.row_of(node)
            if s >= 0:
                rows[r].parts[0].ins[node, index] = None
                if record.nodes[node].column >= 0:
                    rows[s].parts[record.nodes[node].column].outs[node, index] = None
                self.links["forward"].setdefault(s, set()).add(r)

        firsts = [i for i in range(len(record.nodes)) if is_first_gradient(record, i)]
        twins = {i: record.nodes[record.places[record.nodes[i].twin]] for i in firsts}
        self.begins = self.row_of(max(firsts, key=lambda i: twins[i].order)) if firsts else -1
        self.loss = self.row_of(record.loss) if record.loss >= 0 else -1
        if self.loss >= 0:
            rows[self.loss].loss = True

    def add_link(self, x: tuple[int, int], s: int, r: int, column: int) -> None:
        """Row r reads a value of row s in this column."""
        rows = self.rows
        if self.record.nodes[x[0]].kind != "state":
            rows[r].parts[column].ins[x] = None
            rows[s].parts[column].outs[x] = None
        elif rows[s].item.kind != "state":
            return  # a parameter of a closed module that another module also reads
        if column < 2:
            self.links[("forward", "backward")[column]].setdefault(s, set()).add(r)

    def count_mark(self, i: int) -> None:
        """Count the mark of an operation that a pass changed. A removed one is drawn only in a row of one operation."""
        node, r = self.record.nodes[i], self.row_of(i)
        row = self.rows[r]
        marks = row.marks[node.column]
        marks[node.mark] = marks.get(node.mark, 0) + 1
        if node.mark == "gone" and row.item.kind == "op":
            row.parts[node.column].nodes.append(i)
            for x in self.record.reads[i]:
                s = -1 if x is None else self.row_of(x[0])
                if x is not None and s not in (-1, r) and self.record.nodes[x[0]].column in (-1, node.column):
                    self.add_link(x, s, r, node.column)

    def set_heights(self) -> None:
        y = float(ROWS_TOP)
        for row in self.rows:
            row.y = y
            small = row.item.kind in ("input", "output") or (row.item.kind == "state" and not row.parts[2].nodes)
            high = TWO_LINE_HEIGHT + (THIRD_LINE_HEIGHT if row.item.kind == "fold" or notes_of(self.record, row) else 0)
            row.height = HEADER_HEIGHT if row.is_open else ONE_LINE_HEIGHT if small else high
            y += row.height + (5 if row.is_open else ROW_GAP)
        self.bottom = y


def notes_of(record: StepRecord, row: Row) -> str:
    """Contents of an operation that contains graphs."""
    return "; ".join(record.nodes[row.item.nodes[0]].notes) if row.item.kind == "op" else ""


def update_words(record: StepRecord, row: Row) -> tuple[str, str]:
    """Text of the third column: (parameters and states, updates)."""
    states = [record.nodes[s] for s in row.states]
    own = [s for s in states if s.role in ("parameter", "buffer")]
    extra = [s for s in states if s.role == "optimizer state"]
    ops = [record.nodes[i].label for i in row.parts[2].nodes]
    kinds = list(dict.fromkeys(ops))
    if row.item.kind in ("module", "fold") and len(own) > 3:
        title = count(len([s for s in own if s.role == "parameter"]), "parameter")
        buffers = sum(s.role == "buffer" for s in own)
        title += f", {count(buffers, 'buffer')}" if buffers else ""
    else:
        title = ", ".join(s.short for s in own) or (count(len(ops), "operation") if ops else "")
        title = row.item.name if row.item.kind == "rest" else title
    size = sum(s.size for s in own)
    read = {x[0] for i in row.parts[2].nodes for x in record.reads[i] if x is not None}
    names = [
        record.nodes[i].short.replace("_", " ") for i in sorted(read, reverse=True) if record.nodes[i].role == "number"
    ]
    if row.item.kind == "rest" and names:
        kinds = [f"{', '.join(kinds[:2])} of the {names[0]}"]
    words = [", ".join(kinds[:2])] if ops else [] if own or not extra else ["kept"]
    if extra:
        words.append(", ".join(list(dict.fromkeys(s.short.removesuffix("_buffer") for s in extra))[:3]))
    shown = f"{size:,}" if size < 1e6 else f"{size / 1e6:,.{int(size < 1e8)}f} M"
    return title + (f" ({shown})" if own else ""), " + ".join(w for w in words if w)


def forward_words(record: StepRecord, row: Row) -> tuple[str, str, str]:
    """Text of the first column: (name, description, shapes)."""
    item = row.item
    ops = sum(len(part.nodes) for part in row.parts)
    if item.kind == "input":
        return item.name, "input", shape_of(record.nodes[item.states[0]].outs[0])
    if item.kind == "output":
        node = row.parts[0].ins
        return item.name, "", shape_of(record.spec(next(iter(node)))) if node else ""
    if item.kind == "state":
        state = record.nodes[item.states[0]]
        return item.name, state.role, shape_of(state.outs[0])
    shapes = shapes_text(record, row.parts[0])
    if item.kind == "fold":
        return item.name, item.label if row.is_open else f"{item.label}, {count(ops, 'op')}", shapes
    if item.kind == "op":
        return item.name, "the loss" if row.loss else record.nodes[item.nodes[0]].attrs, shapes
    return item.name, ", ".join(x for x in (item.label, "the loss" * row.loss) if x), shapes


MARK_SIGNS = {"new": "+", "gone": "−", "changed": "~", "moved": "↕"}


def mark_text(row: Row, column: int) -> str:
    """Effect of a pass on a column: the mark of a single operation, else the count of each mark."""
    marks = row.marks[column]
    if row.item.kind == "op" and len(row.parts[column].nodes) == 1:
        return next(iter(marks), "")
    return " ".join(f"{MARK_SIGNS[m]}{marks[m]}" for m in MARK_SIGNS if m in marks)


# Relative heights at which a line through the margin leaves and enters a box, apart from each other for lines in both
# directions.
EXIT_HEIGHTS, ENTRY_HEIGHTS = {1: 0.75, -1: 0.3}, {1: 0.3, -1: 0.75}  # 1: down, -1: up


def link_heights(rows: list[Row], s: int, t: int) -> tuple[float, float]:
    """Heights at which a line from row s to row t leaves and enters."""
    way = 1 if t >= s else -1
    return rows[s].y + rows[s].height * EXIT_HEIGHTS[way], rows[t].y + rows[t].height * ENTRY_HEIGHTS[way]


def lanes_for(rows: list[Row], links: dict[int, set[int]], skip) -> list[tuple[int, list[int], int]]:
    """(source row, target rows, lane) of the links between rows that are not adjacent. A source has one lane in each
    direction; lanes are reused.
    """
    spans = []
    for s, targets in links.items():
        for way in (-1, 1):
            far = sorted(t for t in targets if not skip(s, t) and (1 if t >= s else -1) == way)
            if far:
                ys = [y for t in far for y in link_heights(rows, s, t)]
                spans.append((min(ys), max(ys), s, far))
    spans.sort()
    ends: list[float] = []
    lanes = []
    for low, high, s, far in spans:
        lane = next((k for k, end in enumerate(ends) if end < low), None)
        if lane is None:
            lane = len(ends)
            ends.append(high)
        ends[lane] = max(ends[lane], high)
        lanes.append((s, far, min(lane, MAX_LANES - 1)))
    return lanes


def view_of(grid: Grid) -> dict:
    """The picture as plain data.

    rows: [id, kind, y, height, level, open (1, 0, or -1 if it cannot be opened), text for screen readers,
    [[column, x, width, bold text, faint text, second line, mark, third line], ...]].
    paths: [kind, d]; the arrow heads of a dashed or dotted line are a separate path of kind + "h".
    frames: [x, y, width, height].  heads: [x, text].
    """
    record, rows = grid.record, grid.rows
    has_backward = any(n.column == 1 for n in record.nodes)
    has_update = any((row.states and row.item.kind != "input") or row.parts[2].nodes for row in rows)
    closed = [(r, row) for r, row in enumerate(rows) if not row.is_open]
    in_forward = [r for r, row in closed if row.parts[0].nodes or row.item.kind in ("input", "output", "state")]
    in_backward = [r for r, row in closed if row.parts[1].nodes]
    chain = [r for r in in_forward if rows[r].item.kind != "state"]
    after = dict(itertools.pairwise(chain)) | {
        a: b for a, b in itertools.pairwise(in_forward) if rows[a].item.kind == "state" and rows[b].item.kind != "state"
    }
    touching = {a: b for a, b in after.items() if all(rows[k].is_open or k not in in_forward for k in range(a + 1, b))}
    before = dict(zip(in_backward[1:], in_backward))
    left = lanes_for(rows, grid.links["forward"], lambda s, t: touching.get(s) == t)
    ups = lanes_for(rows, grid.links["backward"], lambda s, t: s in (before.get(t), t) or before.get(s) == t)
    across = lanes_for(rows, grid.links["update"], lambda s, t: s == t)
    gutter = EDGE_MARGIN + 6 + LANE_WIDTH * (max([k for *_, k in left], default=-1) + 1)
    texts = [row_texts(record, row) for row in rows]
    widths = [column_width(texts, k) for k in range(3)]
    right = LANE_WIDTH * (max([k for *_, k in ups], default=-1) + max([k for *_, k in across], default=-1) + 3)
    updates = any(n.column == 2 for n in record.nodes)
    names = ["forward ↓", "backward ↑", "parameters, update" if updates else "parameters"]
    drawn_columns = [0] + [1] * has_backward + [2] * has_update
    widths = [max(width, math.ceil(text_width(name, bold=True))) for width, name in zip(widths, names)]
    beside = (
        (COLUMN_GAP + right + LAST_LANE_GAP if has_backward else COLUMN_GAP)
        if has_update
        else COLUMN_GAP * has_backward
    )
    widths = fit_columns(widths, drawn_columns, PICTURE_WIDTH - EDGE_MARGIN - gutter - beside)
    columns = [gutter, gutter + widths[0] + COLUMN_GAP, 0]
    columns[2] = columns[1] + widths[1] + right + LAST_LANE_GAP if has_backward else columns[1]
    end = columns[drawn_columns[-1]] + widths[drawn_columns[-1]]
    heads = [[columns[k], names[k]] for k in drawn_columns]
    drawn, frames = [], []
    for r, row in enumerate(rows):
        inset = min(row.level, MAX_INDENT_LEVEL) * INDENT
        frames += frame_of(rows, r, gutter - 5 + inset - INDENT / 2, end + 6 - inset / 2) if row.is_open else []
        drawn.append(row_data(record, row, texts[r], columns, widths))
    places = BoxPositions(rows, drawn)
    paths = []
    for a, b in touching.items():
        if b in grid.links["forward"].get(a, ()):
            x = gutter + widths[0] * 0.82
            paths.append(["f", arrow_down(x, rows[a].y + rows[a].height, rows[b].y)])
    for s, far, lane in left:
        paths.append(["f", lane_link(places, s, far, 0, gutter - 13 - LANE_WIDTH * lane, -1)])
    for a, b in before.items():
        if b in grid.links["backward"].get(a, ()):
            paths.append(["b", arrow_up(columns[1] + widths[1] * 0.6, rows[a].y, rows[b].y + rows[b].height)])
        if a in grid.links["backward"].get(b, ()):
            paths.append(["b", arrow_down(columns[1] + widths[1] * 0.75, rows[b].y + rows[b].height, rows[a].y)])
    margin = columns[1] + widths[1] + 8
    for s, far, lane in ups:
        paths.append(["b", lane_link(places, s, far, 1, margin + LANE_WIDTH * lane, 1)])
    margin += LANE_WIDTH * (max([k for *_, k in ups], default=-1) + 1)
    for s, far, lane in across:
        paths.append(["u", lane_link(places, s, far, 1, margin + LANE_WIDTH * lane, 1, 2)])
    if 0 in places.boxes[grid.loss] and 1 in places.boxes[grid.begins] and min(grid.loss, grid.begins) >= 0:
        paths.append(["b", loss_link(places, rows, grid.loss, grid.begins)])
    for r, row in enumerate(rows):
        boxes = places.boxes[r]
        if row.kept and 0 in boxes and 1 in boxes:
            (x0, w0), (x1, _) = boxes[0], boxes[1]
            paths.append(["k", arrow_right(x0 + w0, x1, row.y + row.height / 2)])
        if r in grid.links["update"].get(r, ()) and 1 in boxes and 2 in boxes:
            (x0, w0), (x1, _) = boxes[1], boxes[2]
            paths.append(["u", arrow_right(x0 + w0, x1, row.y + row.height / 2)])
    paths = [part for kind, d in paths for part in split_arrow_heads(kind, d)]
    return {
        "w": round(end + EDGE_MARGIN),
        "h": round(grid.bottom + 4),
        "heads": heads,
        "rows": drawn,
        "frames": frames,
        "paths": paths,
    }


@dataclass
class Texts:
    """The complete texts of a box: `bold` and `faint` in its first line, `second` and `third` below, `mark` at the
    right end.

    inset: how much narrower the box is than its column.  cut: True if the faint text may be cut to FAINT_TEXT_WIDTH.
    """

    inset: float
    bold: str
    faint: str = ""
    second: str = ""
    mark: str = ""
    third: str = ""
    cut: bool = True

    def beside(self) -> float:
        """Width of the faint text with the gap before it, in pixels."""
        return TEXT_GAP + min(text_width(self.faint), FAINT_TEXT_WIDTH if self.cut else 1e9) if self.faint else 0.0

    def room(self, width: float) -> float:
        """Space for the first line in a column of this width."""
        return width - self.inset - 2 * PADDING - (text_width(self.mark, bold=True) + TEXT_GAP if self.mark else 0)

    def needed(self) -> float:
        """Least width of a column that shows all texts in full."""
        return max(
            text_width(self.bold, bold=True) + self.beside() - self.room(0),
            max(text_width(self.second), text_width(self.third)) + 2 * PADDING + self.inset,
        )


def row_texts(record: StepRecord, row: Row) -> dict[int, Texts]:
    """Column -> texts of its box; for an open row only the first column."""
    item, boxes = row.item, {}
    inset = min(row.level, MAX_INDENT_LEVEL) * INDENT
    name, what, second = forward_words(record, row)
    signs = [mark_text(row, k) for k in range(3)]
    if row.is_open:
        return {0: Texts(inset, "▾ " + name, what or count(item.last - item.first, "part"))}
    if row.parts[0].nodes or item.kind in ("input", "output", "state", "module", "fold"):
        name = "▸ " + name if row.opens else name
        if item.kind == "fold":
            boxes[0] = Texts(inset, name, "", what, signs[0], second)
        elif row.height == ONE_LINE_HEIGHT:
            boxes[0] = Texts(inset, name, f"{what}  {second}".strip(), "", signs[0], cut=False)
        elif notes := notes_of(record, row):
            boxes[0] = Texts(inset, name, what, notes, signs[0], second)
        else:
            boxes[0] = Texts(inset, name, what, second, signs[0], cut=item.kind == "op" and not row.loss)
    if row.parts[1].nodes:
        part = row.parts[1]
        ops = [record.nodes[i].label for i in part.nodes]
        names = [record.nodes[i].label for i in part.nodes if not is_identity_reshape(record, i)] or ops
        label = (
            f"{count(len(ops), 'gradient op')}" if item.kind in ("module", "fold") else ", ".join(dict.fromkeys(names))
        )
        again = sum(record.nodes[i].phase == "recompute" for i in part.nodes)
        label = f"{count(len(ops), 'op')}, {again} recomputed" if again else label
        shapes = shapes_text(record, part, "←")
        if row.gradients and part.ins and not part.outs:
            shapes = f"parameters ← {shapes}"
        boxes[1] = Texts(inset / 2, label, f"before {row.ahead}" if row.ahead else "", shapes, signs[1], cut=False)
    if item.kind not in ("input", "output") and (row.parts[2].nodes or (row.states and item.kind != "state")):
        title, words = update_words(record, row)
        boxes[2] = Texts(inset / 2, title, "", words, signs[2])
    return boxes


def column_width(texts: list[dict[int, Texts]], column: int) -> int:
    """Least width of a column that shows all its texts in full, within COLUMN_WIDTHS."""
    least, most = COLUMN_WIDTHS[column]
    return math.ceil(min(max([least, *[own[column].needed() for own in texts if column in own]]), most))


def fit_columns(widths: list[int], drawn: list[int], room: float) -> list[int]:
    """Widths reduced to fit into `room`, one column after the other in the order of NARROWING_ORDER."""
    widths = [width if k in drawn else 0 for k, width in enumerate(widths)]
    for k, least in NARROWING_ORDER:
        widths[k] -= max(min(math.ceil(sum(widths) - room), widths[k] - least), 0)
    return widths


def truncated_shapes(words: str, width: float) -> str:
    """Shapes cut to a width: first the inputs after the first, then all inputs, last the outputs."""
    arrow = next((arrow for arrow in (" → ", " ← ") if arrow in words), "")
    if arrow and text_width(words) > width:
        ends = words.split(arrow, 1)
        k = arrow == " ← "
        first, _, others = ends[k].partition(", ")
        for ends[k] in ([f"{first}, …"] if others else []) + ["…"]:
            if text_width(arrow.join(ends)) <= width:
                return arrow.join(ends)
    return truncated(words, width)


def row_data(record: StepRecord, row: Row, texts: dict[int, Texts], columns: list, widths: list) -> list:
    item, boxes = row.item, []
    name, what, second = forward_words(record, row)
    opens = int(row.is_open) if row.opens else -1
    said = [f"{name} {what}", "open"] if row.is_open else [name, what, second]
    for column, own in texts.items():
        room, width = own.room(widths[column]), widths[column] - own.inset
        bold = truncated(own.bold, max(room * 0.66, room - own.beside()) if own.faint else room, bold=True)
        faint = own.faint and truncated_words(own.faint, room - text_width(bold, bold=True) - TEXT_GAP)
        cut = truncated_words if column == 2 else truncated_shapes
        second, third = (cut(words, width - 2 * PADDING) for words in (own.second, own.third))
        boxes.append([column, columns[column] + own.inset * (column < 2), width, bold, faint, second, own.mark, third])
        if column == 1:
            said.append(f"backward {count(len(row.parts[1].nodes), 'operation')} {own.faint} {own.second}")
        elif column == 2:
            said.append(f"parameters {own.bold} {own.second}")
    said += [
        f"{word} {box.mark}"
        for word, box in zip(("forward", "backward", "update"), map(texts.get, range(3)))
        if box and box.mark
    ]
    kind = "open" if row.is_open else item.kind
    return [item.id, kind, row.y, row.height, row.level, opens, clean(", ".join([x for x in said if x])), boxes]


def frame_of(rows: list[Row], r: int, x: float, end: float) -> list:
    last = r
    while last + 1 < len(rows) and rows[last + 1].level > rows[r].level:
        last += 1
    low = rows[last].y + rows[last].height
    return [[round(x, 1), rows[r].y - 3, round(end - x, 1), round(low - rows[r].y + 8, 1), rows[r].level]]


# ---- lines -----------------------------------------------------------------------------------------------------------


class BoxPositions:
    """Positions of the boxes of each row: column -> (x, width)."""

    def __init__(self, rows: list[Row], drawn: list):
        self.rows = rows
        self.boxes = [{box[0]: (box[1], box[2]) for box in data[7]} for data in drawn]


def arrow_down(x: float, y0: float, y1: float) -> str:
    return f"M{number(x)} {number(y0)}V{number(y1)}" + arrow_head(x, y1, 0, 1)


def arrow_up(x: float, y0: float, y1: float) -> str:
    return f"M{number(x)} {number(y0)}V{number(y1)}" + arrow_head(x, y1, 0, -1)


def arrow_right(x0: float, x1: float, y: float) -> str:
    return f"M{number(x0)} {number(y)}H{number(x1)}" + arrow_head(x1, y, 1, 0)


def arrow_head(x: float, y: float, dx: int, dy: int) -> str:
    """The two strokes of an arrow's head at (x, y) that points along (dx, dy)."""
    a = f"{number(x - 5 * dx - 3.5 * dy)} {number(y - 5 * dy - 3.5 * dx)}"
    b = f"{number(x - 5 * dx + 3.5 * dy)} {number(y - 5 * dy + 3.5 * dx)}"
    return f"M{a}L{number(x)} {number(y)}L{b}"


def split_arrow_heads(kind: str, d: str) -> list[list[str]]:
    """A dashed or dotted line, and its solid arrow heads: [[kind, d], [kind + "h", d of the heads]]."""
    heads = re.findall(r"M[^M]*L[^M]*", d) if kind in ("b", "k") else []
    for part in heads:
        d = d.replace(part, "", 1)
    return [[kind, d], [kind + "h", "".join(heads)]] if heads else [[kind, d]]


def loss_link(places: BoxPositions, rows: list[Row], s: int, t: int) -> str:
    """Path from the forward box of the loss, in row s, to the first box of backward, in row t."""
    (x0, w0), (x1, _) = places.boxes[s][0], places.boxes[t][1]
    y0, y1, x = rows[s].y + rows[s].height * 0.28, rows[t].y + rows[t].height * 0.28, x1 - COLUMN_GAP / 2
    if s == t:
        return arrow_right(x0 + w0, x1, y0)
    return f"M{number(x0 + w0)} {number(y0)}H{number(x)}V{number(y1)}H{number(x1)}" + arrow_head(x1, y1, 1, 0)


def lane_link(
    places: BoxPositions, s: int, targets: list[int], column: int, x: float, side: int, into: int | None = None
) -> str:
    """Path from the side of row s through a lane at x to the side of each target, all above or all below it.

    side: -1 left of the column, 1 right of it.
    """
    into = column if into is None else into

    def edge(r: int, c: int, side: int) -> float:
        x, width = places.boxes[r].get(c, (x_default, 0))
        return x + (width if side > 0 else 0)

    x_default = x
    start = link_heights(places.rows, s, targets[0])[0]
    parts, low, high = [f"M{number(edge(s, column, side))} {number(start)}H{number(x)}"], start, start
    for t in targets:
        y = link_heights(places.rows, s, t)[1]
        low, high = min(low, y), max(high, y)
        facing = side if into == column else -side
        end = edge(t, into, facing)
        parts.append(f"M{number(x)} {number(y)}H{number(end)}" + arrow_head(end, y, -facing, 0))
    parts.append(f"M{number(x)} {number(low)}V{number(high)}")
    return "".join(parts)
