"""The details of one row of the explorer, or of one instruction: spec, source line, time, bytes, values, gradients.

Plain data (strings and lists) made from an ExplorerModel. Read next: `session.py`.
"""

from __future__ import annotations

from typing import Any

from ....core.host import HostArray
from ....views.explorer.grid import Row
from ....views.explorer.rows import Item, StepTree
from ....views.explorer.tiles import tiles_page
from ....views.records.step import StepNode, StepRecord
from ....views.text.listing import count
from .array_summary import Summary, number_text, summary_of
from .explorer_model import ExplorerModel

PHASE_NAMES = ("forward", "backward", "update")


def bytes_text(n: float) -> str:
    for unit in ("B", "kB", "MB"):
        if n < 1000:
            return f"{n:.3g} {unit}"
        n /= 1000
    return f"{n:.3g} GB"


def seconds_text(s: float) -> str:
    return f"{s * 1e6:.3g} µs" if s < 1e-3 else f"{s * 1e3:.3g} ms" if s < 1 else f"{s:.3g} s"


def numbers_of(label: str, s: Summary, page: int = 0) -> dict[str, Any]:
    """An array in the form that the script draws, with a page of its maps, or None for these.

    The corner, mostly padding, is left out if there are larger maps.
    """
    text = s.text + (f"; histogram of {s.sampled:,} of {s.size:,}" if s.sampled < s.size - s.non_finite else "")
    shape = [int(n) for n in s.spec.partition("[")[2].rstrip("]").split(",") if n]
    replaced = s.tiles and len(shape) > 2 and min(shape[-2:]) > len(s.corner)
    return {
        "label": label,
        "text": text,
        "low": number_text(s.low),
        "high": number_text(s.high),
        "counts": list(s.counts) if s.size > 1 else [],
        "corner": [] if replaced else [list(row) for row in s.corner],
        "power": s.power,
        "shape": shape,
        "maps": tiles_page(s.tiles, page) if s.tiles else None,
    }


def detail_of(model: ExplorerModel, tree: StepTree, row: Row, column: int) -> dict[str, Any]:
    """The details of a row in a column: {"title", "rows": [[what, text]], "arrays": [(label, Summary)]}."""
    record, item = tree.record, row.item
    parts = [record.nodes[i] for i in ops_of(tree, item, column) if is_part(record.nodes[i])]
    for name in dict.fromkeys([node.call for node in parts if item.kind == "op"]):
        model.record_inside(name)
    if item.kind == "input":
        state = record.nodes[item.states[0]]
        rows, values = [["input", state.outs[0]], ["bytes", bytes_text(state.nbytes)]], (state.name, -1)
        arrays = [("values", model.summaries[values])] if values in model.summaries else []
        return {"title": state.name, "rows": rows, "arrays": arrays}
    if item.kind == "output":
        return output_detail(model, tree, item)
    if item.kind == "state" or column == 2:
        return state_detail(model, tree, row)
    nodes = ops_of(tree, item, column)
    if item.kind == "op" and (len(nodes) == 1 or column == 0):
        detail = operation_detail(model, tree, item.nodes[0] if column == 0 else nodes[0])
        others = [record.nodes[i].name for i in nodes if column == 0 and i != item.nodes[0]]
        detail["rows"] += [["also covers", f"{name}, which keeps the shape"] for name in others]
        detail["rows"] += swap_rows(record, row, column, nodes)
        return detail
    return group_detail(model, tree, row, column, nodes)


def is_part(node: StepNode) -> bool:
    """True for a part of an opened operation, which has no call of its own."""
    return node.call not in ("", node.name)


def part_rows(model: ExplorerModel, node: StepNode) -> list[list[str]]:
    """The operation that it is a part of, and a note on its values."""
    if not is_part(node):
        return []
    note = model.inside.get(node.call, "")
    return [["part of", node.call]] + ([["values", note]] if note else [])


def swap_rows(record: StepRecord, row: Row, column: int, nodes: list[int]) -> list[list[str]]:
    """A note if a pass has swapped two backward operations, so that their shapes differ from those of forward."""
    makers = list(dict.fromkeys(record.nodes[i].by for i in nodes if record.nodes[i].by))
    if column != 1 or not row.ahead or not makers:
        return []
    order = f"runs before the backward of {row.ahead}, unlike forward's order, and so on other shapes"
    return [["order", f"{order}: the pass {', '.join(makers)} has swapped them"]]


def whole_detail(model: ExplorerModel, tree: StepTree) -> dict[str, Any]:
    """The details of the whole step, shown if no row is selected."""
    record, rows = tree.record, []
    seconds = model.call_seconds()
    for column, word in enumerate(PHASE_NAMES):
        nodes = ops_of(tree, tree.root, column)
        if nodes:
            time = seconds_text(sum(seconds.get(record.nodes[i].name, 0.0) for i in nodes)) if seconds else ""
            size = bytes_text(sum(record.nodes[i].nbytes for i in nodes)) + " written"
            rows.append([word, ", ".join(x for x in (count(len(nodes), "operation"), time, size) if x)])
    phases = len(rows)
    for kind in ("parameter", "buffer", "optimizer state"):
        states = [record.nodes[s] for s in record.states if record.nodes[s].role == kind]
        if states:
            rows.append([kind + "s", f"{sizes_text(states)}, {bytes_text(sum(s.nbytes for s in states))}"])
    if seconds:
        cold = model.timed_step.endswith("cold step")
        other = "later ones take less" if cold else "another takes a little more or less"
        rows.append(["times", f"of {which_step(model)}; {other}"])
    if any(step.run_index < k for k, step in enumerate(model.instructions)):
        rows.append(
            [
                "steps",
                "shown as forward, backward, update. In a call an update may run between operations of "
                "backward, as soon as its gradient is there, which saves memory (the pass reduce_memory)",
            ]
        )
    rows += [["note", record.note]] if record.note else []
    return {"title": "The whole step" if phases > 1 else "The whole graph", "rows": rows, "arrays": []}


def sizes_text(states: list[StepNode]) -> str:
    return f"{count(len(states), 'tensor')}, {count(sum(s.size for s in states), 'element')}"


def which_step(model: ExplorerModel) -> str:
    """The name of the step whose times are shown."""
    return model.timed_step if model.instructions else "the last timed call"


def ops_of(tree: StepTree, item: Item, column: int) -> list[int]:
    """The ops of an item in a column, in order."""
    return tree.reads.nodes_between(column, *leaves_of(tree, item))


def leaves_of(tree: StepTree, item: Item) -> tuple[int, int]:
    return (0, len(tree.leaves)) if item is tree.root else (item.first, item.last)


def read_masks(tree: StepTree, item: Item) -> tuple[HostArray, HostArray]:
    """Two masks over all reads: True if the source is in the item; True if the target is."""
    first, last = leaves_of(tree, item)
    source, target = tree.reads.source, tree.reads.target
    return (source >= first) & (source < last), (target >= first) & (target < last)


def name_and_spec(tree: StepTree, x: tuple[int, int] | None) -> tuple[str, str]:
    """(name, spec) of a value that an op reads."""
    if x is None:
        return "a number", ""
    node, index = tree.record.nodes[x[0]], x[1]
    return node.name + (f", output {index}" if len(node.outs) > 1 else ""), node.outs[index]


SCALAR_ROLES = {"lr": "learning rate"}  # name of a scalar that an update reads -> its role


def shape_text(spec: str) -> str:
    """ "[8, 3]", after the dtype unless that is float32; for a scalar the dtype, or empty for float32."""
    dtype, _, rest = spec.partition("[")
    shape = "" if rest == "]" else f"[{rest}"
    return " ".join(x for x in ("" if dtype == "float32" or not shape else dtype, shape) if x)


def describe_read(model: ExplorerModel, tree: StepTree, x: tuple[int, int] | None, values: bool) -> str:
    """A value that an op reads and its role: "parameter model.fc.bias [10], -0.16 to 0.16"."""
    name, spec = name_and_spec(tree, x)
    if x is None:
        return name
    node = tree.record.nodes[x[0]]
    role = node.role or ("gradient" if node.column == 1 else "result of")
    role = SCALAR_ROLES.get(name, role) if role == "number" else role
    words = "" if role == name else role if role in SCALAR_ROLES.values() else f"{role} {name}"
    words = " ".join(t for t in (words, shape_text(spec)) if t) or name
    numbers = model.value_summary(node.name, x[1], node.column < 0) if values else None
    return words + (f", {numbers.text}" if numbers else "")


def title_of(node: StepNode | None, name: str) -> str:
    return f"update of {name.removesuffix('_optimizer')}" if node is not None and node.phase == "optimizer" else name


def describe_results(record: StepRecord, i: int | None, n: int) -> list[str]:
    """The role of each result: for an update, the states that it writes, in the order in which it reads them."""
    states = [record.nodes[x[0]] for x in (record.reads[i] if i is not None else ()) if x is not None]
    written = [s for s in states if s.role in ("parameter", "optimizer state")]
    if i is not None and record.nodes[i].phase == "optimizer" and len(written) == n:
        return [f"new {s.role} {s.name}" for s in written]
    return [""] if n == 1 else [f"output {k}" for k in range(n)]


def phase_name(node: StepNode) -> str:
    return node.phase if node.phase == "recompute" else PHASE_NAMES[node.column]


def time_rows(model: ExplorerModel, nodes: list[StepNode]) -> list[list[str]]:
    """The time of these operations; for a part of an opened one, that of the whole."""
    known = model.call_seconds()
    names = list(dict.fromkeys([node.name if node.name in known else node.call for node in nodes]))
    alone = len(nodes) == 1 and names[0] != nodes[0].name
    if not model.runs:
        return []
    if not known:
        return [["time", "not measured: explore(graph, inputs), or graph.profile() before a call"]]
    total, mine = sum(known.values()), sum(known.get(name, 0.0) for name in names)
    share = f", {100 * mine / total:.3g} % of {which_step(model)}" if total else ""
    share += f", for {names[0]} as a whole" if alone else ""
    if not any(name in known for name in names):
        return [["time", "0: a view, created with the plan" if names else "0"]]
    return [["time", seconds_text(mine) + share]]


def operation_detail(model: ExplorerModel, tree: StepTree, i: int) -> dict[str, Any]:
    record = tree.record
    node = record.nodes[i]
    rows = [operation_row(node), *[["holds", note] for note in node.notes]]
    rows += [["phase", phase_name(node)]] if model.runs else []
    rows += [["input", describe_read(model, tree, x, False)] for x in record.reads[i]]
    rows += [["output", spec] for spec in node.outs]
    rows += [["line", node.where or "none: a pass added it"]] if model.runs or node.where else []
    rows += [["added by", f"the pass {node.by}"]] if node.by else []
    rows.append(["module", node.scope or "none"])
    if node.mark:
        rows.append(["this pass", node.mark])
    rows += part_rows(model, node)
    rows += time_rows(model, [node])
    size = "0: a view" if node.view else bytes_text(node.nbytes)
    size = "0: within the whole" if is_part(node) and not node.nbytes else size
    rows += [["bytes", size]] if model.runs or node.nbytes else []
    rows += storage_rows(model, node.name)
    numbers = model.summaries
    known = [k for k in range(len(node.outs)) if (node.name, k) in numbers]
    arrays = [("values" if len(node.outs) == 1 else f"output {k}", numbers[node.name, k]) for k in known]
    leaf = tree.leaf_of[i]
    arrays += gradients_of(model, tree, leaf, [i]) if not node.column and leaf is not None else []
    return {"title": title_of(node, node.name), "rows": rows, "arrays": arrays}


def operation_row(node: StepNode) -> list[str]:
    return ["operation", f"{node.label}({node.every})" if node.every else node.label]


def storage_rows(model: ExplorerModel, name: str) -> list[list[str]]:
    """Where the plan stores the first result."""
    part, _node, value = model.find_operation(name)
    if value is None:
        return []
    if value in part.plan.in_place:
        return [["stored in", f"{part.plan.in_place[value].name}, written in place"]]
    if value not in part.plan.places:
        return []
    offset, _, _, last = part.plan.places[value]
    nodes = part.graph.nodes
    until = f"until {part.names[nodes[last]]} has run" if last < len(nodes) else "until the next call"
    return [["stored in", f"the arena from byte {offset:,}, {until}"]]


def gradients_of(model: ExplorerModel, tree: StepTree, item: Item, nodes: list[int]) -> list[tuple[str, Summary]]:
    """The recorded gradient of an item's results: the values that its backward read from other items."""
    record, reads = tree.record, tree.reads
    specs = {spec for i in nodes for spec in record.nodes[i].outs}
    source, target = read_masks(tree, item)
    coming = reads.values_of(target & ~source & (reads.source_column == 1) & (reads.column == 1))
    keys = [(record.nodes[n].name, k) for n, k in coming if record.spec((n, k)) in specs]
    return [("gradient of the result", model.summaries[key]) for key in keys[:2] if key in model.summaries]


def boundary_values(tree: StepTree, item: Item, column: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The values that enter an item in a column, and those that leave it for other items or for the caller."""
    record, reads = tree.record, tree.reads
    source, target = read_masks(tree, item)
    own = (reads.column == column) & ((reads.source_column == column) | ((reads.source_column == -1) & (column == 0)))
    ins = [x for x in reads.values_of(own & target & ~source) if record.nodes[x[0]].kind != "state"]
    outs = reads.values_of(own & source & ~target & (reads.source_column == column))
    mine = set(ops_of(tree, item, column))
    passed = [(record.places[id], k) for id, k in record.outputs]
    return ins, [*outs, *[x for x in passed if x[0] in mine and x not in outs]]


def group_detail(model: ExplorerModel, tree: StepTree, row: Row, column: int, nodes: list[int]) -> dict[str, Any]:
    record, item = tree.record, row.item
    rows: list[list[str]] = []
    if whole := tree.whole_of(item):
        rows.append(["operation", whole.text])
    elif item.kind == "module":
        rows.append(["module", f"{item.path}  {item.label}".rstrip()])
    elif item.kind == "fold":
        rows.append(["folded", item.label])
    counts = [len(ops_of(tree, item, k)) for k in (0, 1, 2)]
    rows.append(["operations", ", ".join(f"{n:,} {word}" for n, word in zip(counts, PHASE_NAMES) if n)])
    ins, outs = boundary_values(tree, item, column)
    for word, values in (("input", ins), ("output", outs)):
        rows += [[word, record.spec(v)] for v in values[:4]]
        rows += [["", f"and {len(values) - 4} more"]] if len(values) > 4 else []
    where = list(dict.fromkeys(record.nodes[i].where for i in nodes if record.nodes[i].where))
    if where:
        rows.append(["lines", ", ".join(where[:4]) + (f" and {len(where) - 4} more" if len(where) > 4 else "")])
    rows += time_rows(model, [record.nodes[i] for i in nodes])
    rows += swap_rows(record, row, column, nodes)
    rows.append(["bytes written", bytes_text(sum(record.nodes[i].nbytes for i in nodes))])
    reads = tree.reads
    kept = (
        reads.values_of(read_masks(tree, item)[0] & (reads.source_column == 0) & (reads.column == 1))
        if column == 0
        else []
    )
    if kept:
        size = bytes_text(sum(record.nodes[n].nbytes for n, _ in kept))
        rows.append(["kept for backward", f"{count(len(kept), 'value')}, {size}"])
    states = [record.nodes[s] for s, leaf in tree.leaf_of_state.items() if item.first <= leaf.first < item.last]
    own = [s for s in states if s.role == "parameter"]
    if own and column == 0:
        size = f"{bytes_text(sum(s.nbytes for s in states))} with buffers and optimizer states"
        rows.append(["parameters", f"{sizes_text(own)}, {size}"])
    arrays = []
    for n, k in outs[:1] or [(i, 0) for i in nodes[-1:]]:
        if (record.nodes[n].name, k) in model.summaries:
            label = "values of the result" if column == 0 else "outgoing gradient"
            arrays.append((label, model.summaries[record.nodes[n].name, k]))
    if column == 0:
        arrays += gradients_of(model, tree, item, nodes)
    return {"title": item.name + ("" if column == 0 else ": backward"), "rows": rows, "arrays": arrays}


def output_detail(model: ExplorerModel, tree: StepTree, item: Item) -> dict[str, Any]:
    name, spec = name_and_spec(tree, tree.output_rows[item])
    key = (name.partition(", output ")[0], tree.output_rows[item][1])
    arrays = [("values", model.summaries[key])] if key in model.summaries else []
    return {"title": item.name, "rows": [["output", spec], ["computed by", name]], "arrays": arrays}


def state_detail(model: ExplorerModel, tree: StepTree, row: Row) -> dict[str, Any]:
    """Parameters of a row: current values, gradients of the last step, states and update."""
    record, item = tree.record, row.item
    states = [record.nodes[s] for s in row.states]
    own = [s for s in states if s.role in ("parameter", "buffer")]
    rows: list[list[str]] = []
    arrays: list[tuple[str, Summary]] = []
    for s in states[:12]:
        rows.append([s.role, f"{s.name}  {s.outs[0]}, {bytes_text(s.nbytes)}" + (f", {s.where}" if s.where else "")])
    if len(states) > 12:
        rows.append(["", f"and {len(states) - 12} more; open the module to see them"])
    updates = ops_of(tree, item, 2)
    for i in updates[:6]:
        rows.append(["updated by", f"{record.nodes[i].name}"])
    if updates:
        rows += time_rows(model, [record.nodes[i] for i in updates])
    for s in own[:4]:
        array = model.state_array(s.name)
        if array is not None:
            arrays.append((s.short + " now" * model.runs, summary_of(array, every=True)))
        leaf = tree.leaf_of[record.places[s.id]]
        gradient = model.gradient_summary(s.name) or recorded_gradient(model, tree, leaf)
        if gradient is not None:
            rows.append(["gradient norm", f"{gradient.norm:.4g}  {s.name}"])
            arrays.append((f"gradient of {s.short}", gradient))
        update = model.updates.get(s.name)
        if update is not None:
            before = model.states_before[s.name].norm
            share = f", {100 * update.norm / before:.3g} % of that of {s.short}" if before else ""
            rows.append(["update norm", f"{update.norm:.4g}{share}"])
            arrays.append((f"update of {s.short}", update))
    if len(own) == 1:
        for s in states:
            array = model.state_array(s.name)
            if s.role == "optimizer state" and array is not None:
                arrays.append((s.short + " now", summary_of(array, every=True)))
    title = item.name if item.kind in ("state", "rest") else f"{item.name}: parameters"
    return {"title": title, "rows": rows, "arrays": arrays}


def recorded_gradient(model: ExplorerModel, tree: StepTree, leaf: Item) -> Summary | None:
    """The gradient that the update of a parameter read in the recorded step."""
    nodes = tree.record.nodes
    for i in leaf.nodes:
        for x in tree.record.reads[i] if nodes[i].column == 2 else ():
            if x is not None and nodes[x[0]].column == 1:
                return model.summaries.get((nodes[x[0]].name, x[1]))
    return None


def instruction_detail(model: ExplorerModel, tree: StepTree, at: int) -> dict[str, Any]:
    """One instruction of the recorded step: its inputs and outputs, with values."""
    step = model.instructions[at]
    record = tree.record
    i = next((i for i, n in enumerate(record.nodes) if n.name == step.name and n.kind == "op"), None)
    node = None if i is None else record.nodes[i]
    rows = [operation_row(node), ["phase", phase_name(node)]] if node is not None else []
    rows += [["time", seconds_text(model.call_seconds().get(step.name, step.seconds))]]
    arrays: list[tuple[str, Summary]] = []
    rows += [["input", describe_read(model, tree, x, True)] for x in (record.reads[i] if i is not None else ())]
    outputs = describe_results(record, i, len(step.outs))
    for word, out in zip(outputs, step.outs):
        rows.append(["output", " ".join(t for t in (word, shape_text(out.spec)) if t) + f", {out.text}"])
        arrays.append((word or "values", out))
    if node is not None and node.where:
        rows.append(["line", node.where])
    if step.run_index < at:
        rows.append(["runs", f"earlier, as call {step.run_index + 1} of a step, right after {step.previous}"])
    return {"title": title_of(node, step.name), "rows": rows, "arrays": arrays, "node": -1 if i is None else i}
