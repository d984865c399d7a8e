"""Comparison of two recordings: the rows of the Comparison, the reason for the first difference, the picture.

Read next: `closeness.py`, equality; `views/renderers/divergence.py`, the rendering.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from ....compiler.executor import run_node
from ....core.ir import Graph as IR
from ....core.op import OPS
from ....diagnosis.failed_graph import separate_calls
from ....views.draw.fold import common_scope
from ....views.records.graph import GraphRecord, Input, NodeRecord, graph_record
from ....views.renderers.divergence import ComparedOperation, Comparison
from .closeness import ResultIndex, Tolerance, close, count_unequal
from .eager_run import Recording, Step

GHOSTS = 3  # at most this many ops of the reference are named and drawn
SHOWN = 4  # elements of an array that are shown

Sources = list[tuple[str, int, Any]]  # (id of a node in the picture, index of its result, the result)


class Pairing:
    """The ops of a graph (`ours`) and of a reference (`theirs`), paired.

    name, reference: the names of both. trace: the Steps of ours, also those that did not run.
    partners: for each of ours the index of its partner in theirs, or None. at: the row where they diverge, or None.
    """

    def __init__(self, name: str, reference: str, ours: Recording, theirs: Recording, tolerance: Tolerance):
        self.name, self.reference, self.tolerance = name, reference, tolerance
        self.trace, self.theirs = ours.steps, theirs.steps
        pairs = paired(self.trace, self.theirs, tolerance.exact)
        ran = [i for i, step in enumerate(self.trace) if step.arrays]
        if tolerance.exact:  # a pass may have added ops: they have no rows
            ran = [i for i in ran if i in pairs]
        self.ours, self.partners = [self.trace[i] for i in ran], [pairs.get(i) for i in ran]
        by_numbers = ResultIndex([step.arrays for step in self.theirs], tolerance)
        self.rows = [self.row(i, step, by_numbers) for i, step in enumerate(self.ours)]
        compared = {step for step, row in zip(self.ours, self.rows) if row.state != "only"}
        self.only_here = tuple([step.name for step in self.trace if step.arrays and step not in compared])
        self.outputs = in_order(ours.outputs, theirs.outputs)
        names = [name for name in ours.written if name in theirs.written]
        written = [[run.written[name] for name in names] for run in (ours, theirs)]
        self.states_agree = close(*written, tolerance)[0]
        self.at: int | None = None

    def row(self, i: int, step: Step, by_numbers: ResultIndex) -> ComparedOperation:
        j = self.partners[i]
        equal, gap = (False, 0.0) if j is None else close(step.arrays, self.theirs[j].arrays, self.tolerance)
        if not equal and j is not None and not self.tolerance.exact:
            equal, gap = self.by_one_gradient(step, self.theirs[j], gap)
        if not equal and not self.tolerance.exact and (other := by_numbers.find(step.arrays)) is not None:
            j = self.partners[i] = other
            equal, gap = True, 0.0
        state = "only" if j is None else "equal" if equal else "differs"
        phase = step.node.phase if step.node is not None else "forward"
        partner = "" if j is None else self.theirs[j].name
        spec = specs_text(step.arrays[:1] if self.tolerance.exact else step.arrays)
        return ComparedOperation(step.name, spec, step.where, state, partner, gap, step.scope, phase)

    def by_one_gradient(self, step: Step, other: Step, gap: float) -> tuple[bool, float]:
        """(equal, the largest difference) of an update whose gradients are equal, if both used the graph's gradient.

        An optimizer that divides a gradient by its size turns a gradient that is 0 except for rounding, such as that of
        a bias before a batch norm, into a whole step in either direction. gap: the difference with their own gradients.
        """
        updates = step.node is not None and step.node.phase == "optimizer"
        pairs = {name: both for name, *both in zip(step.node.op.inputs if updates else (), step.inputs, other.inputs)}
        if "grad" not in pairs or not close(*[[x] for x in pairs["grad"]], self.tolerance)[0]:
            return False, gap
        # the updated state was equal before, and eager overwrote it
        inputs = [x if name in ("grad", *step.node.op.outputs) else y for name, (x, y) in pairs.items()]
        return close(step.arrays, run_node(step.node, inputs), self.tolerance)

    def comparison(self, ir: IR, whole: bool) -> Comparison:
        """The record. ir: the trace of the graph. whole: compare gradients and updates even if outputs are equal."""
        outputs, others = self.outputs
        same, output = close(outputs, others, self.tolerance)
        self.at = self.divergence(same, whole)
        title = self.title(same)
        used, at = set(self.partners), self.at
        extra = tuple([self.place(step) for j, step in enumerate(self.theirs) if j not in used])
        shapes = [x.shape for x in outputs] == [x.shape for x in others]
        unlike = "" if shapes else f"{specs_text(outputs)} here, {specs_text(others)} in {self.reference}"
        return Comparison(
            title,
            tuple(self.rows),
            same and at is None,
            at,
            () if at is None else tuple(self.reasons(at)),
            output if shapes else None,
            extra,
            self.tolerance[:2],
            self.picture(ir, title),
            self.reference,
            unlike,
            self.only_here,
            self.tolerance.exact,
        )

    def divergence(self, same: bool, whole: bool) -> int | None:
        """The first op that differs; if ops that only this side has come just before it, the first of these.

        A view, such as a transposed weight, is not the cause: it has the elements of its base.
        """
        rows, differing = self.rows, [i for i, row in enumerate(self.rows) if row.state == "differs"]
        if self.tolerance.exact:
            return differing[0] if differing else None
        inside = whole and (differing or not self.states_agree)  # a gradient or update differs, not the outputs
        if not self.theirs or (same and not inside):
            return None
        end = differing[0] if differing else len(rows)
        start = max([i for i, row in enumerate(rows[:end]) if row.state == "equal"], default=-1) + 1
        last = min(end, len(rows) - 1)
        views = [step.op in OPS and OPS[step.op].is_view for step in self.ours[start:last]]
        return (start + [*views, False].index(False)) if start < len(rows) else None

    def title(self, same: bool) -> str:
        if self.tolerance.exact:
            equal = sum(row.state == "equal" for row in self.rows)
            return f"{self.name} against eager: {len(self.rows)} operations compared, {equal} bit for bit equal"
        both = f"{self.name} and {self.reference}"
        if self.at is not None:
            row = self.rows[self.at]
            return f"{self.name} parts from {self.reference} at operation {self.at + 1} of {len(self.rows)}: {row.name}"
        if same:
            return f"{both} agree"
        if not self.theirs:
            why = f"; in {self.reference} no operation of minflow ran, so only outputs could be compared"
        elif len(set(self.partners) - {None}) < len(self.theirs):
            why = f"; all operations are equal, and {self.reference} has more"
        else:
            why = ", from equal operations"
        return f"{both} have different outputs{why}"

    def place(self, step: Step) -> str:
        """ "relu at net.py:3" for an op of the reference, without the reference's name, which the row already has."""
        return f"{step.name.removeprefix(f'{self.reference}: ')} at {step.where}"

    def lacking(self, at: int) -> list[Step]:
        """The ops that only the reference has, between the last equal ops and the divergence; if the graph has other
        ops there, the reference's ops in their place.
        """
        known = [j for j in self.partners if j is not None]
        before = max([j for j in self.partners[:at] if j is not None], default=-1)
        after = next((j for j in self.partners[at:] if j is not None), len(self.theirs))
        return [step for k, step in enumerate(self.theirs[before + 1 : after], before + 1) if k not in known]

    def reasons(self, at: int) -> Iterator[tuple[str, str]]:
        """(name, sentence) for each: how the op differs, which ops only the reference has before it, which inputs
        differ already, and both arrays.
        """
        row, mine, j = self.rows[at], self.ours[at], self.partners[at]
        only = [(f"only in {self.reference}", self.place(step)) for step in self.lacking(at)[:GHOSTS]]
        if j is None:
            yield "differs", f"{self.reference} has no such operation here"
            yield from only
            return
        other = self.theirs[j]
        count = count_unequal(mine.arrays[0], other.arrays[0], self.tolerance)
        yield "differs", f"by at most {row.difference:.3g}; {count} of {mine.arrays[0].size} elements differ"
        yield from only
        for k, (x, y) in enumerate(zip(mine.inputs, other.inputs)):
            if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
                equal, gap = close([x], [y], self.tolerance)
                if not equal:
                    by = f", by at most {gap:.3g}" if gap == gap else ""
                    yield "input", f"{input_name(mine, k)}, {x.dtype}{list(x.shape)}, differs already{by}"
            elif not isinstance(x, np.ndarray) and not isinstance(y, np.ndarray) and x != y:
                yield "input", f"{input_name(mine, k)} is {x!r}, in {self.reference} {y!r}"
        yield "here", array_text(mine.arrays[0])
        yield f"in {self.reference}", f"{array_text(other.arrays[0])}  {self.place(other)}"

    # ---- the picture -------------------------------------------------------------------------------------------------

    def picture(self, ir: IR, title: str) -> GraphRecord:
        """The trace up to the divergence, with marks."""
        record = graph_record(ir, title)
        sources = len(ir.inputs) + len(ir.states)
        ids = {node: shown.id for node, shown in zip(ir.nodes, record.nodes[sources:])}
        rows = {step.node: row for step, row in zip(self.ours, self.rows)}
        last = None if self.at is None else self.ours[self.at]
        drawn = {step.node for step in self.trace[: None if last is None else self.trace.index(last) + 1]}
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
        return record if last is None or last.node not in ids else self.with_ghosts(record, last, ids)

    def with_ghosts(self, graph: GraphRecord, step: Step, ids: dict) -> GraphRecord:
        """The graph with the ops that only the reference has, connected to the ops that they read, and to the last node
        if that reads them in the reference.
        """
        at, j = self.at, self.partners[self.at]
        *others, last = graph.nodes
        scopes = {n.id: n.scope for n in graph.nodes}
        sources: Sources = [(x.ref, 0, array) for x, array in zip(last.inputs, step.inputs) if x.ref]
        for known, row in zip(self.ours[:at], self.rows):
            if row.state == "equal" and ids.get(known.node) in scopes:
                sources += [(ids[known.node], k, array) for k, array in enumerate(known.arrays)]
        ghosts: list[NodeRecord] = []
        for number, ghost in enumerate(self.lacking(at)[:GHOSTS]):
            names = OPS[ghost.op].inputs if ghost.op in OPS else ()
            inputs = []
            for k, x in enumerate(ghost.inputs):
                ref, index = self.source_of(x, sources)
                if ref:
                    inputs.append(Input(names[k] if k < len(names) and names[k][0] != "*" else "", ref, index))
            scope = common_scope([last.scope, *[scopes[x.ref] for x in inputs if scopes[x.ref]]])
            ghosts.append(
                NodeRecord(
                    f"ghost{number}",
                    "op",
                    ghost.op,
                    (specs_text(ghost.arrays),),
                    tuple(inputs),
                    scope=scope,
                    where=ghost.where,
                    needs=False,
                    mark="ghost",
                    notes=(f"only in {self.reference}",),
                )
            )
            scopes[ghosts[-1].id] = scope
            sources += [(ghosts[-1].id, k, x) for k, x in enumerate(ghost.arrays)]
        into = []
        from_ghosts = [source for source in sources if source[0].startswith("ghost")]
        for k, x in enumerate(self.theirs[j].inputs if j is not None else ()):
            ref, index = self.source_of(x, from_ghosts)
            into += [Input(last.inputs[k].name if k < len(last.inputs) else "", ref, index)] if ref else []
        return replace(graph, nodes=(*others, *ghosts, replace(last, inputs=(*last.inputs, *into))))

    def source_of(self, x: Any, sources: Sources) -> tuple[str, int]:
        """(id, output) of the last op that computed this array; ("", 0) if none did."""
        both = [(id, k, y) for id, k, y in sources if isinstance(x, np.ndarray) and isinstance(y, np.ndarray)]
        return next(((id, k) for id, k, y in reversed(both) if close([x], [y], self.tolerance)[0]), ("", 0))


def paired(ours: list[Step], theirs: list[Step], scoped: bool) -> dict[int, int]:
    """Pair ops by name and shapes, both in program order. scoped: also by module."""
    keys = [[step.key(scoped) for step in steps] for steps in (ours, theirs)]
    blocks = SequenceMatcher(None, *keys, autojunk=False).get_matching_blocks()
    return {a + i: b + i for a, b, size in blocks for i in range(size)}


def in_order(ours: list, theirs: list) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The arrays of both outputs; entries of a dict are matched by name, in any order."""
    named = dict(theirs)
    if {path for path, _ in ours} == set(named):
        theirs = [(path, named[path]) for path, _ in ours]
    return [x for _, x in ours], [x for _, x in theirs]


def specs_text(arrays: Sequence[np.ndarray]) -> str:
    more = f" and {len(arrays) - SHOWN} more" if len(arrays) > SHOWN else ""
    return ", ".join([f"{a.dtype}{list(a.shape)}" for a in arrays[:SHOWN]]) + more


def array_text(x: np.ndarray) -> str:
    """The first elements and the mean of all."""
    flat = np.ravel(x)
    first = ", ".join([f"{v:.4g}" for v in flat[:SHOWN].tolist()])
    with np.errstate(all="ignore"):
        return first if flat.size <= SHOWN else f"{first}, ... mean {flat.astype('float64').mean():.4g}"


def input_name(step: Step, number: int) -> str:
    """The name of the state or input that is read, else the op's name for that argument."""
    if number < len(step.reads) and step.reads[number]:
        return step.reads[number]
    names = OPS[step.op].inputs if step.op in OPS else ()
    return names[number] if number < len(names) and not names[number].startswith("*") else f"input {number + 1}"
