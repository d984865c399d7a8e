"""Comparison of two recordings: the rows of the GraphComparison, the reason for the first difference, the picture.

Read next: `closeness.py`, equality; `views/renderers/divergence.py`, the rendering.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any

from ....compiler.executor import run_node
from ....core.backend import Array, backend_of_array, is_array, to_host
from ....core.ir import Graph as IR
from ....core.op import OPS
from ....diagnosis.failed_graph import separate_calls
from ....views.draw.fold import common_scope
from ....views.records.graph import GraphRecord, Input, NodeRecord, graph_record
from ....views.renderers.divergence import ComparedOperation, GraphComparison
from .closeness import ResultIndex, Tolerance, compare_arrays, count_unequal
from .eager_run import RecordedOp, Recording

MAX_REFERENCE_ONLY = 3  # maximum number of ops of the reference that are named and drawn
MAX_ELEMENTS = 4  # maximum number of elements of an array that are shown

Sources = list[tuple[str, int, Any]]  # (id of a node in the picture, index of its result, the result)


class Pairing:
    """The ops of a graph and of a reference, paired.

    name, reference: the names of both. traced_ops: all ops of the graph, also those that did not run.
    graph_ops: those that ran. partners: for each of them the index of its partner in `reference_ops`, or None.
    divergence: the index of the op where they diverge, or None.
    """

    def __init__(self, name: str, reference: str, graph_run: Recording, reference_run: Recording, tolerance: Tolerance):
        self.name, self.reference, self.tolerance = name, reference, tolerance
        self.traced_ops, self.reference_ops = graph_run.ops, reference_run.ops
        pairs = pair_ops(self.traced_ops, self.reference_ops, tolerance.exact)
        ran = [i for i, op in enumerate(self.traced_ops) if op.arrays]
        if tolerance.exact:  # a pass may have added ops: they have no rows
            ran = [i for i in ran if i in pairs]
        self.graph_ops, self.partners = [self.traced_ops[i] for i in ran], [pairs.get(i) for i in ran]
        results = ResultIndex([op.arrays for op in self.reference_ops], tolerance)
        self.rows = [self.compare_op(i, op, results) for i, op in enumerate(self.graph_ops)]
        compared = {op for op, row in zip(self.graph_ops, self.rows) if row.state != "only"}
        self.only_here = tuple([op.name for op in self.traced_ops if op.arrays and op not in compared])
        self.outputs = match_outputs(graph_run.outputs, reference_run.outputs)
        names = [name for name in graph_run.written if name in reference_run.written]
        written = [[run.written[name] for name in names] for run in (graph_run, reference_run)]
        self.states_agree = compare_arrays(*written, tolerance)[0]
        self.divergence: int | None = None

    def compare_op(self, i: int, op: RecordedOp, results: ResultIndex) -> ComparedOperation:
        j = self.partners[i]
        equal, gap = False, 0.0
        if j is not None:
            equal, gap = compare_arrays(op.arrays, self.reference_ops[j].arrays, self.tolerance)
        if not equal and j is not None and not self.tolerance.exact:
            equal, gap = self.compare_update_with_same_gradient(op, self.reference_ops[j], gap)
        if not equal and not self.tolerance.exact and (other := results.find(op.arrays)) is not None:
            j = self.partners[i] = other
            equal, gap = True, 0.0
        state = "only" if j is None else "equal" if equal else "differs"
        phase = op.node.phase if op.node is not None else "forward"
        partner = "" if j is None else self.reference_ops[j].name
        spec = specs_text(op.arrays[:1] if self.tolerance.exact else op.arrays)
        return ComparedOperation(op.name, spec, op.where, state, partner, gap, op.scope, phase)

    def compare_update_with_same_gradient(self, op: RecordedOp, other: RecordedOp, gap: float) -> tuple[bool, float]:
        """(equal, the largest difference) of an update whose gradients are equal, if both used the graph's gradient.

        An optimizer that divides a gradient by its size turns a gradient that is 0 except for rounding, such as that of
        a bias before a batch norm, into a whole step in either direction. gap: the difference with their own gradients.
        """
        updates = op.node is not None and op.node.phase == "optimizer"
        pairs = {name: both for name, *both in zip(op.node.op.inputs if updates else (), op.inputs, other.inputs)}
        if "grad" not in pairs or not compare_arrays(*[[x] for x in pairs["grad"]], self.tolerance)[0]:
            return False, gap
        # the updated state was equal before, and eager overwrote it
        inputs = [x if name in ("grad", *op.node.op.outputs) else y for name, (x, y) in pairs.items()]
        return compare_arrays(op.arrays, run_node(op.node, inputs), self.tolerance)

    def comparison(self, ir: IR, whole: bool) -> GraphComparison:
        """The record. ir: the trace of the graph. whole: compare gradients and updates even if outputs are equal."""
        outputs, others = self.outputs
        same, output = compare_arrays(outputs, others, self.tolerance)
        self.divergence = self.find_divergence(same, whole)
        title = self.title(same)
        used, at = set(self.partners), self.divergence
        extra = tuple([self.location(op) for j, op in enumerate(self.reference_ops) if j not in used])
        shapes = [x.shape for x in outputs] == [x.shape for x in others]
        unlike = "" if shapes else f"{specs_text(outputs)} here, {specs_text(others)} in {self.reference}"
        return GraphComparison(
            title,
            tuple(self.rows),
            same and at is None,
            at,
            () if at is None else tuple(self.explain_difference(at)),
            output if shapes else None,
            extra,
            self.tolerance[:2],
            self.picture(ir, title),
            self.reference,
            unlike,
            self.only_here,
            self.tolerance.exact,
        )

    def find_divergence(self, same: bool, whole: bool) -> int | None:
        """The first op that differs; if ops that only this side has come just before it, the first of these.

        A view, such as a transposed weight, is not the cause: it has the elements of its base.
        """
        rows, differing = self.rows, [i for i, row in enumerate(self.rows) if row.state == "differs"]
        if self.tolerance.exact:
            return differing[0] if differing else None
        inside = whole and (differing or not self.states_agree)  # a gradient or update differs, not the outputs
        if not self.reference_ops or (same and not inside):
            return None
        end = differing[0] if differing else len(rows)
        start = max([i for i, row in enumerate(rows[:end]) if row.state == "equal"], default=-1) + 1
        last = min(end, len(rows) - 1)
        views = [op.op_name in OPS and OPS[op.op_name].is_view for op in self.graph_ops[start:last]]
        return (start + [*views, False].index(False)) if start < len(rows) else None

    def title(self, same: bool) -> str:
        if self.tolerance.exact:
            equal = sum(row.state == "equal" for row in self.rows)
            return f"{self.name} against eager: {len(self.rows)} operations compared, {equal} bit for bit equal"
        both = f"{self.name} and {self.reference}"
        if self.divergence is not None:
            row = self.rows[self.divergence]
            position = f"operation {self.divergence + 1} of {len(self.rows)}: {row.name}"
            return f"{self.name} diverges from {self.reference} at {position}"
        if same:
            return f"{both} agree"
        if not self.reference_ops:
            why = f"; in {self.reference} no operation of minflow ran, so only outputs could be compared"
        elif len(set(self.partners) - {None}) < len(self.reference_ops):
            why = f"; all operations are equal, and {self.reference} has more"
        else:
            why = ", from equal operations"
        return f"{both} have different outputs{why}"

    def location(self, op: RecordedOp) -> str:
        """ "relu at net.py:3" for an op of the reference, without the reference's name, which the row already has."""
        return f"{op.name.removeprefix(f'{self.reference}: ')} at {op.where}"

    def reference_only_ops(self, at: int) -> list[RecordedOp]:
        """The ops that only the reference has, between the last equal ops and the divergence; if the graph has other
        ops there, the reference's ops in their place.
        """
        known = [j for j in self.partners if j is not None]
        before = max([j for j in self.partners[:at] if j is not None], default=-1)
        after = next((j for j in self.partners[at:] if j is not None), len(self.reference_ops))
        return [op for k, op in enumerate(self.reference_ops[before + 1 : after], before + 1) if k not in known]

    def explain_difference(self, at: int) -> Iterator[tuple[str, str]]:
        """(name, sentence) for each: how the op differs, which ops only the reference has before it, which inputs
        differ already, and both arrays.
        """
        row, op, j = self.rows[at], self.graph_ops[at], self.partners[at]
        reference_only = self.reference_only_ops(at)[:MAX_REFERENCE_ONLY]
        only = [(f"only in {self.reference}", self.location(other)) for other in reference_only]
        if j is None:
            yield "differs", f"{self.reference} has no such operation here"
            yield from only
            return
        other = self.reference_ops[j]
        count = count_unequal(op.arrays[0], other.arrays[0], self.tolerance)
        yield "differs", f"by at most {row.difference:.3g}; {count} of {op.arrays[0].size} elements differ"
        yield from only
        for k, (x, y) in enumerate(zip(op.inputs, other.inputs)):
            if is_array(x) and is_array(y):
                equal, gap = compare_arrays([x], [y], self.tolerance)
                if not equal:
                    by = f", by at most {gap:.3g}" if gap == gap else ""
                    yield "input", f"{input_name(op, k)}, {x.dtype}{list(x.shape)}, differs already{by}"
            elif not is_array(x) and not is_array(y) and x != y:
                yield "input", f"{input_name(op, k)} is {x!r}, in {self.reference} {y!r}"
        yield "here", array_text(op.arrays[0])
        yield f"in {self.reference}", f"{array_text(other.arrays[0])}  {self.location(other)}"

    # ---- the picture -------------------------------------------------------------------------------------------------

    def picture(self, ir: IR, title: str) -> GraphRecord:
        """The trace up to the divergence, with marks."""
        record = graph_record(ir, title)
        sources = len(ir.inputs) + len(ir.states)
        ids = {node: shown.id for node, shown in zip(ir.nodes, record.nodes[sources:])}
        rows = {op.node: row for op, row in zip(self.graph_ops, self.rows)}
        last = None if self.divergence is None else self.graph_ops[self.divergence]
        drawn = {op.node for op in self.traced_ops[: None if last is None else self.traced_ops.index(last) + 1]}
        kept = list(record.nodes[:sources])
        for node, shown in zip(ir.nodes, record.nodes[sources:]):
            if last is not None and node is last.node:
                row = rows[node]
                note = "only here" if row.state == "only" else f"differs by {row.difference:.3g}"
                kept.append(replace(shown, mark="differs", notes=(note,)))
            elif node in drawn:
                kept.append(replace(shown, mark=rows[node].state if node in rows else ""))
        used = {x.ref for n in kept for x in n.inputs}
        nodes = separate_calls(tuple([n for n in kept if n.kind == "op" or n.id in used]))
        record = replace(record, nodes=nodes, outputs=(), updates=())
        return record if last is None or last.node not in ids else self.add_reference_only_ops(record, last, ids)

    def add_reference_only_ops(self, graph: GraphRecord, op: RecordedOp, ids: dict) -> GraphRecord:
        """The graph with the ops that only the reference has, connected to the ops that they read, and to the last node
        if that reads them in the reference.
        """
        at, j = self.divergence, self.partners[self.divergence]
        *others, last = graph.nodes
        scopes = {n.id: n.scope for n in graph.nodes}
        sources: Sources = [(x.ref, 0, array) for x, array in zip(last.inputs, op.inputs) if x.ref]
        for known, row in zip(self.graph_ops[:at], self.rows):
            if row.state == "equal" and ids.get(known.node) in scopes:
                sources += [(ids[known.node], k, array) for k, array in enumerate(known.arrays)]
        added: list[NodeRecord] = []
        for number, ghost in enumerate(self.reference_only_ops(at)[:MAX_REFERENCE_ONLY]):
            names = OPS[ghost.op_name].inputs if ghost.op_name in OPS else ()
            inputs = []
            for k, x in enumerate(ghost.inputs):
                ref, index = self.source_of(x, sources)
                if ref:
                    inputs.append(Input(names[k] if k < len(names) and names[k][0] != "*" else "", ref, index))
            scope = common_scope([last.scope, *[scopes[x.ref] for x in inputs if scopes[x.ref]]])
            added.append(
                NodeRecord(
                    f"ghost{number}",
                    "op",
                    ghost.op_name,
                    (specs_text(ghost.arrays),),
                    tuple(inputs),
                    scope=scope,
                    where=ghost.where,
                    needs=False,
                    mark="ghost",
                    notes=(f"only in {self.reference}",),
                )
            )
            scopes[added[-1].id] = scope
            sources += [(added[-1].id, k, x) for k, x in enumerate(ghost.arrays)]
        into = []
        from_added = [source for source in sources if source[0].startswith("ghost")]
        for k, x in enumerate(self.reference_ops[j].inputs if j is not None else ()):
            ref, index = self.source_of(x, from_added)
            into += [Input(last.inputs[k].name if k < len(last.inputs) else "", ref, index)] if ref else []
        return replace(graph, nodes=(*others, *added, replace(last, inputs=(*last.inputs, *into))))

    def source_of(self, x: Any, sources: Sources) -> tuple[str, int]:
        """(id, output) of the last op that computed this array; ("", 0) if none did."""
        both = [(id, k, y) for id, k, y in sources if is_array(x) and is_array(y)]
        return next(((id, k) for id, k, y in reversed(both) if compare_arrays([x], [y], self.tolerance)[0]), ("", 0))


def pair_ops(graph_ops: list[RecordedOp], reference_ops: list[RecordedOp], scoped: bool) -> dict[int, int]:
    """Pair ops by name and shapes, both in program order. scoped: also by module."""
    keys = [[op.key(scoped) for op in ops] for ops in (graph_ops, reference_ops)]
    blocks = SequenceMatcher(None, *keys, autojunk=False).get_matching_blocks()
    return {a + i: b + i for a, b, size in blocks for i in range(size)}


def match_outputs(outputs: list, reference_outputs: list) -> tuple[list[Array], list[Array]]:
    """The arrays of both outputs; entries of a dict are matched by name, in any order."""
    named = dict(reference_outputs)
    if {path for path, _ in outputs} == set(named):
        reference_outputs = [(path, named[path]) for path, _ in outputs]
    return [x for _, x in outputs], [x for _, x in reference_outputs]


def specs_text(arrays: Sequence[Array]) -> str:
    more = f" and {len(arrays) - MAX_ELEMENTS} more" if len(arrays) > MAX_ELEMENTS else ""
    return ", ".join([f"{a.dtype}{list(a.shape)}" for a in arrays[:MAX_ELEMENTS]]) + more


def array_text(x: Array) -> str:
    """The first elements and the mean of all."""
    flat = x.reshape(-1)
    first = ", ".join([f"{v:.4g}" for v in to_host(flat[:MAX_ELEMENTS]).tolist()])
    with backend_of_array(x).silent():
        return first if flat.size <= MAX_ELEMENTS else f"{first}, ... mean {float(flat.astype('float64').mean()):.4g}"


def input_name(op: RecordedOp, number: int) -> str:
    """The name of the state or input that is read, else the op's name for that argument."""
    if number < len(op.reads) and op.reads[number]:
        return op.reads[number]
    names = OPS[op.op_name].inputs if op.op_name in OPS else ()
    return names[number] if number < len(names) and not names[number].startswith("*") else f"input {number + 1}"
