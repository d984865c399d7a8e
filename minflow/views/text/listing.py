"""Records as text, for terminals, screen readers and golden tests.

Deterministic, at most about 120 columns. Read next: `../draw/dot.py`, the same records as pictures.
"""

from __future__ import annotations

from ...core.base.errors import clean as clean
from ..draw.fold import MAX_TREE_LINES, fold
from ..records.graph import GraphRecord, Input, NodeRecord, PartsRecord
from ..records.module import ModuleRecord, rows_of, rows_with_errors
from ..records.tape import TapeRecord
from .tables import cut as cut_end, table
from .trees import cut as cut, outer_rows, within_limit

MAX_INDENT_LEVEL = 24  # levels of a tree that are indented; deeper ones are written as a number
MAX_RIGHT_COLUMN = 74  # limit for the start of the right-hand column of a tree
MAX_SPECS_CHARS = 200  # characters of a list of specs
MAX_NAME_WIDTH = 52  # largest width of the first column of a module table
# prefix of a marked node
MARK_SIGNS = {"failed": "\u2717 ", "differs": "\u2717 ", "equal": "\u2713 ", "only": "? ", "ghost": "? "}
MAX_VALUES = 6  # values that a folded box lists; if there are more, only their count


def align_columns(rows: list[tuple[str, str]]) -> list[str]:
    """Left and right parts in two aligned columns."""
    width = min(max((len(left) for left, right in rows if right), default=0), MAX_RIGHT_COLUMN)
    return [f"{left:<{width}}  {right}".rstrip() for left, right in rows]


# ---- tape and graph ------------------------------------------------------------------------------------------------


def tape_text(record: TapeRecord, limit: int = MAX_TREE_LINES) -> str:
    """The tape as a tree: the tensor on top, the values that it was computed from below; a shared node once."""
    whole, record = record, fold(record, limit)
    ops = sum(n.count for n in record.nodes if n.kind in ("op", "folded"))
    leaves = sum(n.hidden or n.kind == "leaf" for n in whole.nodes)
    head = clean(record.title) + (
        f": {count(ops, 'operation')}, {count(leaves, 'leaf', 'leaves')}" if record.nodes else ""
    )
    rows = [(head, "")]
    by_id = {n.id: n for n in record.nodes}
    uses: dict[str, int] = {}
    for n in record.nodes:
        for ref in {x.ref for x in n.inputs if x.ref}:
            uses[ref] = uses.get(ref, 0) + 1
        for ref in [x.ref for x in n.inputs if x.ref]:
            uses[ref] = uses.get(ref, 0) + ([x.ref for x in n.inputs].count(ref) > 1)
    marks: dict[str, str] = {}
    # (input, prefix, the branch drawn before it, level); a stack: the last pushed is written first
    stack: list[tuple[Input, str, str, int]] = (
        [(Input("", record.root, record.index), "", "", 0)] if record.root else []
    )
    while stack:
        x, prefix, branch, level = stack.pop()
        lead = prefix + branch if level <= MAX_INDENT_LEVEL else f"{'':<{3 * MAX_INDENT_LEVEL}}({level}) "
        lead += f"{clean(x.name)}: " if x.name else ""
        if not x.ref:
            rows.append((lead + constant_text(x.text), ""))
            continue
        node = by_id[x.ref]
        if node.id in marks:
            rows.append((lead + f"{clean(node.label)}  see [{marks[node.id]}]", ""))
            continue
        tag = ""
        if uses.get(node.id, 0) > 1:
            marks[node.id] = str(len(marks) + 1)
            tag = f"[{marks[node.id]}] "
        output = f" (output {x.index})" if len(node.outs) > 1 and node.kind == "op" else ""
        rows.append((lead + tag + headline(node, x.index) + output, location_text(node)))
        below = prefix + ("   " if branch in ("", "└─ ") else "│  ") if level else ""
        for title, numbers in (("value", node.value), ("grad", node.grad)):
            if numbers:
                bar = "│  " if node.inputs else "   "
                rows.append(
                    (
                        (below + bar if level <= MAX_INDENT_LEVEL else " " * (3 * MAX_INDENT_LEVEL + 4))
                        + f"{title} {numbers}",
                        "",
                    )
                )
        inputs = shown_inputs(node)
        for i in range(len(inputs) - 1, -1, -1):
            stack.append((inputs[i], below, "└─ " if i == len(inputs) - 1 else "├─ ", level + 1))
    return "\n".join([*align_columns(rows), *([f"({record.note})"] if record.note else [])])


def shown_inputs(node: NodeRecord) -> list[Input]:
    """The inputs; a single one without its name."""
    if len(node.inputs) == 1:
        x = node.inputs[0]
        return [Input("", x.ref, x.index, x.text)]
    return list(node.inputs)


def headline(node: NodeRecord, index: int) -> str:
    """First line of a node: `matmul(ta=False) -> float32[64, 10]`."""
    spec = node.outs[index] if index < len(node.outs) else ""
    if node.kind == "folded":
        return f"{MARK_SIGNS.get(node.mark, '')}{clean(node.label)} ({node.attrs}) -> {spec}"
    if node.mark == "failed":
        return f"{MARK_SIGNS['failed']}{clean(node.label)}{f'({clean(node.attrs)})' if node.attrs else ''} fails"
    if node.kind == "constant":
        return f"{clean(node.label)} {constant_text(spec)}"
    if node.kind != "op":
        return f"{node.kind} {clean(node.label)}".replace("leaf leaf", "leaf") + f" {spec}"
    return f"{clean(node.label)}{f'({clean(node.attrs)})' if node.attrs else ''} -> {spec}"


def constant_text(text: str) -> str:
    """A Python number, or a tensor whose spec alone is recorded."""
    return f"{text}, no gradient" if "[" in text else text


def location_text(node: NodeRecord) -> str:
    scope = node.scope.lstrip("/") if node.kind != "leaf" else ""
    return "  ".join(clean(part) for part in (scope, node.where) if part)


def count(n: int, one: str, many: str = "") -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def graph_text(record: GraphRecord, limit: int = MAX_TREE_LINES) -> str:
    """The graph as a listing, one line per node, then updates and outputs; parts of opened operations are indented."""
    record = fold(record, limit)
    names: dict[tuple[str, int], str] = {}
    rows = [(clean(record.title), "")]
    whole = None
    for node in record.nodes:
        if node.whole and node.whole != whole:
            rows.append((f"{clean(node.whole.text)}:", clean(node.whole.scope)))
        whole = node.whole
        for k in range(len(node.outs)):
            names[node.id, k] = f"%{len(names)}"
        outs = [names[node.id, k] for k in range(len(node.outs))]
        many = node.kind == "folded" and len(outs) > MAX_VALUES
        values, specs = (
            (f"{outs[0]} .. {outs[-1]}", f"{len(outs)} values") if many else (", ".join(outs), ", ".join(node.outs))
        )
        if node.kind in ("input", "state"):
            rows.append((f"{values} = {node.kind} {clean(node.label)} {specs}", ""))
            continue
        read = [names.get((x.ref, x.index), "?") if x.ref else x.text for x in node.inputs]
        reads = [clean(values_text(read, node))] if read else []
        attrs = [clean(node.attrs)] if node.attrs else []
        if node.mark:
            values, specs = MARK_SIGNS[node.mark] + (values or "-"), "fails" if node.mark == "failed" else specs
        line = f"{values} = {clean(node.label)}({', '.join(reads + attrs)}) -> {specs}"
        rows.append(("  " * bool(whole) + line, location_text(node)))
    by_id = {n.id: n for n in record.nodes}
    updates: dict[tuple, list[str]] = {}  # updates between the same two boxes are listed together
    for state, id, k in record.updates:
        folded = by_id[state].kind == "folded"
        updates.setdefault((state, id) if folded else (state, id, k), []).append(names[id, k])
    for (state, id, *_), new in updates.items():
        rows.append((f"update {clean(by_id[state].label)} <- {values_text(new, by_id[state])}", ""))
    if record.outputs or not any(node.mark for node in record.nodes):
        rows.append((f"return {', '.join(names[o] for o in record.outputs)}", ""))
    held = [f"{names[n.id, 0]} {clean(n.label)}: {n.holders}" for n in record.nodes if n.holders and n.kind != "op"]
    slices = ["who holds which slice:", *held] if held else []
    return "\n".join([*align_columns(rows), *slices, *([f"({record.note})"] if record.note else [])])


def values_text(values: list[str], node: NodeRecord) -> str:
    """`%3, %4`, or "88 values" for a folded box with many."""
    return ", ".join(values) if node.kind != "folded" or len(values) <= MAX_VALUES else f"{len(values)} values"


def parts_text(record: PartsRecord, limit: int = MAX_TREE_LINES) -> str:
    """Each graph as its own listing, in execution order."""
    return "\n\n".join([clean(record.title), *[graph_text(part, limit) for part in record.parts]])


# ---- modules -------------------------------------------------------------------------------------------------------


def shape_of(spec: str) -> str:
    """8×6×28×28 for "float32[8, 6, 28, 28]", batch×10 for "float32[batch, 10]"; other dtypes are written before the
    shape. A text that is not a spec is unchanged.
    """
    dtype, bracket, rest = spec.partition("[")
    if not bracket or "(" in dtype:
        return spec
    shape = rest.partition("]")[0].replace(", ", "×") or "one number"
    return shape if dtype == "float32" else f"{dtype} {shape}"


def module_text(record: ModuleRecord) -> str:
    """The module tree as a table: layer, output shape, parameters, multiply-accumulates; totals below."""
    rows = rows_of(record)
    return within_limit(lambda most: module_table(record, rows, most))


def module_table(record: ModuleRecord, rows: list[tuple[int, ModuleRecord, int]], most: int) -> str:
    """The table with at most `most` rows."""
    ran = record.calls is not None
    head = ("layer", *["output"] * ran, "parameters", "trainable", "MACs" if ran else "bytes")
    shown = list(outer_rows([depth for depth, _, _ in rows], most, sorted(rows_with_errors(rows))))
    cells: list[tuple[str, ...]] = [head]
    for (i, depth, hidden), branch in zip(shown, branches([depth for _, depth, _ in shown])):
        module, empty = rows[i][1], [""] * (len(head) - 1)
        if hidden:
            cells.append(
                (f"{branch}... {count(sum(times for _, _, times in rows[i : i + hidden]), 'more module')}", *empty)
            )
            continue
        cells.append((branch + layer_title(module), *module_cells(module, ran)))
        if module.error:
            cells.append((branch.replace("├─ ", "│  ").replace("└─ ", "   ") + "   !! fails here", *empty))
    first, *lines = table(cells, range(len(head) - 3, len(head)))
    rule = "-" * max(map(len, (first, *lines)))
    return "\n".join([first, rule, *lines, rule, module_totals(record)])


def branches(depths: list[int]) -> list[str]:
    """The tree lines before each row, parents first."""
    result, open_ = [], [False] * (max(depths, default=0) + 2)  # for each depth: True if a row follows below
    for depth in reversed(depths):
        lines = "".join("│  " if more else "   " for more in open_[1:depth])
        result.append(lines + ("├─ " if open_[depth] else "└─ ") if depth else "")
        open_[depth] = True
        open_[depth + 1 :] = [False] * (len(open_) - depth - 1)
    return result[::-1]


def layer_title(module: ModuleRecord) -> str:
    name = f"{cut_end(clean(module.name), MAX_NAME_WIDTH)}: " if module.name else ""
    kind = (f"{module.count:,} x " if module.count > 1 else "") + cut_end(clean(module.kind), MAX_NAME_WIDTH)
    extra = cut_end(clean(module.extra), max(MAX_NAME_WIDTH - len(name) - len(kind) - 2, 16))
    return f"{name}{kind}" + (f"({extra})" if extra else "")


def module_cells(module: ModuleRecord, ran: bool) -> tuple[str, ...]:
    last = module.macs if ran else module.nbytes
    each = " each" if module.count > 1 else ""
    numbers = tuple(f"{n:,}{each}" if n else "-" for n in (module.params, module.trainable, last))
    if module.shared:
        numbers = ("shared", "", "")
    if not ran:
        return numbers
    nothing = "did not finish" if module.calls else "not reached"
    out = cut_end(", ".join(module.outputs), MAX_NAME_WIDTH) if module.outputs else nothing
    return (out + (f"  x{module.calls}" if (module.calls or 0) > 1 else ""), *numbers)


def module_totals(record: ModuleRecord) -> str:
    frozen = record.params - record.trainable
    parts = [
        f"{record.params:,} parameters"
        + (f", {frozen:,} of them frozen" if frozen else ", all trainable" if record.params else "")
    ]
    parts.append(nbytes_text(record.nbytes))
    lines = ["; ".join(parts)]
    if record.calls:
        inputs = "input " + cut_end(", ".join(record.inputs), MAX_SPECS_CHARS) + ": " if record.inputs else ""
        lines.append(
            f"{inputs}{record.macs:,} multiply-accumulates (MACs), "
            f"{nbytes_text(record.written)} of results of operations"
        )
    return "\n".join(lines)


def nbytes_text(n: int) -> str:
    """Format a number of bytes: `5,242,880 bytes (5.0 MiB)`."""
    return f"{n:,} bytes" + (f" ({n / 2**20:.1f} MiB)" if n >= 2**20 else "")
