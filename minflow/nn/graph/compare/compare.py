"""`graph.compare(reference)`: two implementations on the same inputs, operation by operation, up to where they part.

The graph's trace is computed node by node, before any pass; the reference is another graph, or runs in eager. Nothing
changes: no state is written, or it is put back. Read next: `views/kinds/divergence.py`, the record; `eager_check.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any, NamedTuple

import numpy as np

from ....compiler.executor import LOCK, run_node
from ....core.base.errors import GraphError
from ....core.ir import Graph as IR
from ....core.ir import Node, Source, Value, outputs_of, where_text
from ....core.op import OPS
from ....core.random import default_generator
from ....core.tensor import Tensor
from ....core.where import fail
from ....views.kinds.divergence import Parting, PartingRow
from ....views.draw.fold import common_scope
from ....views.records.structure import GraphRecord, Input, NodeRecord, graph_record, walk
from ....diagnosis.failure import calls_apart
from ...module import Module
from .eager_check import as_called, distance, first_part, gaps_of, rows_of
from .eager_run import Step, followed
from ..tree import leaves, unflatten

NAME = 60  # characters of the reference's name
GHOSTS = 3  # operations of the reference that are drawn, at most
PROBES = 16  # numbers of an array that are looked at before all of them
NEAREST = 20  # operations whose numbers are all looked at, of those of one shape
FIRST = 4  # numbers of an array that are told


def compare_with(graph: Any, reference: Any, args: tuple, kwargs: dict, tolerance: Tolerance) -> Parting:
    """Compute both and compare."""
    if not callable(reference):
        fail(GraphError, f"{graph.name}.compare: the reference is {type(reference).__name__}, which cannot be called",
             "another graph, a module, or a function of the same inputs", reference=reference)  # fmt: skip
    for option, x in zip(tolerance._fields, tolerance):
        if x is not None and not (isinstance(x, int | float) and x >= 0):
            fail(GraphError, f"{graph.name}.compare: {option} is {x!r}", "a number from 0 on, or None for that of the dtype")
    with as_called(graph, *([reference] if hasattr(reference, "compiled_for") else [])):
        return compared(graph, reference, args, kwargs, tolerance)


def compared(graph: Any, reference: Any, args: tuple, kwargs: dict, tolerance: Tolerance) -> Parting:
    compiled = graph.compiled_for(args, kwargs)
    ir = compiled.parts[0].stages[0].graph
    generators = {*compiled.build.trace.draws, default_generator}
    ours, outputs, written = with_generators(generators, lambda: run_graph(graph, args, kwargs))
    agree = True
    if hasattr(reference, "compiled_for"):
        other = reference.compiled_for(args, kwargs)
        if other.steps != compiled.steps:
            counts = f"takes a batch in {compiled.steps} parts and {reference.name} in {other.steps}"
            fail(GraphError, f"{graph.name}.compare: {graph.name} {counts}",
                 "config.set_gradient_accumulation_steps with the same number in both")  # fmt: skip
        generators |= set(other.build.trace.draws)
        theirs, others, rewritten = with_generators(generators, lambda: run_graph(reference, args, kwargs))
        names = [name for name in written if name in rewritten]
        agree = alike([written[name] for name in names], [rewritten[name] for name in names], tolerance)[0]
        called, kept = reference.name, set(ir.nodes)
    else:
        first = first_part(args, kwargs, compiled.steps)
        theirs, others = with_generators(generators, lambda: run_eager(graph, reference, *first))
        called = type(reference).__name__ if isinstance(reference, Module) else str(getattr(reference, "__name__", "the reference"))[:NAME]
        kept = behind(ir.outputs[: len(outputs)])  # eager has its own way to count and to keep running statistics
    return parted(graph.name, called, ir, kept, ours, theirs, *in_order(outputs, others), agree, tolerance)


def behind(outputs: list[Value]) -> set[Node]:
    """The nodes that the outputs depend on."""
    return set(walk(dict.fromkeys(v.node for v in outputs)))


def with_generators(generators: set, work: Callable[[], Any]) -> Any:
    """Both draw the same random numbers, and the program's next ones are as if nothing had run."""
    before = [(g, g.get_state()) for g in generators]
    try:
        return work()
    finally:
        for generator, state in before:
            generator.set_state(state)


Given = list[tuple[tuple, np.ndarray]]  # what one gave: (path in its lists and dicts, numbers)


def in_order(ours: Given, theirs: Given) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The numbers of both, those of a dict by their names, whatever order it is in."""
    named = dict(theirs)
    if {path for path, _ in ours} == set(named):
        theirs = [(path, named[path]) for path, _ in ours]
    return [x for _, x in ours], [x for _, x in theirs]


def run_graph(graph: Any, args: tuple, kwargs: dict) -> tuple[list[Step], Given, dict[str, np.ndarray]]:
    """Every operation of the trace, in order; of a batch in parts the first. No state is written.

    Also what build gives, and what would be written: name of a state -> its new numbers.
    """
    compiled = graph.compiled_for(args, kwargs)
    part = compiled.parts[0]
    ir: IR = part.stages[0].graph
    arrays = rows_of(compiled, args, kwargs)
    env: dict[Value, Any] = {Value(s, 0, s.out_specs[0]): a for s, a in zip(ir.inputs, arrays)}
    steps = []
    with LOCK, np.errstate(all="ignore"):
        for state in ir.states:
            env[Value(state, 0, state.out_specs[0])] = state.array if state.read is None else np.array(state.read(), state.array.dtype)
        for node in ir.nodes:
            inputs = [env[x] if isinstance(x, Value) else x for x in node.inputs]
            found = run_node(node, inputs)
            env.update(zip(outputs_of(node), found))
            reads = tuple([x.node.name if isinstance(x, Value) and isinstance(x.node, Source) else "" for x in node.inputs])
            name = part.by_number.get(node.number, str(node.op))
            steps.append(Step(node.op.name, name, where_text(node.where), inputs, found, reads))
    outputs = [env[v] for v in ir.outputs[: len(compiled.build.outputs)]]
    given = [(path, x) for path, x in leaves(unflatten(compiled.build.out_tree, outputs)) if isinstance(x, np.ndarray)]
    return steps, given, {state.name: env[v] for state, v in ir.updates.items() if state.name}


def run_eager(graph: Any, reference: Any, args: tuple, kwargs: dict) -> tuple[list[Step], Given]:
    """The reference in eager: what it computes, and what it gives. All that it writes is put back.

    Raises GraphError if it gives something else than tensors, arrays of numbers and numbers.
    """
    buffers = reference.buffers() if isinstance(reference, Module) else ()
    inputs = [x for _, x in leaves((args, list(kwargs.values()))) if isinstance(x, Tensor)]
    with followed((*buffers, *inputs), [t for t, _ in graph.named_tensors()]) as mode:
        given = reference(*args, **kwargs)
        numbers = [(path, x) for path, x in leaves(given) if x is not None]
        found = [(path, np.array(x.array if isinstance(x, Tensor) else x)) for path, x in numbers]
        wrong = [x for (_, x), (_, array) in zip(numbers, found) if array.dtype.kind not in "fiub"] or [given] * (not found)
        if wrong:
            what = f"an array of {wrong[0].dtype}" if isinstance(wrong[0], np.ndarray) else f"something of type {type(wrong[0]).__name__}"
            fail(GraphError, f"{graph.name}.compare: the reference gives {what}, which cannot be compared",
                 "return tensors, arrays or numbers, in lists and dicts as build does")  # fmt: skip
    return mode.computing([x for _, x in numbers]), found


# ---- where they part -------------------------------------------------------------------------------------------------


# dtype -> rtol, atol; of others 0
DEFAULTS = {"float16": (1e-3, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}
ROUNDED = 8  # units in the last place of the largest number, that a sum in another order is given


class Tolerance(NamedTuple):
    """What is equal: |a - b| <= atol + rtol * |b|, number by number. None: the larger of the defaults of the two dtypes."""

    rtol: float | None = None
    atol: float | None = None

    def limits(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """How far each number of x may be from that of y."""
        size = sizes(y)
        return self.of((x.dtype, y.dtype), size, size.max(initial=0.0))

    def of(self, dtypes: tuple, size: np.ndarray, largest: np.ndarray) -> np.ndarray:
        """The limits for numbers of y of this size. largest: the size of the largest of the tensor that they are
        from."""
        defaults = [DEFAULTS.get(str(dtype), (0.0, 0.0)) for dtype in dtypes]
        rtol = max(d[0] for d in defaults) if self.rtol is None else self.rtol
        atol = self.atol
        if atol is None:
            eps = max([float(np.finfo(dtype).eps) for dtype in dtypes if dtype.kind == "f"], default=0.0)
            atol = np.maximum(max(d[1] for d in defaults), ROUNDED * eps * largest)
        with np.errstate(all="ignore"):  # an infinite rtol
            return atol + rtol * size


def sizes(x: np.ndarray) -> np.ndarray:
    """|x|, 0 of what is not finite."""
    size = np.abs(np.atleast_1d(x).astype("float64"))
    size[~np.isfinite(size)] = 0.0
    return size


def alike(a: Sequence[np.ndarray], b: Sequence[np.ndarray], tolerance: Tolerance) -> tuple[bool, float]:
    """(equal up to the tolerance, the largest difference).

    Of an op that gives numbers and places (max_pool2d) the numbers count: equal numbers may stand in several places.
    """
    if any(x.dtype.kind == "f" for x in a) and len(a) == len(b):
        a, b = zip(*[(x, y) for x, y in zip(a, b) if x.dtype.kind == "f"])
    if [x.shape for x in a] != [x.shape for x in b]:
        return False, float("nan")
    largest, equal = 0.0, True
    for x, y in zip(a, b):
        if x.dtype == y.dtype and x.tobytes() == y.tobytes():
            continue
        gap = distance(x, y)
        equal = equal and beyond(x, y, tolerance) == 0
        largest = gap if not gap <= largest else largest
    return equal, largest


def beyond(x: np.ndarray, y: np.ndarray, tolerance: Tolerance) -> int:
    """How many numbers are not equal."""
    return int(np.sum(~(gaps_of(x, y) <= tolerance.limits(x, y))))


def paired(ours: list[Step], theirs: list[Step]) -> dict[int, int]:
    """Operations by name and shapes, both in the order of the program."""
    blocks = SequenceMatcher(None, [s.key for s in ours], [s.key for s in theirs], autojunk=False).get_matching_blocks()
    return {a + i: b + i for a, b, size in blocks for i in range(size)}


class Others:
    """The operations of the other side, to look one up by its numbers. A few numbers of each are looked at first: where
    one of them differs nothing else is looked at, so that thousands that differ cost little."""

    def __init__(self, steps: list[Step], tolerance: Tolerance):
        self.steps, self.tolerance = steps, tolerance
        self.kinds: dict[tuple, list[int]] = {}  # (shape, dtype) -> numbers of the steps
        for j, step in enumerate(steps):
            if step.arrays:
                self.kinds.setdefault((step.arrays[0].shape, step.arrays[0].dtype), []).append(j)
        self.probes: dict[tuple, tuple[np.ndarray, np.ndarray]] = {}  # of each kind: the probes, and the largest size

    def same_as(self, step: Step) -> int | None:
        """The number of the first that gave the same numbers, whatever it is called."""
        near: list[tuple[float, int]] = []
        for (shape, dtype), numbers in self.kinds.items() if step.arrays else ():
            mine = step.arrays[0]
            if shape != mine.shape:
                continue
            if (shape, dtype) not in self.probes:
                arrays = [self.steps[j].arrays[0] for j in numbers]
                self.probes[shape, dtype] = np.array([probes(a) for a in arrays]), np.array([[sizes(a).max(initial=0.0)] for a in arrays])
            known, largest = self.probes[shape, dtype]
            gaps = gaps_of(known, probes(mine))
            fits = ((gaps == 0) | (gaps <= self.tolerance.of((mine.dtype, dtype), sizes(known), largest))).all(axis=1)
            near += [(float(gaps[k].max(initial=0.0)), numbers[k]) for k in np.flatnonzero(fits).tolist()]
        for j in sorted(j for _, j in sorted(near)[:NEAREST]):
            if alike(step.arrays[:1], self.steps[j].arrays[:1], self.tolerance)[0]:
                return j
        return None


def probes(x: np.ndarray) -> np.ndarray:
    """A few numbers of an array, from all over it."""
    flat = x.reshape(-1)
    return flat[:: max(1, flat.size // PROBES) | 1][:PROBES].astype("float64")  # not all of one column


def parted(name: str, called: str, ir: IR, kept: set[Node], ours: list[Step], theirs: list[Step], outputs: list, others: list,
           agree: bool, tolerance: Tolerance) -> Parting:  # fmt: skip
    """The record. agree: whether both write the same into states of one name."""
    nodes = [node for node in ir.nodes if node in kept]
    ours = [step for step, node in zip(ours, ir.nodes) if node in kept]
    pairs = paired(ours, theirs)
    rows: list[PartingRow] = []
    known = Others(theirs, tolerance)
    for i, step in enumerate(ours):
        j = pairs.get(i)
        equal, gap = alike(step.arrays, theirs[j].arrays, tolerance) if j is not None else (False, 0.0)
        if not equal:
            other = known.same_as(step)
            if other is not None:
                j, pairs[i], equal, gap = other, other, True, 0.0
        state = "only" if j is None else "equal" if equal else "differs"
        rows.append(PartingRow(step.name, spec_text(step), step.where, state, theirs[j].name if j is not None else "", gap))
    same, output = alike(outputs, others, tolerance)
    wrong = not agree or any(row.state == "differs" for row in rows)
    inside = len(kept) == len(ir.nodes) and wrong  # a gradient or an update, with equal outputs
    at = None if (same and not inside) or not theirs else first_of(rows, ours)
    used = set(pairs.values())
    extra = tuple([at_place(s, called) for j, s in enumerate(theirs) if j not in used])
    lacking = [] if at is None else lacked(at, rows, theirs, pairs)
    why = () if at is None else tuple(reasons(at, rows, ours, theirs, pairs, lacking, called, tolerance))
    if at is None:
        title = f"{name} and {called} agree" if same else f"{name} and {called} give other outputs"
        if not same and not theirs:
            title += f"; in {called} no operation of minflow ran, so only outputs could be compared"
        elif not same:
            title += f"; all operations are equal, and {called} has more" if extra else ", from equal operations"
    else:
        title = f"{name} parts from {called} at operation {at + 1} of {len(rows)}: {rows[at].name}"
    shapes = [x.shape for x in outputs] == [x.shape for x in others]
    marks = dict(zip(nodes, rows)) if at is None else dict(zip(nodes[: at + 1], rows))
    graph = marked(ir, marks, None if at is None else nodes[at], title)
    told = "" if shapes else f"{specs_text(outputs)} here, {specs_text(others)} in {called}"
    if at is not None:
        # as graph_record calls them
        ids = {node: f"n{i}" for i, node in enumerate((*ir.inputs, *ir.states, *ir.nodes))}
        equals = [(ids[node], step) for node, step, row in zip(nodes[:at], ours, rows) if row.state == "equal"]
        aim = theirs[pairs[at]] if at in pairs else None
        graph = with_ghosts(graph, ours[at], equals, lacking[:GHOSTS], aim, called, tolerance)
    return Parting(title, tuple(rows), same and at is None, at, why, output if shapes else None, extra, tolerance, graph, called, told)


def at_place(step: Step, called: str) -> str:
    """ "relu at net.py:3" of the reference, whose own name stands beside it."""
    return f"{step.name.removeprefix(f'{called}: ')} at {step.where}"


def lacked(at: int, rows: list[PartingRow], theirs: list[Step], pairs: dict[int, int]) -> list[Step]:
    """What only the reference has, between what was equal and where they part; or in the place of what only the graph
    has."""
    before, used = max([j for i, j in pairs.items() if i < at], default=-1), set(pairs.values())
    after = pairs[at] if at in pairs else next((pairs[i] for i in range(at, len(rows)) if i in pairs), len(theirs))
    return [step for k, step in enumerate(theirs[before + 1 : after], before + 1) if k not in used]


def spec_text(step: Step) -> str:
    return specs_text(step.arrays)


def specs_text(arrays: Sequence[np.ndarray]) -> str:
    more = f" and {len(arrays) - FIRST} more" if len(arrays) > FIRST else ""
    return ", ".join([f"{a.dtype}{list(a.shape)}" for a in arrays[:FIRST]]) + more


def first_of(rows: list[PartingRow], steps: list[Step]) -> int | None:
    """The first that differs; or, where operations that only this side has come just before it, the first of those.

    A view, such as a transposed weight, is not what parts them: it has the numbers of what it looks at.
    """
    differs = next((i for i, row in enumerate(rows) if row.state == "differs"), len(rows))
    start = max([i for i, row in enumerate(rows[:differs]) if row.state == "equal"], default=-1) + 1
    last = min(differs, len(rows) - 1)
    real = [i for i in range(start, last) if not (steps[i].op in OPS and OPS[steps[i].op].is_view)]
    return next(iter(real), last) if start < len(rows) else None


def reasons(at: int, rows: list[PartingRow], ours: list[Step], theirs: list[Step], pairs: dict[int, int], lacking: list[Step],
            called: str, tolerance: Tolerance):  # fmt: skip
    """(name, sentence): how it differs, what only the reference has before it, which of its inputs differs already,
    both numbers."""
    row = rows[at]
    if row.state == "only":
        yield "differs", f"{called} has no such operation here"
        yield from [(f"only in {called}", at_place(step, called)) for step in lacking[:3]]
        return
    there = theirs[pairs[at]]
    wrong = beyond(ours[at].arrays[0], there.arrays[0], tolerance)
    yield "differs", f"by at most {row.difference:.3g}; {wrong} of {ours[at].arrays[0].size} numbers differ"
    yield from [(f"only in {called}", at_place(step, called)) for step in lacking[:3]]
    for k, (x, y) in enumerate(zip(ours[at].inputs, there.inputs)):
        if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
            equal, gap = alike([x], [y], tolerance)
            if not equal:
                by = f", by at most {gap:.3g}" if gap == gap else ""
                yield "input", f"{input_name(ours[at], k)}, {x.dtype}{list(x.shape)}, differs already{by}"
        elif not isinstance(x, np.ndarray) and not isinstance(y, np.ndarray) and x != y:
            yield "input", f"{input_name(ours[at], k)} is {x!r}, in {called} {y!r}"
    yield "here", numbers(ours[at].arrays[0])
    yield f"in {called}", f"{numbers(there.arrays[0])}  {at_place(there, called)}"


def numbers(x: np.ndarray) -> str:
    """The first numbers and the mean of all."""
    flat = np.ravel(x)
    first = ", ".join([f"{v:.4g}" for v in flat[:FIRST].tolist()])
    with np.errstate(all="ignore"):
        return first if flat.size <= FIRST else f"{first}, ... mean {flat.astype('float64').mean():.4g}"


def input_name(step: Step, number: int) -> str:
    """The state or input that it reads, or how the op calls it."""
    if number < len(step.reads) and step.reads[number]:
        return step.reads[number]
    names = OPS[step.op].inputs if step.op in OPS else ()
    return names[number] if number < len(names) and not names[number].startswith("*") else f"input {number + 1}"


def marked(ir: IR, rows: dict[Node, PartingRow], at: Node | None, title: str) -> GraphRecord:
    """The trace up to where they part, with marks."""
    record = graph_record(ir, title)
    sources = len(ir.inputs) + len(ir.states)
    kept = list(record.nodes[:sources])
    for node, shown in zip(ir.nodes, record.nodes[sources:]):
        if node in rows:
            row = rows[node]
            note = "only here" if row.state == "only" else f"differs by {row.difference:.3g}"
            kept.append(replace(shown, mark="differs" if node is at else row.state, notes=(note,) if node is at else ()))
    used = {x.ref for n in kept for x in n.inputs}
    return replace(record, nodes=calls_apart(tuple([n for n in kept if n.kind == "op" or n.id in used])), outputs=(), updates=())


def with_ghosts(graph: GraphRecord, step: Step, known: list[tuple[str, Step]], lacking: list[Step], aim: Step | None, called: str,
                tolerance: Tolerance) -> GraphRecord:  # fmt: skip
    """The graph with what only the reference has, drawn where its numbers come from and, before the last node, where
    they go.

    step: the last node's.  known: (id, step) of nodes that are equal.  aim: what the reference has for the last node.
    """
    *others, last = graph.nodes
    scopes = {n.id: n.scope for n in graph.nodes}
    given = [(ref, 0, x) for ref, x in zip([x.ref for x in last.inputs], step.inputs) if ref]
    given += [(id, k, x) for id, made in known if id in scopes for k, x in enumerate(made.arrays)]
    ghosts = []
    for number, ghost in enumerate(lacking):
        names = OPS[ghost.op].inputs if ghost.op in OPS else ()
        found = []
        for k, x in enumerate(ghost.inputs):
            ref, index = source_of(x, given, tolerance)
            if ref:
                found.append(Input(names[k] if k < len(names) and names[k][0] != "*" else "", ref, index))
        scope = common_scope([last.scope, *[scopes[x.ref] for x in found if scopes[x.ref]]])
        ghosts.append(NodeRecord(f"ghost{number}", "op", ghost.op, (spec_text(ghost),), tuple(found), scope=scope, where=ghost.where,
                                 needs=False, mark="ghost", notes=(f"only in {called}",)))  # fmt: skip
        scopes[ghosts[-1].id] = scope
        given += [(ghosts[-1].id, k, x) for k, x in enumerate(ghost.arrays)]
    into = []
    for k, x in enumerate(aim.inputs if aim is not None else ()):
        ref, index = source_of(x, [source for source in given if source[0].startswith("ghost")], tolerance)
        into += [Input(last.inputs[k].name if k < len(last.inputs) else "", ref, index)] if ref else []
    return replace(graph, nodes=(*others, *ghosts, replace(last, inputs=(*last.inputs, *into))))


def source_of(x: Any, given: list[tuple[str, int, Any]], tolerance: Tolerance) -> tuple[str, int]:
    """(id, output) of the last that gave these numbers; ("", 0) if none did."""
    found = [(id, k) for id, k, y in given if isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and alike([x], [y], tolerance)[0]]
    return found[-1] if found else ("", 0)
