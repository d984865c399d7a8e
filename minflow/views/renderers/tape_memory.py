"""The memory that a tape keeps, for which operation, and until when: a record, its text and its picture.

The gradient rule of an operation reads some of its inputs or results. The tape keeps those arrays until backward has
passed the operation, or until the last tensor computed from it is gone. Each array is counted once, with the whole
storage that it keeps alive. Works on Nodes, not Tensors. Read next: `core/op.py`, SavedSlots: which arrays a rule
requests.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.ir import FreedMarker, InnerTape, Node, Source, Value, inner_nodes, saved_slots, toposort, where_text
from ..draw import svg_writer as svg, theme
from ..draw.fonts import FONT_SIZE, text_width, truncated
from ..html.page import picture_card
from ..records.foreign_tape import is_foreign_value
from ..records.graph import input_name
from ..records.tape import leaf_name, names_in
from ..text.listing import clean, count
from ..text.tables import ruled_table

MAX_ROWS = 20  # the largest arrays are listed; the others are only summed
MAX_BAR_WIDTH, MAX_TEXT_WIDTH = 150, 900  # pixels: the longest bar; the widest line of text
MAX_KEEPERS = 3  # operations that are named for one array


@dataclass(frozen=True)
class SavedArrayRow:
    """One array. spec: as it was saved.  nbytes: size of the storage that it keeps alive.  used: bytes of it that are
    read.

    keepers: the operations that save it, "#2 tanh: its result, at In[3]:2 in fc1".  owner: another holder, "leaf w" or
    "variable h".
    last: number of the operation after whose gradient the tape frees it; operations are numbered in execution order.
    """

    spec: str
    nbytes: int
    used: int
    keepers: tuple[str, ...]
    owner: str
    last: int


@dataclass(frozen=True)
class MemoryRecord:
    """The memory that the tape of a tensor keeps. rows: the largest first.  operations: number on the tape.  keeping:
    number of those that save an array.  freed: number whose saved arrays a backward freed, last at `freed_at`.
    gradients: (leaves with a .grad, their bytes).
    """

    title: str
    rows: tuple[SavedArrayRow, ...] = ()
    operations: int = 0
    keeping: int = 0
    freed: int = 0
    freed_at: str = ""
    gradients: tuple[int, int] = (0, 0)

    @property
    def nodes(self) -> tuple[SavedArrayRow, ...]:
        return self.rows

    @property
    def total(self) -> int:
        return sum(row.nbytes for row in self.rows)

    @property
    def alone(self) -> int:
        """Bytes without another known holder."""
        return sum(row.nbytes for row in self.rows if not row.owner)


def learner_tensors() -> dict[str, Any]:
    """The caller's named tensors: locals, then globals."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("minflow."):
        frame = frame.f_back  # the wrapper that checks the arguments of `flow.show`
    return tensors_in({**frame.f_globals, **frame.f_locals})


def tensors_in(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Entries that are tensors, or values of a learner's own engine; names with a leading underscore are ignored."""
    entries = [(name, x) for name, x in list(namespace.items()) if not name.startswith("_")]
    return {
        name: x
        for name, x in entries
        if (hasattr(type(x), "requires_grad") and hasattr(x, "spec")) or is_foreign_value(x)
    }


def owning_array(array: Any) -> Any:
    """The array that owns the memory of this view."""
    while getattr(array, "base", None) is not None and hasattr(array.base, "nbytes") and hasattr(array.base, "dtype"):
        array = array.base
    return array


def saved_by(node: Node) -> Iterable[tuple[Any, str]]:
    """(array, its role) for each array that the tape keeps for a node."""
    if node.attrs.get("ctx") is not None and node.saved.__class__ is not FreedMarker:
        # an autograd.Function: tensors saved by its forward
        entries = [(entry, "saved by its forward") for entry in getattr(node.attrs["ctx"], "saved", ())]
    else:
        entries = [(entry, slot_role(node, slot)) for slot, entry in saved_slots(node)]
    for entry, role in entries:
        if isinstance(entry, tuple) and hasattr(entry[0], "nbytes"):
            yield entry[0], role
    if node.saved.__class__ is InnerTape:
        yield from saved_inside(node)


def saved_inside(node: Node) -> Iterable[tuple[Any, str]]:
    """(array, its role) for each array of the tape of a decomposition, but not of the inputs of the node."""
    for inner in inner_nodes(node):
        for slot, entry in saved_slots(inner):
            x = inner.inputs[slot] if slot >= 0 else Value(inner, ~slot, inner.out_specs[~slot])
            if entry is None or x in node.inputs:
                continue
            inside = f"result of its inner {x.node.op}" if x.__class__ is Value else f"an input of its inner {inner.op}"
            yield entry[0], inside
        if inner.saved.__class__ is InnerTape:
            yield from saved_inside(inner)


def slot_role(node: Node, slot: int) -> str:
    if slot >= 0:
        return f"input {input_name(node, slot)}".replace("input input", "input")
    return "its result" if len(node.out_specs) == 1 else f"its result {node.op.outputs[~slot]}"


def keeper_text(number: int, node: Node, roles: Iterable[str]) -> str:
    """Describe a node and what it saves: `#1 mul: input a and input b, at In[3]:2 in fc1`."""
    place = (f", at {where_text(node.where)}" if node.where else "") + (f" in {node.scope}" if node.scope else "")
    return f"#{number} {node.op}: {' and '.join(roles)}{place}"


def memory_record(tensor: Any, tensors: Mapping[str, Any] | None = None) -> MemoryRecord:
    """Record of the memory that a tensor's tape keeps. tensors: name -> tensor, the learner's variables."""
    tensors = tensors or {}
    names = names_in(tensors)
    title = f"tape of {names.get(id(tensor), '')} {tensor.spec}".replace("  ", " ")
    if tensor._value is None:
        return MemoryRecord(title)
    order = toposort([tensor._value.node])
    operations = [node for node in order if not isinstance(node, Source)]
    users: dict[Node, Node] = {}
    for node in operations:
        for x in node.inputs:
            if x.__class__ is Value:
                users.setdefault(x.node, node)
    owners: dict[int, str] = {}
    gradients = [0, 0]
    for name, x in tensors.items():
        if getattr(x, "array", None) is not None:
            owners.setdefault(id(owning_array(x.array)), f"variable {name}")
    for node in order:
        leaf = node.tensor() if isinstance(node, Source) else None
        if leaf is None:
            continue
        if getattr(leaf, "array", None) is not None:
            scope = users[node].scope if node in users else ""
            owners[id(owning_array(leaf.array))] = f"leaf {leaf_name(node, leaf, scope, names)}".replace(
                "leaf leaf", "a leaf"
            )
        gradient = getattr(leaf, "_gradient", None)
        if gradient is not None:
            gradients = [gradients[0] + 1, gradients[1] + gradient.spec.nbytes]
    held: dict[int, list] = {}  # storage -> [array, keepers, last]
    freed, freed_at = 0, None
    numbers = {node: number for number, node in enumerate(operations, 1)}
    for node in reversed(operations):
        if node.saved.__class__ is FreedMarker:
            freed, freed_at = freed + 1, freed_at or node.saved.where
        for array, what in saved_by(node):
            entry = held.setdefault(id(owning_array(array)), [array, {}, 0])
            entry[0] = array if array.nbytes > entry[0].nbytes else entry[0]
            entry[1].setdefault(node, {})[what] = None
            entry[2] = numbers[node]
    rows = []
    for key, (a, keepers, last) in held.items():
        kept_by = tuple([keeper_text(numbers[node], node, roles) for node, roles in keepers.items()])
        rows.append(
            SavedArrayRow(
                f"{a.dtype}{list(a.shape)}",
                int(owning_array(a).nbytes),
                int(a.nbytes),
                kept_by,
                owners.get(key, ""),
                last,
            )
        )
    keeping = len({node for _, keepers, _ in held.values() for node in keepers})
    rows.sort(key=lambda row: -row.nbytes)
    where = where_text(freed_at) if freed_at else ""
    return MemoryRecord(title, tuple(rows), len(operations), keeping, freed, where, (gradients[0], gradients[1]))


# ---- text ------------------------------------------------------------------------------------------------------------


def bytes_text(n: int) -> str:
    """Format a number of bytes: `1,234 bytes`, `1.2 MiB`."""
    return f"{n / 2**30:.2f} GiB" if n >= 2**30 else f"{n / 2**20:.2f} MiB" if n >= 2**20 else f"{n:,} bytes"


def share_of(part: int, whole: int) -> str:
    """Format a part of a whole: `0.15 of 4.34 MiB`; a part too small for that unit gets its own."""
    unit, name = (2**30, "GiB") if whole >= 2**30 else (2**20, "MiB")
    if whole < 2**20 or part < unit / 100:
        return f"{bytes_text(part)} of {bytes_text(whole)}" if whole >= 2**20 else f"{part:,} of {bytes_text(whole)}"
    return f"{part / unit:.2f} of {whole / unit:.2f} {name}"


def headline(record: MemoryRecord) -> str:
    """The kept memory in one line."""
    title = clean(record.title)
    if not record.operations:
        return f"{title}: keeps nothing; no operation is recorded"
    operations = count(record.operations, "operation")
    if record.rows:
        arrays = count(len(record.rows), "array")
        kept = f"{bytes_text(record.total)} for backward, in {arrays}"
        return f"{title}: keeps {kept}, for {record.keeping:,} of {operations}"
    if record.freed:
        done = count(record.freed, "operation")
        return f"{title}: no longer keeps arrays; backward at {clean(record.freed_at)} freed what {done} had saved"
    return f"{title}: keeps no arrays; the gradient rules of its {operations} read none"


def notes(record: MemoryRecord) -> list[str]:
    """Notes below the table."""
    lines = []
    shared = record.total - record.alone
    if record.rows and shared:
        alone = (
            f"only the tape holds {bytes_text(record.alone)} of them"
            if record.alone
            else "the tape alone holds none of them"
        )
        lines.append(f"{alone}; {bytes_text(shared)} are also held by leaves or variables, and stay with them")
    if record.rows:
        lines.append(
            "operations are numbered in the order in which they ran; backward visits them from the last to #1 and "
            "then frees the array"
        )
        lines.append("backward(retain_graph=True) keeps all of them until the result itself is gone")
    if record.rows and record.freed:
        lines.append(
            f"backward at {clean(record.freed_at)} has freed what {count(record.freed, 'operation')} had saved"
        )
    if record.gradients[0]:
        lines.append(
            f"besides the tape, .grad of {count(record.gradients[0], 'leaf', 'leaves')} holds "
            f"{bytes_text(record.gradients[1])}"
        )
    return lines


def keeper_lines(row: SavedArrayRow) -> list[str]:
    """The operations that keep an array, one line each."""
    more = [f"and {len(row.keepers) - MAX_KEEPERS} more"] if len(row.keepers) > MAX_KEEPERS else []
    part = [f"part of a larger array: {share_of(row.used, row.nbytes)} are read"] if row.used < row.nbytes else []
    return [*map(clean, row.keepers[:MAX_KEEPERS]), *more, *part]


def memory_text(record: MemoryRecord) -> str:
    """The record as a table, largest array first."""
    lines = [headline(record)]
    if record.rows:
        cells = []
        for row in record.rows[:MAX_ROWS]:
            first, *more = keeper_lines(row)
            cells.append((f"{row.nbytes:,}", row.spec, f"after #{row.last}", row.owner or "-", first))
            cells += [("", "", "", "", line) for line in more]
        rest = record.rows[MAX_ROWS:]
        if rest:
            cells.append((f"{sum(row.nbytes for row in rest):,}", count(len(rest), "smaller array"), "", "", ""))
        lines += ruled_table(("bytes", "array", "freed in backward", "also held by", "kept for"), cells, right=(0,))
    return "\n".join([*lines, *[f"({note})" for note in notes(record)]])


# ---- picture ---------------------------------------------------------------------------------------------------------


def memory_svg(record: MemoryRecord) -> str:
    """A bar for each array: solid if only the tape holds it, outlined if it also has an owner."""
    rows = record.rows[:MAX_ROWS]
    most = max((row.nbytes for row in rows), default=1) or 1
    parts, y, width = [], 18.0, 0.0

    def words(x: float, *lines: str, **look) -> None:
        """Draw lines on a plate, cut to MAX_TEXT_WIDTH, and advance y."""
        nonlocal y, width
        lines = tuple([truncated(line, MAX_TEXT_WIDTH, bold="bold" in look) for line in lines])
        width = max(width, x + max(text_width(line, bold="bold" in look) for line in lines) + svg.PADDING)
        parts.append(svg.label(x, y, *lines, **look))
        y += svg.LINE_HEIGHT * FONT_SIZE * len(lines)

    def bar(x: float, y: float, long: float, owned: bool) -> str:
        look = {"fill": theme.PALE_BLUE, "stroke": theme.BLUE} if owned else {"fill": theme.AMBER}
        return svg.rect(x, y, long, 12, **look, stroke_width=1.5 if owned else None)

    words(svg.PADDING, headline(record), bold=True)
    for row in rows:
        y += 8
        parts.append(bar(1, y - 9, max(row.nbytes / most * MAX_BAR_WIDTH, 1.5), bool(row.owner)))
        first = f"{bytes_text(row.nbytes)}, {row.spec}, freed when backward has passed #{row.last}"
        first += f"; {row.owner} holds it too" if row.owner else ""
        words(MAX_BAR_WIDTH + 8 + svg.PADDING, clean(first), "; ".join(keeper_lines(row)), rest=theme.MUTED)
    if len(record.rows) > MAX_ROWS:
        rest = record.rows[MAX_ROWS:]
        y += 8
        words(
            MAX_BAR_WIDTH + 8 + svg.PADDING,
            f"{count(len(rest), 'smaller array')}: {bytes_text(sum(row.nbytes for row in rest))}",
        )
    for owned, meaning in (
        ((False, "only the tape holds it"), (True, "also the numbers of a leaf or a variable")) if rows else ()
    ):
        y += 8
        parts.append(bar(1, y - 9, 24, owned))
        words(32 + svg.PADDING, meaning)
    y += 8
    if record.rows or record.gradients[0]:
        words(svg.PADDING, *notes(record), text_color=theme.MUTED)
    return svg.picture(parts, math.ceil(width), math.ceil(y), headline(record))


def memory_html(record: MemoryRecord) -> str:
    """Card with the picture and, folded, the table."""
    return picture_card(memory_svg(record), headline(record), memory_text(record))
