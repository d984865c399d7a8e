"""Why an operation of a graph has its sbp: its rows, and the bytes that boxing to each of them would send.

Read next: `../../../core/sharding.py`, which chooses; `../../../views/text/sharding.py`, the tables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ....core.base.errors import GraphError
from ....core.base.placement import Sbp, broadcast
from ....core.ir import Node, Source, Value, where_text
from ....core.op import Op
from ....core.ops.global_tensors import boxing
from ....core.sharding import Row, boxing_bytes, choose_row, cost_of, grown_sums, logical, rows_of
from ....core.source_location import fail
from ....core.spec import Spec
from ....diagnosis.name_suggestions import similar_names
from ....views.records.graph import input_name
from ....views.records.reports import SbpCall, SbpCalls, SbpChoice, SbpRow
from ..listing.reports import require_compiled
from ..listing.text import sbp_short, sbp_text

REASONS = (  # by the first field of `Cost` in which the chosen row is better than the next one
    "fewest bytes",
    "as many bytes as the next one, and fewer inputs are boxed",
    "as many bytes and boxed inputs as the next one, and no result is a partial sum",
    "as many bytes and boxed inputs as the next one, and the results are not whole on each rank",
    "the first of equal ones",
)


def sbp_calls(graph: Any, name: Any) -> SbpCalls:
    """The record of `graph.explain_sbp(name)`."""
    parts = require_compiled(graph).parts
    named = [(part.name_of(node), node) for part in parts for node in part.stages[0].graph.nodes]
    names = {node: text for text, node in named}
    calls = [(text, node) for text, node in named if has_rows(node)]
    if not calls:
        what = f"{graph.name} has no operation on global tensors, so none has an sbp"
        hint = "x.to_global(placement, sbp) for its inputs, or model.to_global(placement, sbp)"
        fail(GraphError, what, hint, graph=graph.name, operations=len(named))
    asked = str(name) if isinstance(name, Op) else name
    found = [(text, node) for text, node in calls if asked in (text, str(node.op)) or node is asked]
    if not found:
        what, hint = f"{graph.name} has no operation {asked!r} on global tensors", ""
        known = [text for text, _ in calls]
        for text, node in named:
            if text == asked:
                what = f"{asked} has no rows: it moves elements, or it is on local tensors"
                readers = [other for other, reader in calls if node in [x.node for x in values_of(reader)]]
                hint = f"graph.explain_sbp({readers[0]!r}), which reads it" if readers else ""
        near = similar_names(str(asked), [*known, *dict.fromkeys([str(node.op) for _, node in calls])], 3)
        hint = hint or f"one of {', '.join(near or known[:3])}; graph.debug(2) lists all"
        fail(GraphError, what, hint, name=str(asked), operations=f"{len(calls)} on global tensors")
    title = f"{graph.name}: the sbp of {asked if len(found) > 1 else found[0][0]}, with the bytes that each rank sends"
    return SbpCalls(title, tuple([sbp_call(node, names) for _, node in found]))


def has_rows(node: Node) -> bool:
    """True if the op was called on global tensors, and its call has chosen a row."""
    out = node.out_specs[0]
    return out is not None and out.placement is not None and not node.op.distributes and node.op.custom_backward is None


def values_of(node: Node) -> list[Value]:
    return [x for x in node.inputs if x.__class__ is Value]


def before_boxing(x: Any) -> Any:
    """The value that was boxed for the call that reads it; the program's own `to_global` gives a gradient sbp."""
    if x.__class__ is Value and x.node.op is boxing and x.node.attrs["gradient"] is None:
        source = x.node.inputs[0]
        return source if source.spec.placement == x.spec.placement else x
    return x


def sbp_call(node: Node, names: Mapping[Node, str]) -> SbpCall:
    placement = node.out_specs[0].placement
    before = [before_boxing(x) for x in node.inputs]
    axes = range(len(placement.hierarchy))
    choices = [choice(node, before, axis) for axis in axes]
    if None in choices:  # a boxing that this call has not caused
        before = node.inputs
        choices = [choice(node, before, axis) for axis in axes]
    inputs = tuple([(input_name(node, i), *input_texts(x, names)) for i, x in enumerate(before)])
    return SbpCall(names[node], where_text(node.where) if node.where else "", inputs, tuple([c for c in choices if c]))


def input_texts(x: Any, names: Mapping[Node, str]) -> tuple[str, str]:
    """The value and the spec of an input."""
    if x.__class__ is not Value:
        return str(x), ""
    return (x.node.name if isinstance(x.node, Source) else names[x.node]) or str(
        x.node.op
    ), f"{x.spec} ({sbp_text(x.spec)})"


def choice(node: Node, before: Sequence, axis: int) -> SbpChoice | None:
    """The rows along one axis of ranks; None if another row than that of the node would have been chosen."""
    total = math.prod(node.out_specs[0].placement.hierarchy)
    specs = [logical(x.spec) if x.__class__ is Value else x.__class__ for x in before]
    outs = [logical(s) for s in node.out_specs]
    have = [sbp_at(x.spec, axis) if x.__class__ is Value else None for x in before]
    call = node.op, specs, node.attrs, outs
    chosen = choose_row(*call, have, total)
    wanted = [sbp_at(x.spec, axis) if x.__class__ is Value else None for x in node.inputs]
    if before is not node.inputs and list(chosen.inputs) != wanted:
        return None
    rows = sorted(dict.fromkeys(rows_of(*call, total)), key=lambda row: cost_of(row, specs, outs, have, total))
    costs = [cost_of(row, specs, outs, have, total) for row in rows]
    better = next((i for i, (a, b) in enumerate(zip(costs[0], costs[1])) if a != b), 4) if len(rows) > 1 else 0
    why = REASONS[better] if len(rows) > 1 else "the only row"
    single = len(node.out_specs[0].placement.hierarchy) == 1
    shown = [sbp_row(row, specs, outs, have, total, row == chosen) for row in rows]
    return SbpChoice(None if single else axis, tuple(map(sbp_short, have)), tuple(shown), why)


def sbp_at(spec: Spec, axis: int) -> Sbp:
    return broadcast if spec.sbp is None else spec.sbp[axis]


def sbp_row(row: Row, specs: Sequence, outs: Sequence, have: Sequence, count: int, chosen: bool) -> SbpRow:
    nbytes = [
        0 if a is None or b is None else boxing_bytes(a, b, s.nbytes, count) for a, b, s in zip(have, row.inputs, specs)
    ]
    sums = grown_sums(row, specs, outs, count)
    return SbpRow(tuple(map(sbp_short, row.inputs)), tuple(map(sbp_short, row.outputs)), tuple(nbytes), sums, chosen)
